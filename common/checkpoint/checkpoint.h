/** @file
 * Checkpoints on disk, for training and for build/checkpoint. This room knows neither MPI nor
 * models.
 *
 *     SAVE/step-000120/index.json                what was saved, and how it is split
 *                                                (CheckpointIndex)
 *                      rank-0-of-2.safetensors   the shards of tp rank 0: weight/NAME, and AdamW's
 *                                                m/NAME and v/NAME; only in rank 0's file, also the
 *                                                tensors that are whole on every rank. With stages,
 *                                                the first number is stage·tp + tp rank, the second
 *                                                pp·tp
 *         /.step-000130.partial/                 being written, or left by a run that was killed
 *         /.lock                                 held by the run that saves here
 */
#pragma once

#include <limits.h>

#include "base/replacement.h"
#include "tensor/tensor.h"

/* ---- safetensors.c: checksums -------------------------------------------------------------------------- */

/** A checksum as files have it. */
typedef struct Checksum {
    char digits[17]; /**< 64 bits in hexadecimal */
} Checksum;

/** XXH3 with 64 bits. */
Checksum checksum_of(const void *bytes, size_t count);

/* ---- safetensors.c: writing ---------------------------------------------------------------------------- */

/** One tensor of a file in the safetensors format (https://huggingface.co/docs/safetensors), which
 * PyTorch users read:
 *
 *     8 bytes    N, little-endian
 *     N bytes    JSON: {"__metadata__": {"key": "text", "xxh3:name": "0123456789abcdef", ...},
 *                       "name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, ...},
 *                padded with blanks so that the data begin at a multiple of 8
 *     the rest   the tensors' numbers, row by row, little-endian, without gaps between tensors
 *
 * Numbers are of type `real` (F32; F64 in double precision). Little-endian machines only. The
 * checksum of a tensor covers its bytes; files of other programs or older kits have none. */
typedef struct SafeTensor {
    const char *name; /**< "weight/blocks.0.norm.weight" */
    Shape shape;      /**< of the tensor in this file */
    int64_t begin;    /**< its offset after the header, in bytes; ignored in writing */
} SafeTensor;

/** A file that is being written. */
typedef struct SafetensorsWriter SafetensorsWriter;

/** Begins a file for `path` and writes the header. `tensors` [count] are in the order in which
 *  safetensors_put() will write them; `metadata` is key, text, key, text, ..., NULL.
 *  @return NULL with `problem` if the file cannot be created; otherwise a writer that
 *  safetensors_end() or safetensors_drop() frees */
SafetensorsWriter *safetensors_begin(const char *path, const SafeTensor *tensors, int count,
                                     const char *const *metadata, Problem *problem);

/** Appends all numbers [count] of the next tensor. safetensors_end() reports errors. */
void safetensors_put(SafetensorsWriter *writer, const real *values, int64_t count);

/** Renames the file once it is on disk, and frees the writer.
 *  @return true; or false with `problem` if this or an earlier write failed: the old file then
 *  stays */
bool safetensors_end(SafetensorsWriter *writer, Problem *problem);

/** Removes the unfinished file and frees the writer. */
void safetensors_drop(SafetensorsWriter *writer);

/* ---- safetensors.c: reading ---------------------------------------------------------------------------- */

/** An open file with a valid header. */
typedef struct Safetensors {
    int fd;                /**< open for reading */
    char *path;            /**< the path of the file */
    int64_t size, data;    /**< size of the file, and offset of the first tensor */
    struct json_t *header; /**< owns the names */
    int count;             /**< the number of tensors */
    SafeTensor *tensors;   /**< [count], in the order of their data */
    bool has_checksums;    /**< then each of its tensors has one */
} Safetensors;

/** Opens a file and checks its header against the format and the file's size. Rejects truncated
 *  files, tensors that overlap or lie outside the file, other types of numbers, duplicate names,
 *  and files in which only some tensors have a checksum.
 *  @return NULL with `problem`; otherwise a record that the caller frees with
 *  safetensors_close() */
Safetensors *safetensors_open(const char *path, Problem *problem);
/** Closes the file and frees everything that belongs to it. */
void safetensors_close(Safetensors *file);

/** The tensor of this name, which belongs to the file; NULL if there is none. */
const SafeTensor *safetensors_find(const Safetensors *file, const char *name);

/** The text of this key in __metadata__, or NULL. */
const char *safetensors_metadata(const Safetensors *file, const char *key);

/** Reads the numbers of a tensor of this file; `values` has room for all of them.
 *  @return true; or false with `problem` if reading fails or the checksum does not match */
bool safetensors_read(const Safetensors *file, const SafeTensor *tensor, real *values,
                      Problem *problem);

/** A shape as JSON, [2,3]; the caller owns it. */
struct json_t *shape_to_json(Shape shape);
/** Reads a shape into *shape. @return the number of elements, or -1 if it is not a shape or too
 *  large for a file */
int64_t shape_from_json(const struct json_t *sizes, Shape *shape);

/* ---- checkpoint_index.c: what index.json says ---------------------------------------------------------- */

