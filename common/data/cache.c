/* The token cache: a file of ids that all ranks of a node map. */
#include "data/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/replacement.h"

/* The file: this header, begin [rows+1] int64, labels [rows] int32, ids [tokens] int32. The rows of a
 * text are its documents, which have no labels, and which SEQ has not cut. */
typedef struct Header {
    char magic[8];
    uint64_t format;
    XXH128_hash_t key; /* checksum of everything that the tokens depend on */
    int64_t rows, tokens;
    int64_t seq, vocabulary, pad; /* seq: 0 for a text */
    int64_t unused;               /* keeps begin at a multiple of 16 */
    XXH128_hash_t checksum;       /* of the fields above and of all bytes after the header */
} Header;

static const char MAGIC[8] = {'B', 'A', 'L', 'I', 'S', 'E', '\r', '\n'};
enum { FORMAT = 2 }; /* increase it when the file format or the tokenizer changes */

/* A file, and how to tokenize it. */
typedef struct Source {
    const char *path;        /* the file of the reviews, or of the text */
    const char *what, *hint; /* for a message about this file */
    const Tokenizer *tokenizer;
    int64_t seq; /* 0 for a text */
} Source;

static XXH128_hash_t key_of(const Source *from, XXH128_hash_t file)
{
    const XXH128_hash_t tokenizer = from->tokenizer->key;
    uint64_t parts[] = {file.low64,       file.high64,         tokenizer.low64,
                        tokenizer.high64, (uint64_t)from->seq, FORMAT};
    return XXH3_128bits(parts, sizeof parts);
}

static XXH128_hash_t checksum_of(const Header *header, const struct iovec *parts, int count)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        abort();
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, header, offsetof(Header, checksum));
    for (int i = 0; i < count; i++)
        XXH3_128bits_update(state, parts[i].iov_base, parts[i].iov_len);
    XXH128_hash_t sum = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    return sum;
}

/* Are the mapped bytes a complete, undamaged cache file for `key`? */
static bool is_intact(void *map, size_t size, XXH128_hash_t key)
{
    const Header *header = map;
    if (size < sizeof *header || memcmp(header->magic, MAGIC, sizeof MAGIC) != 0 ||
        header->format != FORMAT || !XXH128_isEqual(header->key, key))
        return false;
    const struct iovec rest = {(char *)map + sizeof *header, size - sizeof *header};
    return XXH128_isEqual(header->checksum, checksum_of(header, &rest, 1));
}

static TokenSet *set_over(void *map, size_t size)
{
    const Header *header = map;
    const int64_t *begin = (const int64_t *)(header + 1);
    const int32_t *labels = (const int32_t *)(begin + header->rows + 1);
    const bool is_text = header->seq == 0;
    TokenSet *set = allocate(sizeof *set);
    *set = (TokenSet){
        .rows = header->rows,
        .seq = header->seq,
        .tokens = header->tokens,
        .vocabulary = (int32_t)header->vocabulary,
        .pad = (int32_t)header->pad,
        .begin = begin,
        .labels = is_text ? NULL : labels,
        .ids = is_text ? labels : labels + header->rows,
        .map = map,
        .map_size = size,
    };
    return set;
}

/* @return NULL if there is no such file, or it is damaged */
static TokenSet *cache_open(const char *path, XXH128_hash_t key)
{
    TokenSet *set = NULL;
    struct stat status;
    const char *reason;
    int fd = file_open(path, &reason);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &status) == 0 && status.st_size > 0) {
        size_t size = (size_t)status.st_size;
        void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED && is_intact(map, size, key))
            set = set_over(map, size);
        else if (map != MAP_FAILED)
            munmap(map, size);
    }
    close(fd);
    return set;
}

static Content content_new(size_t rows)
{
    Content content = {.rows = rows, .ids.limit = INT64_MAX};
    content.begin = allocate((rows + 1) * sizeof *content.begin);
    content.labels = allocate(rows * sizeof *content.labels);
    content.begin[0] = 0;
    return content;
}

static void content_clear(Content *content)
{
    free(content->begin);
    free(content->labels);
    free(content->ids.ids);
}

static bool encode_reviews(const Reviews *reviews, const Source *from, Content *content,
                           Problem *problem)
{
    int64_t count = 0;
    int32_t *row_ids = allocate((size_t)from->seq * sizeof *row_ids);
    *content = content_new((size_t)reviews->rows);
    for (int64_t row = 0; count >= 0 && row < reviews->rows; row++) {
        const Text text = {reviews->text + reviews->begin[row],
                           (size_t)(reviews->begin[row + 1] - reviews->begin[row]), from->path,
                           reviews->lines[row]};
        count = tokenizer_encode(from->tokenizer, text, (int32_t)from->seq, row_ids, problem);
        for (int64_t i = 0; i < count; i++)
            ids_put(&content->ids, row_ids[i]);
        content->begin[row + 1] = content->ids.count;
        content->labels[row] = reviews->labels[row];
    }
    free(row_ids);
    return count >= 0;
}

static int32_t pad_of(const Tokenizer *tokenizer)
{
    const int32_t pad = tokenizer->special[PAD_TOKEN], end = tokenizer->special[END_TOKEN];
    return pad >= 0 ? pad : end >= 0 ? end : 0;
}

