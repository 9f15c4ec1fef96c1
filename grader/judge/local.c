/* Reads grader/cases.local, which adds to the kit's cases. */
#include "grader/judge/local.h"

#include "base/file.h"
#include "grader/judge/compare/expected.h"
#include "grader/judge/mpi/recorded.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

enum { LINE_SIZE = 1024, MOST_POINTS = 1000 };

typedef struct Reader {
    Local *local;
    const char *path;
    int line;
    const Lab *lab;      /* the lab of the line */
    const char *example; /* the hint if part of the line is missing */
    char hint[256];      /* space for it */
    Problem *problem;
} Reader;

__attribute__((format(printf, 3, 4))) static bool refuse(const Reader *r, const char *hint,
                                                         const char *format, ...)
{
    char what[512], where[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(where, sizeof where, "%s:%d", r->path, r->line);
    problem_set(r->problem, where, hint, "%s", what);
    return false;
}

static bool read_number(const char *text, uint64_t largest, uint64_t *number)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return !*end && !errno && *number <= largest;
}

static bool read_lab(Reader *r, const char *word)
{
    uint64_t number;
    const char *hint =
        N_("shape 2 B=3 S=7 H=40, or points 2 forward=4: the lab number comes second");
    if (!word)
        return refuse(r, hint, "%s", _("the lab number is missing"));
    const Lab *lab = read_number(word, 1000, &number) ? lab_of((int)number) : NULL;
    if (!lab)
        return refuse(r, hint, _("there is no lab '%.60s'"), word);
    r->lab = lab;
    return true;
}

/* ---- seed 17 4711 */

static bool read_seed(Reader *r, const char *word)
{
    if (r->local->seed_count == MOST_SEEDS)
        return refuse(r, _("use fewer seeds: each takes as long as a full grading run"),
                      _("there are more than %d seeds"), MOST_SEEDS);
    return read_number(word, UINT64_MAX, &r->local->seeds[r->local->seed_count++]) ||
           refuse(r, _("seeds are numbers: seed 17 4711"), _("'%.60s' is not a seed"), word);
}

/* ---- layout 8 8x4 */

static bool is_world(int n)
{
    return (n >= 1 && n <= 4) || n == 6 || n == 8;
}

/* "4" or "8x2", as in Lab.layouts. */
static bool read_layout(const Lab *lab, const char *word, int *world, int *tp)
{
    const char *digits = "0123456789";
    size_t first = strspn(word, digits),
           second = word[first] == 'x' ? strspn(word + first + 1, digits) : 0;
    if (first != 1 || second > 1 || word[first + (second ? 1 + second : 0)] ||
        !next_layout(word, world, tp))
        return false;
    return is_world(*world) && is_world(*tp) && *world % *tp == 0 &&
           (lab->has_replicas || *world == *tp);
}

static bool has_layout(const Lab *lab, int world, int tp)
{
    int w, t;
    for (const char *at = lab->layouts; (at = next_layout(at, &w, &t));)
        if (w == world && t == tp)
            return true;
    return false;
}

static const char layout_hint[] =
    N_("labs 1 to 7: a number of ranks, 1 2 3 4 6 8; later labs: WORLDxTP, 8x2");

static bool add_layout(Reader *r, const char *word)
{
    int world, tp;
    char layouts[256];
    if (!read_layout(r->lab, word, &world, &tp))
        return refuse(r, layout_hint, _("lab %d has no layout '%.60s'"), r->lab->number, word);
    if (has_layout(r->lab, world, tp))
        return refuse(r, _("choose other layouts; grader/labs/labNN.c has those of the kit"),
                      _("lab %d is already graded at %s"), r->lab->number, word);
    snprintf(layouts, sizeof layouts, "%s %s", r->lab->layouts, word);
    lab_set_layouts(r->lab->number, layouts);
    Case cases[2 * MAX_CASES];
    const int count = lab_cases(r->lab, 0, cases);
    if (count > MAX_CASES)
        return refuse(r, _("choose fewer layouts"), _("lab %d has more than %d cases now"),
                      r->lab->number, MAX_CASES);
    for (int i = 0; r->lab->misfit && i < count; i++) {
        const char *why = r->lab->misfit(&cases[i]);
        if (why && cases[i].world == world && cases[i].tp == tp)
            return refuse(r, layout_hint, _("lab %d cannot be graded at %s: %s"), r->lab->number,
                          word, why);
    }
    return true;
}

