/** @file
 * A scenario: what to do with a lab in one case, step by step, and what to write down. The runner
 * runs it on every rank with the student's functions in single precision; the judge runs the same
 * source with plain layers on one rank in double precision. So entries of both streams have the
 * same labels, by which the judge finds the one to compare.
 */
#pragma once

#include "autograd/operations.h"
#include "base/philox.h"
#include "grader/protocol.h"
#include "model/model.h"

/** The checks of labs; each has its own points. Reports list them in this order, causes before
 *  consequences: wrong groups come before what is sent in them. */
typedef enum Check {
    FORWARD,         /**< the result of a forward pass */
    INPUT_GRADIENT,  /**< the gradient of the layer's input */
    WEIGHT_GRADIENT, /**< the gradients of the parameters */
    STEP,            /**< the parameters after a step of the optimiser */
    RING_SUM,        /**< each rank's chunk of the sum, after a reduce-scatter */
    RING_GATHER,     /**< all chunks, after an all-gather */
    INITIAL_VALUES,  /**< the initial parameters */
    SHARDING,        /**< what each rank holds, and how it was split */
    GROUPS,          /**< members, order, ranks, degrees */
    ROWS,            /**< the rows that each replica reads */
    GRADIENT,        /**< the mean over the replicas */
    METRICS,         /**< sums over replicas or stages */
    LAYOUT,          /**< losses, gradients or weights equal those of one rank */
    ARITHMETIC, /**< and memory: of the busiest rank, compared with its share of the plain layer */
    COMMUNICATION, /**< bytes and calls, compared with the budget; MPI errors */
    SCHEDULE,      /**< how long a step or a ring takes, and where a rank waits */
    CHECKS,        /**< how many there are */
} Check;

/** How a parameter may be split: a set of these. */
enum {
    CUT_NOT = 1, /**< whole */
    CUT_0 = 2,   /**< along dimension 0 */
    CUT_1 = 4,   /**< along dimension 1 */
};

/** A stream of entries. */
typedef struct Stream {
    char *base;            /**< the first byte */
    int64_t room;          /**< capacity in bytes */
    _Atomic int64_t *used; /**< bytes in use; for a rank, in its header */
} Stream;

/** The objects of a running scenario. The scenario makes the model and the stage; the program that
 *  runs it makes all others, and frees everything. */
typedef struct Scenario {
    Case c;              /**< the case */
    const Mesh *mesh;    /**< of the case's ranks; in the judge, of one rank */
    Pool *pool;          /**< memory of all tensors */
    Tape *tape;          /**< of the case */
    Model *model;        /**< the layers that the scenario has made */
    struct Stage *stage; /**< labs 12 to 14: this rank's stage, or NULL */
    void (*stage_free)(
        struct Stage *stage); /**< frees `stage`; a pointer, because only labs 12 to 14 link it */
    Stream stream;            /**< where the scenario writes */
    Label pass;               /**< labs 2 to 7 and 20: the layer's forward pass that runs */
    int64_t samples[64];      /**< row numbers, which select dropout's masks */
} Scenario;

/** The sizes in a budget formula. */
typedef struct Sizes {
    int64_t B, S, H, F, OUT, C, N; /**< as in balise.h; C: classes; N: see the budgets */
    int64_t part;                  /**< which part of the lab: see its budgets */
    int64_t vocabulary;            /**< nonzero: the embedding's table is split by rows */
    int64_t tp;                    /**< ranks that split a stage of a pipeline */
    int64_t stages;                /**< of a pipeline */
    int64_t micros;                /**< micro-batches; each has its own calls */
    int64_t held; /**< gradients that a replica's ranks hold in all, copies included */
} Sizes;

/** What a rank does in a case of a lab. */
typedef void ScenarioFunction(Scenario *run);
/** In a runner, its lab's scenario_NN; link-runner.sh gives it this name. */
ScenarioFunction lab_scenario;

/* ---- writing entries ----------------------------------------------------------------------------------- */

/** Appends an entry with room for `count` numbers, which the caller fills. Too many entries end the
 *  case. */
Entry *stream_entry(Stream *stream, EntryKind kind, int check, Label label, int64_t count,
                    double **numbers);

/** In the judge: a scenario on one rank, for what a case expects, or to draw its inputs again. The
 *  caller ends it with scenario_close(). */
Scenario scenario_alone(const Case *c, Stream stream);
/** Frees what scenario_alone() has made. */
void scenario_close(Scenario *run);

/** Writes all of x, which must be whole according to the lab's contract. If x is NULL, writes an empty
 *  entry. */
void write_values(Scenario *run, Check check, Label label, Tensor *x);

/** Writes x, this rank's part of a tensor along dimension `dim`, which has `size` in all. */
void write_shard(Scenario *run, Check check, Label label, Tensor *x, int dim, Range held,
                 int64_t size);

/** Writes each parameter's full shape, placement, range and initial values. */
void write_parameters(Scenario *run);

/** Is there a parameter of this name that is split along dimension 0? */
bool is_split_by_rows(const Scenario *run, const char *name);

/** Writes each parameter's gradient (GRADIENT_OF) or value (VALUE_OF) in a step, with its range. */
void write_arena(Scenario *run, Check check, What what, int step);
/** Like write_arena(), with a detail in the labels. */
void write_arena_as(Scenario *run, Check check, What what, int step, int detail);

/** Like write_arena(), but writes only gradients of parameters that are split. */
void write_split_gradients(Scenario *run, Check check, int step);

/* ---- provided by the program: the runner measures, the judge computes ---------------------------------- */

