/* Reports what the ranks send beyond what suffices, and in which calls. */
#include <math.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/f_and_g.h"
#include "grader/labs/groups.h"
#include "grader/labs/sequence.h"

bool gathers(const Trial *t, const Call *call)
{
    return strstr(call->name, "gather") || !strcmp(call->name, "broadcast");
}

static bool is_all_reduce(const Trial *t, const Call *call)
{
    return !strcmp(call->name, "all_reduce");
}

static bool reduces(const Trial *t, const Call *call)
{
    return call->rule == REDUCTION;
}

bool sends_part_of_weight(const Trial *t, const Call *call)
{
    for (const Entry *want = NULL; (want = next_entry(t->expected.all, want));)
        for (int rank = 0; want->kind == PARAMETER && rank < t->c->world; rank++) {
            const Entry *part = entry_of_rank(t, rank, PARAMETER, want->label);
            if (part && part->count == call->sent[0].count)
                return true;
        }
    return false;
}

bool sums_part_of_weight(const Trial *t, const Call *call)
{
    return is_all_reduce(t, call) && sends_part_of_weight(t, call);
}

/* Is this a pass of f or g that sums a tensor over the ranks? */
static bool is_sum(const Entry *want)
{
    return (want->label.what == FORWARD_OF && is_operation(want, G)) ||
           (want->label.what == BACKWARD_OF && is_operation(want, F));
}

/* Would the ranks send no more than suffices if the doubles of this pass were floats? */
static bool sends_doubles(const Trial *t, const Entry *want, double excess)
{
    double doubles = 0;
    for (const Call *call = NULL; (call = next_in_pass(t, want, call));)
        doubles += call->sent[0].basic == BASIC(FLOATING, 8) ? call->charged : 0;
    return doubles / 2 >= excess - 0.5;
}

/* Does this pass gather or broadcast numbers, where a reduction would do? */
static bool gathers_instead(const Trial *t, const Entry *want)
{
    const bool reduces_in_reference =
        t->result->lab->takes_maxima || (is_sum(want) && !call_in_pass(t, want, reduces));
    return reduces_in_reference && call_in_pass(t, want, gathers);
}

/* What the ranks send on one line of the lab: in its messages, or in those of its collective calls
 * that send equally much. */
typedef struct Expense {
    const Call *call; /* the first one there */
    double sent, calls;
    bool alike; /* all of them send as much as the first one */
} Expense;

enum { LINES = 10 }; /* the most lines of a pass that are told apart */

static bool is_there(const Expense *of, const Call *call)
{
    return !strcmp(of->call->name, call->name) &&
           !strcmp(line_of(of->call->address), line_of(call->address)) &&
           (call->rule == MESSAGE || of->call->charged == call->charged);
}

/* Lists what this pass sends, by lines. Returns the number of expenses, or 0 if they are not all
 * that the ranks sent. */
static int expenses_of(const Trial *t, const Entry *want, double sent, Expense of[LINES])
{
    double all = 0;
    int count = 0;
    for (const Call *call = NULL; (call = next_in_pass(t, want, call));) {
        int k = 0;
        if (call->charged == 0)
            continue;
        while (k < count && !is_there(&of[k], call))
            k++;
        if (k == LINES)
            return 0;
        if (k == count)
            of[count++] = (Expense){.call = call, .alike = true};
        of[k].sent += call->charged;
        of[k].calls++;
        of[k].alike = of[k].alike && call->charged == of[k].call->charged;
        all += call->charged;
    }
    return fabs(all - sent) < 0.5 ? count : 0;
}

static const char *place_of_call(const Call *call, char text[120])
{
    const char *line = line_of(call->address);
    snprintf(text, 120, "%s%s%s", _(call->name), line[0] ? _(" at ") : "", line);
    return text;
}

/* If each rank makes `more` calls than usual: on which line, or on which of several ones, do so many
 * calls send what is too much? */
static bool needless_calls(const Trial *t, const Expense *of, int count, double excess, double more,
                           char text[240])
{
    char all[200] = "", one[120] = "";
    double made = 0;
    int found = 0;
    for (int i = 0; i < count; i++) {
        const double times =
            of[i].call->rule != MESSAGE && of[i].alike ? of[i].calls / t->c->world : 0;
        if (times < more || more < 1 || fabs(more * of[i].sent / times - excess) >= 0.5)
            continue;
        append(all, sizeof all, _("%s%s (%.0f in all)"), found++ ? _(", or the ") : "",
               place_of_call(of[i].call, one), times);
        made = times;
    }
    if (found > 1)
        snprintf(text, 240, _("each rank can do with %.0f fewer of these calls: the %s"), more,
                 all);
    else if (made == more)
        snprintf(
            text, 240,
            _("this pass does not need the %s (%.0f numbers): no rank needs the others' numbers there"),
            one, excess);
    else
        snprintf(text, 240, _("each rank calls the %s %.0f times, and %.0f would do"), one, made,
                 made - more);
    return found > 0;
}

/* Lists the lines on which the ranks send as much as is too much, or up to `near` more or less.
 * Returns how many there are. */
static int equal_expenses(const Expense *of, int count, double excess, double near, char text[200])
{
    int found = 0;
    char place[120];
    text[0] = '\0';
    for (int i = 0; i < count; i++)
        if (fabs(of[i].sent - excess) <= near)
            append(text, 200, "%s%s", found++ ? _(", and in the ") : "",
                   place_of_call(of[i].call, place));
    return found;
}

