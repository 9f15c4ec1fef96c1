/* The folders of SAVE and RESUME: where a run begins, and whether it may save there. */
#include "train/trainer.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "base/language.h"

static bool same_folder(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Rejects a SAVE folder with a newer checkpoint than the one that the run resumes from, because two
 * runs would mix there. */
static bool check_save_folder(const Trainer *t, Problem *problem)
{
    const char *save = t->config->save;
    int64_t newest = checkpoint_newest(save, INT64_MAX);
    bool good =
        newest < 0 || same_folder(checkpoint_path(save, newest, false).text, t->resumed.text);
    return good ||
           problem_set(problem, save, "continue from it with RESUME, or name an empty folder",
                       "the SAVE folder holds a checkpoint of step %" PRId64
                       " that this run does not resume from",
                       newest);
}

static bool find_checkpoint(Trainer *t, Problem *problem)
{
    const TrainConfig *c = t->config;
    if (c->resume)
        t->resumed = checkpoint_find(c->resume);
    if (c->resume && !t->resumed.text[0] && !(c->save && same_folder(c->save, c->resume)))
        return problem_set(
            problem, c->resume,
            "name a folder that a run with SAVE=DIR has written; with the same folder for SAVE and "
            "RESUME, a run may start without a checkpoint and continue later",
            "there is no checkpoint to resume from");
    return !c->save || check_save_folder(t, problem);
}

bool checkpoint_prepare(Trainer *t, Problem *problem)
{
    const TrainConfig *c = t->config;
    bool good = true;
    t->saved_step = -1;
    if (group_rank(t->world) == 0)
        good = (!c->save ||
                (t->save_lock = checkpoint_folder_open(c->save, &t->save_made, problem))) &&
               find_checkpoint(t, problem);
    if (!agree(t->world, good, problem))
        return false;
    /* All ranks use the checkpoint that rank 0 has found, even if a newer one has appeared
     * meanwhile. */
    MPI_Bcast(t->resumed.text, sizeof t->resumed.text, MPI_CHAR, 0, group_comm(t->world));
    return true;
}

void checkpoint_describe(const Trainer *t)
{
    const TrainConfig *c = t->config;
    if (t->resumed.text[0])
        printf(_("resume    %s: continues after step %" PRId64 "\n"), t->resumed.text,
               t->first_step);
    else if (c->resume)
        printf(_("resume    %s holds no checkpoint yet: starts from scratch\n"), c->resume);
    if (c->save && c->save_every)
        printf(_("save      %s, every %" PRId64 " steps and at the end\n"), c->save, c->save_every);
    else if (c->save)
        printf(_("save      %s, at the end\n"), c->save);
    fflush(stdout);
}
