/* Rank 0's output during a run, and the metrics file. */
#include "train/report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/language.h"
#include "base/replacement.h"

/* Each file of metrics has this field near its beginning: in the line of a step or of the ranks. */
const OutputKind metrics_kind = {.name = N_("a file of metrics"), .mark = "\"comm_bytes\":"};

struct Report {
    FILE *metrics;
    bool terminal;
    const char *amp;
    bool is_language; /* a language model's second measure is the perplexity, not the accuracy */
    int64_t first, steps, print; /* print: see TrainConfig */
    double begin, last_line;
    bool tested;   /* no step has followed the last evaluation */
    bool lost;     /* a line of the metrics file could not be written */
    bool bar_open; /* the cursor is on a progress bar */
};

Report *report_open(const TrainConfig *config, int64_t first, int64_t steps, Problem *problem)
{
    Report *report = calloc(1, sizeof *report);
    report->amp = precision_name(config->amp);
    report->is_language = config->model.architecture->is_language;
    report->first = first;
    report->steps = steps;
    report->print = config->print;
    report->terminal = getenv("BALISE_PROGRESS"); /* mpirun gives every rank its own terminal */
    report->begin = report->last_line = clock_now();
    if (config->metrics && !(report->metrics = fopen(config->metrics, first ? "a" : "w"))) {
        problem_set(problem, config->metrics, "name a writable file",
                    "the metrics cannot be written");
        free(report);
        return NULL;
    }
    return report;
}

static void close_bar(Report *report)
{
    if (report->bar_open)
        putchar('\n');
    report->bar_open = false;
}

void report_close(Report *report)
{
    close_bar(report); /* an error that ends the run must not follow the bar on its line */
    fflush(stdout);
    if (report->metrics)
        fclose(report->metrics);
    free(report);
}

/* JSON has neither NaN nor infinity, so these become null. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Reports at once that a line cannot be written. The run continues, and fails at its
 * end. */
static void lose(Report *report)
{
    if (!report->lost)
        fprintf(stderr, _("warning: the metrics can no longer be written: %s\n"), strerror(errno));
    report->lost = true;
}

static void write_line(Report *report, json_t *object)
{
    bool good = !json_dumpf(object, report->metrics, JSON_COMPACT | JSON_REAL_PRECISION(9)) &&
                putc('\n', report->metrics) != EOF && !fflush(report->metrics);
    if (!good)
        lose(report);
    json_decref(object);
}

void report_sync(Report *report)
{
    if (!report->metrics || report->lost || fsync(fileno(report->metrics)) == 0)
        return;
    if (errno != EINVAL && errno != EROFS) /* pipes and terminals cannot be synced */
        lose(report);
}

bool report_is_complete(Report *report, const TrainConfig *config, Problem *problem)
{
    report_sync(report);
    return !report->lost || problem_set(problem, config->metrics, "free some space and train again",
                                        "the metrics file lacks lines that could not be written");
}

/* The measure beside the loss: a language model's perplexity, otherwise the accuracy. */
static double measure(const Report *report, double loss, double accuracy)
{
    return report->is_language ? exp(loss) : accuracy;
}

static const char *measured(const Report *report, const char *accuracy, const char *perplexity)
{
    return report->is_language ? perplexity : accuracy;
}

/* Rewrites the last line of a terminal of 80 columns: a bar that leaves room for the text. The line
 * ends, because mpirun may keep what follows the last newline, but the cursor goes back up to it. */
static void draw_bar(const Report *report, const StepReport *s, double left)
{
    enum { COLUMNS = 80, WIDTH = 24, LEAST = 4 };
    char text[COLUMNS];
    const int length =
        snprintf(text, sizeof text,
                 report->is_language ? _("%lld/%lld loss %.4f ppl %.3f %.0f tok/s %.0f s left ")
                                     : _("%lld/%lld loss %.4f acc %.3f %.0f tok/s %.0f s left "),
                 (long long)s->step, (long long)report->steps, s->loss,
                 measure(report, s->loss, s->accuracy), s->tokens_per_second, left);
    const int room = COLUMNS - (int)strlen("[] ") - length;
    const int width = room > WIDTH ? WIDTH : room < LEAST ? LEAST : room;
    const int filled = (int)(width * s->step / report->steps);
    printf("\r[");
    for (int i = 0; i < width; i++)
        putchar(i < filled ? '#' : '.');
    printf("] %s\033[K\033[A\n", text);
}

