/* The token cache: a file of ids that all ranks of a node map. */
#include "data/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/replacement.h"

/* The file: this header, begin [rows+1] int64, labels [rows] int32, ids [tokens] int32. */
typedef struct Header {
    char magic[8];
    uint64_t format;
    XXH128_hash_t key; /* checksum of everything that the tokens depend on */
    int64_t rows, tokens;
    int64_t seq, vocabulary, pad;
    int64_t unused;         /* keeps begin at a multiple of 16 */
    XXH128_hash_t checksum; /* checksum of the header before it and of all that follows */
} Header;

static const char MAGIC[8] = "BALISE\r\n";
enum { FORMAT = 1 }; /* increase it when the file format or the tokenizer changes */

/* Creates `folder` and the folders above it. */
static bool folder_make(const char *folder, Problem *problem)
{
    char *path = strcpy(allocate(strlen(folder) + 1), folder);
    for (char *at = path; *at; at++) {
        if (*at != '/' || at == path)
            continue;
        *at = '\0';
        mkdir(path, 0777); /* the last result decides */
        *at = '/';
    }
    free(path);
    struct stat status;
    if (mkdir(folder, 0777) == 0)
        return true;
    int error = errno;
    if (stat(folder, &status) == 0 && S_ISDIR(status.st_mode))
        return true;
    return problem_set(problem, folder, "name a writable folder",
                       "the cache folder cannot be created: %s", strerror(error));
}

/* A checksum of everything that the tokens depend on. */
typedef struct Sources {
    const char *csv_path, *vocabulary_path;
    FileBytes csv, vocabulary;
    int64_t seq;
} Sources;

