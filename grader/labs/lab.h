/** @file
 * What the grader knows about a lab: one record per lab, in labNN.c, with its points, layouts,
 * cases, scenario, expectation, budgets, and the mistakes that the judge looks for. The judge has
 * all records; a runner has one lab's scenario.
 */
#pragma once

#include "base/language.h"
#include "grader/labs/scenario.h"

enum {
    MAX_CASES = 64,   /**< per lab and seed */
    MAX_LAYOUTS = 16, /**< per lab */
    MAX_KINDS = 8,    /**< per lab */
    MAX_CUTS = 8,     /**< per lab */
    MAX_BLOCKS = 128, /**< of a model split into stages */
    MAX_MICROS = 16,  /**< micro-batches of a batch */
};

/** Sizes of a lab's cases, besides their layout: a set of these. */
typedef enum SizeSet {
    SIZES_BSH = 1,     /**< B, S and H */
    SIZE_A = 2,        /**< heads */
    SIZE_F = 4,        /**< inner width */
    SIZE_OUT = 8,      /**< width of the output */
    SIZE_V = 16,       /**< rows of the table */
    SIZE_P = 32,       /**< probability of dropout */
    SIZE_BLOCKS = 64,  /**< blocks of a model */
    SIZE_MICROS = 128, /**< micro-batches */
    SIZE_EVERY = 256,  /**< steps between two averages */
    SIZE_N = 512,      /**< numbers of a tensor */
} SizeSet;

/** A budget: what a lab may send in a pass, summed over the n ranks of a group. */
typedef struct Allowance {
    int64_t numbers; /**< elements of 4 bytes, independent of the algorithm */
    int64_t calls;   /**< collectives that this takes */
} Allowance;
/** Returns the budget of a pass on n ranks. */
typedef Allowance AllowanceFunction(int64_t n, const Sizes *sizes);
/** Returns how many numbers a rank may allocate at most in a pass. */
typedef double MemoryFunction(const Case *c, const Label *pass);
/** The elements that n ranks send in all in an all-reduce of `count` (R. Thakur, R. Rabenseifner,
 *  W. Gropp 2005). */
static inline int64_t sent_by_all_reduce(int64_t n, int64_t count)
{
    return 2 * (n - 1) * count;
}
/** The elements that n ranks send in all in an all-gather with a result of `count`. */
static inline int64_t sent_by_all_gather(int64_t n, int64_t count)
{
    return (n - 1) * count;
}

/** Writes what rank `rank` must see, computed from the inputs of all ranks, or what it sees with
 *  `mistake` (a Mistake). */
typedef void ExpectFunction(const Case *c, int rank, Stream stream);

/** What the judge must know of the tensors of a kind of cases. */
typedef enum KindFact {
    X_IS_USED_TWICE = 1,    /**< the scenario itself uses x too: see into_layer() */
    A_ROW_PER_SAMPLE = 2,   /**< a classifier's output */
    A_PART_OF_X = 4,        /**< the result is a part along a dimension */
    SHARDS_OF_POSITIONS = 8 /**< each rank has a part of the positions */
} KindFact;

/** One kind of a lab's cases. Either `scenario` or `expect`, not both, determines what is
 *  expected. */
typedef struct Kind {
    ScenarioFunction *scenario; /**< the judge runs it with plain layers; all ranks see the same */
    ExpectFunction *expect;     /**< computes what each rank must see */
    unsigned facts;             /**< a set of KindFact */
    const char *
        name; /**< what its cases run, shown before the sizes; translated. NULL: shows only sizes */
} Kind;

/** How a parameter may be split, by the end of its name. */
typedef struct Cut {
    const char *name; /**< "up.weight"; NULL ends the list */
    unsigned how;     /**< CUT_...; parameters not listed are whole */
} Cut;

/** A stream of random numbers for cases. */
typedef struct Draw {
    PhiloxKey key; /**< of the lab and the seed */
    uint64_t next; /**< index of the next number */
} Draw;

/** Returns what an entry of rank `rank`, with its `numbers`, adds to a prediction's number. */
typedef double CountFunction(int rank, const Entry *entry, const double *numbers);