static void progress(Report *report, const StepReport *s)
{
    double elapsed = clock_now() - report->begin;
    double left = elapsed / (double)(s->step - report->first) * (double)(report->steps - s->step);
    const bool is_line_due = report->print
                                 ? s->step % report->print == 0
                                 : s->step == report->first + 1 || s->step == report->steps ||
                                       clock_now() - report->last_line > 2;
    if (report->terminal && !report->print) {
        draw_bar(report, s, left);
        report->bar_open = true;
    } else if (is_line_due) {
        printf(
            report->is_language
                ? _("step %lld/%lld  epoch %d  loss %.6f  perplexity %.3f  %.0f tokens/s  %.0f s left\n")
                : _("step %lld/%lld  epoch %d  loss %.6f  accuracy %.3f  %.0f tokens/s  %.0f s left\n"),
            (long long)s->step, (long long)report->steps, s->epoch, s->loss,
            measure(report, s->loss, s->accuracy), s->tokens_per_second, left);
        report->last_line = clock_now();
    }
    fflush(stdout);
}

void report_step(Report *report, const StepReport *s)
{
    report->tested = false;
    progress(report, s);
    if (!report->metrics)
        return;
    json_t *line = json_pack(
        "{s:I, s:i, s:o, s:f, s:f, s:f, s:f, s:I, s:f, s:f, s:I, s:I, s:I}", "step",
        (json_int_t)s->step, "epoch", s->epoch, "loss", number(s->loss),
        measured(report, "accuracy", "perplexity"), measure(report, s->loss, s->accuracy), "lr",
        s->rate, "step_s", s->seconds, "tokens_per_s", s->tokens_per_second, "comm_bytes",
        (json_int_t)s->sent.all.bytes, "comm_s", s->sent.all.seconds, "comm_exposed_s",
        s->wait_seconds, "comm_bytes_tp", (json_int_t)s->sent.tp.bytes, "comm_bytes_dp",
        (json_int_t)s->sent.dp.bytes, "comm_bytes_pp", (json_int_t)s->sent.pp.bytes);
    if (!(s->gradient_norm < 0))
        json_object_set_new(line, "grad_norm", number(s->gradient_norm));
    if (s->scale > 0)
        json_object_update_new(line, json_pack("{s:f, s:I}", "loss_scale", s->scale,
                                               "steps_left_out", (json_int_t)s->left_out));
    write_line(report, line);
}

void report_evaluation(Report *report, int64_t rows)
{
    close_bar(report);
    printf(_("evaluating %lld rows\n"), (long long)rows);
    fflush(stdout);
}

void report_epoch(Report *report, int epoch, double loss, double accuracy, int64_t rows)
{
    close_bar(report);
    const double measured_as = measure(report, loss, accuracy);
    report->tested = true;
    printf(report->is_language
               ? _("epoch %d: test loss %.4f, test perplexity %.4f on %lld tokens\n")
               : _("epoch %d: test loss %.4f, test accuracy %.4f on %lld rows\n"),
           epoch, loss, measured_as, (long long)rows);
    fflush(stdout);
    if (report->metrics)
        write_line(report,
                   json_pack("{s:i, s:o, s:f, s:I}", "epoch", epoch, "test_loss", number(loss),
                             measured(report, "test_accuracy", "test_perplexity"), measured_as,
                             measured(report, "test_rows", "test_tokens"), (json_int_t)rows));
}

static json_t *summary_of(const Report *report, const RankReport *r)
{
    return json_pack(
        "{s:i, s:o, s:o, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I}, s:f, s:I, s:f, s:f, s:I, s:I, s:I, "
        "s:i, s:[I, I], s:i, s:f}",
        "rank", r->rank, "loss", number(r->loss), measured(report, "accuracy", "perplexity"),
        number(measure(report, r->loss, r->accuracy)), "parameters", (json_int_t)r->parameters,
        "resident_bytes", (json_int_t)r->resident_bytes, "peak_bytes",
        (json_int_t)r->use.peak_total, "peak", "weights", (json_int_t)r->use.peak[WEIGHTS],
        "gradients", (json_int_t)r->use.peak[GRADIENTS], "optimiser",
        (json_int_t)r->use.peak[OPTIMISER], "activations", (json_int_t)r->use.peak[ACTIVATIONS],
        "step_s", r->step_seconds, "comm_bytes", (json_int_t)r->sent.all.bytes, "comm_s",
        r->sent.all.seconds, "comm_exposed_s", fmax(r->wait_seconds, 0), "comm_bytes_tp",
        (json_int_t)r->sent.tp.bytes, "comm_bytes_dp", (json_int_t)r->sent.dp.bytes,
        "comm_bytes_pp", (json_int_t)r->sent.pp.bytes, "stage", r->stage, "blocks",
        (json_int_t)r->blocks.begin, (json_int_t)r->blocks.end, "micro_batches_in_flight",
        r->in_flight, "pipeline_idle", r->idle);
}

