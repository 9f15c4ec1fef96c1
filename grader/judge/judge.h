/** @file
 * The judge: what must come out, what came out, and what to say of the difference. No student code is linked
 * here.
 */
#ifndef BALISE_GRADER_JUDGE_H
#define BALISE_GRADER_JUDGE_H

#include "grader/judge/crew.h"
#include "grader/judge/pattern.h"
#include "grader/plays/play.h"

/** A lab, as grader/labs.mk describes it. */
typedef struct Lab {
    int number; /**< from 1 */
    /** the texts of its paragraph in labs.mk */
    const char *folder, *file, *title, *layouts, *checks, *cuts;
    const char *needs; /**< "1 2": the labs whose functions it calls */
    const char *
        writes; /**< "metrics:metrics_synchronise": the functions that a check is about, of a start file that works */
    enum {
        EMPTY,      /**< a TODO is reached */
        WORKING,    /**< not started while the tokens are those of the start file */
        FROM_LAB_1, /**< not started while they are those of the student's lab 1 */
    } start;        /**< how its start file is */
    int64_t (*elements[2])(int64_t n, const Sizes *sizes); /**< by Budget */
    int64_t (*calls[2])(int64_t n, const Sizes *sizes);    /**< likewise, of collective calls */
} Lab;

/** The lab of this number, or NULL. */
const Lab *lab_of(int number);

/** Labs 1 to 11 make 100 points; what later ones give is added, and not missed by who leaves them out. */
bool lab_is_bonus(const Lab *lab);

/** How many labs there are. */
int lab_count(void);
/** The labs in the order of labs.mk, i from 0 to lab_count() - 1. */
const Lab *lab_at(int i);

/** Points for a check of a lab; 0 when the lab has no such check. */
int lab_points(const Lab *lab, Check check);

/** The check of this key ("input_gradient", in the manifest), or CHECKS; its length is `length`. */
Check check_of_key(const char *key, size_t length);

/** An instructor's changes: other layouts (NULL: as they are), other points for a check that the lab has. */
void lab_amend(int number, const char *layouts, const char *checks);
/** Other points for one check, by its key. */
void lab_set_points(int number, const char *key, int points);

/** How the parameter may be cut: a set of CUT_... */
int lab_cuts(const Lab *lab, const char *parameter);
/** The most ranks that one of its layouts has. */
int lab_largest_world(const Lab *lab);

/** Reads one of a lab's layouts, "4" (tp is the world) or "6x2" (world 6, tp 2); returns what follows it, or NULL at the
 *  end. */
const char *next_layout(const char *at, int *world, int *tp);

extern const char *const check_names[CHECKS]; /**< "forward", "input gradient", ... */

enum {
    MAX_CASES = 64,   /**< of a lab and a seed */
    MAX_LAYOUTS = 16, /**< of a lab */
};
/** All cases of a lab for `seed`, in the order in which they are played. Returns their number. */
int lab_cases(const Lab *lab, uint64_t seed, Case cases[MAX_CASES]);

/** The sizes that a lab is always tried with at this layout, with inputs of their own for each `number`. */
Case lab_usual_case(const Lab *lab, uint64_t seed, int number, int world, int tp);

/* ---- what must come out -------------------------------------------------------------------------------- */

/** One way in which students go wrong; the judge computes what that would give. */
typedef struct Suspect {
    unsigned labs;        /**< 1 << lab for each that it is about */
    const char *sentence; /**< for the report */
} Suspect;
enum {
    NO_SUSPECT = -1, /**< no mistake is made */
    THE_MODEL = 30,  /**< as a lab: the whole model of lab 11 */
};
/** How many suspects there are. */
int suspect_count(void);
/** The suspects, i from 0 to suspect_count() - 1. */
const Suspect *suspect_at(int i);

/** What a rank must write in a case, as a stream of entries. */
typedef struct Expected {
    char *base;      /**< the exact stream */
    int64_t used;    /**< bytes of it */
    bool has_spread; /**< expected_spread() may be asked */
} Expected;

/** Plays the case in double precision as rank `rank` must see it (for layers each rank sees the same).
 *  `rounded` says how many runs in emulated single precision to add, for expected_spread(); 0 for a suspect. What is expected
 *  with a spread holds until another such is. To be freed with expected_free(). */
Expected expect(const Case *c, int rank, int suspect, int rounded);
/** Keeps what expect() computes in this folder, and takes from there what an earlier run of the same judge has kept. */
void keep_expected(const char *folder);
/** Frees the stream, not the record itself. */
void expected_free(Expected *expected);

/** Ends the second process in which the judge computes: there are none but the judge and the ranks while ranks live. */
void expect_ranks(void);

/** The largest distance of a number in single precision from that in `exact`, an entry of `expected`. */
double expected_spread(const Expected *expected, const Entry *exact);

/** The entry that follows in a stream of `used` bytes, or NULL at its end or where it makes no sense. */
const Entry *next_entry(const char *base, int64_t used, int64_t *offset);
/** The first entry from *offset on with this kind and name, or NULL; *offset is behind it then. */
const Entry *find_entry(const char *base, int64_t used, int kind, const char *name, int64_t *offset);
/** The numbers that follow an entry, entry->count of them. */
static inline const double *numbers_of(const Entry *entry)
{
    return (const double *)(entry + 1);
}

