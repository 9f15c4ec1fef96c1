/* Computes the options of a run that follow from others, and checks that all fit together. */
#include "train/config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/language.h"
#include "train/report.h"
#include "train/trace.h"

/* Does the file's disk have room? Reserving room does not change the file's size, even if several
 * ranks do it at once. A zero-byte write fails on a full device, and succeeds on pipes, terminals,
 * and file systems that cannot reserve room. */
static bool has_room(int fd)
{
    struct stat file;
    if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
        fallocate(fd, FALLOC_FL_KEEP_SIZE, file.st_size, 4096))
        return errno != ENOSPC && errno != EDQUOT;
    return write(fd, "", 0) == 0 || errno != ENOSPC;
}

static bool can_write(const char *path, Problem *problem)
{
    if (!output_may_replace(path, &metrics_kind, problem))
        return false;
    /* Without O_NONBLOCK, opening a FIFO would wait for a reader. */
    const int how = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK;
    int fd = open(path, how | O_EXCL, 0666);
    const bool is_new = fd >= 0;
    if (!is_new)
        fd = open(path, how, 0666);
    const bool good = fd >= 0 && has_room(fd);
    const int reason = errno;
    if (fd >= 0)
        close(fd);
    if (is_new)
        unlink(path); /* a run that cannot begin leaves no file */
    return good || problem_set(problem, path,
                               reason == ENOSPC || reason == EDQUOT
                                   ? N_("free some space, or name a file on another disk")
                                   : N_("name a file in an existing, writable folder"),
                               "the metrics cannot be written: %s", strerror(reason));
}

static bool check_outputs(const TrainConfig *config, Problem *problem)
{
    const struct {
        const char *name, *path;
    } outputs[] = {{"METRICS", config->metrics}, {"TRACE", config->trace}, {"SAVE", config->save}};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < i; k++)
            if (outputs[i].path && outputs[k].path &&
                is_same_output(outputs[k].path, outputs[i].path))
                return problem_set(problem, outputs[i].path, "choose two different paths",
                                   "%s and %s name the same path", outputs[k].name,
                                   outputs[i].name);
    return (!config->metrics || can_write(config->metrics, problem)) &&
           (!config->trace || trace_can_be_written(config->trace, problem));
}

static bool check_saving(const TrainConfig *config, Problem *problem)
{
    if (config->save_every && !config->save)
        return problem_set(
            problem, NULL, "SAVE=DIR EVERY=n writes a checkpoint into DIR every n steps",
            "EVERY=%lld, but no SAVE folder is named", (long long)config->save_every);
    if ((config->save && !*config->save) || (config->resume && !*config->resume))
        return problem_set(problem, NULL, "name a folder", "%s is not a folder",
                           config->save && !*config->save ? "SAVE" : "RESUME");
    return true;
}

/* The degree that was left out, from the number of ranks and the other two degrees. */
static int degree_left(int ranks, int one, int other)
{
    const int product = (one ? one : 1) * (other ? other : 1);
    return ranks >= product ? ranks / product : 1;
}

/* NTASKS = TP·DP·PP. Computes DP if it was left out; otherwise TP; otherwise PP. The others default
 * to 1. */
static bool check_degrees(TrainConfig *config, int ranks, Problem *problem)
{
    int *tp = &config->tp, *dp = &config->dp, *pp = &config->pp;
    const int64_t given = (int64_t)(*tp ? *tp : 1) * (*dp ? *dp : 1) * (*pp ? *pp : 1);
    char degrees[64] = "";
    const struct {
        const char *name;
        int value;
    } all[] = {{"TP", *tp}, {"DP", *dp}, {"PP", *pp}};
    for (int i = 0; i < 3; i++)
        if (all[i].value)
            snprintf(degrees + strlen(degrees), sizeof degrees - strlen(degrees), "%s%s=%d",
                     degrees[0] ? " " : "", all[i].name, all[i].value);
    const bool may_be_multiple = !*tp || !*dp || !*pp;
    if (*dp && !*tp)
        *tp = degree_left(ranks, *dp, *pp);
    *tp = *tp ? *tp : 1;
    if (*dp && !*pp)
        *pp = degree_left(ranks, *tp, *dp);
    *pp = *pp ? *pp : 1;
    *dp = *dp ? *dp : degree_left(ranks, *tp, *pp);
    if ((int64_t)*tp * *dp * *pp == ranks)
        return true;
    const char *hint =
        N_("NTASKS is TP times DP times PP; leave out one of them, and it is computed");
    const int64_t below = ranks / given * given, above = below + given;
    if (may_be_multiple && below > 0)
        return problem_set(problem, NULL, hint,
                           "NTASKS=%d cannot be split by %s: NTASKS=%lld or %lld can", ranks,
                           degrees, (long long)below, (long long)above);
    return problem_set(problem, NULL, hint, "NTASKS=%d cannot be split by %s: NTASKS=%lld can",
                       ranks, degrees, (long long)given);
}

/* Do the labs in this program support this layout? */
static bool check_labs(const TrainConfig *config, int ranks, Problem *problem)
{
    if (config->labs >= 5 && config->labs < 9 && config->tp != ranks)
        return problem_set(problem, NULL, "choose TP equal to NTASKS",
                           "NTASKS=%d and TP=%d: before lab 9 all ranks split one model", ranks,
                           config->tp);
    return !config->labs || config->labs >= 12 || config->pp == 1 ||
           problem_set(problem, NULL, "leave out PP, or go on to lab 12",
                       "PP=%d: before lab 12 the model is one stage", config->pp);
}

