/** @file
 * A case being judged, for the files that examine it: values, parameters, traffic, endings.
 */
#pragma once

#include "grader/judge/compare/expected.h"
#include "grader/judge/diagnose/result.h"
#include "grader/judge/mpi/recorded.h"
#include "grader/labs/labels.h"

/** How much is known about why a check fails. */
typedef enum Cause {
    UNEXPLAINED,  /**< numbers are wrong; a reason that names a cause replaces this one */
    EXPLAINED,    /**< the reason names the cause and is kept */
    WITH_PATTERN, /**< the same, but in which cases it fails may show more */
    IF_IN_FEW,    /**< the same, unless it fails in most cases */
    IN_CALLS,     /**< the cause is in the ranks' calls */
    BY_ENDING,    /**< the cause is how the case ended, which the calls show too */
} Cause;

/** A case while it is judged. */
typedef struct Trial {
    LabResult *result;      /**< the lab's result, to be filled */
    const Case *c;          /**< the case */
    int index;              /**< its number among the lab's cases */
    char sizes[160];        /**< its case_text(), with the V of the table in question */
    const Outcome *outcome; /**< the ranks' entries and calls */
    Expected expected;      /**< the entries expected of this rank */
    Expected program;       /**< with the plain layer's operations; computed when needed */
    Expected past;          /**< PAST_THE_LAYER; computed when needed */
    int rank;               /**< the rank whose stream is being judged */
    bool broken_in_step_1;  /**< this rank did not reach some entry of the first step */
    bool sends_too_little;  /**< in some pass, the ranks sent less than they need */
    bool todo;              /**< a TODO prevented some entry */
    bool with_nan;          /**< the entry being judged is of the step with NaN */
    Cause explained_as;     /**< how much the cause found last says */
    char mismatch[1000];    /**< what MPI forbids in the calls of a complete case, or empty */
} Trial;

/** "4 ranks, B=2 S=3 H=24 inner=36": for messages. */
const char *case_text(const Case *c, char text[160]);

/** Did a rank reach a TODO and end there properly? If so, writes where: "TODO(2) in
 *  col_wise_linear_forward, colwise-linear.c:24". */
bool todo_text(const Case *c, const Outcome *outcome, char *text, size_t size);

/** Did a function reject its arguments on some rank? If so, writes which, where and why, with the
 *  HINT on its own line. */
bool refusal_text(const Case *c, const Outcome *outcome, char *text, size_t size);

/** Appends the problem that an entry holds, with its line and its HINT. */
void append_problem(const Entry *entry, char *text, size_t size);

/** Did a function reject its arguments on some rank? */
bool has_refused(const Trial *t);

/** Appends why a function rejected its arguments, if the case or an earlier broken rule shows it. */
void append_cause_of_refusal(const Trial *t, char *text, size_t size);