/** How many replicas of the model the case has. */
static inline int replicas_of(const Case *c)
{
    return c->world / (c->tp * c->pp);
}

/** Sets what the rank is doing, for messages ("forward pass of the first layer, step 2"). In
 *  delayed cases, also delays a rank. */
void at(Scenario *run, Label label);
/** Begins or ends operations of a pass that the scenario itself runs, in place of a lab. */
void not_of_lab(bool begins);

/** Has a rank at this point of the case done the same before, with the same sizes? Then it needs no
 *  more memory than it has, unless sizes depend on data, such as ids. */
bool is_repeated(const Case *c, const Label *at);

/** The lab's budget for a pass. */
typedef enum Budget {
    FORWARD_BUDGET,  /**< Lab.forward */
    BACKWARD_BUDGET, /**< Lab.backward */
} Budget;

/** The numbers of a rank's TRAFFIC entry. */
typedef enum TrafficNumber {
    SENT,            /**< in elements of 4 bytes */
    COLLECTIVES,     /**< calls in which ranks wait for each other */
    SPLIT_BY_ROWS,   /**< nonzero: the embedding's table is */
    FIRST_CALL,      /**< the index of the pass's first call among the rank's calls */
    END_CALL,        /**< likewise, one past its last call */
    MADE,            /**< communicators beyond the few that are free */
    TRAFFIC_NUMBERS, /**< how many there are */
} TrafficNumber;

/** Begins a pass whose communication is counted. */
void traffic_begin(Scenario *run);
/** Writes what this rank sent since traffic_begin(); in the judge, the budget. */
void traffic_end(Scenario *run, Label label, Budget budget, const Sizes *sizes);

/** Begins a pass whose work is counted. */
void work_begin(Scenario *run);
/** Writes what this rank multiplied and held since work_begin(): the numbers of grader/labs/work.h;
 * in the judge, those of the plain layer on one rank. */
void work_end(Scenario *run, Label label);

/** How many MPI calls this rank has made in the case; 0 in the judge. */
int64_t calls_so_far(void);

/** Begins a pass of run->model: empties the tape and clears the gradients. A `step` below STEPS
 *  trains and is recorded; STEPS is an evaluation. */
void begin_pass(Scenario *run, int step);

/** Passes x into a layer. The judge can keep the gradient from coming back. */
Tensor *into_layer(Scenario *run, Tensor *x);

/** Notes a broken rule unless `who`, a layer or a function, returns a y that every rank holds in full. */
void must_be_whole(const Scenario *run, const char *who, const Tensor *y);

/* ---- inputs -------------------------------------------------------------------------------------------- */

enum { KEY_SIZE = 64 }; /**< bytes of a key by which inputs are drawn */
/** `count` numbers in [0, 1), as philox_uniform_at() draws them. The judge, which runs each case many
 *  times, keeps them until another case is used. `of_case` is the key of the case. */
const double *drawn(uint64_t of_case, PhiloxKey key, int64_t count);

/** Random numbers between -2^exponent and 2^exponent (of the case), or small integers in a case of
 *  integers. `name` and `rank` select them. A negative `rank` is for numbers that several ranks share
 *  and hold in full: -1 for those of all ranks. */
Tensor *random_input(Scenario *run, const char *name, int rank, Shape shape, bool needs_gradient);

/** A random integer in 0..below-1. */
int64_t random_below(const Scenario *run, const char *name, int64_t index, int64_t below);

/** Ids [B,S] below `limit`, including 0, limit - 1 and repetitions. */
Tensor *random_ids(Scenario *run, const char *name, int64_t limit);

/** A mask [B,S]: sample 0 may be padded at its end; in the others, any position may be hidden. At
 *  least two positions of each sample are visible, or the only one. */
Tensor *random_mask(Scenario *run, const char *name);

/* ---- layers (labs 2 to 7 and 20) ------------------------------------------------------------------------ */

/** How a lab's layer is made and called. */
typedef struct LayerScenario {
    /** Makes the layer for inputs of width H; `which`, 0 or 1, selects one of two sizes. */
    void *(*make)(Builder *b, const Case *c, int which, int H);
    /** x may be ids; mask is NULL if the layer takes none */
    Tensor *(*forward)(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh);
    /** The extra width of the second layer on three or more ranks, so that layers cannot share a
     *  width. */
    int wider;
    bool takes_ids;  /**< its input is ids [B,S] */
    bool takes_mask; /**< it takes a mask [B,S] */
    /** Fills in the sizes in its budgets besides B, S and H; NULL: no others */
    void (*sizes)(const Scenario *run, int which, Sizes *sizes);
} LayerScenario;

extern const char *const layer_names[LAYERS]; /**< "first", "second" */
/** Runs two layers: two forward passes, then two backward passes, a step of SGD, and all of it
 *  again. */
void run_layers(Scenario *run, const LayerScenario *layer);

/** The inner width in labs 5, 6 and 20, for each of the two layers. */
int inner_of(const Case *c, int which);
/** The output width in labs 5, 6 and 20, for each of the two layers. */
int out_of(const Case *c, int which);
/** LayerScenario.sizes of labs 5 and 6. */
void inner_and_out(const Scenario *run, int which, Sizes *sizes);

/** The number of rows of table `which`: labs 3 and 21 have two. */
int table_rows_of(const Case *c, int which);

/** Fills each parameter of run->model for a step, with numbers that differ from the initial values
 *  and from those of other steps. */
void fill_weights(Scenario *run, int step);
/** Number `index` of a layer's parameter in a step; both count from 0. Evaluations between the two
 *  steps use the numbers of the second step. */
double weight_in_step(const Case *c, const Parameter *p, int step, int64_t index);
