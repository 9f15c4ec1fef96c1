/** @file
 * Files in the safetensors format (https://huggingface.co/docs/safetensors), common among PyTorch
 * users:
 *
 *     8 bytes    N, little-endian
 *     N bytes    JSON: {"__metadata__": {"key": "text", "xxh3:name": "0123456789abcdef", ...},
 *                       "name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, ...},
 *                padded with blanks so that the data begin at a multiple of 8
 *     the rest   the tensors' numbers, row by row, little-endian, without gaps between tensors
 *
 * The checksum of a tensor covers its bytes; files of other programs or older kits have none.
 * Little-endian machines only.
 */
#pragma once

#include "base/replacement.h"
#include "tensor/tensor.h"

/** A checksum in the form that files contain. */
typedef struct Checksum {
    char digits[17]; /**< 64 bits in hexadecimal */
} Checksum;

/** The 64-bit XXH3 checksum of `count` bytes. */
Checksum checksum_of(const void *bytes, size_t count);

/** A tensor of a file. */
typedef struct SafeTensor {
    const char *name;  /**< such as "weight/blocks.0.norm.weight" */
    Shape shape;       /**< of the tensor in this file */
    const char *dtype; /**< the type of its numbers, such as "F32"; ignored when writing */
    int64_t begin;     /**< its offset after the header, in bytes; ignored when writing */
    int64_t bytes;     /**< its length; ignored when writing */
} SafeTensor;

/** In the metadata, the key of a tensor's checksum is this prefix, followed by the tensor's
 *  name. */
#define SAFETENSORS_CHECKSUM "xxh3:"
/** The one key of the header that does not name a tensor. */
#define SAFETENSORS_METADATA "__metadata__"

enum {
    REASON_SIZE = 160,   /**< as much as jansson's longest message */
    MOST_JSON = 32 << 20 /**< bytes; the index of a model of 100,000 tensors has 10 MB */
};
/** Reads a file of JSON of at most MOST_JSON bytes; it may begin with a byte order mark.
 *  @return its contents, which the caller owns; or NULL with `reason`, in the reader's language if it
 *  is not about the JSON */
struct json_t *json_from_file(const char *path, char reason[REASON_SIZE]);

/** A shape as JSON, [2,3]; the caller owns it. */
struct json_t *shape_to_json(Shape shape);
/** Reads a shape into *shape. @return the number of elements, or -1 if `sizes` is not a shape or is
 *  too large for a file */
int64_t shape_from_json(const struct json_t *sizes, Shape *shape);

/* ---- safetensors_write.c ------------------------------------------------------------------------------- */

/** A file that is being written. */
typedef struct SafetensorsWriter SafetensorsWriter;

/** Begins a file of `real` numbers (F32; F64 in double precision) for `path` and writes the header.
 *  `tensors` [count] are in the order in which safetensors_put() will write them; `metadata` is
 *  key, text, key, text, ..., NULL. Both are copied. `kind` as for replacement_begin().
 *  @return NULL with `problem` if the file cannot be created; otherwise a writer that
 *  safetensors_end() or safetensors_drop() frees */
SafetensorsWriter *safetensors_begin(const char *path, const SafeTensor *tensors, int count,
                                     const char *const *metadata, const OutputKind *kind,
                                     Problem *problem);

/** Appends all numbers [count] of the next tensor. safetensors_end() reports errors. */
void safetensors_put(SafetensorsWriter *writer, const real *values, int64_t count);

/** Puts the file in place once it is on disk, and frees the writer.
 *  @return true; or false with `problem` if this or an earlier write failed: the old file then
 *  stays */
bool safetensors_end(SafetensorsWriter *writer, Problem *problem);

/** Removes the unfinished file and frees the writer. */
void safetensors_drop(SafetensorsWriter *writer);

/* ---- safetensors_open.c -------------------------------------------------------------------------------- */

