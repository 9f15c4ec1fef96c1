/* Which submissions share a file for a lab: byte for byte, or apart from comments, white space and
 * names. Labs are short, and right answers resemble each other. So the second comparison leaves out
 * what is also in the start file or the reference, and labs with little else. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "grader/gradebook/book.h"
#include "grader/judge/report/verdict.h"

enum {
    PIECE = sizeof(uint64_t), /* characters that are compared at a time */
    FEWEST = 60,              /* in a lab, besides those of the start file and the reference */
    ALIKE = 80,               /* percent */
};

/* Removes comments and white space, and replaces every word by one letter. @return the length */
static size_t strip(char *text)
{
    size_t count = 0, length;
    bool is_open = false; /* no comment ends behind this point */
    for (const char *at = text; *at; at += length) {
        const bool begins = !is_open && !strncmp(at, "/*", 2);
        const char *end = begins ? strstr(at + 2, "*/") : NULL;
        is_open = is_open || (begins && !end);
        length = 1;
        if (end) {
            length = (size_t)(end + 2 - at);
        } else if (!strncmp(at, "//", 2)) {
            length = strcspn(at, "\n");
        } else if (isalpha((unsigned char)*at) || *at == '_') {
            while (isalnum((unsigned char)at[length]) || at[length] == '_')
                length++;
            text[count++] = 'n';
        } else if (!isspace((unsigned char)*at)) {
            text[count++] = *at;
        }
    }
    return count;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *one = a, *other = b;
    return (*one > *other) - (*one < *other);
}

/* Every piece in the files, sorted, without those in `left_out`; the caller frees them. */
static Pieces pieces_of(const char *const path[], int paths, const Pieces *left_out)
{
    Pieces pieces = {0};
    char *text = NULL;
    size_t size = 0, kept = 0;
    FILE *all = open_memstream(&text, &size);
    for (int i = 0; i < paths; i++)
        put_contents(all, path[i]);
    fclose(all);
    size = strip(text);
    pieces.piece = malloc((size + 1) * sizeof *pieces.piece);
    for (size_t i = 0; i + PIECE <= size; i++) {
        uint64_t *piece = &pieces.piece[pieces.count];
        memcpy(piece, text + i, PIECE);
        pieces.count +=
            !left_out || !bsearch(piece, left_out->piece, left_out->count, PIECE, by_value);
    }
    free(text);
    qsort(pieces.piece, pieces.count, PIECE, by_value);
    for (size_t i = 0; i < pieces.count; i++)
        if (i == 0 || pieces.piece[i] != pieces.piece[i - 1])
            pieces.piece[kept++] = pieces.piece[i];
    pieces.count = kept;
    return pieces;
}

void find_pieces(Book *book)
{
    char start[PLACE_SIZE], reference[PLACE_SIZE], handed_in[PLACE_SIZE];
    const char *const given[] = {start, reference}, *const own = handed_in;
    for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++) {
        const Lab *from = lab_at(lab)->starts_from ? lab_of(lab_at(lab)->starts_from) : lab_at(lab);
        snprintf(start, sizeof start, "grader/start/%s/%s", from->folder, from->file);
        source_place(book, -1, lab, reference);
        Pieces known = pieces_of(given, 2, NULL);
        for (Unit *unit = book->units; unit < book->units + book->unit_count; unit++)
            if (unit->lab == lab) {
                source_place(book, unit->submission, lab, handed_in);
                unit->pieces = pieces_of(&own, 1, &known);
            }
        free(known.piece);
    }
}

/* How much two labs share of the pieces of the one that has more. @return percent, 0 if it says little */
static int percent_alike(const Unit *one, const Unit *other)
{
    const size_t a = one->pieces.count, b = other->pieces.count, fewer = a < b ? a : b,
                 more = a + b - fewer;
    size_t both = 0;
    if (fewer < FEWEST || 100 * fewer < ALIKE * more)
        return 0;
    for (size_t i = 0, k = 0; i < a && k < b;) {
        const int order = by_value(&one->pieces.piece[i], &other->pieces.piece[k]);
        both += order == 0;
        i += order <= 0;
        k += order >= 0;
    }
    return (int)(100 * both / more);
}

/* Writes for which labs they share a file. An unchanged start file does not count. */
static void tell_same(const Book *book, int one, int other, char labs[LABS_SIZE])
{
    bool shared[MOST_LABS] = {false}, any = false;
    for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++) {
        const int a = book->submissions[one].unit[lab], b = book->submissions[other].unit[lab];
        if (a < 0 || b < 0 || strcmp(book->units[a].source, book->units[b].source) != 0)
            continue;
        const char *state = json_string_value(json_object_get(book->units[a].lab_verdict, "state"));
        any |= shared[lab] = !state || strcmp(state, state_names[NOT_STARTED_YET]) != 0;
    }
    if (any)
        tell_labs(book, shared, labs);
}

/* Writes for which labs their different files are alike, and how much. */
static void tell_percent(const Book *book, int one, int other, char labs[LABS_SIZE])
{
    for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++) {
        const int a = book->submissions[one].unit[lab], b = book->submissions[other].unit[lab];
        const bool differ =
            a >= 0 && b >= 0 && strcmp(book->units[a].source, book->units[b].source) != 0;
        const int percent = differ ? percent_alike(&book->units[a], &book->units[b]) : 0;
        if (percent >= ALIKE)
            append(labs, LABS_SIZE, _("%slab %d (%d%%)"), *labs ? ", " : "", lab_at(lab)->number,
                   percent);
    }
}

static void tell_others(const Book *book, int submission,
                        void tell(const Book *, int, int, char[LABS_SIZE]), char text[REMARK_SIZE])
{
    enum { SHOWN = 5 };
    int others = 0;
    *text = '\0';
    for (int other = 0; other < book->count; other++) {
        char labs[LABS_SIZE] = "";
        if (other != submission)
            tell(book, submission, other, labs);
        if (!*labs || ++others > SHOWN)
            continue;
        append(text, REMARK_SIZE, "%s", others > 1 ? _("; ") : "");
        append(text, REMARK_SIZE, _("%.100s: %s"), book->submissions[other].entry, labs);
    }
    if (others > SHOWN)
        append(text, REMARK_SIZE, _("; and %d more"), others - SHOWN);
    make_line(text);
}

void tell_identical(const Book *book, int submission, char text[REMARK_SIZE])
{
    tell_others(book, submission, tell_same, text);
}

void tell_alike(const Book *book, int submission, char text[REMARK_SIZE])
{
    tell_others(book, submission, tell_percent, text);
}
