/** @file
 * The judge: what must come out, what came out, and what to say of the difference. No student code is linked
 * here.
 */
#ifndef BALISE_GRADER_JUDGE_H
#define BALISE_GRADER_JUDGE_H

#include "grader/judge/crew.h"
#include "grader/judge/pattern.h"
#include "grader/plays/play.h"

typedef struct Lab {
    int number;
    const char *folder, *file, *title, *layouts, *checks, *cuts;
    const char *needs; /**< "1 2": the labs whose functions it calls */
    enum {
        EMPTY,
        WORKING,
        FROM_LAB_1
    } start; /**< a TODO is reached; or not started while the tokens are those of the start
                                                    file, or of the student's lab 1 */
    int64_t (*elements[2])(int64_t n, const Sizes *sizes); /**< by Budget */
    int64_t (*calls[2])(int64_t n, const Sizes *sizes);
} Lab;

/** The lab of this number, or NULL. */
const Lab *lab_of(int number);

/** Labs 1 to 11 make 100 points; what later ones give is added, and not missed by who leaves them out. */
bool lab_is_bonus(const Lab *lab);
int lab_count(void);
const Lab *lab_at(int i);

/** Points for a check of a lab; 0 when the lab has no such check. */
int lab_points(const Lab *lab, Check check);

/** The check of this key ("input_gradient", in the manifest), or CHECKS; its length is `length`. */
Check check_of_key(const char *key, size_t length);

/** An instructor's changes: other layouts (NULL: as they are), other points for a check that the lab has. */
void lab_amend(int number, const char *layouts, const char *checks);
void lab_set_points(int number, const char *key, int points);

/** How the parameter may be cut: a set of CUT_... */
int lab_cuts(const Lab *lab, const char *parameter);
int lab_largest_world(const Lab *lab);

/** Reads one of a lab's layouts, "4" (tp is the world) or "6x2" (world 6, tp 2); returns what follows it, or NULL at the
 *  end. */
const char *next_layout(const char *at, int *world, int *tp);

extern const char *const check_names[CHECKS]; /**< "forward", "input gradient", ... */

/** All cases of a lab for `seed`, in the order in which they are played. Returns their number. */
enum { MAX_CASES = 64, MAX_LAYOUTS = 16 };
int lab_cases(const Lab *lab, uint64_t seed, Case cases[MAX_CASES]);

/** The sizes that a lab is always tried with at this layout, with inputs of their own for each `number`. */
Case lab_usual_case(const Lab *lab, uint64_t seed, int number, int world, int tp);

/* ---- what must come out -------------------------------------------------------------------------------- */

/** One way in which students go wrong; the judge computes what that would give. */
typedef struct Suspect {
    unsigned labs; /**< 1 << lab for each that it is about */
    const char *sentence;
} Suspect;
enum { NO_SUSPECT = -1, THE_MODEL = 30 /* as a lab: the whole model of lab 11 */ };
int suspect_count(void);
const Suspect *suspect_at(int i);

typedef struct Expected {
    char *base; /**< the exact stream */
    int64_t used;
    bool has_spread;
} Expected;

/** Plays the case in double precision as rank `rank` must see it (for layers each rank sees the same).
 *  @param rounded how many runs in emulated single precision to add, for expected_spread; 0 for a suspect. What is expected with
 *  a spread holds until another such is. */
Expected expect(const Case *c, int rank, int suspect, int rounded);
void expected_free(Expected *expected);

/** Ends the second process in which the judge computes: there are none but the judge and the ranks while ranks live. */
void expect_ranks(void);

/** The largest distance of a number in single precision from that in `exact`, an entry of `expected`. */
double expected_spread(const Expected *expected, const Entry *exact);

/** The entry that follows in a stream of `used` bytes, or NULL at its end or where it makes no sense. */
const Entry *next_entry(const char *base, int64_t used, int64_t *offset);
const Entry *find_entry(const char *base, int64_t used, int kind, const char *name, int64_t *offset);
static inline const double *numbers_of(const Entry *entry)
{
    return (const double *)(entry + 1);
}