/** A number that a student predicts, and that make measure counts in one case. */
typedef struct Prediction {
    /** the question, with all sizes that it needs; translated; the lab's text repeats it. NULL: the
     *  lab has no prediction */
    const char *question;
    const char *unit;     /**< "bytes", translated; NULL: none */
    Case at;              /**< layout, kind and sizes of the case; 0: as in the usual case */
    CountFunction *count; /**< summed over all entries of all ranks */
} Prediction;

struct Problem;  /**< see base/problem.h */
struct Trial;    /**< see judge/diagnose/trial.h */
struct Evidence; /**< see judge/diagnose/evidence.h */
/** Looks for one kind of mistake; describes it if found. */
typedef bool Finder(const struct Evidence *e);

/** What rank `of` brings to a result of rank `on` that is a sum or a mean over ranks. */
typedef struct Summand {
    Tensor *numbers; /**< NULL: the result is neither a sum nor a mean */
    bool added;      /**< is `of` one of the ranks whose numbers are added? */
    double weight;   /**< how often its numbers count in the results of its group */
} Summand;

/** What the judge examines in this lab besides what it examines in every lab. Each may be NULL. The
 *  functions are in grader/labs/NN-name or, if several labs need them, in grader/labs/shared. */
typedef struct Examination {
    void (*the_case)(struct Trial *t); /**< checks a case, before its entries are compared */
    /** May this rank lack this entry, which one rank alone would write? */
    bool (*may_lack)(const struct Trial *t, const Entry *want);
    /** Fails the check of an entry that a rank lacks. @return whether it knows why */
    bool (*lacks)(struct Trial *t, const Entry *want);
    /** A list, which ends with NULL, of what may be wrong with numbers. The judge asks it before it
     *  replays mistakes. It may have general finders, whose turn then comes earlier. */
    Finder *const *reasons;
    Finder *const *more_reasons; /**< a list that the judge asks after that */
    /** Writes how this result differs from others of its kind, before the reason. */
    Finder *preface;
    /** What a rank brings to a sum or a mean; NULL: no result is one. */
    Summand (*summand)(Scenario *run, const Entry *want, int of, int on);
    /** Compares an entry in ways of the lab's own, besides those of all labs. */
    void (*entry)(struct Trial *t, const Entry *got, const Entry *want);
    /** Compares what the ranks multiplied and held in a pass, in place of the rules of other labs. */
    void (*work)(struct Trial *t, const Entry *want);
    /** What a wrong group, or a wrong rank or degree in it, most likely is; translated. */
    const char *(*wrong_group)(const struct Trial *t, const Entry *got, const Entry *want);
    /** What would suffice in a pass that sends more; translated; NULL: the calls of the pass say
     *  it */
    const char *(*suffices)(const Case *c, const Label *pass);
    /** Writes why a rank's function has rejected its arguments. @return whether it knows */
    bool (*refusal)(const Case *c, int rank, const struct Problem *problem, char *line,
                    size_t size);
    /** Appends what explains how a case ended, a line each. */
    void (*ending)(const struct Trial *t, char *text, size_t size);
} Examination;

/** A function that must only start an exchange, and what it needs. */
typedef struct AtOnce {
    const char *function; /**< NULL: the lab has none */
    const char *starts;   /**< the function that starts the exchange */
    const char *waits;    /**< the function in which to wait */
    bool after_earlier;   /**< it may wait for the exchange that it started before this one */
} AtOnce;

typedef struct Lab Lab;
/** Appends the cases of one layout to `cases`; returns how many. */
typedef int CasesFunction(const Lab *lab, Draw *draw, int world, int tp, Case *cases);
/** Returns the case with the usual sizes at a layout. */
typedef Case UsualFunction(const Lab *lab, Draw *draw, int world, int tp);

/** A lab. Its number, folder, file and needs come from grader/labs.mk, through LAB_FILES_NN. */
struct Lab {
    int number;         /**< from 1 */
    int part;           /**< of the course: 1 or 2 */
    const char *folder; /**< "06-colrow-pair", below labs/ and solutions/ */
    const char *file;   /**< "colrow-pair.c" */
    const char *needs;  /**< "1 2": the labs whose functions it calls */