/* LAYERS is 2 by default, or PP if there are more stages. */
static bool check_layers(TrainConfig *config, Problem *problem)
{
    int *layers = &config->model.layers;
    if (!*layers)
        *layers = config->pp > 2 ? config->pp : 2;
    return config->pp <= *layers ||
           problem_set(problem, NULL,
                       "each stage needs a block: choose LAYERS at least as large as PP",
                       "PP=%d stages cannot share LAYERS=%d", config->pp, *layers);
}

static bool check_positions(const TrainConfig *config, Problem *problem)
{
    return !config->model.sequence_parallel || config->seq % config->tp == 0 ||
           problem_set(problem, NULL,
                       N_("each rank takes the same number of positions: choose SEQ as a multiple "
                          "of TP, or leave out SP"),
                       "SP=1, but SEQ=%d is not divisible by TP=%d", config->seq, config->tp);
}

static bool check_average(const TrainConfig *config, Problem *problem)
{
    return !config->average || config->dp > 1 ||
           problem_set(
               problem, NULL, "choose NTASKS larger than TP times PP, or leave out AVERAGE",
               "AVERAGE=%lld, but there is only one replica, so there is nothing to average",
               (long long)config->average);
}

/* ZeRO stage 1 needs replicas that reduce their gradients in each step, part by part. */
static bool check_zero(const TrainConfig *config, Problem *problem)
{
    if (!config->zero)
        return true;
    if (config->dp == 1)
        return problem_set(problem, NULL,
                           "choose NTASKS larger than TP times PP, or leave out ZERO",
                           "ZERO=1, but there is only one replica, and no other to share the "
                           "optimiser's state with");
    if (config->average)
        return problem_set(
            problem, NULL,
            "leave out AVERAGE, which lets each replica step on its own; or leave out ZERO",
            "ZERO=1 cannot be combined with AVERAGE=%lld", (long long)config->average);
    return !config->ring ||
           problem_set(problem, NULL,
                       "leave out ALLREDUCE: ZERO reduces and scatters gradients, without an "
                       "all-reduce",
                       "ZERO=1 cannot be combined with ALLREDUCE=ring");
}

/* The default BATCH_SIZE: the smallest multiple of `parts` that is at least 32. */
static int batch_for(int64_t parts)
{
    const int64_t rows = (32 + parts - 1) / parts * parts, most = 1 << 20; /* the largest */
    return (int)(rows < most ? rows : most);
}

/* A replica takes BATCH_SIZE/DP rows per step, in MICRO micro-batches. */
static bool check_batch(TrainConfig *config, Problem *problem)
{
    int dp = config->dp;
    if (!config->batch)
        config->batch = batch_for((int64_t)dp * config->micro);
    if (config->batch % dp)
        return problem_set(
            problem, NULL,
            "BATCH_SIZE is the global batch size: choose a multiple of NTASKS/(TP*PP)",
            "BATCH_SIZE=%d cannot be split evenly over %d replicas", config->batch, dp);
    if (config->batch / dp % config->micro)
        return problem_set(problem, NULL, "choose MICRO so that it divides BATCH_SIZE/DP",
                           "a replica's %d rows cannot be divided into %d micro-batches",
                           config->batch / dp, config->micro);
    if (config->schedule.decay && config->schedule.decay <= config->schedule.warmup)
        return problem_set(
            problem, NULL,
            "DECAY, the step at which the learning rate reaches 0, must come after WARMUP",
            "DECAY=%lld is not after WARMUP=%lld", (long long)config->schedule.decay,
            (long long)config->schedule.warmup);
    return true;
}

/* Does MPI see as many ranks as the launcher has started? If the program's MPI differs from the
 * launcher's, each rank is a world of its own. */
static bool check_ranks(const TrainConfig *config, int ranks, Problem *problem)
{
    if (!config->ranks || config->ranks == ranks)
        return true;
    return problem_set(problem, NULL,
                       "the launcher (mpirun or srun) belongs to a different MPI from the one that "
                       "the kit was compiled with: make doctor",
                       "%d ranks were started, but each sees a world of %d", config->ranks, ranks);
}

bool train_config_grid(TrainConfig *config, int ranks, Problem *problem)
{
    return check_ranks(config, ranks, problem) && check_degrees(config, ranks, problem) &&
           check_labs(config, ranks, problem);
}

bool train_config_check(TrainConfig *config, int ranks, Problem *problem)
{
    return train_config_grid(config, ranks, problem) && check_layers(config, problem) &&
           check_average(config, problem) && check_zero(config, problem) &&
           check_batch(config, problem) && transformer_check(&config->model, config->tp, problem) &&
           check_positions(config, problem) && check_saving(config, problem) &&
           check_outputs(config, problem);
}

static bool can_read(const char *path, Problem *problem)
{
    return !path || access(path, R_OK) == 0 ||
           problem_set(problem, path, "DATA, TEST and VOCAB must name existing files",
                       "the file cannot be read: %s", strerror(errno));
}

bool train_config_dry(TrainConfig *config, Problem *problem)
{
    return train_config_check(config, config->ranks ? config->ranks : 1, problem) &&
           can_read(config->data, problem) && can_read(config->test, problem) &&
           can_read(config->vocabulary, problem);
}