void report_profile(Report *report, const SpanTotal *spans, int count, int64_t steps)
{
    double all = 0, each = 1e3 / (double)steps;
    json_t *lines = json_array();
    close_bar(report);
    for (int i = 0; i < count; i++)
        all += spans[i].seconds[0] + spans[i].seconds[1];
    puts(_("\nwhere the time of a step goes (rank 0)   forward ms  backward ms    share"));
    for (int i = 0; i < count; i++) {
        double forward = spans[i].seconds[0], backward = spans[i].seconds[1];
        printf("%-*s %12.3f %12.3f  %5.1f %%\n", padded_to(_(spans[i].what), 38), _(spans[i].what),
               each * forward, each * backward, 100 * (forward + backward) / all);
        json_array_append_new(lines,
                              json_pack("{s:s, s:f, s:f}", "what", spans[i].what, "forward_ms",
                                        each * forward, "backward_ms", each * backward));
    }
    if (report->metrics)
        write_line(report, json_pack("{s:O}", "profile", lines));
    json_decref(lines);
}

void report_ranks(Report *report, const RankReport *ranks, int count, double tokens, double work,
                  bool interrupted)
{
    StepCost step = {.tokens = tokens, .work = work, .seconds = ranks[0].step_seconds};
    close_bar(report);
    if (interrupted)
        printf(_("interrupted; results so far:\n"));
    report_tables(ranks, count, report->is_language, report->tested);
    json_t *rows = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(rows, summary_of(report, &ranks[i]));
        step.peak += ranks[i].peak;
    }
    if (step.seconds > 0) /* otherwise, no step was taken */
        report_speed(&step, count);
    if (report->metrics)
        write_line(report,
                   json_pack("{s:b, s:s, s:o, s:o, s:o, s:o, s:O}", "interrupted", interrupted,
                             "amp", report->amp, "model_flops", number(work), "model_flops_per_s",
                             number(work / step.seconds), "tokens_per_s_a_rank",
                             number(tokens / step.seconds / count), "mfu",
                             number(work / step.seconds / step.peak), "ranks", rows));
    json_decref(rows);
}

/* [what, backward, multiply-adds, bytes, the exchanges: [axis, operation, calls, bytes sent], ...] */
static json_t *json_of_work(const WorkOf *work)
{
    static const char *const axes[SPLIT_AXES] = {"tp", "dp", "pp"}, *const operations[OPERATIONS] =
                                                                        {"all_reduce", "all_gather",
                                                                         "reduce_scatter",
                                                                         "broadcast", "send"};
    json_t *line = json_pack("[s, b, I, I]", work->what, work->backward,
                             (json_int_t)work->multiply_adds, (json_int_t)work->bytes);
    for (int axis = 0; axis < SPLIT_AXES; axis++)
        for (int operation = 0; operation < RECEIVE; operation++)
            if (work->sent[axis][operation] > 0)
                json_array_append_new(
                    line, json_pack("[s, s, f, f]", axes[axis], operations[operation],
                                    work->calls[axis][operation], work->sent[axis][operation]));
    return line;
}

void report_dry_run(Report *report, const RankReport *ranks, int count, double work)
{
    json_t *rows = json_array();
    report_dry_tables(ranks, count);
    for (int i = 0; i < count; i++) {
        json_t *row = summary_of(report, &ranks[i]);
        json_t *kinds = json_array();
        for (int k = 0; k < ranks[i].kinds; k++)
            json_array_append_new(kinds, json_of_work(&ranks[i].work[k]));
        json_object_set_new(row, "work", kinds);
        json_object_set_new(row, "multiply_adds", json_real(ranks[i].multiply_adds));
        json_array_append_new(rows, row);
    }
    if (report->metrics)
        write_line(report, json_pack("{s:f, s:O}", "model_flops", work, "ranks", rows));
    json_decref(rows);
}

/* ---- a run that resumes ---- */

/* Is this line of the metrics kept by a run that resumes after `step`? The run
 * repeats the evaluation after the epoch that contains or ends with `step`. */
static bool is_kept(const char *text, int64_t step, int64_t steps_an_epoch)
{
    json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const json_t *done = json_object_get(line, "step"), *epoch = json_object_get(line, "epoch");
    bool kept = done ? json_integer_value(done) <= step
                : json_object_get(line, "test_loss")
                    ? json_integer_value(epoch) * steps_an_epoch < step
                    : false;
    json_decref(line);
    return kept;
}

bool metrics_keep(const char *path, int64_t step, int64_t steps_an_epoch, Problem *problem)
{
    const char *hint = N_("free some space, or name a writable file"),
               *what = N_("the metrics cannot be continued: %s");
    char *line = NULL;
    size_t room = 0;
    if (file_obstacle(path)) /* a pipe or a terminal has no earlier lines */
        return true;
    FILE *from = fopen(path, "re");
    if (!from)
        return errno == ENOENT ||
               problem_set(problem, path, N_("name a file that can be read and written"), what,
                           strerror(errno));
    Replacement *to = replacement_begin(path, &metrics_kind, hint, what, problem);
    while (to && getline(&line, &room, from) > 0)
        if (is_kept(line, step, steps_an_epoch))
            replacement_put(to, line, strlen(line));
    if (to && ferror(from))
        to->error = errno;
    free(line);
    fclose(from);
    return to && replacement_end(to, hint, what, problem);
}
