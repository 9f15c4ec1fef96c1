#include "grader/gradebook/layout.h"

#include <string.h>

#include "base/language.h"
#include "grader/judge/diagnose/result.h"
#include "grader/judge/report/verdict.h"

/* The lab whose file this is, or -1; `prefix` gets what stands before NN-slug: "labs/", "ada/labs/", "". */
static int lab_of_path(const char *path, char prefix[PATH_SIZE])
{
    for (int i = 0; i < lab_count(); i++) {
        char end[PATH_SIZE];
        const Lab *lab = lab_at(i);
        snprintf(end, sizeof end, "%s/%s", lab->folder, lab->file);
        size_t all = strlen(path), tail = strlen(end);
        if (all < tail || strcmp(path + all - tail, end) ||
            (all > tail && path[all - tail - 1] != '/'))
            continue;
        snprintf(prefix, PATH_SIZE, "%.*s", (int)(all - tail), path);
        return i;
    }
    return -1;
}

static bool is_labs(const char *prefix)
{
    size_t length = strlen(prefix);
    return length >= 5 && !strcmp(prefix + length - 5, "labs/") &&
           (length == 5 || prefix[length - 6] == '/');
}

/* What a Macintosh adds, and what no lab is in. */
static bool is_junk(const char *path)
{
    return !strncmp(path, "__MACOSX/", 9) || strstr(path, "/__MACOSX/") || strstr(path, "/.") ||
           path[0] == '.';
}

/* The one folder that the labs stand in: one called labs before others. */
static bool choose_prefix(const Files *files, char chosen[PATH_SIZE], Problem *problem)
{
    char prefix[PATH_SIZE];
    int found = 0;
    for (int pass = 0; pass < 2 && !found; pass++)
        for (int i = 0; i < files->count; i++) {
            const char *path = files->file[i].path;
            if (is_junk(path) || lab_of_path(path, prefix) < 0 || (pass == 0 && !is_labs(prefix)))
                continue;
            if (found && strcmp(prefix, chosen)) {
                clean_text(prefix);
                clean_text(chosen);
                return problem_set(problem, NULL, "",
                                   "labs stand in more than one folder: in %.120s and in %.120s",
                                   *chosen ? chosen : _("the top one"),
                                   *prefix ? prefix : _("the top one"));
            }
            memcpy(chosen, prefix, PATH_SIZE);
            found++;
        }
    return found > 0;
}

static bool none_found(const Files *files, Problem *problem)
{
    const char *example = NULL;
    char shown[120];
    for (int i = 0; i < files->count && !example; i++) {
        size_t length = strlen(files->file[i].path);
        if (!is_junk(files->file[i].path) && length > 2 &&
            !strcmp(files->file[i].path + length - 2, ".c"))
            example = files->file[i].path;
    }
    snprintf(shown, sizeof shown, "%.100s", example ? example : "");
    clean_text(shown);
    return problem_set(problem, NULL, "",
                       example ? N_("there is no lab in it: labs/%s/%s is looked for, there is %s")
                       : files->count
                           ? N_("there is no lab in it: labs/%s/%s is looked for%s")
                           : N_("there is no lab in it: labs/%s/%s is looked for; it is empty%s"),
                       lab_at(0)->folder, lab_at(0)->file, shown);
}

bool find_labs(const Files *files, Layout *layout, Problem *problem)
{
    char chosen[PATH_SIZE] = "", prefix[PATH_SIZE];
    *layout = (Layout){0};
    problem->what[0] = '\0';
    if (!choose_prefix(files, chosen, problem))
        return problem->what[0] ? false : none_found(files, problem);
    for (int i = 0; i < files->count; i++) {
        int lab = lab_of_path(files->file[i].path, prefix);
        if (lab >= 0 && !strcmp(prefix, chosen))
            layout->lab[lab] = &files->file[i];
    }
    size_t root = strlen(chosen) - (is_labs(chosen) ? 5 : 0);
    snprintf(layout->root, sizeof layout->root, "%.*s", (int)root, chosen);
    return true;
}
