/** @file
 * The interface of the formats of pretrained models: each is a record of functions.
 */
#pragma once

#include "checkpoint/checkpoint.h"
#include "pretrained/pretrained.h"

/** A format of files. */
typedef struct PretrainedFormat {
    /** Does the model have this parameter? A model that was trained for another task lacks the head
     *  of this one; the kit's then keeps its initial values. NULL if models of this format have all
     *  parameters. */
    bool (*has)(const Pretrained *from, const Parameter *parameter);
    /** Reads this rank's part of a parameter into `values`. Returns false with `problem` if it is
     *  missing, has a different shape, or cannot be read. */
    bool (*read)(const Pretrained *from, const Parameter *parameter, real *values,
                 Problem *problem);
    void (*close)(Pretrained *from); /**< frees what is open, but not the record */
} PretrainedFormat;

/** The members of a Pretrained. */
struct Pretrained {
    const PretrainedFormat *format; /**< how it is read */
    char *path;                     /**< as given to pretrained_open() */
    TransformerConfig config;       /**< its sizes */
    const char *tokenizer; /**< path of its tokenizer, or NULL if the format does not record it */
    void *open;            /**< owned by the format */
};

/** Opens from->path as a llama2.c file. Fills config, format and open; or returns false with
 *  `problem`. */
bool llama_bin_open(Pretrained *from, Problem *problem);

/** Like llama_bin_open(), but from->path is a checkpoint of the kit, or a folder of checkpoints, of
 *  which it opens the newest. */
bool own_checkpoint_open(Pretrained *from, Problem *problem);

/** Fills in the sizes that a checkpoint's index gives; not `architecture`. Returns false with
 *  `problem` if no model can have them. */
bool own_checkpoint_config(const SavedModel *saved, TransformerConfig *config, Problem *problem);

/** Like llama_bin_open(), but from->path is a folder in Hugging Face's format. */
bool hugging_face_open(Pretrained *from, Problem *problem);