static bool cache_write(const char *path, XXH128_hash_t key, const Source *from,
                        const Content *content, Problem *problem)
{
    Header header = {
        .format = FORMAT,
        .key = key,
        .rows = (int64_t)content->rows,
        .tokens = content->ids.count,
        .seq = from->seq,
        .vocabulary = from->tokenizer->size,
        .pad = pad_of(from->tokenizer),
    };
    memcpy(header.magic, MAGIC, sizeof MAGIC);
    const struct iovec parts[] = {
        {&header, sizeof header},
        {content->begin, (content->rows + 1) * sizeof *content->begin},
        {content->labels, from->seq ? content->rows * sizeof *content->labels : 0},
        {content->ids.ids, (size_t)content->ids.count * sizeof *content->ids.ids},
    };
    header.checksum = checksum_of(&header, parts + 1, 3);
    const char *hint = N_("free some space, or give another cache folder");
    Replacement *file =
        replacement_begin(path, NULL, hint, N_("the token cache cannot be created: %s"), problem);
    for (int i = 0; file && i < 4; i++)
        replacement_put(file, parts[i].iov_base, parts[i].iov_len);
    return file &&
           replacement_end(file, hint, N_("the token cache cannot be written: %s"), problem);
}

static bool cache_build(const char *path, XXH128_hash_t key, const Source *from,
                        const FileBytes *file, Problem *problem)
{
    Content content = content_new(0);
    bool ok;
    if (from->seq == 0) {
        ok = documents_encode(from->tokenizer, from->path, file->bytes, file->length, &content,
                              problem);
    } else {
        Reviews *reviews = reviews_parse(from->path, file->bytes, file->length, problem);
        ok = reviews;
        if (ok) {
            content_clear(&content);
            ok = encode_reviews(reviews, from, &content, problem);
        }
        reviews_free(reviews);
    }
    ok = ok && cache_write(path, key, from, &content, problem);
    content_clear(&content);
    return ok;
}

static char *path_of(const char *folder, const Source *from, XXH128_hash_t key)
{
    char *path;
    if (asprintf(&path, "%s/%s-%016llx%016llx.tokens", folder, from->seq ? "reviews" : "text",
                 (unsigned long long)key.high64, (unsigned long long)key.low64) < 0)
        abort();
    return path;
}

/* Reads the whole file, and computes the key again, because the file may have changed. */
static TokenSet *build_and_open(const char *folder, const Source *from, Problem *problem)
{
    FileBytes file;
    if (!file_read(from->path, from->what, from->hint, &file, problem))
        return NULL;
    const XXH128_hash_t key = key_of(from, XXH3_128bits(file.bytes, file.length));
    char *path = path_of(folder, from, key);
    TokenSet *set = NULL;
    if (cache_build(path, key, from, &file, problem) && !(set = cache_open(path, key)))
        problem_set(problem, path,
                    "find what removes or changes it, or choose another cache folder",
                    "the token cache was written, but is missing or differs when it is read back");
    free(path);
    free(file.bytes);
    return set;
}

/* If the cache file exists, a rank reads the source only for its checksum, without keeping it in
 * memory. */
static TokenSet *open_or_build(const char *folder, const Source *from, Problem *problem)
{
    XXH128_hash_t sum;
    if (!file_checksum(from->path, from->what, from->hint, &sum, problem))
        return NULL;
    const XXH128_hash_t key = key_of(from, sum);
    char *path = path_of(folder, from, key);
    TokenSet *set = cache_open(path, key);
    free(path);
    return set ? set : build_and_open(folder, from, problem);
}

static TokenSet *set_open(const char *path, const char *what, const char *hint,
                          const char *tokenizer_path, int64_t seq, const char *cache_folder,
                          Problem *problem)
{
    Tokenizer *tokenizer =
        folder_make(cache_folder, problem) ? tokenizer_open(tokenizer_path, problem) : NULL;
    if (!tokenizer)
        return NULL;
    const Source from = {path, what, hint, tokenizer, seq};
    TokenSet *set = open_or_build(cache_folder, &from, problem);
    if (set)
        memcpy(set->special, tokenizer->special, sizeof set->special);
    tokenizer_free(tokenizer);
    return set;
}

static bool seq_fits(int64_t seq, Problem *problem)
{
    return (seq >= SEQ_MIN && seq <= SEQ_MAX) ||
           problem_set(problem, NULL, "use SEQ=128, or 512 for long reviews",
                       "SEQ is %lld; it must be from %d, for [CLS] and [SEP], to %d",
                       (long long)seq, SEQ_MIN, SEQ_MAX);
}

TokenSet *token_set_open_reviews(const char *csv, const char *tokenizer, int64_t seq,
                                 const char *cache_folder, Problem *problem)
{
    return seq_fits(seq, problem)
               ? set_open(csv, N_("the reviews"),
                          N_("check the path; `make data` downloads the IMDb reviews"), tokenizer,
                          seq, cache_folder, problem)
               : NULL;
}

TokenSet *token_set_open_documents(const char *text, const char *tokenizer, int64_t seq,
                                   const char *cache_folder, Problem *problem)
{
    TokenSet *set =
        seq_fits(seq, problem)
            ? set_open(text, N_("the text"),
                       N_("check the path; `make data ONLY=stories` downloads TinyStories"),
                       tokenizer, 0, cache_folder, problem)
            : NULL;
    if (set)
        set->seq = seq;
    return set;
}

TokenSet *token_set_open_text(const char *text, const char *tokenizer, int64_t seq,
                              const char *cache_folder, Problem *problem)
{
    TokenSet *set = token_set_open_documents(text, tokenizer, seq, cache_folder, problem);
    if (!set)
        return NULL;
    set->begin = NULL;
    set->rows = (set->tokens - 1) / seq;
    if (set->rows > 0)
        return set;
    problem_set(problem, text, "choose a smaller SEQ, or a longer text",
                "the text has %lld tokens; a window needs SEQ+1 = %lld", (long long)set->tokens,
                (long long)seq + 1);
    token_set_close(set);
    return NULL;
}

void token_set_close(TokenSet *set)
{
    if (!set)
        return;
    munmap(set->map, set->map_size);
    free(set);
}