/* ---- points 6 forward=3 communication=4 */

static bool begin_points(Reader *r)
{
    char checks[200] = "";
    for (int check = 0; check < CHECKS; check++)
        if (r->lab->points[check])
            append(checks, sizeof checks, "%s%s:%d", checks[0] ? " " : "", check_keys[check],
                   r->lab->points[check]);
    snprintf(r->hint, sizeof r->hint, _("the checks of lab %d are: %s"), r->lab->number, checks);
    r->example = r->hint;
    return true;
}

static bool read_points(Reader *r, const char *word)
{
    uint64_t points;
    const char *value = strchr(word, '=');
    Check check = value ? check_of_key(word, (size_t)(value - word)) : CHECKS;
    if (!value || !lab_points(r->lab, check))
        return refuse(r, r->hint, _("lab %d has no check '%.60s'"), r->lab->number, word);
    if (!read_number(value + 1, MOST_POINTS, &points) || !points)
        return refuse(r, _("points are whole numbers from 1 to 1000"),
                      _("'%.60s' is not a number of points"), value + 1);
    lab_set_points(r->lab->number, check, (int)points);
    return true;
}

/* ---- shape 4 B=3 S=9 H=48 A=12 AT=4 */

static bool can_choose(const Lab *lab, const CaseSize *size)
{
    return lab->misfit && lab->sizes & size->set;
}

static bool read_size(Reader *r, const char *word)
{
    const Lab *lab = r->lab;
    LocalShape *shape = &r->local->shapes[r->local->shape_count - 1];
    uint64_t value;
    char names[64] = "", hint[160];
    for (int i = 0; i < CASE_SIZES; i++) {
        const CaseSize *size = &case_sizes[i];
        size_t length = strlen(size->key);
        if (!can_choose(lab, size))
            continue;
        append(names, sizeof names, " %s", size->key);
        if (strncmp(word, size->key, length) || word[length] != '=')
            continue;
        if (!read_number(word + length + 1, (uint64_t)size->largest, &value) || !value) {
            snprintf(hint, sizeof hint, _("%s is a whole number from 1 to %d"), size->key,
                     size->largest);
            return refuse(r, hint, _("'%.60s' is not a size"), word);
        }
        *case_size_in(&shape->sizes, size) = (int32_t)value;
        return true;
    }
    if (!strncmp(word, "AT=", 3)) {
        if (read_layout(lab, word + 3, &shape->world, &shape->tp) &&
            has_layout(lab, shape->world, shape->tp))
            return true;
        return refuse(
            r, _("AT= must name one of the lab's layouts; a preceding line `layout` adds one"),
            _("lab %d is not graded at '%.60s'"), lab->number, word + 3);
    }
    snprintf(hint, sizeof hint, _("the sizes are:%s; AT=layout chooses a layout"), names);
    return refuse(r, hint, _("lab %d has no size '%.60s'"), lab->number, word);
}

/* Checks a shape at each layout that it applies to, including layouts that a later line adds. */
static bool check_shape(Reader *r, const LocalShape *shape)
{
    int world, tp;
    const Lab *lab = lab_of(shape->lab);
    r->line = shape->line;
    for (const char *at = lab->layouts; (at = next_layout(at, &world, &tp));) {
        if (shape->world && (shape->world != world || shape->tp != tp))
            continue;
        Case c = lab_case_with(lab, 0, 0, world, tp, &shape->sizes);
        const char *why = lab->misfit(&c);
        if (!why && (int64_t)c.B * c.S * c.H > 1 << 17)
            why = _("B times S times H can be at most 131072");
        if (why)
            return refuse(r, _("choose other sizes, or one layout with AT="), _("with tp = %d: %s"),
                          tp, why);
        if (!expected_fits(&c))
            return refuse(r, _("choose smaller sizes, or one layout with AT="),
                          _("with tp = %d: a rank's record is larger than %d MB"), tp,
                          STREAM_BYTES / 2 >> 20);
    }
    Case cases[MAX_CASES + MOST_SHAPES * MAX_LAYOUTS];
    if (local_cases(r->local, lab, 0, cases, lab_cases(lab, 0, cases)) > MAX_CASES)
        return refuse(r, _("use AT= to run a shape in one layout only"),
                      _("lab %d has more than %d cases now"), lab->number, MAX_CASES);
    return true;
}