/** An open file with a valid header. */
typedef struct Safetensors {
    int fd;                     /**< open for reading */
    char *path;                 /**< the path of the file */
    int64_t size, data;         /**< size of the file, and offset of the first tensor */
    struct json_t *header;      /**< owns the names */
    int count;                  /**< the number of tensors */
    SafeTensor *tensors;        /**< [count], in the order of their data */
    const SafeTensor **by_name; /**< [count], the same, in the order of their names */
    bool has_checksums;         /**< every tensor has a checksum */
} Safetensors;

/** Opens a file and checks its header against the format and the file's size. Rejects truncated
 *  files, tensors that overlap or lie outside the file, duplicate names, and files in which only
 *  some tensors have a checksum. Tensors may be of any type, but not all types can be read.
 *  @return NULL with `problem`; otherwise a record that the caller frees with
 *  safetensors_close() */
Safetensors *safetensors_open(const char *path, Problem *problem);
/** Closes the file and frees everything that belongs to it. */
void safetensors_close(Safetensors *file);

/** The tensor of this name, which belongs to the file; NULL if there is none. */
const SafeTensor *safetensors_find(const Safetensors *file, const char *name);

/** The text of this key in __metadata__, or NULL. */
const char *safetensors_metadata(const Safetensors *file, const char *key);

/** The checksum that the file has for the tensor of this name, or NULL. */
const char *safetensors_checksum(const Safetensors *file, const char *name);

/** Reads `count` bytes from offset `from` of the file. Returns false with `problem` if that
 *  fails. */
bool safetensors_bytes(const Safetensors *file, void *bytes, int64_t count, int64_t from,
                       Problem *problem);

/** Sets `problem` to the sentence `what` (marked for translation), then the name `which`; returns
 *  false. */
bool safetensors_damaged(const Safetensors *file, Problem *problem, const char *what,
                         const char *which);

/* ---- safetensors_read.c -------------------------------------------------------------------------------- */

/** A part of a larger tensor: a range for each of its dimensions; missing leading dimensions have
 *  size 1. */
typedef struct Box {
    Range range[4]; /**< the last one belongs to the last dimension */
} Box;

/** The part `held` along dimension `dim` of a tensor of this shape. If `dim` is -1, all of it. */
Box box_of(Shape shape, int dim, Range held);

/** Reads part of a tensor of this file. The tensor is itself the part `place` of a larger one; the
 *  numbers in both `place` and `wanted` go to `values`, which has room for all of `wanted`. F16,
 *  BF16, F32 and F64 become `real`. If the tensor has a checksum, reads and checks all of it;
 *  otherwise reads only what is wanted.
 *  @return true; or false with `problem` if reading fails, the checksum does not match, or the
 *  tensor has any other type */
bool safetensors_read_box(const Safetensors *file, const SafeTensor *tensor, const Box *place,
                          const Box *wanted, real *values, Problem *problem);

/** Reads all numbers of a tensor in the same way. */
bool safetensors_read(const Safetensors *file, const SafeTensor *tensor, real *values,
                      Problem *problem);

/* ---- safetensors_folder.c ------------------------------------------------------------------------------ */

/** The tensors of a folder in Hugging Face's format: model.safetensors, or the files that
 *  model.safetensors.index.json names. */
typedef struct SafetensorsFolder {
    int count;          /**< number of files */
    Safetensors **file; /**< [count] */
} SafetensorsFolder;

/** Opens the files, which must hold the tensors that the index lists.
 *  @return NULL with `problem`; otherwise a record that the caller frees with
 *  safetensors_folder_close() */
SafetensorsFolder *safetensors_folder_open(const char *folder, Problem *problem);
/** Closes the files. */
void safetensors_folder_close(SafetensorsFolder *folder);
/** The tensor of this name, and its file in *file; both belong to the folder. NULL if there is
 *  none. */
const SafeTensor *safetensors_folder_find(const SafetensorsFolder *folder, const char *name,
                                          const Safetensors **file);