/* Reports which calls make this pass send more than suffices. */
static void tell_expense(const Trial *t, const Entry *want, double sent, double enough,
                         char text[240])
{
    Expense of[LINES];
    char place[120], equal[200];
    const double n = exchanging_ranks(t->c), times = sent / enough;
    const int count = expenses_of(t, want, sent, of);
    const Expense *most = of;
    for (int i = 1; i < count; i++)
        if (of[i].sent > most->sent || (of[i].sent == most->sent && most->call->rule == MESSAGE))
            most = &of[i];
    if (count == 0) {
        snprintf(text, 240, "%s", _("make trace shows what each call of the pass sends"));
        return;
    }
    const Call *call = most->call;
    const double each = (double)call->sent[0].count;
    const int equals = equal_expenses(of, count, sent - enough, 0.49, equal);
    place_of_call(call, place);
    if (equals == 1)
        snprintf(
            text, 240,
            _("this pass does not need the %s (%.0f numbers): no rank needs the others' numbers there"),
            equal, sent - enough);
    else if (is_sum(want) && count == 1 && call->rule == MESSAGE && most->alike &&
             2 * (n - 1) * t->c->world * each == enough * n)
        snprintf(text, 240,
                 _("%.0f messages of %.0f numbers, each a whole tensor; a sum in parts (a "
                   "reduce-scatter, then an all-gather) sends fewer numbers"),
                 most->calls, each);
    else if (count == 1 && most->alike && most->calls == t->c->world && call->root == NOBODY &&
             call->rule != MESSAGE && fmod(each, times) == 0 && !t->result->check[FORWARD].failed)
        snprintf(text, 240, _("the %s takes %.0f numbers from each rank, where %.0f suffice"),
                 place, each, each / times);
    else if (equals > 1)
        snprintf(text, 240, _("%.0f numbers are sent in the %s"), sent - enough, equal);
    else if (equal_expenses(of, count, sent - enough, (sent - enough) / 10, equal))
        snprintf(text, 240, _("about %.0f numbers are sent in the %s"), sent - enough, equal);
    else
        snprintf(text, 240, _("%.0f of them are sent in the %s"), most->sent, place);
}

/* Does this pass, in which each rank needs its own positions, sum by an all-reduce? Writes where. */
static bool sums_all_positions(const Trial *t, const Entry *want, char text[240])
{
    const Call *call = kind_of_case(t->c)->facts & SHARDS_OF_POSITIONS
                           ? call_in_pass(t, want, is_all_reduce)
                           : NULL;
    if (!call ||
        (want->label.index < ALL_POSITIONS && want->label.index % CALL_PARTS == GATHER_SEQUENCE))
        return false;
    snprintf(text, 240,
             _("the all-reduce at %s brings every position to every rank; a reduce-scatter, which "
               "brings each rank its own, sends half as much"),
             line_of(call->address)[0] ? line_of(call->address) : call->name);
    return true;
}

void tell_more_sent(const Trial *t, const Entry *want, double sent, double calls, double enough,
                    char *text, size_t size)
{
    char communications[400], where[240] = "", beyond[600] = "";
    const double times = enough > 0 ? sent / enough : 0, usual = numbers_of(want)[1];
    const bool many = usual > 0 && fabs(calls - times * usual) < 1e-6;
    if (enough > 0)
        tell_expense(t, want, sent, enough, where);
    snprintf(communications, sizeof communications, _("%.0f communications instead of %.0f; %s"),
             calls, usual, where);
    const Examination *own = &t->result->lab->examine;
    const char *suffices = own->suffices ? own->suffices(t->c, &want->label) : NULL;
    Expense of[LINES];
    char call[240];
    const bool known =
        enough > 0 && usual > 0 &&
        needless_calls(t, of, expenses_of(t, want, sent, of), sent - enough, calls - usual, call);
    const char *reason =
        known      ? call
        : suffices ? suffices
        : sends_doubles(t, want, sent - enough) && !t->result->lab->over_stages
            ? _("a double counts as two numbers, and a tensor holds floats (MPI_FLOAT)")
        : tell_call_beyond_group(t, beyond, sizeof beyond) ? beyond
        : sums_all_positions(t, want, where)               ? where
        : gathers_instead(t, want)
            ? _("all_gather, or a broadcast by each rank, brings the numbers of every rank to "
                "each rank; a reduction (a sum, a maximum) sends fewer")
        : many ? communications
               : where;
    if (enough == 0)
        snprintf(
            text, size,
            want->label.of == THE_WEIGHTS ? _("the ranks sent %.0f numbers, but no average is due")
            : want->label.what == BACKWARD_OF && call_in_pass(t, want, sums_part_of_weight)
                ? _("the ranks sent %.0f numbers, but this pass needs no exchange: the gradient "
                    "of a weight is summed over the ranks there")
                : _("the ranks sent %.8g numbers, but this pass needs no exchange"),
            sent);
    else if (times > 1 && times == round(times))
        snprintf(text, size, _("the ranks sent %.0f numbers, %.0f times the %.0f that suffice: %s"),
                 sent, times, enough, reason);
    else
        snprintf(text, size, _("the ranks sent %.0f numbers, but %.0f suffice: %s"), sent, enough,
                 reason);
}