/** Integers that must equal those of the run that resumes. */
typedef enum Fitting {
    FIT_LAYERS,     /**< LAYERS */
    FIT_HIDDEN,     /**< HIDDEN_DIM */
    FIT_HEADS,      /**< HEADS */
    FIT_VOCABULARY, /**< tokens of the vocabulary */
    FIT_CLASSES,    /**< of the answer */
    FIT_POSITIONS,  /**< rows of learned positions */
    FIT_KV_HEADS,   /**< heads of keys and values; 0 unless the architecture has them */
    FIT_INNER,      /**< the width of its feed-forward layers; the same */
    FIT_OWN_HEAD,   /**< 1 if the head has a weight of its own; the same */
    FIT_ROWS,       /**< of the data */
    FIT_BATCH,      /**< BATCH_SIZE */
    FIT_SEQ,        /**< SEQ */
    FIT_SEED,       /**< SEED */
    FITTINGS,       /**< how many there are */
} Fitting;

/** A parameter in index.json. */
typedef struct SavedParameter {
    char *name;          /**< "blocks.0.feed_forward.up.weight" */
    Shape shape;         /**< the full shape */
    Placement placement; /**< whole() or shard(dim) */
    int stage;           /**< whose ranks wrote it */
} SavedParameter;

enum { DATA_KEY_SIZE = 17 }; /**< a checksum in hexadecimal, with its terminator */

/** The contents of index.json: a whole checkpoint except its tensors' numbers. */
typedef struct CheckpointIndex {
    int64_t step; /**< steps done; with rows and batch, this determines the sampler's position */
    int tp, pp;   /**< the number of parts that shards are split into; the number of stages */
    int64_t fitting[FITTINGS];      /**< by Fitting */
    char architecture[16];          /**< "BERT", "LLaMA" */
    double epsilon, theta;          /**< of a LLaMA; otherwise 0 */
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

/** Of everything above except the checksum itself. The shards of a checkpoint repeat it. */
Checksum checkpoint_index_checksum(const CheckpointIndex *index);

/** Writes FOLDER/index.json. When it returns true, the file is on disk. */
bool checkpoint_index_write(const CheckpointIndex *index, const char *folder, Problem *problem);

/** Fills `index` from FOLDER/index.json; the caller frees its contents with
 *  checkpoint_index_clear(). A file of an older kit has no checksum.
 *  @return true; or false with `problem` if the file is invalid or does not match its checksum */
bool checkpoint_index_read(CheckpointIndex *index, const char *folder, Problem *problem);
/** Frees what the index holds, but not the record itself. */
void checkpoint_index_clear(CheckpointIndex *index);

/** Does `run` equal `saved`, apart from step, layout, parameters and sums? Otherwise returns false
 *  with `problem`. */
bool checkpoint_index_fits(const CheckpointIndex *saved, const CheckpointIndex *run,
                           const char *folder, Problem *problem);

/** The parameter of this name, or NULL. */
const SavedParameter *checkpoint_index_find(const CheckpointIndex *index, const char *name);

/* ---- checkpoint_folder.c: folders that appear and disappear as a whole --------------------------------- */

/** A path, by value. A path that is too long stays too long, so that nothing is found there. */
typedef struct Path {
    char text[PATH_MAX + 1]; /**< "" for none */
} Path;

/** FOLDER/NAME. */
Path path_in(const char *folder, const char *name);

/** FOLDER/step-000120 or, while it is written, FOLDER/.step-000120.partial. */
Path checkpoint_path(const char *folder, int64_t step, bool partial);

/** The step of the newest complete checkpoint in FOLDER below `limit`, or -1. */
int64_t checkpoint_newest(const char *folder, int64_t limit);

/** The newest checkpoint in FOLDER, FOLDER itself if it is one, or an empty path. */
Path checkpoint_find(const char *folder);

/** The newest complete checkpoint before this one (DIR/step-000120) in the same folder, or an empty
 *  path. */
Path checkpoint_before(const char *checkpoint);

/** Creates FOLDER if necessary, takes its lock, checks that it is writable, and removes what a
 * killed run left half-written.
 *  @return the lock, to be closed at the end of the run; NULL with `problem` */
FILE *checkpoint_folder_open(const char *folder, Problem *problem);

/** Creates the empty partial folder of this step. Returns false with `problem` on failure. */
bool checkpoint_begin(const char *folder, int64_t step, Problem *problem);

/** Renames the partial folder of this step, then removes all complete ones except the newest two.
 *  Returns false with `problem` on failure. */
bool checkpoint_commit(const char *folder, int64_t step, Problem *problem);

/** Removes the partial folder of this step, if it exists. */
void checkpoint_abandon(const char *folder, int64_t step);

/* ---- checkpoint_read.c: parts of tensors, from the files that hold them -------------------------------- */

/** An open checkpoint. */
typedef struct SavedModel {
    CheckpointIndex index; /**< the contents of index.json */
    Safetensors **file;    /**< [index.pp * index.tp] */
    char *folder;          /**< that it was opened in */
} SavedModel;

/** The prefixes of a parameter's tensors in the files: "weight"; with AdamW there are three. */
enum { SAVED_STATES = 3 }; /**< at most */
/** "weight", "m", "v". */
extern const char *const saved_state[SAVED_STATES];

/** "m/blocks.0.norm.weight"; the caller frees it. */
char *saved_name(int state, const char *parameter);
/** The number of states per parameter in this checkpoint: 1 or 3. */
int saved_states(const CheckpointIndex *index);

/** Returns the path of the file that tp rank `part` of stage `stage` wrote:
 *  FOLDER/rank-0-of-2.safetensors. */
Path shard_path(const char *folder, const CheckpointIndex *index, int stage, int part);

/** Opens the checkpoint in FOLDER: the index and all files, whose shapes must match the index.
 *  @return NULL with `problem`, whose hint names an older, intact checkpoint beside it; otherwise a
 * record that the caller frees with saved_model_close */
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
