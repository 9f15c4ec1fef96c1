/* Copies of the ring buffers, and text descriptions of calls. */
#include "grader/judge/mpi/recorded.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/clean.h"
#include "base/language.h"
#include "tensor/tensor.h"

static bool is_rank(int32_t rank, int ranks)
{
    return rank >= 0 && rank < ranks;
}

/* Ends a name from a record, and makes it printable within a line, so that no printer has to. */
static void make_name(char *name, size_t size)
{
    name[size - 1] = '\0';
    clean_line(name);
}

static void make_sound(Call *call, int ranks, int64_t index)
{
    make_name(call->name, sizeof call->name);
    make_name(call->where.name, sizeof call->where.name);
    call->members &= (1u << ranks) - 1;
    if (!is_rank(call->root, ranks))
        call->root = NOBODY;
    if (!is_rank(call->to, ranks))
        call->to = NOBODY;
    if (!is_rank(call->from, ranks) && call->from != ANYBODY)
        call->from = NOBODY;
    if (call->number < 0 || call->rule < LOCAL || call->rule > MESSAGE || call->rule == MESSAGE ||
        call->rule == LOCAL)
        call->number = 0;
    if (call->reduction < 0 || call->reduction >= REDUCTIONS)
        call->reduction = NO_REDUCTION;
    if (call->waited_by < index)
        call->waited_by = -1;
    if (!(call->charged >= 0))
        call->charged = 0;
}

static void make_argument_sound(TapeTensor *a)
{
    if (a->shape.rank < 0 || a->shape.rank > 4)
        a->shape.rank = 0;
    if (a->kind < WHOLE || a->kind > UNDECIDED)
        a->kind = UNKNOWN;
    make_name(a->parameter, sizeof a->parameter);
}

static void copy_operations(RankCalls *into, const Rings *rings, bool begun)
{
    const int64_t count = begun ? atomic_load(&rings->operations) : 0;
    into->operations_count = count < 0 ? 0 : count < RING_OPERATIONS ? count : RING_OPERATIONS;
    into->operation = malloc((size_t)(into->operations_count + 1) * sizeof *into->operation);
    memcpy(into->operation, rings->operation,
           (size_t)into->operations_count * sizeof *into->operation);
    for (int64_t i = 0; i < into->operations_count; i++) {
        TapeOperation *o = &into->operation[i];
        make_name(o->name, sizeof o->name);
        make_name(o->where.name, sizeof o->where.name);
        o->inputs = o->inputs < 0 ? 0 : o->inputs < MOST_INPUTS ? o->inputs : MOST_INPUTS;
        make_argument_sound(&o->output);
        for (int k = 0; k < MOST_INPUTS; k++)
            make_argument_sound(&o->input[k]);
        for (int k = 0; k < MOST_ATTRIBUTES; k++) {
            make_name(o->attribute[k].name, sizeof o->attribute[k].name);
            make_name(o->attribute[k].text, sizeof o->attribute[k].text);
        }
    }
}

static void copy_rank(RankCalls *into, const Rings *rings, int ranks, bool begun)
{
    int64_t total = begun ? atomic_load(&rings->calls) : 0;
    total = total < 0 ? 0 : total;
    into->count = total < RING_CALLS ? total : RING_CALLS;
    into->first = total - into->count;
    into->call = malloc((size_t)(into->count + 1) * sizeof *into->call);
    for (int64_t i = 0; i < into->count; i++) {
        into->call[i] = rings->call[(into->first + i) % RING_CALLS];
        make_sound(&into->call[i], ranks, into->first + i);
    }
    copy_operations(into, rings, begun);
}

Calls *calls_copy(const Launch *launch, int ranks, int posted)
{
    Calls *calls = calloc(1, sizeof *calls);
    calls->ranks = ranks;
    for (int r = 0; r < ranks; r++) {
        const Rings *rings = rings_of(launch, r);
        copy_rank(&calls->rank[r], rings, ranks, atomic_load(&rings->number) == posted);
        calls->rank[r].left = atomic_load(&launch->rank[r].done_cases) >= posted;
    }
    return calls;
}

void calls_free(Calls *calls)
{
    for (int r = 0; calls && r < calls->ranks; r++) {
        free(calls->rank[r].call);
        free(calls->rank[r].operation);
    }
    free(calls);
}

