/* tokenize: prints the ids of each line of standard input, or of all of it; or the text of ids. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/language.h"
#include "base/options.h"
#include "data/data.h"

#define USAGE N_("tokenize --vocab FILE [--seq N | --text | --decode] < texts")

typedef struct Options {
    const char *vocabulary;
    int32_t seq;
    bool text, decode; /* the whole input is one text, or ids */
    bool help;
} Options;

static bool parse_options(int argc, char **argv, Options *options, Problem *problem)
{
    *options = (Options){0};
    const Option known[] = {
        TEXT_OPTION("vocab", &options->vocabulary),
        NUMBER_OPTION("seq", &options->seq, SEQ_MIN, SEQ_MAX),
        FLAG_OPTION("text", &options->text),
        FLAG_OPTION("decode", &options->decode),
        FLAG_OPTION("help", &options->help),
        {0},
    };
    if (!options_read(known, argc, argv, USAGE, problem))
        return false;
    if ((options->seq > 0) + options->text + options->decode > 1)
        return problem_set(problem, NULL, USAGE, "--seq, --text and --decode cannot be combined");
    options->seq = options->seq ? options->seq : 512;
    return options->help || options->vocabulary ||
           problem_set(problem, NULL, USAGE, "--vocab is missing");
}

static void print_ids(const int32_t *ids, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        printf(i ? " %d" : "%d", (int)ids[i]);
    putchar('\n');
}

static bool tokenize_text(const Tokenizer *tokenizer, Text text, Problem *problem)
{
    int32_t *ids;
    if (!utf8_check(text, problem))
        return false;
    const int64_t count = tokenizer_encode_text(tokenizer, text, &ids, problem);
    if (count < 0)
        return false;
    print_ids(ids, count);
    free(ids);
    return true;
}

/* Prints the text of `numbers`: ids, separated by blanks and line breaks. */
static bool print_text(const Tokenizer *tokenizer, char *numbers, size_t size, Problem *problem)
{
    int64_t count = 0;
    size_t length = strlen(numbers);
    if (length < size)
        return problem_set(problem, _("standard input"), USAGE,
                           "the ids have a zero byte at byte %zu", length + 1);
    int32_t *ids = malloc((strlen(numbers) / 2 + 1) * sizeof *ids);
    char *rest = NULL;
    for (char *word = strtok_r(numbers, " \n", &rest); ids && word;
         word = strtok_r(NULL, " \n", &rest)) {
        char *end;
        const long id = strtol(word, &end, 10);
        if (*end || id < 0 || id >= tokenizer_size(tokenizer)) {
            free(ids);
            return problem_set(problem, _("standard input"), USAGE,
                               "'%.40s' is not an id: ids are from 0 to %d", word,
                               (int)tokenizer_size(tokenizer) - 1);
        }
        ids[count++] = (int32_t)id;
    }
    char *text = tokenizer_decode(tokenizer, ids, count, &length);
    fwrite(text, 1, length, stdout);
    free(text);
    free(ids);
    return true;
}

static bool tokenize_lines(const Tokenizer *tokenizer, const Options *options, Problem *problem)
{
    char *bytes = NULL;
    size_t capacity = 0;
    ssize_t length;
    bool ok = true;
    int32_t *ids = malloc((size_t)options->seq * sizeof *ids);
    if (!ids)
        return problem_set(problem, NULL, "choose a smaller --seq",
                           "out of memory: cannot allocate %d ids", (int)options->seq);
    for (int64_t line = 1; ok && (length = getline(&bytes, &capacity, stdin)) >= 0; line++) {
        if (length > 0 && bytes[length - 1] == '\n')
            length--;
        const Text text = {bytes, (size_t)length, _("standard input"), line};
        const int64_t count = utf8_check(text, problem)
                                  ? tokenizer_encode(tokenizer, text, options->seq, ids, problem)
                                  : -1;
        ok = count >= 0;
        if (ok)
            print_ids(ids, count);
    }
    free(bytes);
    free(ids);
    return ok;
}

static bool tokenize_input(const Tokenizer *tokenizer, const Options *options, Problem *problem)
{
    char *text = NULL;
    size_t length = 0;
    bool ok;
    if (options->text || options->decode) {
        FILE *all = open_memstream(&text, &length);
        char part[65536];
        for (size_t got; (got = fread(part, 1, sizeof part, stdin)) > 0;)
            fwrite(part, 1, got, all);
        fclose(all);
        ok = options->decode
                 ? print_text(tokenizer, text, length, problem)
                 : tokenize_text(tokenizer, (Text){text, length, _("standard input"), 1}, problem);
    } else {
        ok = tokenize_lines(tokenizer, options, problem);
    }
    free(text);
    if (ok && ferror(stdin))
        ok = problem_set(problem, _("standard input"), USAGE, "the texts cannot be read: %s",
                         strerror(errno));
    return ok;
}

int main(int argc, char **argv)
{
    language_begin();
    problem_if_output_is_lost();
    Options options;
    Problem problem;
    Tokenizer *tokenizer = NULL;
    bool ok = parse_options(argc, argv, &options, &problem);
    if (ok && options.help) {
        printf(
            "%s\n\n%s\n", _(USAGE),
            _("Prints the ids of each line with begin and end tokens, truncated to N (512) and not "
              "padded; with --text, all ids of the whole input without these tokens; with "
              "--decode, the text of ids. FILE is a tokenizer of any kind, or a folder."));
        return 0;
    }
    if (ok)
        tokenizer = tokenizer_open(options.vocabulary, &problem);
    ok = tokenizer && tokenize_input(tokenizer, &options, &problem);
    tokenizer_free(tokenizer);
    if (!ok)
        problem_print(stderr, &problem);
    return ok ? 0 : 2;
}