    const char *title;   /**< for reports; translated there */
    int points[CHECKS];  /**< indexed by Check; 0: the lab does not have this check */
    const char *layouts; /**< "1 2 4": ranks; or "4x2": a world of 4, tp 2 */
    bool takes_maxima;   /**< its ranks also need the largest of their numbers, not only sums */
    bool has_replicas;   /**< its layouts give world and tp */
    bool over_replicas;  /**< its exchanges are over replicas, not over ranks that split a layer */
    bool over_stages; /**< its exchanges are over the stages of a pipeline, and over any replicas */
    unsigned sizes;   /**< a SizeSet */
    bool any_width;   /**< tp need not divide the width of its layer's input */
    bool backward_first; /**< without right gradients, it earns no points for its other checks */
    bool starts_working; /**< its start file runs, instead of reaching a TODO */
    int starts_from;     /**< the lab whose student's file is this lab's start file; or 0 */
    Cut cuts[MAX_CUTS];  /**< how its parameters may be split */
    /** The reason to report if a parameter is still whole, as in the start file, although it should
     *  be split. It has one %s for the parameter's name and one for the case. Or NULL. */
    const char *still_whole;
    /** For a start file that works, by Check: the functions that the check tests, "a+b". While
     *  these are as in the start file, the check is to do, not wrong. */
    const char *written[CHECKS];

    AtOnce at_once;              /**< its function that must return at once */
    Examination examine;         /**< what the judge examines in this lab alone */
    Prediction predict;          /**< what its students predict */
    Kind kinds[MAX_KINDS];       /**< by Case.kind */
    AllowanceFunction *forward;  /**< what its forward pass may send; NULL: no pass is measured */
    AllowanceFunction *backward; /**< and its backward pass */
    MemoryFunction *memory;      /**< NULL: a few times the plain layer's memory */
    /** Said of a rank that allocates more than `memory`. It has places for the rank, both numbers,
     *  the pass and the case. */
    const char *beyond_memory;
    MemoryFunction *kept; /**< what a pass may leave for the next one; NULL: not checked */
    UsualFunction *usual; /**< its usual case; NULL: usual_replicas() or usual_case() */
    CasesFunction *cases; /**< all its cases at a layout; NULL: only the usual one */
    /** Why the lab could not work with these sizes, or NULL. Without this function, sizes cannot be
     *  chosen (grader/cases.local). */
    const char *(*misfit)(const Case *c);
};

/** The lab with this number, or NULL. */
const Lab *lab_of(int number);
/** The number of labs. */
int lab_count(void);
/** The labs in the order of labs.mk, for i from 0 to lab_count() - 1. */
const Lab *lab_at(int i);

/** The labs of a part of the course, as indices for lab_at(); empty if there is no such part. Each
 *  part has its own points. */
Range labs_of_part(int part);
/** The kind of a case. */
const Kind *kind_of_case(const Case *c);
/** Must every rank see the same in this case, namely what the plain model gives on one rank? */
bool alike_on_ranks(const Case *c);
/** The number of ranks in the group over which the lab communicates in this case. */
int exchanging_ranks(const Case *c);

/** The points of a lab's check; 0 if the lab does not have it. */
int lab_points(const Lab *lab, Check check);
/** The lab's first check from `from` on, cyclically. */
Check lab_check(const Lab *lab, Check from);
/** The check with this key ("input_gradient") of the given length, or CHECKS. */
Check check_of_key(const char *key, size_t length);
extern const char *const check_names[CHECKS]; /**< "forward", "input gradient", ... */
extern const char *const check_keys[CHECKS];  /**< "forward", "input_gradient", ...: in files */

/** Replaces the lab's layouts with an instructor's. Copies the text. */
void lab_set_layouts(int number, const char *layouts);
/** Replaces the points of a check with an instructor's. */
void lab_set_points(int number, Check check, int points);

/** How a parameter may be split: a set of CUT_... */
unsigned lab_cuts(const Lab *lab, const char *parameter);
/** The largest number of ranks in the lab's layouts. */
int lab_largest_world(const Lab *lab);
/** The points that every lab with a layer (2 to 7 and 20) gives for these checks. */
#define ONE_EACH [WEIGHT_GRADIENT] = 1, [STEP] = 1, [INITIAL_VALUES] = 1, [ARITHMETIC] = 1
/** Reads one of a lab's layouts. Returns the rest of the text, or NULL at the end. */
const char *next_layout(const char *at, int *world, int *tp);

/* ---- sizes of cases -------------------------------------------------------------------------------------- */

