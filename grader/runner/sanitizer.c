/* SAN=1: the runner, the kit and the lab are built with the address and undefined-behaviour
 * sanitizers. Their reports become entries in the student's terms, and the case ends at the next
 * safe point. */
#include "grader/runner/guard.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sanitizers pass no context. */
static struct {
    void (*found)(const Problem *problem, void *address);
    bool spoke;
} watch;

void sanitizer_begin(void)
{
    watch.spoke = false;
}

bool sanitizer_has_found(void)
{
    return watch.spoke;
}

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>

#include "base/language.h"

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
void __ubsan_on_report(void);
void __ubsan_get_current_report_data(const char **kind, const char **message, const char **file,
                                     unsigned *line, unsigned *column, char **address);

/* Open MPI keeps what it allocates, so leaks are not reported. The judge looks up lines itself. A
 * report does not end the rank, so that the case can end properly. */
const char *__asan_default_options(void)
{
    return "detect_leaks=0:symbolize=0:halt_on_error=0:allocator_may_return_null=1:quarantine_size_mb=16:"
           "max_malloc_fill_size=0:detect_odr_violation=0";
}

const char *__ubsan_default_options(void)
{
    return "print_stacktrace=0:halt_on_error=0";
}

typedef struct Kind {
    const char *word, *what, *hint;
} Kind;

static const char
    range_hint[] = N_("what is the last valid index? Count from 0, and count numbers, not bytes"),
    free_hint[] = N_("free only what malloc() gave, and once; tensors belong to the tape"),
    freed[] = N_(
        "free() is called for a pointer that malloc() did not return, or that was already freed"),
    life_hint[] = N_("declare the variable in a scope that covers all its uses; the tape "
                     "owns what a function returns");

/* Reports of the address sanitizer: where bytes are read or written, or what is done. */
static const Kind kinds[] = {
    {"heap-buffer-overflow", N_("outside of an allocated block"), range_hint},
    {"stack-buffer-overflow", N_("outside of a local array"), range_hint},
    {"stack-buffer-underflow", N_("outside of a local array"), range_hint},
    {"global-buffer-overflow", N_("outside of a static array"), range_hint},
    {"heap-use-after-free", N_("in memory that was already freed"),
     N_("free a block after its last use, or let the tape own it")},
    {"stack-use-after-scope", N_("in a local variable whose block has ended"), life_hint},
    {"stack-use-after-return", N_("in a local variable of a function that has returned"),
     life_hint},
    {"double-free", freed, free_hint},
    {"not malloc()-ed", freed, free_hint},
    {"malloc_usable_size", freed, free_hint}, /* graded_free() calls it before free() */
    {"negative-size-param", N_("the code copies a negative number of bytes"),
     N_("which of the sizes is negative here?")},
    {"memcpy-param-overlap", N_("memcpy() is called with ranges that overlap"),
     N_("memmove() allows that")},
};
static const Kind other_access = {"address", N_("outside the lab's memory"),
                                  N_("look at each index and each pointer on this line")};

/* Hints for reports of the undefined-behaviour sanitizer. */
static const Kind undefined[] = {
    {"signed-integer-overflow", NULL,
     N_("how large can it get? int64_t holds values that int cannot")},
    {"out-of-bounds-index", NULL, range_hint},
    {"integer-divide-by-zero", NULL, N_("which of the sizes is 0 here?")},
    {"null-pointer", NULL, N_("which pointer on this line has not been set?")},
    {"shift", NULL, N_("shift by less than the number of bits, and not into the sign bit")},
    {"", NULL, N_("this is undefined behaviour in C: the compiler may do anything")},
};

extern const char __start_balise_labs[] __attribute__((weak));
extern const char __stop_balise_labs[] __attribute__((weak));

/* The innermost of a report's frames ("    #2 0x55...") that is in a lab, as a return address. */
static void *frame_in_lab(const char *report)
{
    for (const char *at = report; (at = strstr(at, "    #"));) {
        char *end;
        at += strlen("    #");
        strtol(at, &end, 10);
        const char *frame = (const char *)(uintptr_t)strtoull(end, NULL, 16);
        if (__start_balise_labs && frame >= __start_balise_labs && frame < __stop_balise_labs)
            return (void *)(uintptr_t)(frame + 1);
    }
    return NULL;
}

/* ": 0 bytes past the end of a block of 48 bytes", or the local array that a report's line marks:
 * ": 'a' (line 31)". */
static void place_in_block(const char *report, char *text, size_t size)
{
    const char *at = strstr(report, " is located "), *mark = strstr(report, " <== ");
    long away, bytes;
    char where[32];
    text[0] = '\0';
    if (at &&
        sscanf(at, " is located %ld bytes %31[^0-9]%ld-byte region", &away, where, &bytes) == 3) {
        bool behind = strstr(where, "right") || strstr(where, "after"),
             before = strstr(where, "left") || strstr(where, "before");
        snprintf(text, size,
                 behind   ? _(": %ld bytes past the end of a block of %ld bytes")
                 : before ? _(": %ld bytes before a block of %ld bytes")
                          : _(": %ld bytes into a block of %ld bytes"),
                 away, bytes);
    } else if (mark) {
        const char *name = mark;
        while (name > report && *name != '\n' && strncmp(name, ") '", 3) != 0)
            name--;
        if (*name == ')')
            snprintf(text, size, ": %.*s", (int)(mark - name - 2), name + 2);
    }
}

static void say(const Problem *problem, void *address)
{
    if (watch.spoke)
        return;
    watch.spoke = true;
    if (watch.found)
        watch.found(problem, address);
}

static void address_report(const char *report)
{
    const Kind *kind = &other_access;
    const char *error = strstr(report, "AddressSanitizer: ");
    size_t bytes = __asan_get_report_access_size(), line = error ? strcspn(error, "\n") : 0;
    char place[200];
    Problem problem;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (memmem(error, line, kinds[i].word, strlen(kinds[i].word)))
            kind = &kinds[i];
    place_in_block(report, place, sizeof place);
    if (bytes > 0)
        problem_set(&problem, NULL, kind->hint,
                    __asan_get_report_access_type()
                        ? (bytes == 1 ? N_("sanitizer: %zu byte is written %s%s (%s)")
                                      : N_("sanitizer: %zu bytes are written %s%s (%s)"))
                    : bytes == 1 ? N_("sanitizer: %zu byte is read %s%s (%s)")
                                 : N_("sanitizer: %zu bytes are read %s%s (%s)"),
                    bytes, _(kind->what), place, kind->word);
    else
        problem_set(&problem, NULL, kind->hint, "sanitizer: %s", _(kind->what));
    say(&problem, frame_in_lab(report));
}

/* The undefined-behaviour sanitizer's reports have no stack, but name the line. */
void __ubsan_on_report(void)
{
    const char *kind, *message, *file;
    char *address;
    unsigned line, column;
    Problem problem;
    __ubsan_get_current_report_data(&kind, &message, &file, &line, &column, &address);
    const char *slash = strrchr(file, '/');
    const Kind *known = undefined;
    while (strncmp(kind, known->word, strlen(known->word)) != 0)
        known++;
    problem_set(&problem, NULL, known->hint, "sanitizer: %c%.300s (%.60s), at %.100s:%u",
                tolower(*message), message + 1, kind, slash ? slash + 1 : file, line);
    say(&problem, NULL);
}

#endif

void sanitizer_watch(void (*found)(const Problem *problem, void *address))
{
    watch.found = found;
#ifdef __SANITIZE_ADDRESS__
    __asan_set_error_report_callback(address_report);
#endif
}