/** Fails a check. Keeps the first reason that names a cause, or else the first reason. */
void fail(Trial *t, Check check, Cause cause, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** A rank's entry, or NULL. */
const Entry *entry_of_rank(const Trial *t, int rank, int kind, Label label);

/** May this rank lack an entry that one rank alone would write? */
bool may_lack(const Trial *t, const Entry *want);

/** What expect() computes besides the numbers; kept in `kept`, a member of the trial. */
Expected *computed(Trial *t, Expected *kept, Expectation what);
/** Frees what computed() has kept. */
void forget_expected(Trial *t);

/** Has every rank completed the case? */
bool ranks_have_finished(const Trial *t);

/** Which of a case's two layers, or language models, a label is about: 0 or 1. */
int layer_of(const Label *label);

/** Describes what an entry is about. The text is valid until the next call. */
const char *entry_text(const Entry *entry);

/** The number of elements of this tensor that a rank with begin..end holds; -1 if the range is
 *  invalid. */
int64_t count_held(const Entry *e);

/** The index in the full tensor of element `local` of a rank's part. */
int64_t global_index(const Entry *got, int64_t local);

/** Writes where an element of a rank's part is in the full tensor, such as [1, 0, 22].
 *  @return `text` */
const char *address_text(const Entry *got, int64_t local, char text[96]);

/** The largest error of a rank's numbers, at element *worst of its part. NaN is right where it is
 *  expected. */
double largest_error(const Entry *got, const Entry *want, int64_t *worst);

/** Is what the rank wrote within the tolerance of `want`? */
bool is_right_on_rank(const Trial *t, const Entry *want);

/** How far a number may differ from its value in `exact`, one of the expected entries. */
double tolerance_of(const Expected *expected, const Entry *exact);

/** The significant digits with which a report shows a number of this entry: for the metrics,
 *  all digits of a double, because their counts are exact. */
int digits_shown(const Entry *exact);

/** Does the rank have as many numbers as its part of `want` needs? */
bool has_numbers(const Entry *got, const Entry *want);

/** The number of emulated runs that measure a case's tolerance. */
int emulations_of(const Case *c);

/** Compares numbers that every rank holds in full or as a shard. */
void compare_values(Trial *t, const Entry *got, const Entry *want);
/** Is a parameter of this rank split along the wrong dimension? If so, writes which. */
bool miscut_parameter(const Trial *t, char *text, size_t size);
/** Compares a parameter's declaration and initial values. */
void compare_parameter(Trial *t, const Entry *got, const Entry *want);
/** Does a rank split a parameter in a way that its lab does not allow? */
bool is_cut_wrongly(const Trial *t, const Entry *got, const Entry *want);
/** Fails the checks of a parameter that the rank did not write. */
void parameter_missing(Trial *t, const Entry *want);
/** Does a parameter of this rank have a name other than the one in the start file? */
bool renamed_parameter(const Trial *t, char *text, size_t size);
/** Does a parameter of this rank that must begin with zeros begin with other numbers? */
bool not_zero_at_first(const Trial *t, char *text, size_t size);
/** Was a parameter of this rank declared with a shape other than the reference's full shape? */
const Entry *misdeclared_parameter(const Trial *t, char *text, size_t size);
/** Was one declared with a shape of more numbers, so that passes multiply and send more? */
bool enlarged_parameter(const Trial *t, char *text, size_t size);
/** Compares what the ranks sent in a pass with the lab's budget. */
void compare_traffic(Trial *t, const Entry *want);
/** The next call of a pass after `last` (NULL: the first one), rank by rank, or NULL. */
const Call *next_in_pass(const Trial *t, const Entry *want, const Call *last);
/** Writes that the ranks sent `sent` numbers in `calls` collectives, where `enough` suffice, and why. */
void tell_more_sent(const Trial *t, const Entry *want, double sent, double calls, double enough,
                    char *text, size_t size);
/** The first call in this pass, on any rank, for which is_such() is true; or NULL. */
const Call *call_in_pass(const Trial *t, const Entry *want,
                         bool (*is_such)(const Trial *t, const Call *call));
/** Does this call gather or broadcast numbers? */
bool gathers(const Trial *t, const Call *call);
/** Does this call sum a tensor as large as a rank's part of a weight? */
bool sums_part_of_weight(const Trial *t, const Call *call);
/** Does this call send as many numbers as a rank's part of a weight has? */
bool sends_part_of_weight(const Trial *t, const Call *call);
/** Compares the ranks' multiplications and memory with their shares. */
void compare_work(Trial *t, const Entry *want);
/** The largest of the ranks' numbers. */
typedef struct Busiest {
    int rank;            /**< the rank that has the largest */
    double most, second; /**< the two largest; if they differ much, that rank does others' work */
} Busiest;
/** Finds the rank with the largest `number` in this WORK entry; memory that the lab itself
 *  allocates counts as TAKEN. @return false if a rank has not written the entry */
bool busiest(const Trial *t, Label label, int number, Busiest *b);
/** Fails if a rank multiplies more than 1/tp of what one rank does. The sentence (translated) takes
 *  the rank, its work as a multiple of its share, the pass and the case. */
void compare_products_of_share(Trial *t, const Entry *want, const char *sentence);
/** Fails if a rank's number is more than `enough`. The sentence (translated) takes the rank, both
 *  numbers, the pass and the case. */
void compare_most(Trial *t, const Entry *want, int number, double enough, const char *sentence);
/** Notes in the result whether the work of this case was split. */
void look_at_split(Trial *t);
/** Remembers where the program differs from the plain layer's in a case of one rank whose results
 *  are right. */
void note_equivalent(Trial *t);

/** Checks the calls of a complete case. What MPI forbids fails the communication check, and
 *  explains wrong numbers. */
void compare_calls(Trial *t);
/** Fails if the function that must return at once waits in a complete case in which others take
 *  part. */
void compare_overlap(Trial *t);
/** Describes where ranks diverge in a way that MPI allows, as evidence for a wrong number that
 *  nothing else explains. With `lines`, also where calls on different lines met. */
bool calls_explain(const Trial *t, bool lines, char *text, size_t size);
/** Reports MPI objects that were created or started but not freed or completed. */
void left_over(Trial *t, const Entry *entry);
/** Names the first exchange that a function started and did not wait for, in a case in which ranks
 *  wait forever. @return whether there is one */
bool open_request_text(const Trial *t, char *text, size_t size);
/** Appends a line about the first call that a rank left out: that rank has ended the pass in which
 *  another rank makes the call. @return whether there is one */
bool append_left_out(const Trial *t, char *text, size_t size);
/** Appends a sentence if the ranks of a collective call are no group of the mesh, or a message
 *  leaves the group. Labs whose groups have a check of their own are left out.
 *  @return whether one does */
bool tell_call_beyond_group(const Trial *t, char *text, size_t size);
/** Appends what MPI forbids in the calls of a case that did not complete. */
void append_mismatch(const Trial *t, char *text, size_t size);

/** Looks for parameters that the plain layer does not have, and for requests, MPI objects and
 *  memory that are left over. */
void look_for_more(Trial *t);

/** The number of ranks in a ring in which each waits for the next one, from this rank on; 0 if there
 *  is none. */
int ring_of_waits(const Calls *calls, int first, int waits_for(const Calls *, int));

/** Describes why the entries of this case end early, for the first lines of a report. */
void ending_text(const Trial *t, char *text, size_t size);

/** Finds what most likely went wrong: which mistake gives these numbers? Writes one sentence to
 *  `text`, and the broken placement rule that the rank noted, if any. Without `search`, looks for
 *  that rule alone, which takes no time.
 *  @return whether the evidence names a cause */
bool explain(Trial *t, bool search, char *text, size_t size, const Entry *got, const Entry *want,
             double tolerance);
