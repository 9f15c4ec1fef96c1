/** @file
 * Pretrained models: reads their sizes, and loads their weights into a model of the kit.
 */
#pragma once

#include "model/transformer.h"

/** A pretrained model, open for reading. */
typedef struct Pretrained Pretrained;

/** Opens a model: a folder with checkpoints of the kit, a folder in Hugging Face's format
 *  (config.json and model.safetensors), or a file of karpathy's llama2.c (.bin).
 *  @return NULL with `problem` if it is none of these, or damaged; otherwise a record that the
 *  caller frees with pretrained_close() */
Pretrained *pretrained_open(const char *path, Problem *problem);
/** Closes its files and frees the record. NULL is allowed. */
void pretrained_close(Pretrained *from);

/** The sizes of the model, and the dropout of its training: -1 if its files do not record it, NAN if
 *  they give more than one probability. The record belongs to `from`. */
const TransformerConfig *pretrained_config(const Pretrained *from);

/** The path of the tokenizer that the model was trained with; NULL if its files do not record it.
 *  The text belongs to `from`. */
const char *pretrained_tokenizer(const Pretrained *from);

/** Fills this rank's part of every parameter of `model`, which was made with pretrained_config(),
 *  or with its architecture's other_task, and is finished. Reads no other part. The head of a task
 *  that the model was not trained for keeps its initial values.
 *  @return true; or false with `problem`, which names the first parameter that is missing, has a
 *  different shape, cannot be read or is not finite */
bool pretrained_load(const Pretrained *from, Model *model, Problem *problem);
