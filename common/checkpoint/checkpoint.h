/** @file
 * Checkpoints on disk, for training and for build/checkpoint. This folder uses neither MPI nor
 * models.
 *
 *     SAVE/step-000120/index.json                what was saved, and how it is split
 *                                                (CheckpointIndex)
 *                      rank-0-of-2.safetensors   the shards of tp rank 0: weight/NAME, and AdamW's
 *                                                m/NAME and v/NAME; only here, also the tensors
 *                                                that are whole on every tp rank. With stages, the
 *                                                first number is stage·tp + tp rank, and the second
 *                                                is pp·tp
 *         /.step-000130.partial/                 being written, or left by a run that was killed
 *         /.lock                                 held by the run that saves here
 */
#pragma once

#include <limits.h>

#include "backend/attention.h"
#include "checkpoint/safetensors.h"

/* ---- checkpoint_index.c: the contents of index.json ---------------------------------------------------- */

/** Integers that must be the same in a checkpoint and in the run that resumes from it. */
typedef enum Fitting {
    FIT_LAYERS,     /**< LAYERS */
    FIT_HIDDEN,     /**< HIDDEN_DIM */
    FIT_HEADS,      /**< HEADS */
    FIT_VOCABULARY, /**< tokens of the vocabulary */
    FIT_CLASSES,    /**< classes of the classifier */
    FIT_POSITIONS,  /**< rows of learned positions */
    FIT_KV_HEADS,   /**< heads of keys and values; 0 unless the architecture has them */
    FIT_INNER,      /**< inner width of feed-forward layers; 0 unless the architecture sets it */
    FIT_OWN_HEAD,   /**< 1 if the head has a weight of its own, otherwise 0 */
    FIT_ROWS,       /**< rows of the data set */
    FIT_BATCH,      /**< BATCH_SIZE */
    FIT_SEQ,        /**< SEQ */
    FIT_SEED,       /**< SEED */
    FITTINGS,       /**< the number of these integers */
} Fitting;

/** A parameter in index.json. */
typedef struct SavedParameter {
    char *name;          /**< "blocks.0.feed_forward.up.weight" */
    Shape shape;         /**< the full shape */
    Placement placement; /**< whole() or shard(dim) */
    int stage;           /**< the stage whose ranks wrote it */
} SavedParameter;

enum { DATA_KEY_SIZE = 17 }; /**< a checksum in hexadecimal, with its terminator */

/** The contents of index.json: a whole checkpoint except its tensors' numbers. */
typedef struct CheckpointIndex {
    int64_t step; /**< steps done; with rows and batch, this determines the sampler's position */
    int tp, pp;   /**< the number of shards of a split parameter; the number of stages */
    int64_t fitting[FITTINGS];      /**< by Fitting */
    char architecture[32];          /**< "BERT", "LLaMA" */
    double epsilon;                 /**< of the norms, or 0 */
    RotaryAngles rotary;            /**< of a LLaMA's positions, or 0 */
    double dropout;                 /**< DROPOUT; -1 if an older kit wrote it */
    char *tokenizer;                /**< path of the tokenizer that made the ids, or NULL */
    char optimizer[8];              /**< "sgd" or "adamw" */
    int64_t optimizer_steps;        /**< for AdamW's bias correction */
    double loss_scale;              /**< of the gradient scaler; 0 if there is none */
    int64_t good_steps;             /**< steps since the scale changed */
    char data_key[DATA_KEY_SIZE];   /**< checksum of the training data */
    double loss_sum, correct, seen; /**< sums of the epoch so far */
    int count;                      /**< length of `parameters` */
    SavedParameter *parameters;     /**< [count] */
    Checksum read_checksum;         /**< as read from the file; empty if an older kit wrote it */
} CheckpointIndex;

/** The checksum of the index, except read_checksum. Each shard of a checkpoint repeats it. */
Checksum checkpoint_index_checksum(const CheckpointIndex *index);

/** Writes FOLDER/index.json. Returns true once the file is on disk, or false with `problem`. */
bool checkpoint_index_write(const CheckpointIndex *index, const char *folder, Problem *problem);

/** Fills `index` from FOLDER/index.json; the caller frees its contents with
 *  checkpoint_index_clear(). A file of an older kit has no checksum.
 *  @return true; or false with `problem` if the file is invalid or does not match its checksum */
bool checkpoint_index_read(CheckpointIndex *index, const char *folder, Problem *problem);
/** Frees the index's contents, but not the record itself. */
void checkpoint_index_clear(CheckpointIndex *index);