const Call *call_of_rank(const Calls *calls, int rank)
{
    const RankCalls *mine = &calls->rank[rank];
    const Call *last = mine->count ? &mine->call[mine->count - 1] : NULL;
    return last && !last->returned && !mine->left ? last : NULL;
}

double signature_bytes(const Signature *s)
{
    return s->count > 0 && s->basic > 0 ? (double)s->count * (s->basic % BASIC_SIZE) : 0;
}

/* ---- text ----------------------------------------------------------------------------------------------------------- */

void append(char *text, size_t size, const char *format, ...)
{
    va_list args;
    size_t used = strlen(text);
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

static void append_basic(char text[96], const Signature *s)
{
    static const char *const kinds[] = {
        [FLOATING] = "float",  [SIGNED] = "int",   [UNSIGNED] = "unsigned", [CHARACTER] = "char",
        [COMPLEX] = "complex", [LOGICAL] = "bool", [PAIR] = "pair",         [BYTES] = "byte"};
    int kind = s->basic / BASIC_SIZE, size = s->basic % BASIC_SIZE;
    if (kind < FLOATING || kind > BYTES) /* a lab can write nonsense into the record */
        kind = BYTES;
    if (kind == FLOATING && size != 4)
        append(text, 96, size == 8 ? " double" : " long double");
    else if ((kind == SIGNED || kind == UNSIGNED) && size != 4)
        append(text, 96, _(" %s of %d bytes"), kinds[kind], size);
    else
        append(text, 96, " %s", kinds[kind]);
}

static const Signature *largest(const Signature signature[MAX_RANKS])
{
    const Signature *found = &signature[0];
    for (int r = 1; r < MAX_RANKS; r++)
        if (signature[r].count > found->count)
            found = &signature[r];
    return found;
}

static const char *reduction_name(int32_t reduction)
{
    static const char *const names[REDUCTIONS] = {N_("no operation"),
                                                  N_("sum"),
                                                  N_("max"),
                                                  N_("min"),
                                                  N_("product"),
                                                  N_("logical and"),
                                                  N_("logical or"),
                                                  N_("logical exclusive or"),
                                                  N_("bitwise and"),
                                                  N_("bitwise or"),
                                                  N_("bitwise exclusive or"),
                                                  N_("max and its location"),
                                                  N_("min and its location")};
    return _(names[reduction]);
}

const char *call_what(const Call *call, char text[96])
{
    const Signature *sent = largest(call->sent), *received = largest(call->received),
                    *shown = sent->count ? sent : received;
    text[0] = '\0';
    if ((call->rule != REDUCTION && call->rule != EXCHANGE && call->rule != MESSAGE) ||
        call->probes)
        return text;
    append(text, 96, "%lld", (long long)shown->count);
    if (shown->count)
        append_basic(text, shown);
    if (call->rule == MESSAGE && sent->count && received->count && sent->count != received->count)
        append(text, 96, _(", receives %lld"), (long long)received->count);
    if (call->rule == REDUCTION)
        append(text, 96, ", %s", reduction_name(call->reduction));
    if (call->root >= 0)
        append(text, 96, _(", root %d"), call->root);
    return text;
}

const char *group_text(const Call *call, char text[32])
{
    strcpy(text, "{");
    for (int r = 0; r < MAX_RANKS; r++)
        if (call->members >> r & 1)
            append(text, 32, "%s%d", text[1] ? "," : "", r);
    append(text, 32, "}");
    return text;
}

const char *call_name(const Call *call, char text[64])
{
    snprintf(text, 64, call->starts ? _("start of %.40s") : "%.40s", _(call->name));
    if (call->number)
        append(text, 64, " #%lld", (long long)call->number);
    if (call->to >= 0)
        append(text, 64, _(" to rank %d"), call->to);
    if (call->from >= 0)
        append(text, 64, _(" from rank %d"), call->from);
    else if (call->from == ANYBODY)
        append(text, 64, "%s", _(" from any rank"));
    int tag = call->to >= 0 ? call->to_tag : call->from_tag;
    if ((call->rule == MESSAGE || call->rule == TOGETHER) && tag > 0)
        append(text, 64, _(" with tag %d"), tag);
    return text;
}

static const Call *maker_of(const Calls *calls, uint64_t group)
{
    for (int r = 0; r < calls->ranks; r++)
        for (int64_t i = 0; i < calls->rank[r].count; i++)
            if (calls->rank[r].call[i].made == group)
                return &calls->rank[r].call[i];
    return NULL;
}

/* If ranks wait in two communicators of the same ranks, appends which call made this one. */
static void append_maker(const Calls *calls, const Call *call, char *text, size_t size)
{
    bool alike = false;
    if (strncmp(call->name, "create_group", strlen("create_group")) == 0)
        return; /* its ranks are not a communicator yet */
    for (int r = 0; r < calls->ranks; r++) {
        const Call *other = call_of_rank(calls, r);
        alike = alike || (other && other->group != call->group && other->members == call->members);
    }
    if (!alike)
        return;
    const Call *maker = maker_of(calls, call->group);
    const char *line = maker ? line_of(maker->address) : "";
    if (call->group == THE_WORLD)
        append(text, size, " (MPI_COMM_WORLD)");
    else if (line[0])
        append(text, size, _(" (the communicator made at %s)"), line);
    else
        append(text, size, "%s", _(" (the communicator of a group of the kit)"));
}

static void append_call(const Calls *calls, const Call *call, bool same_group, char *text,
                        size_t size)
{
    char name[64], group[32], what[96];
    append(text, size, "%s", call_name(call, name));
    if (same_group && call->members) {
        append(text, size, "%s", _(" of the same group"));
    } else if (call->members) {
        append(text, size, _(" of %s"), group_text(call, group));
        append_maker(calls, call, text, size);
    }
    if (call_what(call, what)[0])
        append(text, size, " (%s)", what);
}

void call_text(const Calls *calls, const Call *call, const Call *before, char *text, size_t size)
{
    const char *line = line_of(call->address);
    text[0] = '\0';
    append_call(calls, call, before && before->group == call->group, text, size);
    append(text, size, "%s%s", line[0] ? _(" at ") : "", line);
}

bool is_waited_for(const Call *call, int64_t by)
{
    return call->starts && !call->completed && call->waited_by == by;
}

/* The rank at the other end of a send (half 0) or of a receive (half 1), or NOBODY. */
static int other_end(const Call *call, int half)
{
    return half ? call->from : call->to;
}

/* The rank at the other end of the send (half 0) or receive (half 1) that a rank waits for. NOBODY
 * if there is none, or if the rank is in a call that does both. */
static int waits_for_half(const Calls *calls, int rank, int half)
{
    const RankCalls *mine = &calls->rank[rank];
    const Call *in = call_of_rank(calls, rank);
    if (!in || in->rule != LOCAL)
        return in && in->rule == MESSAGE && other_end(in, !half) == NOBODY ? other_end(in, half)
                                                                           : NOBODY;
    for (int64_t i = 0; i < mine->count; i++)
        if (is_waited_for(&mine->call[i], mine->first + mine->count - 1) &&
            other_end(&mine->call[i], half) >= 0)
            return other_end(&mine->call[i], half);
    return NOBODY;
}

int waits_to_send_to(const Calls *calls, int rank)
{
    return waits_for_half(calls, rank, 0);
}

int waits_to_receive_from(const Calls *calls, int rank)
{
    return waits_for_half(calls, rank, 1);
}

/* Appends the started calls that a rank in a wait waits for. */
static void append_requests(const Calls *calls, int rank, char *text, size_t size)
{
    const RankCalls *mine = &calls->rank[rank];
    char one[256];
    int count = 0;
    for (int64_t i = 0; i < mine->count; i++) {
        const Call *call = &mine->call[i];
        if (!is_waited_for(call, mine->first + mine->count - 1))
            continue;
        Call whole = *call;
        whole.starts = false; /* it waits for the send, not for its start */
        call_text(calls, &whole, NULL, one, sizeof one);
        if (count++ == 0)
            append(text, size, _(" for the %s"), one);
    }
    if (count > 1)
        append(text, size, _(" and %d more"), count - 1);
}

void append_waiting(const Calls *calls, int rank, char *text, size_t size)
{
    const Call *call = call_of_rank(calls, rank);
    if (call->rule == LOCAL) {
        const char *line = line_of(call->address), *inner = line_of(call->inner);
        append(text, size, "%s%s%s", _("waits"), inner[0] ? _(" at ") : "", inner);
        if (strcmp(line, inner))
            append(text, size, _(", called at %s,"), line);
        append_requests(calls, rank, text, size);
    } else {
        char one[256];
        call_text(calls, call, NULL, one, sizeof one);
        append(text, size, _("waits in %s"), one);
    }
}