static bool begin_shape(Reader *r)
{
    if (r->local->shape_count == MOST_SHAPES)
        return refuse(r, _("`seed` adds many cases at once"), _("there are more than %d shapes"),
                      MOST_SHAPES);
    if (!r->lab->misfit)
        return refuse(r, _("grader/README.md lists the sizes of each lab"),
                      _("lab %d has no sizes to choose"), r->lab->number);
    r->local->shapes[r->local->shape_count++] =
        (LocalShape){.lab = r->lab->number, .line = r->line};
    return true;
}

/* ---- the file */

/* Reads a line: its first word, the number of a lab (except after `seed`), and the other words, one
 * by one. */
static bool read_line(Reader *r, char *line)
{
    static const struct {
        const char *word;
        bool of_lab;
        bool (*begin)(Reader *);
        bool (*read)(Reader *, const char *);
        const char *example, *missing;
    } kinds[] = {
        {"seed", false, NULL, read_seed, "seed 17 4711", N_("a seed is missing")},
        {"shape", true, begin_shape, read_size, "shape 2 B=3 S=7 H=40", N_("a size is missing")},
        {"layout", true, NULL, add_layout, layout_hint, N_("a layout is missing")},
        {"points", true, begin_points, read_points, "", N_("a check and its points are missing")}};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    char *rest;
    int i = 0;
    line[strcspn(line, "#\r\n")] = '\0';
    const char *word = strtok_r(line, " \t", &rest);
    while (word && i < KINDS && strcmp(word, kinds[i].word) != 0)
        i++;
    if (word && i == KINDS)
        return refuse(
            r, _("a line begins with seed, shape, layout or points; grader/README.md has examples"),
            _("a line cannot begin with '%.60s'"), word);
    if (!word)
        return true;
    r->example = kinds[i].example;
    if ((kinds[i].of_lab && !read_lab(r, strtok_r(NULL, " \t", &rest))) ||
        (kinds[i].begin && !kinds[i].begin(r)))
        return false;
    if (!(word = strtok_r(NULL, " \t", &rest)))
        return refuse(r, r->example, "%s", _(kinds[i].missing));
    for (; word; word = strtok_r(NULL, " \t", &rest))
        if (!kinds[i].read(r, word))
            return false;
    return true;
}

bool local_read(const char *path, Local *local, Problem *problem)
{
    char line[LINE_SIZE];
    Reader r = {.local = local, .lab = lab_at(0), .path = path, .problem = problem};
    bool good = true;
    const char *reason;
    const int opened = file_open(path, &reason);
    FILE *file = opened >= 0 ? fdopen(opened, "r") : NULL;
    *local = (Local){0};
    if (!file)
        return problem_set(problem, path, "name a file that can be read",
                           "the local cases cannot be read: %s", reason);
    while (good && fgets(line, sizeof line, file)) {
        r.line++;
        good = strlen(line) < sizeof line - 1 ||
               refuse(&r, _("break it into several"), _("the line is too long"));
        good = good && read_line(&r, line);
    }
    if (good && ferror(file))
        good = refuse(&r, _("name a file that can be read"),
                      _("the local cases cannot be read: %s"), strerror(errno));
    fclose(file);
    for (int i = 0; good && i < local->shape_count; i++)
        good = check_shape(&r, &local->shapes[i]);
    return good;
}

int local_cases(const Local *local, const Lab *lab, uint64_t seed, Case *cases, int count)
{
    int world, tp;
    for (int i = 0; i < local->shape_count; i++) {
        const LocalShape *shape = &local->shapes[i];
        for (const char *at = lab->layouts;
             shape->lab == lab->number && (at = next_layout(at, &world, &tp));)
            if (!shape->world || (shape->world == world && shape->tp == tp))
                cases[count++] = lab_case_with(lab, seed, i, world, tp, &shape->sizes);
    }
    return count;
}
