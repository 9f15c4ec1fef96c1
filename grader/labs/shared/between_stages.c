/* Labs 12 to 14: which entries a stage may lack, and why numbers between stages are wrong. */
#include <math.h>
#include <stdlib.h>

#include "grader/judge/diagnose/step_schedule.h"
#include "grader/labs/shared/stage_blocks.h"

/* Does the entry that this rank has not written belong to another stage, which has written it? */
static bool is_of_another_stage(const Trial *t, const Entry *want)
{
    const int width = width_of(t->c);
    if (t->c->pp == 1 || want->kind == TRAFFIC || want->kind == WORK)
        return false;
    for (int rank = t->rank % width; rank < t->c->world; rank += width)
        if (entry_of_rank(t, rank, want->kind, want->label))
            return true;
    return false;
}

/* ---- the entries that a stage has */

bool stage_may_lack(const Trial *t, const Entry *want)
{
    if (is_of_another_stage(t, want))
        return true;
    if (want->label.of != A_BLOCK)
        return false;
    /* the lab chooses the first block of a stage; if an input is missing, so is the loss */
    return ranks_have_finished(t) ? want->label.index != first_block_of(t) : want->check == FORWARD;
}

bool stage_lacks(Trial *t, const Entry *want)
{
    const int stage = t->rank / width_of(t->c);
    if (!ranks_have_finished(t))
        return false;
    if (want->label.of == A_BLOCK)
        fail(
            t, (Check)want->check, EXPLAINED,
            want->check == FORWARD
                ? _("stage %d received nothing from stage %d (%s)")
                : _("stage %d did not run backward, which computes the gradient for stage %d (%s)"),
            stage, stage - 1, t->sizes);
    else
        fail(
            t, (Check)want->check, EXPLAINED,
            _("%s: the stages do not run each block once, in order: see the check 'sharding' (%s)"),
            entry_text(want), t->sizes);
    return true;
}

/* ---- what goes from stage to stage --------------------------------------------------------------------------- */

/* Did the stage `step` stages later write the right input or gradient of its first block? */
static bool neighbour_is_right(const Evidence *e, int step, What what)
{
    Trial other = *e->trial;
    other.rank += step * width_of(e->c);
    const Entry *want = NULL;
    if (other.rank < 0 || other.rank >= e->c->world)
        return false;
    while ((want = next_entry(other.expected.all, want)))
        if (want->label.of == A_BLOCK && (What)want->label.what == what &&
            want->label.step == e->want->label.step &&
            entry_of_rank(&other, other.rank, VALUES, want->label))
            return is_right_on_rank(&other, want);
    return false;
}

static bool received_is_scaled(const Evidence *e)
{
    const int stage = e->trial->rank / width_of(e->c);
    const bool is_input = e->want->label.of == A_BLOCK && e->want->label.what == INPUT_OF;
    const double times = is_input && stage > 0 ? constant_factor(e) : 1;
    return times != 1 &&
           says(e,
                _("stage %d runs on %.4g times the numbers that stage %d has computed: what "
                  "stage_run returned must be sent and received unchanged"),
                stage, times, stage - 1);
}

/* How many messages with numbers this rank sends to the other, or (`receives`) gets from it, in this
 * pass. */
static int messages_in(const RankCalls *calls, const Label *pass, int other, bool receives)
{
    int count = 0;
    for (int64_t i = 0; i < calls->count; i++) {
        const Call *call = &calls->call[i];
        count += call->rule == MESSAGE && !call->probes && label_equal(&call->where, pass) &&
                 (receives ? call->from : call->to) == other &&
                 (receives ? call->received : call->sent)[0].count > 0;
    }
    return count;
}

