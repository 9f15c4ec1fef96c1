/** @file
 * Models that others have trained: where their numbers are, and how they become a model of the kit.
 */
#pragma once

#include "model/transformer.h"

/** A trained model, open for reading. */
typedef struct Pretrained Pretrained;

/** Opens a model: a folder with checkpoints of the kit, a folder in Hugging Face's form (config.json
 *  and model.safetensors), or a file of karpathy's llama2.c (.bin).
 *  @return NULL with `problem` if it is neither, or damaged; otherwise a record that the caller
 *  frees with pretrained_close() */
Pretrained *pretrained_open(const char *path, Problem *problem);
/** Closes its files and frees the record. NULL is allowed. */
void pretrained_close(Pretrained *from);

/** What it says of its sizes; dropout is 0. */
const TransformerConfig *pretrained_config(const Pretrained *from);

/** The path of the tokenizer that it was trained with, if it says so; otherwise NULL. */
const char *pretrained_tokenizer(const Pretrained *from);

/** Fills this rank's part of every parameter of `model`, which was made with this config and is
 *  finished. Reads no other part.
 *  @return true; or false with `problem`, which names the first parameter that is missing or has
 *  another shape, and says how many there are */
bool pretrained_load(const Pretrained *from, Model *model, Problem *problem);
