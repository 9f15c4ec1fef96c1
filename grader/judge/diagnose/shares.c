/* Compares what the ranks multiply and hold with their shares of what the plain layer multiplies
 * and holds. The ranks share every product of a layer. */
#include "grader/labs/work.h"

#include <math.h>

#include "grader/judge/diagnose/trial.h"

/* Right answers multiply exactly their share. Their memory is at most three times the sum of the
 * plain layer's memory and of the inputs and results of communication. The limit is `copies` times
 * that sum. A rank may also copy the weights that it holds, such as those of one head after the
 * other. Buffers are rounded up (`small`), and a parameter may be padded (`padding`). */
static const double slack = 1.1, copies = 4, small = 64, padding = 16;

/* The fraction of the plain layer's work that counts as all of it. */
static const double nearly_all = 0.95;

bool busiest(const Trial *t, Label label, int number, Busiest *b)
{
    *b = (Busiest){.most = -1, .second = -1};
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *got = entry_of_rank(t, rank, WORK, label);
        if (!got || got->count != WORK_NUMBERS)
            return false; /* the end of the case gives the reason */
        double is = numbers_of(got)[number] + (number == TAKEN ? numbers_of(got)[OWN_MEMORY] : 0);
        if (is > b->most)
            *b = (Busiest){rank, is, b->most};
        else
            b->second = fmax(b->second, is);
    }
    return true;
}

void compare_products_of_share(Trial *t, const Entry *want, const char *sentence)
{
    static const int products[] = {LINEAR_WORK, ATTENTION_WORK};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        Busiest b;
        const double share = numbers_of(want)[products[i]] / t->c->tp;
        if (busiest(t, want->label, products[i], &b) && b.most > slack * share)
            fail(t, ARITHMETIC, EXPLAINED, sentence, b.rank, b.most / share, entry_text(want),
                 t->sizes);
    }
}

/* Fails, and says why, if a rank holds too much only because of what it held before this case. */
static bool only_earlier(Trial *t, const Entry *want, const Busiest *b, double enough)
{
    const Entry *got = entry_of_rank(t, b->rank, WORK, want->label);
    const double earlier = numbers_of(got)[EARLIER_MEMORY];
    if (earlier == 0 || b->most - earlier > enough)
        return false;
    fail(
        t, ARITHMETIC, EXPLAINED,
        _("rank %d holds %.0f numbers where %.0f suffice: of these, static variables and blocks of earlier cases take %.0f\n%s "
          "(%s)"),
        b->rank, b->most, enough, earlier, entry_text(want), t->sizes);
    return true;
}

void compare_most(Trial *t, const Entry *want, int number, double enough, const char *sentence)
{
    Busiest b;
    if (busiest(t, want->label, number, &b) && b.most > enough &&
        !(number == TAKEN && only_earlier(t, want, &b, enough)))
        fail(t, ARITHMETIC, EXPLAINED, sentence, b.rank, b.most, enough, entry_text(want),
             t->sizes);
}

/* The largest fraction of a layer that a rank has. A vocabulary may be split into unequal parts. */
static double largest_part(const Case *c)
{
    const int rows = lab_of(c->lab)->sizes & SIZE_V ? c->V : 0;
    return rows ? (double)chunk(rows, 0, c->tp).end / rows : 1.0 / c->tp;
}

/* The largest fraction of the blocks that a stage may run; 1 with one stage or without blocks. */
static double share_of_stage(const Case *c)
{
    const int most = (c->blocks + c->pp - 1) / c->pp;
    return c->blocks == 0 ? 1 : (double)most / c->blocks;
}

/* Does this layer return one row per text? A classifier does. */
static bool is_classifier(const Trial *t, const Entry *work)
{
    Label label = work->label;
    label.what = OUTPUT_OF;
    const Entry *output = find_entry(t->expected.all, VALUES, label);
    return kind_of_case(t->c)->facts & A_ROW_PER_SAMPLE && output && output->shape.rank == 2;
}

bool enlarged_parameter(const Trial *t, char *text, size_t size)
{
    const Entry *got = misdeclared_parameter(t, text, size);
    const Entry *want = got ? find_entry(t->expected.all, PARAMETER, got->label) : NULL;
    return want && shape_count(got->shape) > shape_count(want->shape);
}

/* Does each rank have only its part of the weights, or of the heads, in this pass? Then it
 * multiplies more than its share only if it takes more rows, or computes a product again. */
