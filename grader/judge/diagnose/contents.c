/* Checks what each rank holds: parameters, initial values. */
#include <math.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/groups.h"

/* Is the declared shape the full one with one dimension already divided? */
static bool was_divided(const Entry *got, const Entry *want, int tp)
{
    int divided = 0, other = 0;
    for (int i = 0; i < want->shape.rank && got->shape.rank == want->shape.rank; i++) {
        divided += got->shape.size[i] == want->shape.size[i] / tp && tp > 1;
        other += got->shape.size[i] != want->shape.size[i] &&
                 got->shape.size[i] != want->shape.size[i] / tp;
    }
    return divided > 0 && other == 0;
}

/* Describes a wrong inner width of the two layers `up` [inner,in] and `down` [out,inner], or
 * returns NULL. */
static const char *wrong_inner_width(const Entry *got, const Entry *want)
{
    static char text[80];
    const int inner = strstr(want->label.name, "up.weight") ? 0 : 1;
    if ((inner && !strstr(want->label.name, "down.weight")) || got->shape.rank != 2 ||
        got->shape.size[!inner] != want->shape.size[!inner])
        return NULL;
    snprintf(text, sizeof text, _("the inner width is %lld instead of %lld"),
             (long long)got->shape.size[inner], (long long)want->shape.size[inner]);
    return text;
}

/* Says that this is the shape of another parameter of the layer, or returns NULL. */
static const char *shape_of_another(const Trial *t, const Entry *got, const Entry *want)
{
    static char text[160];
    const char *dot = strchr(want->label.name, '.');
    const size_t layer = dot ? (size_t)(dot + 1 - want->label.name) : 0;
    for (const Entry *other = NULL; (other = next_entry(t->expected.all, other));)
        if (other->kind == PARAMETER && !label_equal(&other->label, &want->label) &&
            !strncmp(other->label.name, want->label.name, layer) &&
            shape_equal(other->shape, got->shape) && got->shape.rank > 1) {
            snprintf(text, sizeof text, _("that is the shape of %.63s: are the names swapped?"),
                     other->label.name);
            return text;
        }
    return NULL;
}

static void tell_shape(const Trial *t, const Entry *got, const Entry *want, char *text, size_t size)
{
    char a[64], b[64];
    bool divided = was_divided(got, want, t->c->tp), cut = got->placement_kind == SHARD;
    const char *inner = wrong_inner_width(got, want), *another = shape_of_another(t, got, want);
    const bool stacked = got->shape.rank == want->shape.rank - 1 &&
                         shape_count(got->shape) == shape_count(want->shape);
    snprintf(text, size, _("parameter %.63s is declared as %s, but its full shape is %s: %s"),
             got->label.name, shape_text(got->shape, a), shape_text(want->shape, b),
             stacked ? _("q, k and v are stacked and split as one matrix, so the first ranks "
                         "hold all of q: declare three matrices and split each of them, shard(1)")
             : divided && cut
                 ? _("it was split twice: declare the full shape, and the placement splits it")
             : divided
                 ? _("all ranks hold the same numbers for their parts of it, so the assembled "
                     "matrix repeats itself: declare the full shape and shard(dimension)")
             : inner   ? inner
             : another ? another
                       : _("check the sizes in the ..._new function"));
}

/* Fails the checks of a parameter whose numbers and part cannot be judged. */
static void fail_parameter(Trial *t, const char *why)
{
    for (int check = INITIAL_VALUES; check <= SHARDING; check++)
        fail(t, (Check)check, EXPLAINED, "%s (%s)", why, t->sizes);
}

const Entry *misdeclared_parameter(const Trial *t, char *text, size_t size)
{
    for (const Entry *want = NULL; (want = next_entry(t->expected.all, want));) {
        const Entry *got =
            want->kind == PARAMETER ? entry_of_rank(t, t->rank, PARAMETER, want->label) : NULL;
        if (got && !shape_equal(got->shape, want->shape)) {
            tell_shape(t, got, want, text, size);
            return got;
        }
    }
    return NULL;
}

static unsigned cut_of(const Entry *got)
{
    return got->placement_kind != SHARD ? CUT_NOT
           : got->placement_dim == 0    ? CUT_0
           : got->placement_dim == 1    ? CUT_1
                                        : 0;
}

bool is_cut_wrongly(const Trial *t, const Entry *got, const Entry *want)
{
    return t->c->tp > 1 && !(lab_cuts(lab_of(t->c->lab), want->label.name) & cut_of(got));
}

/* Describes a parameter that is split along the wrong dimension. Says what the layer needs of a
 * weight [out, in], but not its placement, which is most of the lab. */
static void tell_cut(const Entry *want, unsigned cuts, char *text, size_t size)
{
    snprintf(text, size, _("parameter %.63s is split along the wrong dimension"), want->label.name);
    const char *last = strrchr(want->label.name, '.');
    if (want->shape.rank == 2 && (cuts == CUT_0 || cuts == CUT_1) &&
        !(last && !strcmp(last, ".bias")))
        append(text, size,
               cuts == CUT_0 ? _(": a rank's part must make some of the outputs, from all inputs")
                             : _(": a rank's part must take some of the inputs"));
}