/** Do `run` and `saved` have the same architecture, `fitting`, rotary positions, optimiser and
 *  training data?
 *  Otherwise returns false with `problem`. */
bool checkpoint_index_fits(const CheckpointIndex *saved, const CheckpointIndex *run,
                           const char *folder, Problem *problem);

/** The parameter of this name, or NULL. */
const SavedParameter *checkpoint_index_find(const CheckpointIndex *index, const char *name);

/* ---- checkpoint_folder.c: folders that appear and disappear as a whole --------------------------------- */

/** A path, by value. It has room for one byte too many, so a path that is too long fails to
 *  open. */
typedef struct Path {
    char text[PATH_MAX + 1]; /**< "" for none */
} Path;

/** FOLDER/NAME. */
Path path_in(const char *folder, const char *name);

/** FOLDER/step-000120 or, while it is written, FOLDER/.step-000120.partial. */
Path checkpoint_path(const char *folder, int64_t step, bool partial);

/** The step of the newest complete checkpoint in FOLDER whose step is below `limit`, or -1. */
int64_t checkpoint_newest(const char *folder, int64_t limit);

/** The newest checkpoint in FOLDER; if there is none, FOLDER itself if it is one; or an empty
 *  path. */
Path checkpoint_find(const char *folder);

/** The newest complete checkpoint before this one (DIR/step-000120) in the same folder, or an empty
 *  path. */
Path checkpoint_before(const char *checkpoint);

/** Creates FOLDER if necessary, takes its lock, checks that it is writable, and removes the
 * partial folders of killed runs. *made tells whether this call has created the folder.
 *  @return the lock, for checkpoint_folder_close(); or NULL with `problem` */
FILE *checkpoint_folder_open(const char *folder, bool *made, Problem *problem);

/** Releases the lock. If the run `made` the folder and has saved nothing, removes the folder. */
void checkpoint_folder_close(FILE *lock, const char *folder, bool made);

/** Creates the empty partial folder of this step. Returns false with `problem` on failure. */
bool checkpoint_begin(const char *folder, int64_t step, Problem *problem);

/** Renames the partial folder of this step, then removes all complete checkpoints except the newest
 *  two. Returns false with `problem` on failure. */
bool checkpoint_commit(const char *folder, int64_t step, Problem *problem);

/** Removes the partial folder of this step, if it exists. */
void checkpoint_abandon(const char *folder, int64_t step);

/* ---- checkpoint_read.c: parts of tensors, from the files that hold them -------------------------------- */

/** An open checkpoint. */
typedef struct SavedModel {
    CheckpointIndex index; /**< the contents of index.json */
    Safetensors **file;    /**< [index.pp * index.tp] */
    char *folder;          /**< the folder that it was opened from */
} SavedModel;

enum { SAVED_STATES = 3 }; /**< the most tensors of a parameter: 3 with AdamW, 1 with SGD */
/** The prefixes of their names: "weight", "m", "v". */
extern const char *const saved_state[SAVED_STATES];

/** "m/blocks.0.norm.weight"; the caller frees it. */
char *saved_name(int state, const char *parameter);
/** The number of states per parameter in this checkpoint: 1 or 3. */
int saved_states(const CheckpointIndex *index);

/** Returns the path of the file that tp rank `part` of stage `stage` wrote:
 *  FOLDER/rank-0-of-2.safetensors. */
Path shard_path(const char *folder, const CheckpointIndex *index, int stage, int part);

/** Opens the checkpoint in FOLDER: the index and all files, whose shapes must match the index.
 *  @return a record that the caller frees with saved_model_close(); or NULL with `problem`, whose
 *  hint names an older, intact checkpoint in the same folder, if there is one */
SavedModel *saved_model_open(const char *folder, Problem *problem);
/** Closes all files and frees the record. */
void saved_model_close(SavedModel *saved);

/** Do all numbers match their checksums? Otherwise returns false with `problem`, as in
 *  saved_model_open(). Reads all files. */
bool saved_model_is_intact(const SavedModel *saved, Problem *problem);
/** Does every file have checksums? Files of older kits have none. */
bool saved_model_has_checksums(const SavedModel *saved);

/** Reads the part `held` along `dim` of a parameter's state into `values`, row by row.
 *  @return true; or false with `problem`, as in saved_model_open(), if reading fails or a checksum
 *  does not match */
bool saved_model_read(const SavedModel *saved, int state, const SavedParameter *parameter, int dim,
                      Range held, real *values, Problem *problem);
