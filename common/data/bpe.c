/* Byte-level BPE (GPT-2): splits a text into words, then merges the bytes of each. */
#include "data/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* ---- splitting ---- */

typedef struct Splitter {
    pcre2_code *pattern;
    pcre2_match_data *match;
} Splitter;

/* GPT-2's pattern. Its \s means Unicode's whitespace; PCRE2's \s includes U+180E too. */
#define BLANK "\\p{Z}\\t-\\r\\x{85}"
static const char *const words = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" BLANK
                                 "\\p{L}\\p{N}]+|[" BLANK "]+(?![^" BLANK "])|[" BLANK "]+";

static Splitter *splitter_new(Problem *problem)
{
    int error;
    PCRE2_SIZE at;
    Splitter *splitter = allocate(sizeof *splitter);
    splitter->pattern = pcre2_compile((PCRE2_SPTR)words, PCRE2_ZERO_TERMINATED,
                                      PCRE2_UTF | PCRE2_UCP, &error, &at, NULL);
    if (!splitter->pattern) {
        char reason[256];
        pcre2_get_error_message(error, (PCRE2_UCHAR *)reason, sizeof reason);
        free(splitter);
        problem_set(problem, NULL, N_("install the system's libpcre2-8, which has Unicode"),
                    "PCRE2 cannot split texts: %s", reason);
        return NULL;
    }
    pcre2_jit_compile(splitter->pattern, PCRE2_JIT_COMPLETE); /* a failure only costs time */
    splitter->match = pcre2_match_data_create_from_pattern(splitter->pattern, NULL);
    return splitter;
}

/* The end of the word that begins at `at`. Every character matches one of the alternatives. */
static size_t word_end(Splitter *splitter, const char *text, size_t length, size_t at)
{
    int found = pcre2_match(splitter->pattern, (PCRE2_SPTR)text, length, at, PCRE2_NO_UTF_CHECK,
                            splitter->match, NULL);
    assert(found > 0);
    return pcre2_get_ovector_pointer(splitter->match)[1];
}

/* ---- merging ---- */

/* A symbol of a word, in a linked list: a merge removes the right one of two neighbours. */
typedef struct Symbol {
    int32_t id; /* -1 once removed */
    int64_t before, after;
} Symbol;

/* A merge that was possible when it was found. */
typedef struct Candidate {
    int64_t at; /* the left symbol */
    int32_t rank, id;
} Candidate;

typedef struct Merger {
    Symbol *symbols;
    Candidate *heap; /* a binary heap: the next merge is first */
    int64_t candidates;
    size_t room; /* bytes of the longest word that fits */
    KnownWords *known;
} Merger;

Merge *bpe_slot(const Bpe *bpe, int32_t left, int32_t right)
{
    const uint64_t last = ~UINT64_C(0) >> bpe->shift;
    const uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    for (uint64_t at = (pair * 0x9E3779B97F4A7C15u) >> bpe->shift;; at = (at + 1) & last) {
        Merge *slot = bpe->merges + at;
        if (slot->left < 0 || (slot->left == left && slot->right == right))
            return slot;
    }
}

