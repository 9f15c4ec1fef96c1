/* Encodes plain text: the ids of its documents, concatenated. */
#include "data/internal.h"

#include <string.h>

#define END_OF_TEXT "<|endoftext|>"
#define BLANKS      " \t\r\n\v\f"

/* A separator of documents: a marker, or a line break. */
typedef struct Separator {
    const char *bytes;
    size_t length;
    bool is_line; /* it separates documents only as a whole line */
} Separator;

/* The next separator, or `end`. */
static const char *find(const Separator *separator, const char *begin, const char *at,
                        const char *end)
{
    for (; at < end; at++) {
        at = memmem(at, (size_t)(end - at), separator->bytes, separator->length);
        if (!at)
            break;
        const char *after = at + separator->length;
        if (!separator->is_line ||
            ((at == begin || at[-1] == '\n') && (after == end || *after == '\n' || *after == '\r')))
            return at;
    }
    return end;
}

static Separator separator_of(const char *text, const char *end)
{
    static const Separator known[] = {{END_OF_TEXT, sizeof END_OF_TEXT - 1, false}, {"-", 1, true}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (find(known + i, text, text, end) < end)
            return known[i];
    return (Separator){"\n", 1, false};
}

static bool is_blank(char byte)
{
    return byte && strchr(BLANKS, byte);
}

/* Encodes a document without the blanks around it. */
static bool encode_document(const Tokenizer *tokenizer, Text text, Content *content,
                            Problem *problem)
{
    Ids *ids = &content->ids;
    for (; text.length > 0 && is_blank(*text.bytes); text.bytes++, text.length--)
        text.line += *text.bytes == '\n';
    while (text.length > 0 && is_blank(text.bytes[text.length - 1]))
        text.length--;
    if (text.length == 0)
        return true;
    const int32_t first = tokenizer->special[BEGIN_TOKEN], last = tokenizer->special[END_TOKEN];
    if (first >= 0 && first != last)
        ids_put(ids, first);
    if (!tokenizer->kind->encode(tokenizer, text, ids, problem))
        return false;
    if (last >= 0)
        ids_put(ids, last);
    content->begin = reallocate(content->begin, (++content->rows + 1) * sizeof *content->begin);
    content->begin[content->rows] = ids->count;
    return true;
}

/* Is it a CSV file of reviews (csv.c)? */
static bool is_reviews(const char *bytes, size_t length)
{
    static const char header[] = "review,label";
    const size_t size = sizeof header - 1;
    return length > size && memcmp(bytes, header, size) == 0 && strchr("\r\n", bytes[size]);
}

static bool is_named_csv(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && strcasecmp(dot, ".csv") == 0;
}

bool documents_encode(const Tokenizer *tokenizer, const char *path, const char *bytes,
                      size_t length, Content *content, Problem *problem)
{
    skip_bom(&bytes, &length);
    if (!utf8_check((Text){bytes, length, path, 1}, problem))
        return false;
    if (is_reviews(bytes, length) || is_named_csv(path))
        return problem_set(problem, path,
                           "MODEL=gpt2, MODEL=llama and TASK=mlm train on plain text, such as "
                           "data/stories/train.txt; the other models train on reviews",
                           is_reviews(bytes, length)
                               ? N_("the file is not plain text: it has reviews with labels")
                               : N_("the file is not plain text: its name ends with .csv"));
    const char *end = bytes + length;
    const Separator separator = separator_of(bytes, end);
    int64_t line = 1;
    for (const char *at = bytes, *next; at < end; at = next) {
        const char *last = find(&separator, bytes, at, end);
        if (!encode_document(tokenizer, (Text){at, (size_t)(last - at), path, line}, content,
                             problem))
            return false;
        next = last < end ? last + separator.length : end;
        line += line_breaks(at, (size_t)(next - at));
    }
    return content->rows > 0 ||
           problem_set(problem, path,
                       "give a text: documents with <|endoftext|> between them, or one per line",
                       "the text is empty");
}