/* Does the stage before send more messages in a pass than this one, which has ended it, receives? */
static bool received_too_few(const Evidence *e)
{
    const Calls *calls = e->trial->outcome->calls;
    const int rank = e->trial->rank, before = rank - width_of(e->c);
    char words[LABEL_SIZE];
    for (int64_t i = 0; calls && before >= 0 && i < calls->rank[before].count; i++) {
        const RankCalls *mine = &calls->rank[rank];
        const Label pass = calls->rank[before].call[i].where;
        const int sent = messages_in(&calls->rank[before], &pass, rank, false),
                  received = messages_in(mine, &pass, before, true);
        if (sent > received && received > 0 &&
            (mine->left || !label_equal(&mine->call[mine->count - 1].where, &pass)))
            return says(e,
                        _("stage %d sends %d messages to stage %d, which receives %d (%s): they "
                          "arrive in the order in which they are sent"),
                        stage_of_rank(e->c, before), sent, stage_of_rank(e->c, rank), received,
                        label_text(&pass, words));
    }
    return false;
}

static bool received_is_wrong(const Evidence *e)
{
    const int stage = e->trial->rank / width_of(e->c);
    if (e->want->label.of != A_BLOCK || e->want->label.what != INPUT_OF)
        return false;
    if (received_too_few(e))
        return true;
    return says(
        e,
        _("stage %d does not run on the numbers that stage %d has computed: forward_step must send "
          "to the next stage what stage_run returned, and run what stage_receive returned, "
          "unchanged%s"),
        stage, stage - 1,
        lab_points(e->trial->result->lab, SCHEDULE)
            ? _(", and stage_send must send what it is given")
            : "");
}

/* If a stage gets a wrong gradient, all of its own gradients are wrong. Is the next stage's input
 * gradient right? */
static bool sent_gradient_is_right(const Evidence *e)
{
    const bool last = e->trial->rank / width_of(e->c) == e->c->pp - 1;
    return e->c->pp > 1 && !last && !e->trial->result->check[FORWARD].failed &&
           (e->want->check == INPUT_GRADIENT || e->want->check == WEIGHT_GRADIENT) &&
           neighbour_is_right(e, 1, INPUT_GRADIENT_OF);
}

static bool gradient_received_is_scaled(const Evidence *e)
{
    const int stage = e->trial->rank / width_of(e->c);
    const double times = sent_gradient_is_right(e) ? constant_factor(e) : 1;
    if (times == 1)
        return false;
    return says(e,
                e->want->check == INPUT_GRADIENT
                    ? _("stage %d has the right gradient of its input, but stage %d ran backward "
                        "with %.4g times these numbers: a gradient must be sent and received "
                        "unchanged")
                    : _("stage %d has the right gradient of its input, but this gradient of stage "
                        "%d is %.4g times what it should be: a gradient must be sent and received "
                        "unchanged, and run backward once"),
                stage + 1, stage, times);
}

static bool gradient_received_is_wrong(const Evidence *e)
{
    const int stage = e->trial->rank / width_of(e->c);
    if (!sent_gradient_is_right(e))
        return false;
    return says(
        e,
        _("stage %d has the right gradient of its input, but stage %d ran backward with different "
          "numbers: backward_step must send what stage_run_backward returned, and the dy of "
          "stage_run_backward must be what was received for that micro-batch"),
        stage + 1, stage);
}

/* A rank's k-th pass in this direction, or NULL. */
static const Pass *pass_in_direction(const StepSchedule *s, int rank, bool backward, int k)
{
    for (int i = 0; i < s->count[rank]; i++)
        if (s->pass[rank][i].backward == backward && k-- == 0)
            return &s->pass[rank][i];
    return NULL;
}

/* Does a stage run micro-batches in a different order from its neighbour? Messages between two
 * stages arrive in the order in which they were sent. */