static bool has_only_parts(const Trial *t, const Entry *work, int number)
{
    for (const Entry *want = NULL; (want = next_entry(t->expected.all, want));)
        for (int rank = 0; want->kind == PARAMETER && rank < t->c->world; rank++) {
            const Entry *got = entry_of_rank(t, rank, PARAMETER, want->label);
            if (got && got->placement_kind != SHARD &&
                lab_cuts(t->result->lab, want->label.name) != CUT_NOT)
                return false;
        }
    return !call_in_pass(t, work, number == ATTENTION_WORK ? gathers : sends_part_of_weight);
}

static void compare_products(Trial *t, const Entry *want, int number)
{
    Busiest b;
    char why[300];
    double all = numbers_of(want)[number], share = all * share_of_stage(t->c) * largest_part(t->c);
    if (share <= 0 || !busiest(t, want->label, number, &b) || b.most <= slack * share)
        return;
    if (enlarged_parameter(t, why, sizeof why)) {
        fail(t, ARITHMETIC, EXPLAINED,
             _("%s\nrank %d did %.1f times the multiplications of its share: %s (%s)"), why, b.rank,
             b.most / share, entry_text(want), t->sizes);
        return;
    }
    fail(
        t, ARITHMETIC, EXPLAINED,
        number == ATTENTION_WORK
            ? _("rank %d did %.1f times the multiplications of its share in attention: %s\n%s (%s)")
            : _("rank %d did %.1f times the multiplications of its share: %s\n%s (%s)"),
        b.rank, b.most / share,
        b.most > slack * all && b.most == t->c->S * share && is_classifier(t, want)
            ? _("the classifier's linear layers read every position: first_token() comes before them")
        : t->result->lab->over_stages && t->result->check[SHARDING].failed
            ? _("it runs more blocks than others")
        : (b.most > slack * all && b.second > slack * share) || has_only_parts(t, want, number)
            ? _("more rows are computed than needed, or one product more than once")
        : b.second <= slack * share ? _("one rank does the work of others")
        : b.most < nearly_all * all ? _("a part of the layer is computed in full on every rank")
        : number == ATTENTION_WORK  ? _("every rank computes all heads")
                                    : _("the whole product is computed on every rank"),
        entry_text(want), t->sizes);
}

/* The most that a rank may hold of a parameter, over the ways in which the lab may split it. */
static double share_of_parameter(const Trial *t, const Entry *want)
{
    double most = 0, whole = (double)shape_count(want->shape);
    unsigned cuts = lab_cuts(t->result->lab, want->label.name);
    for (int dim = 0; dim < 2; dim++)
        if (cuts & (dim ? CUT_1 : CUT_0)) {
            Range first = chunk(want->shape.size[dim], 0, t->c->tp);
            most = fmax(most, whole / (double)want->shape.size[dim] * (double)first.end);
        }
    bool of_block = want->label.of == A_NAME && !strncmp(want->label.name, "blocks.", 7);
    return (cuts == CUT_NOT ? whole : most) * (of_block ? share_of_stage(t->c) : 1);
}

/* How many numbers of weights a rank may hold at most. */
static double share_of_parameters(const Trial *t)
{
    double share = 0;
    for (const Entry *entry = NULL; (entry = next_entry(t->expected.all, entry));)
        if (entry->kind == PARAMETER)
            share += share_of_parameter(t, entry) + padding;
    return share;
}

static void compare_parameters(Trial *t, const Entry *want)
{
    Busiest b;
    const double share = 2 * share_of_parameters(t);
    if (!busiest(t, want->label, PARAMETERS_HELD, &b) || b.most <= share)
        return;
    fail(t, ARITHMETIC, EXPLAINED,
         _("rank %d holds %.0f numbers of weights and gradients, but its share is %.0f: no rank "
           "needs all of a split weight (%s)"),
         b.rank, b.most, share, t->sizes);
}

/* The plain layer's memory in this pass or in the other, whichever is larger, because a split layer
 * may need memory to communicate in a pass in which the plain layer needs none. */
static double plain_memory(const Trial *t, const Entry *want)
{
    Label other = want->label;
    other.what = other.what == FORWARD_OF ? BACKWARD_OF : FORWARD_OF;
    const Entry *entry = find_entry(t->expected.all, WORK, other);
    return fmax(numbers_of(want)[TAKEN], entry ? numbers_of(entry)[TAKEN] : 0);
}

/* How many numbers a layer's inputs or outputs have at most, since communication copies them. */
static double exchanged(const Case *c)
{
    int rows = (c->B + (c->more_B > 0 ? c->more_B : 0)) * c->S, width = c->H;
    for (int i = 0; i < CASE_SIZES; i++) {
        int size = case_size(c, i);
        if (case_sizes[i].set == SIZE_OUT && size > width)
            width = size;
    }
    return (double)rows * width;
}