/** A size that describes a case and can be chosen. */
typedef struct CaseSize {
    const char *key;   /**< "OUT", in grader/cases.local */
    const char *shown; /**< "out", in reports */
    SizeSet set;       /**< labs whose `sizes` include this set have this size */
    int largest;       /**< the largest allowed value */
    size_t offset;     /**< its offset in Case */
} CaseSize;
enum { CASE_SIZES = 11 };                     /**< how many there are */
extern const CaseSize case_sizes[CASE_SIZES]; /**< in the order in which they are shown */
/** The size in a case. */
int32_t *case_size_in(Case *c, const CaseSize *size);
/** The name of size i in a lab's reports: that of its text, which calls the width of a layer's input
 *  `in` beside `out`, and H elsewhere. */
const char *case_size_name(const Lab *lab, int i);
/** Size i of a case, or 0 if its lab does not have that size. */
int case_size(const Case *c, int i);

/* ---- making cases ---------------------------------------------------------------------------------------- */

/** Makes all cases of a lab for `seed`, in the order in which they run. Returns their number. */
int lab_cases(const Lab *lab, uint64_t seed, Case cases[MAX_CASES]);
/** Makes the case with the usual sizes at this layout, with different inputs for each `number`. */
Case lab_usual_case(const Lab *lab, uint64_t seed, int number, int world, int tp);
/** Like lab_usual_case(), but takes from `sizes` those that are not 0. */
Case lab_case_with(const Lab *lab, uint64_t seed, int number, int world, int tp, const Case *sizes);

/** A dropout probability at which few elements are kept. */
#define NEARLY_ONE (15.0 / 16)
/** A random integer from low to high. */
int draw(Draw *d, int low, int high);
/** The usual sizes, the same for each seed; tp is the number of ranks in the world or, in labs with
 *  replicas, in a tp group. */
Case usual_case(const Lab *lab, Draw *d, int tp);
/** usual_case() for labs whose layouts give world and tp. */
Case usual_replicas(const Lab *lab, Draw *d, int world, int tp);
/** NULL, for Lab.misfit of labs that work with all sizes. */
const char *all_sizes_fit(const Case *c);
/** Returns the case with other B, S and H, drawn at random; S and H are odd. */
Case other_sizes(Case c, Draw *d);
/** A case with drawn sizes. B and S are odd or small. Sizes are multiples of `world` where
 *  something is split, but not elsewhere. V is arbitrary, so that shards of a table can be uneven.
 *  Inputs are scaled by 2^20 or 2^-12; for a layer with heads, the gradient of its result is scaled
 *  instead, by 2^20 or 2^-24. In a world of 3, training drops nothing. */
Case drawn_case(const Lab *lab, Draw *d, int world);
/** A case with one row, in which some rank comes late. */
Case single_case(const Lab *lab, Draw *d, int world);
/** A case with long texts: ten heads on a rank and more numbers than fit a page of memory. Or, if
 *  positions do not interact: many positions, small weights, and more numbers than a signed 16-bit
 *  integer can count. */
Case long_case(const Lab *lab, Draw *d, int world);
/** The cases of a layer: usual, drawn and single; in a world of 2 also LONG_TEXTS and MANY_SAMPLES;
 *  with heads, also one with few of them. */
CasesFunction layer_cases;
/** The indices of cases made by layer_cases(). */
enum {
    DRAWN_SIZES = 1,  /**< at each layout */
    SINGLE_ROW = 2,   /**< likewise */
    LONG_TEXTS = 3,   /**< in a world of 2 */
    MANY_SAMPLES = 4, /**< likewise */
};

/* ---- counting for predictions ---------------------------------------------------------------------------- */

/** Bytes that the ranks send in all in the first step of the first layer, forward and backward. */
CountFunction bytes_of_layer;
/** Multiplications that rank 0 does in the first step of the first layer. */
CountFunction multiplications_of_layer;

/* ---- expectations that labs share ------------------------------------------------------------------------ */

/** Labs 1 and 9: see f_and_g.c. */
ExpectFunction expect_operations;
/** Labs 8 and 10: see groups.c. */
ExpectFunction expect_groups;
/** Lab 11: see lab11.c. */
ExpectFunction expect_replicas;

#include "labs.h" /* generated from labs.mk: LAB_FILES_NN, lab_NN, scenario_NN, LABS */