/* ---- what came out ------------------------------------------------------------------------------------- */

/** How a case ended. */
typedef enum Ending {
    COMPLETE, /**< every rank came to its end */
    CRASHED,  /**< a rank ended before it */
    HUNG,     /**< all ranks wait, and nothing can come */
    LOOPED,   /**< a rank computes for ever */
    STOPPED,  /**< the grader was told to end */
    NOT_RUN,  /**< it was not played */
} Ending;

/** What one case has given. */
typedef struct Outcome {
    Ending ending;                            /**< how it ended */
    char story[2560];                         /**< who waits where, which rank ended how */
    struct Calls *calls;                      /**< what the ranks have called of MPI */
    const char *stream[MAX_RANKS];            /**< each rank's stream; NULL for ranks that take no part */
    int64_t begin[MAX_RANKS], end[MAX_RANKS]; /**< this case's bytes of each rank's stream */
} Outcome;

/** The launches of a lab's cases, and what they gave. */
typedef struct Runs Runs;

/** Launches `runner` and plays the cases, again with what is left after a crash or a hang.
 *  `cpu_limit` are the seconds that a rank may compute between two calls of MPI; 0: derived from the case.
 *  @return NULL with `problem` when nothing can be launched */
Runs *run_cases(const char *runner, int ranks, const Case *cases, int count, double cpu_limit,
                Sandbox *sandbox, Problem *problem);
/** What case i has given. Belongs to `runs`. */
const Outcome *run_outcome(const Runs *runs, int i);

/** Where the time of launches goes, in seconds. */
typedef struct Times {
    double launch; /**< until every rank of the first case was there */
    double play;   /**< from then on until they had left */
} Times;
/** Adds what these launches took. */
void runs_add_times(const Runs *runs, Times *times);
/** Frees all that they gave, streams and calls too. */
void runs_free(Runs *runs);

/* ---- verdict ------------------------------------------------------------------------------------------- */

/** What has become of one check of a lab. */
typedef struct CheckResult {
    bool looked_at, failed; /**< in any case so far */
    bool to_do;             /**< a TODO was reached before something that it looks at */
    bool compared;          /**< some numbers that it looks at were there */
    bool explained;         /**< the reason names a cause */
    int explanations;       /**< how often one was looked for */
    int case_index;         /**< of the failure that is told: the first, or the first with a cause */
    Ending ending; /**< how that case ended, where this is why the check failed; COMPLETE for wrong numbers */
    bool in_calls; /**< the reason is what ranks have called, which make trace shows */
    bool repeated, alone; /**< its case was run once more by itself; and failed again */
    double margin;        /**< the largest error in units of what is allowed */
    bool looks, fails;    /**< in the case that is being judged */
    Pattern pattern;      /**< of the cases in which it fails */
    char reason[3072];    /**< of the failure that is told, some lines */
    char note[240];       /**< what is worth saying of a check that passed */
} CheckResult;

/** How far the grader has come with a lab. */
typedef enum LabState {
    GRADED,          /**< its cases were played and judged */
    NOT_STARTED_YET, /**< it is as it was handed out, or a TODO comes before everything */
    DOES_NOT_BUILD,  /**< the compiler or the linker refuses it */
    IS_REFUSED,      /**< it builds, and would do what the grader cannot judge or does not allow */
    NOT_GRADED_YET,  /**< the grader has not come to it */
    LAB_STATES,      /**< how many there are */
} LabState;

extern const char *const state_names[LAB_STATES]; /**< "graded", "not started", ... as in the documentation */

/** What grading one lab has given. */
typedef struct LabResult {
    const Lab *lab;            /**< which one */
    LabState state;            /**< how far it came */
    char remark[4096];         /**< why it does not build or is refused, or which TODO is next */
    bool untouched;            /**< the file is as it was at the start */
    char stack[400];           /**< what it was graded on, when that is not the reference alone */
    CheckResult check[CHECKS]; /**< by Check */
    bool split, unsplit;       /**< work was seen to be shared out; a rank was seen to do all of a layer */
    bool silent; /**< nothing was sent in a pass that needs an exchange, and its case has wrong numbers */
    char printed[8192]; /**< what its ranks have printed: how much, where it is kept, the first lines */
    int points, of;     /**< earned, and what there is to earn */
    uint64_t seed;      /**< of its cases */
    int cases;          /**< that were played */
    int kit_cases;  /**< of these the first, which are everybody's; those behind them are the instructor's */
    double seconds; /**< that it took */
    Times times;    /**< what of these seconds went where */
} LabResult;

/** Compares an outcome with what must come out, and notes each failed check that has not failed before. */
void judge_case(LabResult *result, const Case *c, int case_index, const Outcome *outcome);

/** Sets a check's reason, the first time that it fails with a cause that can be named. */
void fail(LabResult *result, Check check, int case_index, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
