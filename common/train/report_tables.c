/* The output of a run before its first step and after its last one. */
#include <math.h>

#include "base/language.h"
#include "train/report.h"

static double millions(int64_t count)
{
    return (double)count / 1e6;
}

void report_model(const TrainConfig *config, int64_t parameters, int64_t held)
{
    const int ranks = config->tp * config->dp * config->pp;
    const TransformerConfig *b = &config->model;
    printf(_("model     %s, %d layers, hidden %d, %d heads, vocabulary %d%s, dropout %g\n"),
           b->architecture->name, b->layers, b->hidden, b->heads, b->vocabulary,
           b->positions && b->architecture->sequence_block ? _(", learned positions") : "",
           b->dropout);
    printf(config->pp == 1 ? _("          %.2f M parameters, %.2f M of them on each rank\n")
                           : _("          %.2f M parameters, at most %.2f M of them on a rank\n"),
           millions(parameters), millions(held));
    printf(ngettext("layout    %d rank: tensor parallel %d, data parallel %d",
                    "layout    %d ranks: tensor parallel %d, data parallel %d",
                    (unsigned long)ranks),
           ranks, config->tp, config->dp);
    if (config->pp > 1)
        printf(_(", pipeline parallel %d"), config->pp);
    putchar('\n');
    if (config->pp > 1 || config->micro > 1)
        printf(ngettext("schedule  %d micro-batch of %d rows per step\n",
                        "schedule  %d micro-batches of %d rows per step\n",
                        (unsigned long)config->micro),
               config->micro, config->batch / config->dp / config->micro);
    if (config->average)
        printf(
            ngettext("averages  of weights after every step, in place of the sums of gradients\n",
                     "averages  of weights every %lld steps, in place of the sums of gradients\n",
                     (unsigned long)config->average),
            (long long)config->average);
    if (config->zero)
        puts(_(
            "optimiser keeps its state for a part of the weights on each replica (ZeRO stage 1)"));
    if (b->sequence_parallel)
        puts(_("sequence  norms, dropouts and residual sums on the positions of each tp rank"));
    if (b->recompute)
        puts(
            b->recompute == RECOMPUTE_BLOCKS
                ? _("memory    keeps the input of each block; the backward pass runs the block again")
                : _("memory    keeps the input of each attention; the backward pass runs it again"));
}

void report_configuration(const TrainConfig *config, int64_t parameters, int64_t held, int64_t rows,
                          int64_t test_rows, int64_t steps)
{
    report_model(config, parameters, held);
    printf(_("data      %s: %lld rows of up to %d tokens, test %lld rows\n"), config->data,
           (long long)rows, config->seq, (long long)test_rows);
    printf(ngettext("training  %d epoch, %lld steps of %d rows, %s, LR %g, seed %llu\n",
                    "training  %d epochs, %lld steps of %d rows, %s, LR %g, seed %llu\n",
                    (unsigned long)config->epochs),
           config->epochs, (long long)steps, config->batch,
           config->optimizer.kind == ADAMW ? "AdamW" : "SGD", config->schedule.rate,
           (unsigned long long)config->seed);
    printf(_("kernels   %s\n"), backend_description());
    fflush(stdout);
}

/* Results and memory have separate tables, because a terminal has 80 columns. */
static void print_run(const RankReport *ranks, int count, bool is_language, bool tested)
{
    puts(tested
             ? _("\n       test         parameters     step     MB sent         comm    exposed")
             : _("\n       training     parameters     step     MB sent         comm    exposed"));
    puts(is_language
             ? _("rank   loss  perplex.   held M       ms      tp     dp        s         ms")
             : _("rank   loss accuracy    held M       ms      tp     dp        s         ms"));
    for (int i = 0; i < count; i++) {
        const RankReport *r = &ranks[i];
        char wait[32] = "-"; /* a single replica does not wait */
        if (r->wait_seconds >= 0)
            snprintf(wait, sizeof wait, "%.2f", 1e3 * r->wait_seconds);
        printf("%4d %6.4f %8.4f %9.2f %8.0f %7.0f %6.0f %8.2f %10s\n", r->rank, r->loss,
               is_language ? exp(r->loss) : r->accuracy, millions(r->parameters),
               1e3 * r->step_seconds, millions(r->sent.tp.bytes), millions(r->sent.dp.bytes),
               r->sent.all.seconds, wait);
    }
}

static void print_memory(const RankReport *ranks, int count)
{
    puts(_("\nrank  peak MB = weights + gradients + optimiser + activations"));
    for (int i = 0; i < count; i++) {
        const MemoryUse *use = &ranks[i].use;
        printf("%4d %8.1f  %8.1f    %8.1f    %8.1f      %8.1f\n", ranks[i].rank,
               millions(use->peak_total), millions(use->peak[WEIGHTS]),
               millions(use->peak[GRADIENTS]), millions(use->peak[OPTIMISER]),
               millions(use->peak[ACTIVATIONS]));
    }
}

static const char *blocks_text(const RankReport *r, char text[48])
{
    snprintf(text, 48, "%lld-%lld", (long long)r->blocks.begin, (long long)r->blocks.end - 1);
    return text;
}

static void print_stages(const RankReport *ranks, int count)
{
    char text[48];
    puts(_("\nrank  stage  blocks   micro-batches in flight  MB sent pp   idle"));
    for (int i = 0; i < count; i++) {
        const RankReport *r = &ranks[i];
        printf("%4d  %5d  %-8s %23d %11.1f %4.0f %%\n", r->rank, r->stage, blocks_text(r, text),
               r->in_flight, millions(r->sent.pp.bytes), 100 * r->idle);
    }
}

void report_dry_tables(const RankReport *ranks, int count)
{
    char text[48];
    puts(_("\n                                          MB sent in a step"));
    puts(_("rank  stage  blocks   in flight    held M       tp       dp      pp     GFLOP"));
    for (int i = 0; i < count; i++) {
        const RankReport *r = &ranks[i];
        printf("%4d  %5d  %-8s %9d %9.2f %8.1f %8.1f %7.1f %9.1f\n", r->rank, r->stage,
               blocks_text(r, text), r->in_flight, millions(r->parameters),
               millions(r->sent.tp.bytes), millions(r->sent.dp.bytes), millions(r->sent.pp.bytes),
               2e-9 * r->multiply_adds);
    }
    print_memory(ranks, count);
    fflush(stdout);
}

/* Digits after the point, so that at least three digits are printed. */
static int decimals(double rate)
{
    return rate < 10 ? 2 : rate < 100 ? 1 : 0;
}

void report_speed(const StepCost *step, int count)
{
    const double tokens = step->tokens / step->seconds, rate = 1e-9 * step->work / step->seconds;
    printf(_("\nspeed     %.0f tokens/s, %.0f per rank\n"), tokens, tokens / count);
    printf(_("          %.*f GFLOP/s of the model, %.*f per rank"), decimals(rate), rate,
           decimals(rate / count), rate / count);
    if (step->peak > 0)
        printf(_(", %.3g %% of the peak (MFU)"), 100 * 1e9 * rate / step->peak);
    putchar('\n');
    fflush(stdout);
}

void report_tables(const RankReport *ranks, int count, bool is_language, bool tested)
{
    print_run(ranks, count, is_language, tested);
    if (ranks[count - 1].stage > 0)
        print_stages(ranks, count);
    print_memory(ranks, count);
    fflush(stdout);
}