static void compare_memory(Trial *t, const Entry *want)
{
    Busiest b;
    MemoryFunction *memory = t->result->lab->memory;
    const double plain = plain_memory(t, want);
    const double most = memory
                            ? memory(t->c, &want->label)
                            : copies * (plain + exchanged(t->c)) + share_of_parameters(t) + small;
    if (!busiest(t, want->label, TAKEN, &b) || b.most <= most || only_earlier(t, want, &b, most))
        return;
    if (memory) {
        fail(t, ARITHMETIC, EXPLAINED, _(t->result->lab->beyond_memory), b.rank, b.most, most,
             entry_text(want), t->sizes);
        return;
    }
    fail(t, ARITHMETIC, EXPLAINED,
         _("rank %d allocated %.0f numbers where %.0f suffice: %s\n%s (%s)"), b.rank, b.most, most,
         call_in_pass(t, want, gathers) ? _("a weight is gathered there, or more is held than this "
                                            "pass needs")
         : want->label.what == BACKWARD_OF && call_in_pass(t, want, sums_part_of_weight)
             ? _("the gradient of a weight is summed over the ranks there, which takes a tensor as "
                 "large as this rank's part of the weight")
             : _("more is held there than this pass needs"),
         entry_text(want), t->sizes);
}

/* A lab's loops over raw numbers are not counted; the report notes that if everything else is
 * right. */
static void note_raw_looks(Trial *t, const Entry *want)
{
    CheckResult *r = &t->result->check[ARITHMETIC];
    for (int rank = 0; rank < t->c->world && !r->note[0]; rank++) {
        const Entry *got = entry_of_rank(t, rank, WORK, want->label);
        if (!got || got->count != WORK_NUMBERS || !(numbers_of(got)[RAW_LOOKS] > 0))
            continue;
        const char *line = line_of(got->address);
        if (line[0])
            snprintf(r->note, sizeof r->note,
                     _("what is computed with tensor_data(), as at %s, is not counted"), line);
        else
            snprintf(r->note, sizeof r->note, "%s",
                     _("what is computed with tensor_data() is not counted"));
    }
}

static void note_kept(Trial *t, const Entry *want)
{
    Busiest b;
    if (busiest(t, want->label, KEPT, &b))
        t->result->kept = (Bytes){true, fmax(t->result->kept.count, sizeof(float) * b.most)};
}

void compare_work(Trial *t, const Entry *want)
{
    const bool over_replicas = t->result->lab->over_replicas;
    note_kept(t, want);
    if (t->result->lab->examine.work) {
        t->result->lab->examine.work(t, want);
        note_raw_looks(t, want);
        return;
    }
    if (t->c->tp * t->c->pp == 1 && !over_replicas) /* there is nothing to share */
        return;
    compare_products(t, want, LINEAR_WORK);
    compare_products(t, want, ATTENTION_WORK);
    compare_parameters(t, want);
    compare_memory(t, want);
    note_raw_looks(t, want);
}

/* Is the work of the case's forward passes split? Compares multiplications or, if there are none
 * (an embedding looks rows up), the parameters held. Backward passes do not count, because they
 * skip rows with zero gradient, so a rank may multiply less than the plain layer without a
 * split. */
void look_at_split(Trial *t)
{
    double all = 0, most[MAX_RANKS] = {0}, busiest_of_all = 0, held = 0, most_held = 0;
    /* In labs with stages, the stages share the work; how ranks split a layer does not count. Each
     * replica does all of the work. */
    const bool stages = t->result->lab->over_stages;
    const int among = stages ? t->c->pp : t->c->tp, each = stages ? t->c->tp : 1;
    if (among == 1 || t->result->lab->over_replicas || !lab_points(t->result->lab, ARITHMETIC) ||
        t->result->state != GRADED)
        return;
    for (const Entry *want = NULL; (want = next_entry(t->expected.all, want));) {
        if (want->kind != WORK || want->label.what != FORWARD_OF)
            continue;
        all += numbers_of(want)[LINEAR_WORK];
        held = numbers_of(want)[PARAMETERS_HELD];
        for (int rank = 0; rank < t->c->world; rank++) {
            const Entry *got = entry_of_rank(t, rank, WORK, want->label);
            if (!got || got->count != WORK_NUMBERS)
                return;
            most[rank] += numbers_of(got)[LINEAR_WORK];
            most_held = fmax(most_held, each * numbers_of(got)[PARAMETERS_HELD]);
            busiest_of_all = fmax(busiest_of_all, each * most[rank]);
        }
    }
    if (all + held == 0) /* as in a case of collectives alone */
        return;
    bool split = all > 0 ? busiest_of_all < nearly_all * all : most_held < nearly_all * held;
    t->result->split = t->result->split || split;
    t->result->unsplit = t->result->unsplit || !split;
}
