/** @file
 * What the grader knows of a lab: a record each, in labNN.c, with its points, layouts, cases, scenario, expectation, what it
 * may send, and the mistakes that the judge looks for. The judge has all records; a runner has the scenario of one lab.
 */
#pragma once

#include "base/language.h"
#include "grader/labs/mistakes.h"
#include "grader/labs/scenario.h"

enum {
    MAX_CASES = 64,   /**< of a lab and a seed */
    MAX_LAYOUTS = 16, /**< of a lab */
    MAX_KINDS = 4,    /**< of cases of a lab */
    MAX_CUTS = 8,     /**< of parameters of a lab */
};

/** Sizes that a lab's cases have, beside their layout: a set of these. */
typedef enum SizeSet {
    SIZES_BSH = 1,    /**< B, S and H */
    SIZE_A = 2,       /**< heads */
    SIZE_F = 4,       /**< inner width */
    SIZE_OUT = 8,     /**< width of the output */
    SIZE_V = 16,      /**< rows of the table */
    SIZE_P = 32,      /**< probability of dropout */
    SIZE_BLOCKS = 64, /**< blocks of a model */
} SizeSet;

/** What a lab may send in a pass, summed over the n ranks of a group. */
typedef struct Allowance {
    int64_t numbers; /**< of 4 bytes, independent of the algorithm */
    int64_t calls;   /**< of collectives that this takes */
} Allowance;
/** Returns the allowance of a pass on n ranks. */
typedef Allowance AllowanceFunction(int64_t n, const Sizes *sizes);
/** Numbers that an all-reduce of `count` sends. R. Thakur, R. Rabenseifner, W. Gropp 2005. */
static inline int64_t sent_by_all_reduce(int64_t n, int64_t count)
{
    return 2 * (n - 1) * count;
}
/** Numbers that an all-gather sends whose result has `count`. */
static inline int64_t sent_by_all_gather(int64_t n, int64_t count)
{
    return (n - 1) * count;
}

/** Writes what rank `rank` must see, computed from the inputs of all ranks, with `mistake` (a Mistake) made in it. */
typedef void ExpectFunction(const Case *c, int rank, int mistake, Stream stream);

/** One kind of a lab's cases: exactly one of `scenario` and `expect` says what must come out. */
typedef struct Kind {
    ScenarioFunction *scenario; /**< the judge runs it with plain layers: all ranks see the same */
    ExpectFunction *expect;     /**< computes what each rank must see */
    unsigned mistakes;          /**< a set of MistakeFamily: those that its numbers can show */
} Kind;

/** How a parameter may be cut, by the end of its name. */
typedef struct Cut {
    const char *name; /**< "up.weight"; NULL ends a list */
    unsigned how;     /**< CUT_...; a parameter that is not listed is whole */
} Cut;

/** Numbers drawn for cases. */
typedef struct Draw {
    PhiloxKey key; /**< of the lab and the seed */
    uint64_t next; /**< index of the next number */
} Draw;

/** What an entry that rank `rank` has written adds to a number. */
typedef double CountFunction(int rank, const Entry *entry, const double *numbers);

/** A number that a student predicts, and that make measure counts in one case. */
typedef struct Prediction {
    /** what is asked, with all sizes that it takes, to be translated; the lab's text repeats it.
     *  NULL: the lab has no such number */
    const char *question;
    const char *unit; /**< "bytes", to be translated; NULL: none */
    Case at; /**< the layout, the kind and the sizes of the case; 0: those of the usual one */
    CountFunction *count; /**< summed over all entries of all ranks */
} Prediction;

typedef struct Lab Lab;
/** Appends the cases at one layout to `cases` and returns how many these are. */
typedef int CasesFunction(const Lab *lab, Draw *draw, int world, int tp, Case *cases);
/** Returns the case of usual sizes at a layout. */
typedef Case UsualFunction(const Lab *lab, Draw *draw, int world, int tp);

/** A lab. Its number, folder, file and needs come from grader/labs.mk, by LAB_FILES(NN). */
struct Lab {
    int number;         /**< from 1 */
    int part;           /**< of the course: 1 or 2 */
    const char *folder; /**< "06-colrow-pair", below labs/ and solutions/ */
    const char *file;   /**< "colrow-pair.c" */
    const char *needs;  /**< "1 2": the labs whose functions it calls */

    const char *title;   /**< for reports, to be translated */
    int points[CHECKS];  /**< by Check; 0: the lab has no such check */
    const char *layouts; /**< "1 2 4": ranks; or "4x2": a world of 4, tp 2 */
    bool has_replicas;   /**< its layouts give world and tp */
    bool over_replicas;  /**< its exchanges are over these, not over ranks that split a layer */
    bool over_stages;    /**< or over the stages of a pipeline */
    unsigned sizes;      /**< a SizeSet */
    bool any_width;      /**< nothing cuts what goes into its layer */
    bool starts_working; /**< its start file runs; otherwise a TODO is reached */
    int starts_from;     /**< the lab that its start file is a copy of, the student's; or 0 */
    Cut cuts[MAX_CUTS];  /**< of its parameters */
    /** Why one is whole that should be cut, if the start file has such, with %s for its name
     *  and for the case; or NULL. */
    const char *still_whole;
    /** "a+b", by Check: of a start file that works, the functions that the check is about. While these are as they were handed
     *  out, it is to do, and not wrong. */
    const char *written[CHECKS];

    Prediction predict;          /**< what its students predict */
    Kind kinds[MAX_KINDS];       /**< by Case.kind */
    AllowanceFunction *forward;  /**< what its forward pass may send; NULL: no pass is measured */
    AllowanceFunction *backward; /**< and its backward pass */
    UsualFunction *usual;        /**< its usual case; NULL: usual_replicas() or usual_case() */
    CasesFunction *cases;        /**< all of its cases at a layout; NULL: the usual one alone */
    /** Why the lab could not work with these sizes, or NULL. Without it sizes cannot be chosen (grader/cases.local). */
    const char *(*misfit)(const Case *c);
};

