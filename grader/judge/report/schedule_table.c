/* The schedule of a step: a row a stage, a column a slot, as the papers draw it; or, on a cluster, columns of time. */
#include "grader/judge/mpi/schedule.h"

#include <math.h>

#include "base/language.h"
#include "grader/judge/diagnose/trial.h"
#include "grader/judge/report/verdict.h"
#include "grader/labs/replicas.h"
#include "grader/labs/stages.h"

enum { COLUMNS = 80, INDENT = 2 };

/* ---- slots --------------------------------------------------------------------------------------------------- */

/* What a rank does in a slot: "F3 ", "B0 ", or a point where it is idle. */
static void print_slot(FILE *out, const StepSchedule *s, int rank, int64_t slot, int width)
{
    for (int i = 0; i < s->count[rank]; i++)
        if (s->pass[rank][i].begin == (double)slot) {
            fprintf(out, " %c%-*d", s->pass[rank][i].backward ? 'B' : 'F', width - 2,
                    s->pass[rank][i].micro);
            return;
        }
    fprintf(out, " %-*s", width - 1, ".");
}

static void print_stage(FILE *out, int stage)
{
    fprintf(out, "%*s", INDENT, "");
    fprintf(out, _("stage %d"), stage);
}

/* The columns that are left beside the last stage's name. */
static int columns_beside(const Case *c)
{
    char stage[32];
    snprintf(stage, sizeof stage, _("stage %d"), c->pp - 1);
    return COLUMNS - INDENT - characters_of(stage);
}

static void print_slots(FILE *out, const Case *c, const Outcome *outcome)
{
    StepSchedule s;
    const int ranks_of_stage = c->world / c->pp, width = c->micros > 10 ? 4 : 3,
              fit = columns_beside(c) / width;
    schedule_of_step(c, outcome, 0, NULL, &s);
    const int64_t length = (int64_t)s.length;
    if (length == 0)
        return;
    fprintf(out, "%s", _("\nstep 1, a pass in each slot (F forward, B backward, . idle):\n"));
    for (int64_t first = 0; first < length; first += fit)
        for (int i = 0; i < c->pp; i++) {
            print_stage(out, i);
            for (int64_t slot = first; slot < first + fit && slot < length; slot++)
                print_slot(out, &s, i * ranks_of_stage, slot, width);
            fprintf(out, "\n");
        }
    fprintf(out, _("  %lld slots; the first stage is idle in %lld of them\n"), (long long)length,
            (long long)idle_time(&s, 0));
}

/* ---- a cluster ----------------------------------------------------------------------------------------------- */

/* What common/bench/clusters.py says of a cluster and a model: in seconds and bytes a second, and of a step. */
typedef struct Cluster {
    double node, latency[LINKS], bandwidth[LINKS];
    double work, activations,
        gradients; /* seconds on one rank; bytes of the activations between two blocks, of all gradients */
    const char *name;
} Cluster;

static bool read_cluster(const char *text, Cluster *cluster)
{
    int read = 0;
    *cluster = (Cluster){0};
    sscanf(text, "%lf %lf %lf %lf %lf %lf %lf %lf %n", &cluster->node, &cluster->latency[NEAR],
           &cluster->bandwidth[NEAR], &cluster->latency[FAR], &cluster->bandwidth[FAR],
           &cluster->work, &cluster->activations, &cluster->gradients, &read);
    cluster->name = text + read;
    return read > 0;
}

/* What the ranks have multiplied in this step, and the bytes of gradients that a replica has summed. */
static void add_up(const Case *c, const Calls *calls, const StepSchedule *s, double *multiplied,
                   double *summed)
{
    const Label where = work_of_stages(0);
    *multiplied = *summed = 0;
    for (int rank = 0; rank < c->world; rank++) {
        int64_t most = s->count[rank] ? s->pass[rank][s->count[rank] - 1].multiplied : 0;
        for (int64_t i = 0; i < calls->rank[rank].count; i++) {
            const Call *call = &calls->rank[rank].call[i];
            if (!label_equal(&call->where, &where))
                continue;
            most = call->multiplied > most ? call->multiplied : most;
            if (rank < c->tp && are_replicas(call->members, c->tp))
                *summed += signature_bytes(&call->sent[0]);
        }
        *multiplied += (double)most;
    }
}

/* The record is that of a small model: its multiplications and bytes are scaled, all alike, to those of the model asked for. */
static Pace pace_of(const Case *c, const Outcome *outcome, const Cluster *cluster)
{
    StepSchedule s;
    double multiplied, summed;
    const double activations = (double)c->B * c->S * c->H * sizeof(float),
                 scale = cluster->activations / activations;
    schedule_of_step(c, outcome, 0, NULL, &s);
    add_up(c, outcome->calls, &s, &multiplied, &summed);
    Pace pace = {.work = multiplied > 0 ? cluster->work / multiplied : 0,
                 .node = cluster->node < MAX_RANKS ? (int)cluster->node : MAX_RANKS,
                 .tp = c->tp,
                 .over_replicas = summed > 0 ? cluster->gradients / summed / scale : 1};
    for (int link = 0; link < LINKS; link++) {
        pace.latency[link] = cluster->latency[link];
        pace.byte[link] = scale / cluster->bandwidth[link];
    }
    return pace;
}

