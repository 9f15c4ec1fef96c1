/* make debug: gdb on one rank of a case. */

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grader/judge/commands.h"
#include "grader/judge/launch/processes.h"

/* Paths in the launcher's folder: gdb's first commands; a file that appears when gdb is ready. */
typedef struct Script {
    char commands[96], ready[96];
} Script;

/* Writes the commands: they set the breakpoints, create the file `ready`, and continue. */
static Script write_script(const Launcher *launcher, const char *stops)
{
    Script script;
    char names[512];
    snprintf(script.commands, sizeof script.commands, "%s/gdb", launcher->folder);
    snprintf(script.ready, sizeof script.ready, "%s/gdb.ready", launcher->folder);
    snprintf(names, sizeof names, "%s", stops);
    FILE *file = fopen(script.commands, "w");
    if (!file)
        give_up_with(N_("is /dev/shm full?"), _("the commands for gdb cannot be written"));
    fprintf(file, "set pagination off\nset confirm off\nhandle SIGSYS nostop noprint pass\n");
    for (char *rest = names, *name; (name = strtok_r(rest, " ", &rest));)
        fprintf(file, "break %s\n", name);
    fprintf(file, "shell touch %s\ncontinue\n", script.ready);
    fclose(file);
    return script;
}

static void give_terminal_to(pid_t group)
{
    if (!isatty(STDIN_FILENO))
        return;
    signal(SIGTTOU, SIG_IGN);
    tcsetpgrp(STDIN_FILENO, group);
    signal(SIGTTOU, SIG_DFL);
}

/* gdb has its own process group, which owns the terminal, so that Ctrl-C goes to gdb. */
static pid_t start_gdb(const char *runner, int rank, const Script *script)
{
    char process[16];
    snprintf(process, sizeof process, "%d", rank);
    pid_t gdb = fork();
    if (gdb == 0) {
        if (isatty(STDIN_FILENO))
            setpgid(0, 0);
        give_terminal_to(getpgrp());
        /* A gdb without Python cannot read tensor_gdb.py, and continues with the commands. */
        execlp("gdb", "gdb", "-q", "-nx", "-iex", "set auto-load off", runner, "-p", process, "-x",
               "common/tensor/tensor_gdb.py", "-x", script->commands, (char *)NULL);
        _exit(127);
    }
    return gdb;
}

static bool has_ended(pid_t gdb)
{
    nap(10000);
    return waitpid(gdb, NULL, WNOHANG) == gdb;
}

/* Posts the case when gdb is ready, and lets the ranks leave when the case is done. */
static void look_on(Launcher *launcher, const Case *c, pid_t gdb, const Script *script)
{
    bool ended = false;
    while (!(ended = has_ended(gdb)) && access(script->ready, F_OK) != 0)
        ;
    launcher->launch->control.current = *c;
    atomic_store(&launcher->launch->control.posted, ended ? -1 : 1);
    for (bool told = ended; !ended; ended = has_ended(gdb)) {
        int done = 0;
        launcher_has_ended(launcher); /* reads the output */
        for (int r = 0; r < c->world; r++)
            done += atomic_load(&launcher->launch->rank[r].done_cases) >= 1;
        if (!told && done == c->world) {
            atomic_store(&launcher->launch->control.posted, -1);
            told = true;
        }
    }
}

int debug_lab(const Options *o)
{
    char runner[512], why[256];
    Case cases[MAX_CASES];
    Problem problem;
    Launcher launcher;
    const Case *c = case_to_look_at(o, cases, runner, sizeof runner);
    if (!c)
        return 1;
    if (system("command -v gdb > /dev/null") != 0) /* NOLINT(cert-env33-c) */
        give_up_with("apt-get install gdb", _("gdb is not installed"));
    if (!stamp_fits(runner, &problem))
        give_up(&problem);
    o->sandbox->wish = SANDBOX_OFF;
    o->sandbox->debugged = true;
    if (!launcher_start(&launcher, o->sandbox, runner, lab_largest_world(lab_of(o->lab)), why,
                        sizeof why))
        give_up_with(N_("make doctor shows whether MPI starts"), "%s", why);
    printf(_("gdb is attached to rank %d and stops in the lab's functions;\ncontinue resumes; "
             "quit ends all ranks\n"),
           o->rank);
    fflush(stdout);
    const Script script = write_script(&launcher, o->stops);
    signal(SIGINT, SIG_IGN);
    look_on(&launcher, c, start_gdb(runner, launcher.pid[o->rank], &script), &script);
    give_terminal_to(getpgrp());
    unlink(script.commands);
    unlink(script.ready);
    launcher_stop(&launcher);
    munmap(launcher.launch, FILE_BYTES);
    return 0;
}
