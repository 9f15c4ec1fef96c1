/** @file
 * What the forms of a trained model share with each other: each is a record of functions.
 */
#pragma once

#include "checkpoint/checkpoint.h"
#include "pretrained/pretrained.h"

/** A form in which models come. */
typedef struct PretrainedForm {
    /** Does the model have this parameter? A model that was trained for something else has no
     *  classifier: its parameters keep their initial values. NULL: it has all. */
    bool (*has)(const Pretrained *from, const Parameter *parameter);
    /** Reads this rank's part of a parameter into `values`. Returns false with `problem` if it is
     *  missing, of another shape, or cannot be read. */
    bool (*read)(const Pretrained *from, const Parameter *parameter, real *values,
                 Problem *problem);
    void (*close)(Pretrained *from); /**< frees what is open, but not the record */
} PretrainedForm;

/** The members of a Pretrained. */
struct Pretrained {
    const PretrainedForm *form; /**< how it is read */
    char *path;                 /**< as given to pretrained_open() */
    TransformerConfig config;   /**< its sizes */
    const char *tokenizer;      /**< path of its tokenizer, if the form knows it; or NULL */
    void *open;                 /**< of the form */
};

/** Opens FILE as karpathy's. Fills config, form and open; otherwise false with `problem`. */
bool llama_bin_open(Pretrained *from, Problem *problem);

/** Opens FOLDER, or the newest checkpoint in it, as the kit's, in the same way. */
bool own_checkpoint_open(Pretrained *from, Problem *problem);

/** Fills in the sizes that a checkpoint's index gives; not `architecture`. Returns false with
 *  `problem` if no model can have them. */
bool own_checkpoint_config(const SavedModel *saved, TransformerConfig *config, Problem *problem);

/** Opens FOLDER as Hugging Face's, in the same way. */
bool hugging_face_open(Pretrained *from, Problem *problem);