static bool micros_in_other_order(const Evidence *e)
{
    const Case *c = e->c;
    const int width = c->world / c->pp;
    const bool backward = e->want->check != FORWARD;
    StepSchedule s;
    if (!c->micros || e->want->label.step >= STEPS)
        return false;
    schedule_of_step(c, e->trial->outcome, e->want->label.step, NULL, &s);
    for (int rank = 0; rank + width < c->world; rank++)
        for (int k = 0; k < c->micros; k++) {
            const Pass *mine = pass_in_direction(&s, rank, backward, k),
                       *next = pass_in_direction(&s, rank + width, backward, k);
            if (!mine || !next || mine->micro == next->micro)
                continue;
            return says(
                e,
                backward ? _("stage %d runs micro-batch %d backward where stage %d runs "
                             "micro-batch %d: messages arrive in the order in which they are sent, "
                             "so the earlier stage gets the gradient of another micro-batch")
                         : _("stage %d runs micro-batch %d forward where stage %d runs micro-batch "
                             "%d: messages arrive in the order in which they are sent, so the "
                             "later stage gets the input of another micro-batch"),
                stage_of_rank(c, rank), mine->micro, stage_of_rank(c, rank + width), next->micro);
        }
    return false;
}

static bool blocks_are_misplaced(const Evidence *e)
{
    return e->trial->result->misplaced &&
           says(e, _("the stages do not run each block once, in order: see the check 'sharding'"));
}

/* A gradient that is zero, or a multiple of the right one, has a reason of its own. */
bool stages_are_wrong(const Evidence *e)
{
    return not_a_number(e) || blocks_are_misplaced(e) || nothing_flowed_back(e) ||
           received_is_scaled(e) || gradient_received_is_scaled(e) || multiple(e) ||
           micros_in_other_order(e) || received_is_wrong(e) || gradient_received_is_wrong(e);
}

Finder *const stages_reasons[] = {stages_are_wrong, NULL};

/* ---- how a case ended */

/* Appends a sentence about the first message between stages of which neither follows the other. */
static bool tell_distant_message(const Trial *t, char *text, size_t size)
{
    const Calls *calls = t->outcome->calls;
    const int width = t->c->world / t->c->pp;
    char one[300];
    for (int rank = 0; rank < calls->ranks; rank++)
        for (int64_t i = 0; i < calls->rank[rank].count; i++) {
            const Call *call = &calls->rank[rank].call[i];
            const int other = call->rule != MESSAGE ? NOBODY
                              : call->to >= 0       ? call->to
                                                    : call->from;
            if (other < 0 || abs(other / width - rank / width) < 2)
                continue;
            call_text(calls, call, NULL, one, sizeof one);
            append(
                text, size,
                _("stage %d calls the %s, but rank %d is in stage %d: a stage exchanges messages "
                  "with the stage before it and the stage after it\n"),
                rank / width, one, other, other / width);
            return true;
        }
    return false;
}

/* Appends a sentence if a rank has ended a pass in which a rank of another stage still waits for it. */
void stages_ending(const Trial *t, char *text, size_t size)
{
    const Calls *calls = t->outcome->calls;
    const int width = t->c->world / t->c->pp;
    char words[LABEL_SIZE], waits[300] = "";
    if (t->outcome->ending != HUNG || !calls || has_refused(t) ||
        tell_distant_message(t, text, size))
        return;
    for (int rank = 0; rank < calls->ranks; rank++) {
        const Call *in = call_of_rank(calls, rank);
        const bool receives = in && in->rule == MESSAGE && in->from >= 0;
        const int other = receives ? in->from : waits_to_send_to(calls, rank);
        if (!in || other < 0 || other / width == rank / width ||
            !entry_of_rank(t, other, WORK, in->where))
            continue;
        append_waiting(calls, rank, waits, sizeof waits);
        append(text, size,
               receives ? _("rank %d of stage %d %s, but rank %d of stage %d has ended this pass "
                            "without sending it (%s)\n")
                        : _("rank %d of stage %d %s, but rank %d of stage %d has ended this pass "
                            "without receiving it (%s)\n"),
               rank, rank / width, waits, other, other / width, label_text(&in->where, words));
        return;
    }
}
