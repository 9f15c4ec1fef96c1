/* make report: one case's results, as numbers to draw. */

#include <math.h>
#include <stdlib.h>

#include "grader/judge/commands.h"
#include "grader/judge/diagnose/step_schedule.h"
#include "grader/judge/report/formats/formats.h"
#include "grader/judge/report/on_cluster.h"
#include "grader/judge/report/output.h"
#include "grader/judge/report/tape.h"

json_t *picture_text(const char *text)
{
    char *clean = strdup(text);
    clean_text(clean);
    json_t *json = json_string(clean);
    free(clean);
    return json ? json : json_string("?");
}

/* ---- calls ----------------------------------------------------------------------------------------------- */

/* The bytes from rank `self` to rank `other`. A reduction records how much each rank contributes,
 * not to whom it goes. Each other rank counts as getting 1/n of it, as in an optimal algorithm. An
 * all-reduce sends twice as much as a reduction to one rank. */
static double bytes_to(const Call *call, int self, int other)
{
    const int ranks = __builtin_popcountll(call->members);
    if (other == self)
        return 0;
    if (call->rule == MESSAGE)
        return call->to == other ? signature_bytes(&call->sent[0]) : 0;
    if (!(call->members >> other & 1) || ranks < 2)
        return 0;
    if (call->rule == EXCHANGE)
        return signature_bytes(&call->sent[other]);
    const int times = strstr(call->name, "all_reduce") ? 2 : 1;
    return call->rule == REDUCTION ? times * signature_bytes(&call->sent[0]) / ranks : 0;
}

static const char *kind_of(const Call *call)
{
    return !call->returned         ? "stuck"
           : call->rule == MESSAGE ? "message"
           : call->rule == LOCAL   ? "wait"
                                   : "collective";
}

static json_t *call_json(const Calls *calls, int rank, const Call *call)
{
    char name[64], what[96], group[32], where[LABEL_SIZE];
    json_t *to = json_array();
    for (int other = 0; other < calls->ranks; other++)
        json_array_append_new(to, json_real(bytes_to(call, rank, other)));
    return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:o}", "name",
                     picture_text(call_name(call, name)), "kind", kind_of(call), "group",
                     picture_text(group_text(call, group)), "what",
                     picture_text(call_what(call, what)), "where",
                     picture_text(label_text(&call->where, where)), "line",
                     picture_text(line_of(call->address)), "begin", (json_int_t)call->time, "end",
                     (json_int_t)(call->returned ? call->ended : 0), "to", to);
}

static json_t *picture_calls(const Case *c, const Calls *calls)
{
    json_t *ranks = json_array();
    for (int r = 0; calls && r < calls->ranks && r < c->world; r++) {
        json_t *list = json_array();
        for (int64_t i = 0; i < calls->rank[r].count; i++)
            json_array_append_new(list, call_json(calls, r, &calls->rank[r].call[i]));
        json_array_append_new(ranks, json_pack("{s:I, s:o}", "before",
                                               (json_int_t)calls->rank[r].first, "calls", list));
    }
    return ranks;
}

/* ---- the schedule ---------------------------------------------------------------------------------------- */

/* A step's passes on the first rank of each stage, as far as the replay reached. */
static json_t *stages_json(const Case *c, const StepSchedule *s, double unit)
{
    json_t *stages = json_array();
    for (int rank = 0; rank < c->world && s->length > 0; rank += c->world / c->pp) {
        json_t *passes = json_array();
        for (int i = 0; i < s->count[rank] && s->pass[rank][i].begin != NO_TIME; i++) {
            const Pass *pass = &s->pass[rank][i];
            json_array_append_new(passes,
                                  json_pack("{s:i, s:b, s:f, s:f}", "micro", pass->micro,
                                            "backward", pass->backward, "begin", pass->begin / unit,
                                            "length", (pass->end - pass->begin) / unit));
        }
        json_array_append_new(stages, passes);
    }
    return stages;
}

/* Step 1, in slots. */
static json_t *picture_schedule(const Case *c, const Outcome *outcome)
{
    StepSchedule s;
    if (!lab_of(c->lab)->over_stages || !outcome->calls)
        return json_array();
    schedule_of_step(c, outcome, 0, NULL, &s);
    return stages_json(c, &s, 1);
}

static json_t *spans_json(const Intervals *spans, double unit)
{
    json_t *list = json_array();
    for (int i = 0; i < spans->count; i++)
        json_array_append_new(list, json_pack("[f, f]", spans->span[i].begin / unit,
                                              (spans->span[i].end - spans->span[i].begin) / unit));
    return list;
}

static json_t *microseconds(double seconds)
{
    return isnan(seconds) ? json_null() : json_real(seconds / 1e-6);
}

/* Step 1 at the pace of a cluster, in microseconds; null without a cluster, false if the case has
 * no whole step. */