/* ---- what came out ------------------------------------------------------------------------------------- */

typedef enum Ending { COMPLETE, CRASHED, HUNG, LOOPED, STOPPED, NOT_RUN } Ending;

typedef struct Outcome {
    Ending ending;
    char story[2048];    /**< who waits where, which rank ended how */
    struct Calls *calls; /**< what the ranks have called of MPI */
    const char *stream[MAX_RANKS];
    int64_t begin[MAX_RANKS], end[MAX_RANKS]; /**< this case's bytes of each rank's stream */
} Outcome;

typedef struct Runs Runs;

/** Launches `runner` and plays the cases, again with what is left after a crash or a hang.
 *  @param cpu_limit seconds that a rank may compute between two calls of MPI; 0: derived from the case
 *  @return NULL with `problem` when nothing can be launched */
Runs *run_cases(const char *runner, int ranks, const Case *cases, int count, double cpu_limit,
                Sandbox *sandbox, Problem *problem);
const Outcome *run_outcome(const Runs *runs, int i);

/** Where the time of launches goes, in seconds. */
typedef struct Times {
    double launch; /**< until every rank of the first case was there */
    double play;   /**< from then on until they had left */
} Times;
void runs_add_times(const Runs *runs, Times *times);
void runs_free(Runs *runs);

/* ---- verdict ------------------------------------------------------------------------------------------- */

typedef struct CheckResult {
    bool looked_at, failed;
    bool to_do;       /**< a TODO was reached before something that it looks at */
    bool explained;   /**< the reason names a cause */
    int explanations; /**< how often one was looked for */
    int case_index;   /**< of the failure that is told: the first, or the first with a cause */
    Ending ending; /**< how that case ended, where this is why the check failed; COMPLETE for wrong numbers */
    bool in_calls; /**< the reason is what ranks have called, which make trace shows */
    bool repeated, alone; /**< its case was run once more by itself; and failed again */
    double margin;        /**< the largest error in units of what is allowed */
    bool looks, fails;    /**< in the case that is being judged */
    Pattern pattern;      /**< of the cases in which it fails */
    char reason[3072];
    char note[160]; /**< what is worth saying of a check that passed */
} CheckResult;

typedef enum LabState {
    GRADED,
    NOT_STARTED_YET,
    DOES_NOT_BUILD,
    IS_REFUSED, /**< it builds, and would do what the grader cannot judge or does not allow */
    NOT_GRADED_YET,
    LAB_STATES
} LabState;

extern const char *const state_names[LAB_STATES]; /**< "graded", "not started", ... as in the documentation */

typedef struct LabResult {
    const Lab *lab;
    LabState state;
    char remark[4096]; /**< why it does not build or is refused, or which TODO is next */
    bool untouched;    /**< the file is as it was at the start */
    char stack[400];   /**< what it was graded on, when that is not the reference alone */
    CheckResult check[CHECKS];
    bool split, unsplit; /**< work was seen to be shared out; a rank was seen to do all of a layer */
    bool silent; /**< nothing was sent in a pass that needs an exchange, and its case has wrong numbers */
    char printed[8192]; /**< what its ranks have printed: how much, where it is kept, the first lines */
    int points, of;
    uint64_t seed;
    int cases;     /**< that were played */
    int kit_cases; /**< of these the first, which are everybody's; those behind them are the instructor's */
    double seconds;
    Times times; /**< what of these seconds went where */
} LabResult;

/** Compares an outcome with what must come out, and notes each failed check that has not failed before. */
void judge_case(LabResult *result, const Case *c, int case_index, const Outcome *outcome);

/** Sets a check's reason, the first time that it fails with a cause that can be named. */
void fail(LabResult *result, Check check, int case_index, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