static const char *time_text(double seconds, char text[32])
{
    const char *form = seconds < 1e-3 ? _("%.1f us") : seconds < 1 ? _("%.2f ms") : _("%.2f s");
    snprintf(text, 32, form, seconds * (seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1));
    return text;
}

/* A pass as a box, as long as it takes, in a line that begins at column `first`: "F3--". */
static void draw_pass(const Pass *pass, double column, int first, int columns, char *line)
{
    char name[16];
    const int begin = (int)lround(pass->begin / column),
              end = (int)fmax(lround(pass->end / column), begin + 1),
              length = snprintf(name, sizeof name, "%c%d", pass->backward ? 'B' : 'F', pass->micro),
              shown = length <= end - begin ? length : 1;
    for (int i = begin > first ? begin : first; i < end && i < first + columns; i++)
        line[i - first] = i - begin < shown ? name[i - begin] : '-';
}

static double shortest_pass(const StepSchedule *s)
{
    double shortest = s->length;
    for (int rank = 0; rank < s->ranks; rank++)
        for (int i = 0; i < s->count[rank]; i++)
            shortest = fmin(shortest, s->pass[rank][i].end - s->pass[rank][i].begin);
    return shortest;
}

/* As many lines a stage as the shortest pass needs for its name, but no more than these. */
enum { NAME_COLUMNS = 3, MOST_LINES = 3 };

static void print_times(FILE *out, const Case *c, const StepSchedule *s)
{
    const int columns = columns_beside(c) - 1, ranks_of_stage = c->world / c->pp;
    const double wanted = ceil(NAME_COLUMNS * s->length / shortest_pass(s) / columns),
                 lines = fmin(wanted, MOST_LINES), column = s->length / (lines * columns);
    for (int first = 0; first < (int)lines * columns; first += columns)
        for (int i = 0; i < c->pp; i++) {
            char line[COLUMNS + 1];
            const int rank = i * ranks_of_stage;
            memset(line, '.', sizeof line);
            for (int k = 0; k < s->count[rank]; k++)
                draw_pass(&s->pass[rank][k], column, first, columns, line);
            print_stage(out, i);
            fprintf(out, " %.*s\n", columns, line);
        }
}

static void print_idle(FILE *out, const Case *c, const StepSchedule *s)
{
    char shares[128] = "";
    for (int i = 0; i < c->pp; i++)
        append(shares, sizeof shares, "%s%.0f %%", i ? ", " : "",
               100 * idle_time(s, i * (c->world / c->pp)) / s->length);
    fprintf(out, _("  the stages are idle for %s of the step\n"), shares);
}

/* The length of the step at another pace, as text. */
static const char *length_at(const Case *c, const Outcome *outcome, const Pace *pace, char text[32])
{
    StepSchedule s;
    return schedule_of_step(c, outcome, 0, pace, &s) ? time_text(s.length, text) : "?";
}

static void print_on_cluster(FILE *out, const Case *c, const Outcome *outcome,
                             const Cluster *cluster)
{
    StepSchedule s;
    char takes[32], other[32];
    const Pace pace = pace_of(c, outcome, cluster);
    Pace late = pace, free = {.work = pace.work};
    late.late = true;
    if (pace.work == 0 || !schedule_of_step(c, outcome, 0, &pace, &s)) {
        fprintf(out, "%s",
                _("\nthis case has no whole step that a cluster's clock could replay\n"));
        return;
    }
    fprintf(out, _("\nstep 1 on %s:\n"), cluster->name);
    if (s.count[0] > 0)
        print_times(out, c, &s);
    fprintf(out, _("  the step takes %s; it would take %s if messages took no time\n"),
            time_text(s.length, takes), length_at(c, outcome, &free, other));
    if (s.count[0] > 0)
        print_idle(out, c, &s);
    if (lab_of(c->lab)->over_replicas)
        fprintf(out,
                _("  if the sums over replicas followed the backward pass, it would take %s\n"),
                length_at(c, outcome, &late, other));
}

void schedule_print(FILE *out, const Case *c, const Outcome *outcome, const char *text)
{
    Cluster cluster;
    const Lab *lab = lab_of(c->lab);
    if (!outcome->calls)
        return;
    if (lab->over_stages)
        print_slots(out, c, outcome);
    if (text && read_cluster(text, &cluster))
        print_on_cluster(out, c, outcome, &cluster);
}