static json_t *picture_on_cluster(const Case *c, const Outcome *outcome, const char *cluster)
{
    OnCluster on;
    if (!cluster)
        return json_null();
    if (!step_on_cluster(c, outcome, cluster, &on))
        return json_false();
    const StepSchedule *s = &on.step;
    json_t *work = json_array();
    for (int rank = 0; rank < c->world; rank += c->tp)
        json_array_append_new(work, spans_json(&s->work[rank], 1e-6));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", picture_text(on.name),
                     "takes", microseconds(s->length), "free", microseconds(on.free), "late",
                     microseconds(lab_of(c->lab)->over_replicas ? on.late : NAN), "exposed",
                     microseconds(sums_take(s) - sums_overlapped(s)), "stages",
                     s->count[0] ? stages_json(c, s, 1e-6) : json_array(), "work", work, "sums",
                     spans_json(&s->sums, 1e-6));
}

/* ---- the tapes ------------------------------------------------------------------------------------------- */

static json_t *tape_row_json(const TapeRow *row)
{
    json_t *inputs = json_array();
    for (int k = 0; k < row->inputs; k++)
        json_array_append_new(inputs,
                              json_pack("{s:s, s:s, s:s}", "name", row->input[k].name, "shape",
                                        row->input[k].shape, "placement", row->input[k].placement));
    return json_pack("{s:i, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "number", row->number, "line",
                     picture_text(row->line), "name", row->name, "of", row->of, "shape", row->shape,
                     "placement", row->placement, "to", row->to, "with", row->with, "inputs",
                     inputs);
}

static json_t *rows_json(const TapeRow *rows, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, tape_row_json(&rows[i]));
    return list;
}

/* The first pass of each rank, as make tape prints it. */
static json_t *picture_tapes(const Case *c, const Calls *calls)
{
    json_t *tapes = json_array();
    for (int r = 0; calls && r < calls->ranks && r < c->world; r++) {
        TapePass *pass = tape_pass(calls, r, lab_of(c->lab)->file);
        json_array_append_new(
            tapes, json_pack("{s:[o, o], s:o, s:o, s:s}", "where", picture_text(pass->where[0]),
                             picture_text(pass->where[1]), "forward",
                             rows_json(pass->row[0], pass->forward), "backward",
                             rows_json(pass->row[1], pass->backward), "without", pass->without));
        free(pass);
    }
    return tapes;
}

/* ---- the verdict on the case ----------------------------------------------------------------------------- */

/* The checks, as make grade CASE= reports them. For a failed check, also adds the first check with
 * the same cause, and what the reason of that check does not say. */
static json_t *checks_json(const Options *o, const LabResult *result)
{
    const Verdict verdict = {result, 1, o->seed, o->author, 0, o->sandbox};
    json_t *checks = json_array();
    for (int check = -1; (check = next_check(result, check)) >= 0;) {
        json_t *json = check_json(&verdict, result, (Check)check);
        if (result->check[check].failed)
            json_object_update_new(json, json_pack("{s:s, s:s}", "cause",
                                                   check_names[cause_of(result, (Check)check)],
                                                   "own", own_reason(result, (Check)check)));
        json_array_append_new(checks, json);
    }
    return checks;
}

static json_t *case_json(const Options *o, const LabResult *result, const Case *c, int index,
                         const Outcome *outcome)
{
    static const char *const endings[] = {"complete", "crashed", "hung",   "looped",
                                          "looped",   "stopped", "not run"};
    char text[160], path[160], todo[1200] = "", refused[2600] = "";
    bool ended = outcome->ending == COMPLETE && refusal_text(c, outcome, refused, sizeof refused);
    lab_path(result, path);
    todo_text(c, outcome, todo, sizeof todo);
    return json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:I, s:i, s:s, s:i, s:i, s:i, s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o}",
        "format", "balise picture", "lab", c->lab, "title", result->lab->title, "file", path,
        "author", o->author, "seed", (json_int_t)o->seed, "case", index, "sizes",
        case_text(c, text), "world", c->world, "tp", c->tp, "pp", c->pp, "ending",
        ended ? "refused" : endings[outcome->ending], "diagnosis",
        picture_text(ended ? refused : outcome->diagnosis), "todo", picture_text(todo), "checks",
        checks_json(o, result), "alike", alike_on_ranks(c), "matrices",
        picture_matrices(c, outcome), "ranks", picture_calls(c, outcome->calls), "tapes",
        picture_tapes(c, outcome->calls), "schedule", picture_schedule(c, outcome), "cluster",
        picture_on_cluster(c, outcome, o->cluster));
}

int picture_lab(const Options *o)
{
    static LabResult result;
    Case cases[MAX_CASES];
    const Case *c;
    Problem problem;
    Runs *runs = run_case_to_look_at(o, cases, &c);
    if (!runs)
        return 1;
    const Outcome *outcome = &runs->outcome[0];
    const int index = (int)(c - cases);
    result = (LabResult){.lab = lab_of(o->lab), .state = GRADED, .seed = o->seed, .one_case = true};
    judge_case(&result, c, index, outcome);
    clean_result(&result);
    char *text = json_file(case_json(o, &result, c, index, outcome));
    const bool written = write_file(o->picture, NULL, text, &problem);
    free(text);
    runs_free(runs);
    if (!written)
        give_up(&problem);
    return 0;
}
