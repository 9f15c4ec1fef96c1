/** @file
 * One case under judgement, for the files that look at it: values, parameters, traffic, endings.
 */
#pragma once

#include "grader/judge/compare/expected.h"
#include "grader/judge/diagnose/result.h"
#include "grader/judge/mpi/recorded.h"
#include "grader/labs/labels.h"

/** One case, while it is judged. */
typedef struct Trial {
    LabResult *result;            /**< of the lab, where it is noted */
    const Case *c;                /**< the case */
    int index;                    /**< its number among the lab's cases */
    char sizes[160];              /**< its case_text() */
    const Outcome *outcome;       /**< what the ranks have given */
    Expected expected;            /**< what this rank must give */
    Expected suspected[MISTAKES]; /**< what the case gives by mistake; run when first asked for */
    int rank;                     /**< whose stream is being looked at */
    bool broken_in_step_1;        /**< something of the first step was not reached on this rank */
    bool sends_too_little;        /**< in a pass, of what the ranks need of each other's numbers */
    bool todo;                    /**< a TODO is why something was not reached */
    char mismatch[1000]; /**< what MPI forbids in the calls of a case that ended, or empty */
} Trial;

/** "4 ranks, B=2 S=3 H=24 inner=36": for messages. */
const char *case_text(const Case *c, char text[160]);

/** Did a rank reach a TODO, and end there as it should? Then where: "TODO(2) in col_wise_linear_forward, colwise-linear.c:24". */
bool todo_text(const Case *c, const Outcome *outcome, char *text, size_t size);

/** Did a function refuse its arguments on some rank? Then which, where and why, with the HINT on a line of its own. */
bool refusal_text(const Case *c, const Outcome *outcome, char *text, size_t size);

/** What is known of why a check fails. */
typedef enum Cause {
    UNEXPLAINED, /**< numbers are wrong: a reason that names a cause takes the place of this one */
    EXPLAINED,   /**< the reason names the cause, and is kept */
    IN_CALLS,    /**< the cause is what ranks have called */
    BY_ENDING,   /**< the cause is how the case ended, which the calls show too */
} Cause;

/** Fails a check, and keeps the reason: the first that names a cause, or else the first. */
void fail(Trial *t, Check check, Cause cause, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** What an entry of kind NOTE or REFUSED says; NULL of no entry, and where a rank has written nonsense. */
const Problem *problem_of(const Entry *entry);

/** The entry that a rank has written, or NULL. */
const Entry *entry_of_rank(const Trial *t, int rank, int kind, Label label);

/** Has every rank come to the end of the case? */
bool ranks_have_finished(const Trial *t);

/** What an entry is about, in words. The text holds until the next call. */
const char *entry_text(const Entry *entry);

/** How many numbers a rank that holds begin..end of this tensor has; -1 where that makes no sense. */
int64_t count_held(const Entry *e);

/** The index in the undivided tensor of number `local` of what a rank holds. */
int64_t global_index(const Entry *got, int64_t local);

/** Does what the rank has written come as near to `want` as its tolerance asks? */
bool is_right_on_rank(const Trial *t, const Entry *want);

/** How far a number may be from that in `exact`, an entry of what is expected. */
double tolerance_of(const Expected *expected, const Entry *exact);

/** Has the rank as many numbers as its part of `want` takes? */
bool has_numbers(const Entry *got, const Entry *want);

/** How many emulated runs the tolerance of a case is measured with. */
int emulations_of(const Case *c);

/** Labs 8 and 10: what a group that is wrong most likely is. */
const char *wrong_group(const Trial *t, const Entry *got, const Entry *want);
/** "mesh->tp of rank 3 is the group {1 3}, but should be {2 3} (4 ranks, tp=2)". */
void tell_group(const Trial *t, const Entry *got, const Entry *want, char *text, size_t size);
/** Numbers that every rank holds alike, or a shard of them. */
void compare_values(Trial *t, const Entry *got, const Entry *want);
/** A parameter as it was declared, and its initial numbers. */
void compare_parameter(Trial *t, const Entry *got, const Entry *want);
/** Fails the checks of a parameter that the rank has not written. */
void parameter_missing(Trial *t, const Entry *want);
/** Has a parameter of this rank another name than in the start file? */
bool renamed_parameter(const Trial *t, char *text, size_t size);
/** Or was it declared with a shape that is not the undivided one of the reference? */
bool misdeclared_parameter(const Trial *t, char *text, size_t size);
/** The rows that the replicas of lab 11 read, judged as sets. */
void compare_rows(Trial *t, const Entry *want);
/** What the ranks have sent in a pass, against the budget of labs.mk. */
void compare_traffic(Trial *t, const Entry *want);
/** What the ranks have multiplied and held. */
void compare_work(Trial *t, const Entry *want);
/** Lab 12: does each block belong to one stage, and is none much larger than another? */
void compare_stages(Trial *t);
/** Is what this rank has not written another stage's, which has? */
bool is_of_another_stage(const Trial *t, const Entry *want);
/** The largest part of the blocks that a stage may run: 1 where there is one stage. */
double share_of_stage(const Case *c);
/** Was the work of this case shared out at all? */
void look_at_split(Trial *t);

/** The calls of a case that came to its end: what MPI forbids in them fails the communication check, and explains wrong
 *  numbers. */
void compare_calls(Trial *t);
/** Where ranks go different ways in a manner that MPI allows: evidence for a number that nothing else explains.
 *  With `lines` also where it is only that calls on two lines met. */
bool calls_explain(const Trial *t, bool lines, char *text, size_t size);
/** Of MPI's objects: what was made or started and not given back. */
void left_over(Trial *t, const Entry *entry);
/** Appends what MPI forbids in the calls of a case that did not end. */
void append_mismatch(const Trial *t, char *text, size_t size);

/** Parameters that the plain layer does not have, and requests that nobody waited for. */
void look_for_more(Trial *t);

/** Why the entries of this case end early: the first line of a report. */
void ending_text(const Trial *t, char *text, size_t size);

/** What most likely went wrong, from the evidence: which wrong answer gives these numbers?
 *  `text` gets one sentence, and the broken rule of placement that a rank has noted, if any.
 *  @return whether the evidence names a cause */
bool explain(Trial *t, char *text, size_t size, const Entry *got, const Entry *want,
             double tolerance);