static XXH128_hash_t key_of(const Sources *from)
{
    XXH128_hash_t csv_hash = XXH3_128bits(from->csv.bytes, from->csv.length);
    XXH128_hash_t vocabulary_hash = XXH3_128bits(from->vocabulary.bytes, from->vocabulary.length);
    uint64_t parts[] = {csv_hash.low64,         csv_hash.high64,     vocabulary_hash.low64,
                        vocabulary_hash.high64, (uint64_t)from->seq, FORMAT};
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

static ReviewSet *set_over(void *map, size_t size)
{
    const Header *header = map;
    const int64_t *begin = (const int64_t *)(header + 1);
    const int32_t *labels = (const int32_t *)(begin + header->rows + 1);
    ReviewSet *set = allocate(sizeof *set);
    *set = (ReviewSet){
        .rows = header->rows,
        .seq = header->seq,
        .vocabulary = (int32_t)header->vocabulary,
        .pad = (int32_t)header->pad,
        .begin = begin,
        .labels = labels,
        .ids = labels + header->rows,
        .map = map,
        .map_size = size,
    };
    return set;
}

/* @return NULL if there is no such file, or it is damaged */
static ReviewSet *cache_open(const char *path, XXH128_hash_t key)
{
    ReviewSet *set = NULL;
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

/* Tokenises all rows; `begin` is [rows+1]. @return the ids; the caller frees them */
static int32_t *encode_rows(const Reviews *reviews, const Tokenizer *tokenizer, int64_t seq,
                            int64_t *begin)
{
    size_t capacity = 0;
    int32_t *ids = NULL;
    begin[0] = 0;
    for (int64_t row = 0; row < reviews->rows; row++) {
        size_t used = (size_t)begin[row];
        if (used + (size_t)seq > capacity) {
            capacity = 2 * capacity + (size_t)seq;
            ids = reallocate(ids, capacity * sizeof *ids);
        }
        const char *text = reviews->text + reviews->begin[row];
        size_t length = (size_t)(reviews->begin[row + 1] - reviews->begin[row]);
        begin[row + 1] =
            begin[row] + tokenizer_encode(tokenizer, text, length, (int32_t)seq, ids + used);
    }
    return ids;
}

static bool cache_write(const char *path, XXH128_hash_t key, const Reviews *reviews,
                        const Tokenizer *tokenizer, int64_t seq, Problem *problem)
{
    size_t rows = (size_t)reviews->rows;
    int64_t *begin = allocate((rows + 1) * sizeof *begin);
    int32_t *ids = encode_rows(reviews, tokenizer, seq, begin);
    Header header = {
        .format = FORMAT,
        .key = key,
        .rows = reviews->rows,
        .tokens = begin[rows],
        .seq = seq,
        .vocabulary = tokenizer->vocabulary.size,
        .pad = tokenizer->vocabulary.special[PAD_TOKEN],
    };
    memcpy(header.magic, MAGIC, sizeof MAGIC);
    const struct iovec parts[] = {
        {&header, sizeof header},
        {begin, (rows + 1) * sizeof *begin},
        {reviews->labels, rows * sizeof *reviews->labels},
        {ids, (size_t)begin[rows] * sizeof *ids},
    };
    header.checksum = checksum_of(&header, parts + 1, 3);
    const char *hint = N_("free some space, or give another cache folder");
    Replacement *file =
        replacement_begin(path, hint, N_("the token cache cannot be created: %s"), problem);
    for (int i = 0; file && i < 4; i++)
        replacement_put(file, parts[i].iov_base, parts[i].iov_len);
    bool ok =
        file && replacement_end(file, hint, N_("the token cache cannot be written: %s"), problem);
    free(ids);
    free(begin);
    return ok;
}

static bool cache_build(const char *path, XXH128_hash_t key, Sources *from, Problem *problem)
{
    Tokenizer *tokenizer = tokenizer_parse(from->vocabulary_path, from->vocabulary, problem);
    from->vocabulary.bytes = NULL; /* the tokenizer owns them now */
    Reviews *reviews =
        tokenizer ? reviews_parse(from->csv_path, from->csv.bytes, from->csv.length, problem)
                  : NULL;
    bool ok = reviews && cache_write(path, key, reviews, tokenizer, from->seq, problem);
    reviews_free(reviews);
    tokenizer_free(tokenizer);
    return ok;
}

static ReviewSet *open_or_build(const char *folder, Sources *from, Problem *problem)
{
    XXH128_hash_t key = key_of(from);
    char *path;
    if (asprintf(&path, "%s/reviews-%016llx%016llx.tokens", folder, (unsigned long long)key.high64,
                 (unsigned long long)key.low64) < 0)
        abort();
    ReviewSet *set = cache_open(path, key);
    if (!set && cache_build(path, key, from, problem) && !(set = cache_open(path, key)))
        problem_set(problem, path,
                    "find what removes or changes it, or choose another cache folder",
                    "the token cache was written, but is missing or differs when it is read back");
    free(path);
    return set;
}

ReviewSet *review_set_open(const char *csv, const char *vocabulary, int64_t seq,
                           const char *cache_folder, Problem *problem)
{
    Sources from = {.csv_path = csv, .vocabulary_path = vocabulary, .seq = seq};
    if (seq < SEQ_MIN || seq > SEQ_MAX) {
        problem_set(problem, NULL, "take SEQ=128, or 512 for long reviews",
                    "SEQ is %lld; it must be from %d, for [CLS] and [SEP], to %d", (long long)seq,
                    SEQ_MIN, SEQ_MAX);
        return NULL;
    }
    const bool found = folder_make(cache_folder, problem) &&
                       file_read(csv, N_("the reviews"),
                                 N_("check the path; `make data` downloads the IMDb reviews"),
                                 &from.csv, problem) &&
                       file_read(vocabulary, N_("the vocabulary"), VOCABULARY_PATH_HINT,
                                 &from.vocabulary, problem);
    ReviewSet *set = found ? open_or_build(cache_folder, &from, problem) : NULL;
    free(from.csv.bytes);
    free(from.vocabulary.bytes);
    return set;
}

void review_set_close(ReviewSet *set)
{
    if (!set)
        return;
    munmap(set->map, set->map_size);
    free(set);
}