/** The lab of this number, or NULL. */
const Lab *lab_of(int number);
/** How many labs there are. */
int lab_count(void);
/** The labs in the order of labs.mk, i from 0 to lab_count() - 1. */
const Lab *lab_at(int i);

/** The labs of a part of the course, by lab_at(): each part has points of its own. Empty where there is no such part. */
Range labs_of_part(int part);
/** The kind of a case. */
const Kind *kind_of_case(const Case *c);
/** Must every rank see the same in this case, what the plain model gives on one rank? */
bool alike_on_ranks(const Case *c);
/** The ranks of a group over which the lab of a case exchanges. */
int exchanging_ranks(const Case *c);

/** Points for a check of a lab; 0 when the lab has no such check. */
int lab_points(const Lab *lab, Check check);
/** The first check that the lab has, from `from` on and then from the beginning. */
Check lab_check(const Lab *lab, Check from);
/** The check of this key ("input_gradient"), or CHECKS; its length is `length`. */
Check check_of_key(const char *key, size_t length);
extern const char *const check_names[CHECKS]; /**< "forward", "input gradient", ... */
extern const char *const check_keys[CHECKS];  /**< "forward", "input_gradient", ...: in files */

/** An instructor's layouts, in place of those of the lab. The text is copied. */
void lab_set_layouts(int number, const char *layouts);
/** An instructor's points for one check. */
void lab_set_points(int number, Check check, int points);

/** How the parameter may be cut: a set of CUT_... */
unsigned lab_cuts(const Lab *lab, const char *parameter);
/** The most ranks that one of its layouts has. */
int lab_largest_world(const Lab *lab);
/** Reads one of a lab's layouts. Returns what follows it, or NULL at the end. */
const char *next_layout(const char *at, int *world, int *tp);

/* ---- sizes of cases -------------------------------------------------------------------------------------- */

/** A size that a case is told by, and chosen with. */
typedef struct CaseSize {
    const char *key;   /**< "OUT", in grader/cases.local */
    const char *shown; /**< "out", in reports */
    SizeSet set;       /**< which labs have it */
    int largest;       /**< that can be chosen */
    size_t offset;     /**< in Case */
} CaseSize;
enum { CASE_SIZES = 8 };                      /**< how many there are */
extern const CaseSize case_sizes[CASE_SIZES]; /**< in the order in which they are shown */
/** The size in a case. */
int32_t *case_size_in(Case *c, const CaseSize *size);
/** Size i of a case, or 0 for one that its lab has not. */
int case_size(const Case *c, int i);

/* ---- making cases ---------------------------------------------------------------------------------------- */

/** All cases of a lab for `seed`, in the order in which they are run. Returns their number. */
int lab_cases(const Lab *lab, uint64_t seed, Case cases[MAX_CASES]);
/** The case of usual sizes at this layout, with inputs of its own for each `number`. */
Case lab_usual_case(const Lab *lab, uint64_t seed, int number, int world, int tp);
/** The same, with those of `sizes` that are not 0. */
Case lab_case_with(const Lab *lab, uint64_t seed, int number, int world, int tp, const Case *sizes);

/** A probability of dropout that leaves little. */
#define NEARLY_ONE (15.0 / 16)
/** A random integer from low to high. */
int draw(Draw *d, int low, int high);
/** The same sizes at each seed; tp is the world, or the group for labs with replicas. */
Case usual_case(const Lab *lab, Draw *d, int tp);
/** usual_case() for labs whose layouts give world and tp. */
Case usual_replicas(const Lab *lab, Draw *d, int world, int tp);
/** The case at other sizes, drawn: for labs that cut nothing. */
Case other_sizes(Case c, Draw *d);
/** Other sizes, drawn: all of them distinct, B and S odd or small, a multiple of `world` where something is cut, and none where
 *  nothing is; but V is any number, so that the parts of a table can be uneven. Inputs are thousands or thousandths; at a world of 3
 *  nothing is dropped in training. */
Case drawn_case(const Lab *lab, Draw *d, int world);
/** One row; some rank comes late. */
Case single_case(const Lab *lab, Draw *d, int world);
/** Long texts: with ten heads on a rank, and more numbers than fit a page of memory; or, where positions do not meet, of many
 *  positions and few weights, more numbers than 16 bits count. */
Case long_case(const Lab *lab, Draw *d, int world);
/** The cases of a layer: usual, drawn and single; at a world of 2 also LONG_TEXTS and MANY_SAMPLES; where there are heads, as many as ranks. */
CasesFunction layer_cases;
/** Where layer_cases() puts a case. */
enum {
    SINGLE_ROW = 2,   /**< at each layout */
    LONG_TEXTS = 3,   /**< at a world of 2 */
    MANY_SAMPLES = 4, /**< likewise */
};

/* ---- counting for predictions ---------------------------------------------------------------------------- */

/** Bytes that the ranks send in all in the first step of the first layer, forward and backward. */
CountFunction bytes_of_layer;
/** Multiplications that rank 0 does there. */
CountFunction multiplications_of_layer;

/* ---- expectations that labs share ------------------------------------------------------------------------ */

/** Labs 1 and 9: see operations.c. */
ExpectFunction expect_operations;
/** Labs 8 and 10: see groups.c. */
ExpectFunction expect_groups;
/** Lab 11: see replicas.c. */
ExpectFunction expect_replicas;

#include "labs.h" /* generated from labs.mk: LAB_FILES_NN, lab_NN, scenario_NN, LABS */