bool miscut_parameter(const Trial *t, char *text, size_t size)
{
    for (const Entry *want = NULL; (want = next_entry(t->expected.all, want));) {
        const Entry *got =
            want->kind == PARAMETER ? entry_of_rank(t, t->rank, PARAMETER, want->label) : NULL;
        const unsigned cuts = lab_cuts(t->result->lab, want->label.name);
        if (!got || got->placement_kind != SHARD || cuts == CUT_NOT ||
            !is_cut_wrongly(t, got, want))
            continue;
        tell_cut(want, cuts, text, size);
        return true;
    }
    return false;
}

static bool wrong_cut(Trial *t, const Entry *got, const Entry *want)
{
    char why[300];
    const unsigned cuts = lab_cuts(t->result->lab, want->label.name);
    const char *still_whole = t->result->lab->still_whole;
    if (!is_cut_wrongly(t, got, want))
        return false;
    if (cuts != CUT_NOT && got->placement_kind == SHARD) {
        tell_cut(want, cuts, why, sizeof why);
        fail(t, SHARDING, EXPLAINED, "%s (%s)", why, t->sizes);
        return true;
    }
    fail(t, SHARDING, EXPLAINED,
         cuts == CUT_NOT ? _("parameter %s is split, but every rank needs all of it (%s)")
         : still_whole   ? _(still_whole)
                       : _("every rank holds all of parameter %s: its memory is not divided (%s)"),
         want->label.name, t->sizes);
    return true;
}

/* Has a parameter of this rank another initial value than it must have? Writes which. */
static bool wrong_initial(const Trial *t, const Entry *got, const Entry *want, char *text,
                          size_t size)
{
    char at[96];
    for (int64_t i = 0; i < got->count; i++) {
        const double initial = (double)(float)numbers_of(want)[global_index(got, i)];
        if (numbers_of(got)[i] == initial)
            continue;
        snprintf(text, size,
                 _("parameter %s has the initial value %.7g at element %s on rank %d, expected "
                   "%.7g: %s"),
                 want->label.name, numbers_of(got)[i], address_text(got, i, at), t->rank, initial,
                 initial == 0
                     ? _("it must begin with zeros, so make it with zero_parameter")
                     : _("initial values depend on the full parameter and its name, not on the "
                         "layout"));
        return true;
    }
    return false;
}

bool not_zero_at_first(const Trial *t, char *text, size_t size)
{
    for (const Entry *want = NULL; (want = next_entry(t->expected.all, want));) {
        const Entry *got =
            want->kind == PARAMETER ? entry_of_rank(t, t->rank, PARAMETER, want->label) : NULL;
        bool zeros = got && got->count == count_held(got);
        for (int64_t i = 0; zeros && i < want->count; i++)
            zeros = numbers_of(want)[i] == 0;
        if (zeros && wrong_initial(t, got, want, text, size))
            return true;
    }
    return false;
}

void compare_parameter(Trial *t, const Entry *got, const Entry *want)
{
    char why[700];
    if (!shape_equal(got->shape, want->shape)) {
        tell_shape(t, got, want, why, sizeof why);
        fail_parameter(t, why);
        return;
    }
    bool cut = got->placement_kind == SHARD, sound = got->count == count_held(got);
    if (!wrong_cut(t, got, want) && sound) {
        Range held = chunk(cut ? want->shape.size[got->placement_dim] : 0,
                           place_in(tp_group(t->c, t->rank), t->rank), t->c->tp);
        sound = !cut || (got->begin == held.begin && got->end == held.end);
    }
    if (!sound)
        fail(t, SHARDING, EXPLAINED, _("rank %d does not hold its part of parameter %s (%s)"),
             t->rank, want->label.name, t->sizes);
    else if (wrong_initial(t, got, want, why, sizeof why))
        fail(t, INITIAL_VALUES, EXPLAINED, "%s (%s)", why, t->sizes);
}

void parameter_missing(Trial *t, const Entry *want)
{
    char why[700];
    if (!renamed_parameter(t, why, sizeof why))
        snprintf(why, sizeof why, _("parameter %.63s is missing: each layer has its own"),
                 want->label.name);
    fail_parameter(t, why);
}

/* The next parameter after `last` that the layer has and the reference does not, or NULL. */
static const Entry *strange_parameter(const Trial *t, const Entry *last)
{
    while ((last = next_entry(t->outcome->wrote[t->rank], last)))
        if (last->kind == PARAMETER && !find_entry(t->expected.all, PARAMETER, last->label))
            return last;
    return NULL;
}

bool renamed_parameter(const Trial *t, char *text, size_t size)
{
    const Entry *want = NULL, *strange = strange_parameter(t, NULL);
    while (strange && (want = next_entry(t->expected.all, want)))
        if (want->kind == PARAMETER && !entry_of_rank(t, t->rank, PARAMETER, want->label)) {
            snprintf(text, size,
                     _("there is no parameter %.63s, but one named %.63s: initial values depend on "
                       "the name, so keep the names and within(...) of the start file"),
                     want->label.name, strange->label.name);
            return true;
        }
    return false;
}

void look_for_more(Trial *t)
{
    char renamed[700];
    const Entry *entry = NULL;
    while (!renamed_parameter(t, renamed, sizeof renamed) && (entry = strange_parameter(t, entry)))
        fail(t, SHARDING, EXPLAINED,
             _("the layer does not need the parameter %.63s, which takes memory (%s)"),
             entry->label.name, t->sizes);
    for (entry = NULL; (entry = next_entry(t->outcome->wrote[t->rank], entry));)
        if (entry->kind == LEFT_OVER)
            left_over(t, entry);
}
