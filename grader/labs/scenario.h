/** @file
 * A scenario: what is done with a lab in one case, step by step, and what is written down. The runner runs it on
 * every rank with the student's functions in single precision; the judge runs the same source with the plain
 * layers on one rank in double precision. So both streams have the same entries in the same order, and the
 * judge compares them one by one.
 */
#pragma once

#include "autograd/operations.h"
#include "base/philox.h"
#include "grader/protocol.h"
#include "model/model.h"

/** What is looked at in a lab, each with points of its own. */
typedef enum Check {
    FORWARD,         /**< what a forward pass returns */
    INPUT_GRADIENT,  /**< the gradient of what went in */
    WEIGHT_GRADIENT, /**< the gradients of the parameters */
    STEP,            /**< the parameters after a step of SGD */
    INITIAL_VALUES,  /**< the parameters before it */
    SHARDING,        /**< what each rank holds, and how it was cut */
    ARITHMETIC, /**< and memory: of the rank with the most, against its share of the plain layer */
    COMMUNICATION, /**< bytes and calls, against the budget; what MPI forbids */
    GROUPS,        /**< members, order, ranks, degrees */
    ROWS,          /**< which rows each replica reads */
    GRADIENT,      /**< the mean over the replicas */
    METRICS,       /**< sums over the replicas */
    LAYOUT,        /**< the whole model: losses and weights are those of one rank */
    CHECKS,        /**< how many there are */
} Check;

/** How a parameter may be cut: a set of these. */
enum {
    CUT_NOT = 1, /**< whole */
    CUT_0 = 2,   /**< along dimension 0 */
    CUT_1 = 4,   /**< along dimension 1 */
};

/** Where entries are appended. */
typedef struct Stream {
    char *base;            /**< the first byte */
    int64_t room;          /**< bytes there are */
    _Atomic int64_t *used; /**< bytes in use; of a rank, in its header */
} Stream;

/** What a scenario works with. The program that runs it makes and frees all of it. */
typedef struct Scenario {
    Case c;              /**< the case */
    const Mesh *mesh;    /**< of the case's ranks; in the judge, of one */
    Pool *pool;          /**< memory of all tensors */
    Tape *tape;          /**< of the case */
    Model *model;        /**< the layers that the scenario has made */
    struct Stage *stage; /**< lab 12: what it has made of them, or NULL */
    void (*stage_free)(
        struct Stage *stage); /**< frees it: other labs' runners are linked without */
    Stream stream;            /**< where it writes */
    int64_t samples[64];      /**< row numbers that dropout is keyed by */
} Scenario;

/** The sizes that a budget formula speaks of. */
typedef struct Sizes {
    int64_t B, S, H, F, OUT, C, N; /**< in the letters of balise.h; N numbers of the tensor */
    int part;                      /**< which part of the lab: see its allowances */
    int vocabulary;                /**< the embedding's table is split by rows */
} Sizes;

/** What a rank does in a case of a lab. */
typedef void ScenarioFunction(Scenario *run);
/** In a runner: that of its lab, scenario_NN; link-runner.sh gives it this name. */
ScenarioFunction lab_scenario;

/* ---- writing down -------------------------------------------------------------------------------------- */

/** Appends an entry with room for `count` numbers, which the caller fills. Too many entries end the case. */
Entry *stream_entry(Stream *stream, EntryKind kind, int check, Label label, int64_t count,
                    double **numbers);

/** Every number of x; x is called whole by the contract of the lab. */
void write_values(Scenario *run, Check check, Label label, Tensor *x);

/** Each parameter's full shape, placement, range, and its initial numbers. */
void write_parameters(Scenario *run);

/** Each parameter's gradient (GRADIENT_OF) or value (VALUE_OF) in a step, with its range. */
void write_arena(Scenario *run, Check check, What what, int step);

/* ---- provided by the program: the runner measures, the judge computes ---------------------------------- */

/** How many replicas of the model the case has. */
static inline int replicas_of(const Case *c)
{
    return c->world / (c->tp * c->pp);
}