/* Orders merges as in the list of merges, and equal merges from left to right. */
static bool comes_first(const Candidate *a, const Candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void find_merge(const Bpe *bpe, int64_t at)
{
    Merger *m = bpe->merger;
    const Symbol *left = m->symbols + at;
    if (at < 0 || left->after < 0)
        return;
    const Merge *merge = bpe_slot(bpe, left->id, m->symbols[left->after].id);
    if (merge->left < 0)
        return;
    const Candidate found = {at, merge->rank, merge->id};
    int64_t hole = m->candidates++;
    for (int64_t above; hole > 0; hole = above) {
        above = (hole - 1) / 2;
        if (!comes_first(&found, m->heap + above))
            break;
        m->heap[hole] = m->heap[above];
    }
    m->heap[hole] = found;
}

static Candidate next_merge(Merger *m)
{
    const Candidate first = m->heap[0], last = m->heap[--m->candidates];
    int64_t hole = 0;
    for (int64_t below; (below = 2 * hole + 1) < m->candidates; hole = below) {
        if (below + 1 < m->candidates && comes_first(m->heap + below + 1, m->heap + below))
            below++;
        if (!comes_first(m->heap + below, &last))
            break;
        m->heap[hole] = m->heap[below];
    }
    m->heap[hole] = last;
    return first;
}

/* A word of n bytes has n - 1 pairs, and each of at most n - 1 merges makes two more. */
static void make_room(Merger *m, size_t length)
{
    if (length <= m->room)
        return;
    m->room = 2 * length;
    m->symbols = reallocate(m->symbols, m->room * sizeof *m->symbols);
    m->heap = reallocate(m->heap, 3 * m->room * sizeof *m->heap);
}

/* Merges the bytes of a word; its symbols are then those left in the linked list. */
static void merge_word(const Bpe *bpe, const char *word, size_t length)
{
    Merger *m = bpe->merger;
    make_room(m, length);
    m->candidates = 0;
    for (size_t i = 0; i < length; i++)
        m->symbols[i] = (Symbol){bpe->of_byte[(unsigned char)word[i]], (int64_t)i - 1,
                                 i + 1 < length ? (int64_t)i + 1 : -1};
    for (int64_t i = 0; i + 1 < (int64_t)length; i++)
        find_merge(bpe, i);
    while (m->candidates > 0) {
        const Candidate merge = next_merge(m);
        Symbol *left = m->symbols + merge.at;
        if (left->id < 0 || left->after < 0)
            continue;
        Symbol *right = m->symbols + left->after;
        const Merge *now = bpe_slot(bpe, left->id, right->id);
        if (now->left < 0 || now->id != merge.id) /* an earlier merge replaced one of the two */
            continue;
        left->id = merge.id;
        right->id = -1;
        left->after = right->after;
        if (right->after >= 0)
            m->symbols[right->after].before = merge.at;
        find_merge(bpe, left->before);
        find_merge(bpe, merge.at);
    }
}

static void encode_word(const Bpe *bpe, const char *word, size_t length, Ids *ids)
{
    Merger *m = bpe->merger;
    if (known_word_put(m->known, word, length, ids))
        return;
    merge_word(bpe, word, length);
    int32_t first[KNOWN_WORD_IDS];
    size_t count = 0;
    for (int64_t i = 0; i >= 0; i = m->symbols[i].after, count++) {
        ids_put(ids, m->symbols[i].id);
        if (count < KNOWN_WORD_IDS)
            first[count] = m->symbols[i].id;
    }
    known_word_keep(m->known, word, length, first, count);
}

static bool bpe_encode(const Tokenizer *tokenizer, Text text, Ids *ids, Problem *problem)
{
    const Bpe *bpe = tokenizer->model;
    for (size_t at = 0, end; at < text.length && ids->count < ids->limit; at = end) {
        end = word_end(bpe->splitter, text.bytes, text.length, at);
        encode_word(bpe, text.bytes + at, end - at, ids);
    }
    return true;
}

/* ---- opening ---- */

static void bpe_free(void *model)
{
    Bpe *bpe = model;
    if (bpe->splitter) {
        pcre2_match_data_free(bpe->splitter->match);
        pcre2_code_free(bpe->splitter->pattern);
    }
    if (bpe->merger) {
        free(bpe->merger->symbols);
        free(bpe->merger->heap);
        free(bpe->merger->known);
    }
    free(bpe->splitter);
    free(bpe->merger);
    free(bpe->merges);
    free(bpe);
}

bool bpe_read(Tokenizer *tokenizer, const char *path, FileBytes vocabulary, const char *merges_path,
              FileBytes merges, Problem *problem)
{
    static const TokenizerKind kind = {bpe_encode, bpe_free};
    Bpe *bpe = allocate(sizeof *bpe);
    memset(bpe, 0, sizeof *bpe);
    tokenizer->kind = &kind;
    tokenizer->model = bpe;
    bpe->merger = allocate(sizeof *bpe->merger);
    *bpe->merger = (Merger){.known = known_words_new()};
    bpe->splitter = splitter_new(problem);
    return bpe->splitter && bpe_parse(tokenizer, path, vocabulary, merges_path, merges, problem);
}
