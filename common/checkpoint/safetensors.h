/** @file
 * Files of named tensors in the safetensors format (https://huggingface.co/docs/safetensors), which PyTorch's
 * world reads:
 *
 *     8 bytes    N, little-endian
 *     N bytes    JSON: {"__metadata__": {"key": "text"},
 *                       "name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, ...},
 *                padded with blanks so that the data begin at a multiple of 8
 *     the rest   the tensors' numbers, row by row, little-endian, one tensor after the other without gaps
 *
 * Numbers are those of `real` (F32; F64 in double precision). Little-endian machines only.
 */
#pragma once

#include "base/replacement.h"
#include "tensor/tensor.h"

/** One tensor of a file. */
typedef struct SafeTensor {
    const char *name; /**< "weight/blocks.0.norm.weight" */
    Shape shape;      /**< of the tensor in this file */
    int64_t begin;    /**< its place behind the header, in bytes; not looked at in writing */
} SafeTensor;

/* ---- Writing ---- */

/** A file that is being written. */
typedef Replacement SafetensorsWriter;

/** Begins a file for `path`, and writes the header.
 *  `tensors` [count] stand in the order in which their numbers will come; `metadata` is key, text, key, text, ..., NULL.
 *  @return NULL with `problem` when it cannot be created; otherwise to be ended with safetensors_end */
SafetensorsWriter *safetensors_begin(const char *path, const SafeTensor *tensors, int count,
                                     const char *const *metadata, Problem *problem);

/** Appends the numbers of the next tensor. What goes wrong is said by safetensors_end. */
void safetensors_put(SafetensorsWriter *writer, const real *values, int64_t count);

/** Gives the file its name once it is on the disk, and frees the writer. On failure, now or before, what stood at the path stays. */
bool safetensors_end(SafetensorsWriter *writer, Problem *problem);

/* ---- Reading ---- */

/** An open file, its header checked. */
typedef struct Safetensors Safetensors;

/** Opens a file and checks its header against the format and the file's size: a file that was cut short,
 * tensors that overlap or lie outside, other types of numbers, names that come twice are a problem.
 *  @return NULL with `problem`; otherwise the caller's, to be freed with safetensors_close */
Safetensors *safetensors_open(const char *path, Problem *problem);
/** Closes the file and frees what belongs to it. */
void safetensors_close(Safetensors *file);

/** The path that it was opened with. Belongs to the file. */
const char *safetensors_path(const Safetensors *file);
/** How many tensors it has. */
int safetensors_count(const Safetensors *file);

/** NULL if there is no tensor of this name. It belongs to the file. */
const SafeTensor *safetensors_find(const Safetensors *file, const char *name);

/** The text of this key in __metadata__, or NULL. */
const char *safetensors_metadata(const Safetensors *file, const char *key);

/** Reads the numbers of a tensor of this file; `values` has room for all of them. */
bool safetensors_read(const Safetensors *file, const SafeTensor *tensor, real *values,
                      Problem *problem);