/** What the rank is at, for messages ("forward pass of the first layer, step 2"). Also delays a rank in delayed cases. */
void at(Scenario *run, Label label);

/** Which of a lab's budgets a pass has. */
typedef enum Budget {
    FORWARD_BUDGET,  /**< Lab.forward */
    BACKWARD_BUDGET, /**< Lab.backward */
} Budget;

/** A pass begins whose exchanges are counted. */
void traffic_begin(Scenario *run);
/** Writes what this rank sent since traffic_begin(): elements and calls; in the judge, what the lab may send. */
void traffic_end(Scenario *run, Label label, Budget budget, const Sizes *sizes);

/** A pass begins whose work is counted. */
void work_begin(Scenario *run);
/** Writes what this rank has multiplied and held since work_begin(): the numbers of grader/labs/work.h; in the judge,
 * what the plain layer takes on one rank. */
void work_end(Scenario *run, Label label);

/** x, on its way into a layer. The judge can make the gradient that comes back a wrong one, to see what that gives. */
Tensor *into_layer(Scenario *run, Tensor *x);

/* ---- inputs -------------------------------------------------------------------------------------------- */

enum { KEY_SIZE = 64 }; /**< bytes of a text that inputs are drawn by */
/** `count` numbers in [0, 1), those of philox_uniform_at. They are kept until numbers of another case are asked for: the judge runs each
 *  case many times. `of_case` is the key of the case. */
const double *drawn(uint64_t of_case, PhiloxKey key, int64_t count);

/** Random numbers in (-1, 1), or small integers in a case of integers, keyed by name; the same on each rank
 * unless `rank` is one (pass -1 for alike). */
Tensor *random_input(Scenario *run, const char *name, int rank, Shape shape, bool needs_gradient);

/** A random integer in 0..below-1. */
int64_t random_below(const Scenario *run, const char *name, int64_t index, int64_t below);

/** Ids [B,S] with the borders of the vocabulary and repetitions among them; below `limit`. */
Tensor *random_ids(Scenario *run, const char *name, int64_t limit);

/** A mask [B,S]: sample 0 is full, the others have 1..S tokens. */
Tensor *random_mask(Scenario *run, const char *name);

/* ---- layers (labs 2 to 7) ------------------------------------------------------------------------------ */

/** How a lab's layer is made and called. */
typedef struct LayerScenario {
    /** Makes the layer, of x of width H; `which` is 0 or 1: two layers of different sizes. */
    void *(*make)(Builder *b, const Case *c, int which, int H);
    /** x may be ids; mask NULL where it takes none */
    Tensor *(*forward)(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh);
    /** The second layer on three ranks and more is wider by so much, so that each has to keep its own. */
    int wider;
    bool takes_ids;  /**< its x are ids [B,S] */
    bool takes_mask; /**< it is given a mask [B,S] */
    /** Fills in the sizes that its budgets speak of beside B, S and H; NULL: no others */
    void (*sizes)(const Scenario *run, int which, Sizes *sizes);
} LayerScenario;

extern const char *const layer_names[LAYERS]; /**< "first", "second", as parameters' names begin */
/** Two layers, two forward passes before two backward passes, a step of SGD, and all of it once more. */
void run_layers(Scenario *run, const LayerScenario *layer);

/** The inner width of labs 5 and 6, in one of two layers. */
int inner_of(const Case *c, int which);
/** The width of their output. */
int out_of(const Case *c, int which);
/** LayerScenario.sizes of these. */
void inner_and_out(const Scenario *run, int which, Sizes *sizes);

/** The rows of the table of one of the two layers of lab 3. */
int table_rows_of(const Case *c, int which);

/** Gives each parameter of run->model its numbers in a step: away from the initial ones, and others in each step. */
void fill_weights(Scenario *run, int step);
/** A number of a layer's parameter in a step, from 0 on; the evaluations between two steps have those of the second. */
double weight_in_step(const Case *c, const Parameter *p, int step, int64_t index);
