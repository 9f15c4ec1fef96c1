/* The schedule of a step: one row per stage, one column per slot, as the papers draw it; or, on a
 * cluster, columns of time. */
#include <math.h>

#include "base/language.h"
#include "grader/judge/diagnose/step_schedule.h"
#include "grader/judge/report/on_cluster.h"
#include "grader/judge/report/verdict.h"

enum { COLUMNS = 80, INDENT = 2 };

/* ---- slots --------------------------------------------------------------------------------------------------- */

/* Prints what a rank does in a slot: " F3", " B0", or a dot if it is idle. */
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

static const char *time_text(double seconds, char text[32])
{
    if (isnan(seconds))
        return "?";
    const char *form = seconds < 1e-3 ? _("%.1f us") : seconds < 1 ? _("%.2f ms") : _("%.2f s");
    snprintf(text, 32, form, seconds * (seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1));
    return text;
}

/* Draws a span in a line that begins at column `first`: its name if it fits, otherwise the name's
 * first letter, and then `fill`. */
static void draw_box(Interval span, const char *name, char fill, double column, int first,
                     int columns, char *line)
{
    const int begin = (int)lround(span.begin / column),
              end = (int)fmax(lround(span.end / column), begin + 1), length = (int)strlen(name),
              shown = length <= end - begin ? length : 1;
    for (int i = begin > first ? begin : first; i < end && i < first + columns; i++)
        line[i - first] = i - begin < shown && name[0] ? name[i - begin] : fill;
}

static double shortest_pass(const StepSchedule *s)
{
    double shortest = s->length;
    for (int rank = 0; rank < s->ranks; rank++)
        for (int i = 0; i < s->count[rank]; i++)
            shortest = fmin(shortest, s->pass[rank][i].end - s->pass[rank][i].begin);
    return shortest;
}

/* The columns that a pass's name needs, and the most lines per stage that make room for it. */
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
            for (int k = 0; k < s->count[rank]; k++) {
                const Pass *pass = &s->pass[rank][k];
                char name[16];
                snprintf(name, sizeof name, "%c%d", pass->backward ? 'B' : 'F', pass->micro);
                draw_box((Interval){pass->begin, pass->end}, name, '-', column, first, columns,
                         line);
            }
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

static void print_row(FILE *out, const char *name, int columns, const char *line)
{
    const int beside = COLUMNS - INDENT - 1 - columns;
    fprintf(out, "%*s%-*s %.*s\n", INDENT, "", padded_to(name, beside), name, columns, line);
}

/* Prints what overlaps in data parallelism: each replica's work, and below it the sums. */
static void print_overlap(FILE *out, const StepSchedule *s)
{
    enum { BESIDE = 8 };
    const int columns = COLUMNS - INDENT - 1 - BESIDE;
    const double column = s->length / columns;
    char line[COLUMNS], name[32];
    for (int rank = 0; rank < s->ranks; rank += s->pace.tp) {
        memset(line, '.', sizeof line);
        for (int i = 0; i < s->work[rank].count; i++)
            draw_box(s->work[rank].span[i], "", '#', column, 0, columns, line);
        snprintf(name, sizeof name, _("rank %d"), rank);
        print_row(out, name, columns, line);
    }
    memset(line, '.', sizeof line);
    for (int i = 0; i < s->sums.count; i++) {
        snprintf(name, sizeof name, "%d", i);
        draw_box(s->sums.span[i], name, '-', column, 0, columns, line);
    }
    print_row(out, _("sums"), columns, line);
}

static void print_exposed(FILE *out, const StepSchedule *s)
{
    const double all = sums_take(s), hidden = sums_overlapped(s);
    char one[32], other[32], exposed[32];
    fprintf(out, _("  the sums take %s: %s while rank %d works, %s exposed\n"), time_text(all, one),
            time_text(hidden, other), busiest_replica(s), time_text(all - hidden, exposed));
}

static void print_on_cluster(FILE *out, const Case *c, const Outcome *outcome, const char *cluster)
{
    OnCluster on;
    char takes[32], other[32];
    if (!step_on_cluster(c, outcome, cluster, &on)) {
        fprintf(out, "%s", _("\nthis case has no whole step to replay on a cluster\n"));
        return;
    }
    fprintf(out, _("\nstep 1 on %s:\n"), on.name);
    if (on.step.count[0] > 0)
        print_times(out, c, &on.step);
    else if (on.step.sums.count > 0)
        print_overlap(out, &on.step);
    fprintf(out, _("  the step takes %s; it would take %s if messages took no time\n"),
            time_text(on.step.length, takes), time_text(on.free, other));
    if (lab_of(c->lab)->over_replicas)
        fprintf(out,
                _("  if the sums over replicas followed the backward pass, it would take %s\n"),
                time_text(on.late, other));
    if (on.step.count[0] > 0)
        print_idle(out, c, &on.step);
    else if (on.step.sums.count > 0)
        print_exposed(out, &on.step);
}

void schedule_print(FILE *out, const Case *c, const Outcome *outcome, const char *cluster)
{
    const Lab *lab = lab_of(c->lab);
    if (!outcome->calls)
        return;
    if (lab->over_stages)
        print_slots(out, c, outcome);
    if (cluster)
        print_on_cluster(out, c, outcome, cluster);
}
