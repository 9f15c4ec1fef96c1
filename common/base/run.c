/* Reports misused functions, and finds the line of the lab that called them. */
#include "base/run.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "balise.h"
#include "base/language.h"

/* The linker defines these at both ends of the section that holds the code of all labs
 * (grader/lab-object.sh). */
extern const char __start_balise_labs[] __attribute__((weak));
extern const char __stop_balise_labs[] __attribute__((weak));

typedef struct Search {
    bool outermost;
    int left;    /* frames that may still be looked at */
    void *found; /* the address in a lab */
} Search;

/* Called for each frame, the innermost first. Unless the outermost is wanted, the search ends at
 * the first frame in a lab, because a frame takes longer than many operations on small tensors. */
static _Unwind_Reason_Code look_at(struct _Unwind_Context *frame, void *context)
{
    Search *search = context;
    const uintptr_t address = _Unwind_GetIP(frame), begin = (uintptr_t)__start_balise_labs;
    const bool in_lab = begin && address > begin && address <= (uintptr_t)__stop_balise_labs;
    if (in_lab)
        search->found = (void *)(__start_balise_labs + (address - begin));
    return --search->left > 0 && (!in_lab || search->outermost) ? _URC_NO_REASON
                                                                : _URC_END_OF_STACK;
}

static void *lab_on_stack(bool outermost)
{
    enum { DEEPEST = 64 };
    Search search = {outermost, DEEPEST, NULL};
    _Unwind_Backtrace(look_at, &search);
    return search.found;
}

void *callsite(void)
{
    return lab_on_stack(false);
}

void *callsite_outermost(void)
{
    return lab_on_stack(true);
}

void callsite_describe(const void *address, char *text, size_t size)
{
    char command[192], line[512];
    text[0] = '\0';
    if (!address)
        return;
    /* A return address points to the next instruction; one byte before it is inside the call. What
     * the assembler statements of a lab write may take all time and memory to read. */
    snprintf(command, sizeof command,
             "ulimit -t 5; ulimit -v 1000000; addr2line -e /proc/%d/exe 0x%jx 2>/dev/null",
             (int)getpid(), (uintmax_t)((uintptr_t)address - 1));
    FILE *pipe = popen(command, "r");
    if (!pipe)
        return;
    if (fgets(line, sizeof line, pipe) && line[0] != '?') {
        const char *slash = strrchr(line, '/'),
                   *name = slash ? slash + 1 : line; /* folders may contain blanks */
        snprintf(text, size, "%.*s", (int)strcspn(name, " \n"), name);
        for (char *at = text; *at; at++) /* a #line may name any file */
            *at = *at < ' ' || *at > '~' ? '?' : *at;
    }
    pclose(pipe);
}

static void describe(Problem *problem, const char *hint, const char *format, va_list args)
{
    *problem = (Problem){0};
    vsnprintf(problem->what, sizeof problem->what, _(format), args);
    problem_clean(problem);
    snprintf(problem->hint, sizeof problem->hint, "%s", *hint ? _(hint) : "");
}

void misuse_since(void *address, const char *hint, const char *format, ...)
{
    Problem problem;
    va_list args;
    va_start(args, format);
    describe(&problem, hint, format, args);
    va_end(args);
    run_ends(&problem, address ? address : callsite());
}

/* For programs without run_noted(). */
__attribute__((weak)) void run_noted(Problem *problem, Harm harm, void *address)
{
    run_ends(problem, address);
}

/* For programs without run_place(). */
__attribute__((weak)) void run_place(char *text, size_t size)
{
    text[0] = '\0';
}

void misplaced_since(void *address, Harm harm, const char *hint, const char *format, ...)
{
    Problem problem;
    va_list args;
    va_start(args, format);
    describe(&problem, hint, format, args);
    va_end(args);
    run_noted(&problem, harm, address ? address : callsite());
}

void todo(int balise, const char *function)
{
    run_todo(balise, function, callsite());
}

void must_exist(const char *function, const void *argument)
{
    if (!argument)
        misuse("set it before this call: the fields of a layer, in its ..._new function",
               "%s: an argument is NULL", function);
}
