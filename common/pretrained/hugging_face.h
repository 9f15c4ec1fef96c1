/** @file
 * Folders in Hugging Face's form: what config.json says, and the names of the tensors.
 */
#pragma once

#include "model/transformer.h"

/** config.json. */
typedef struct HuggingFaceConfig {
    const char *path;      /**< of the file */
    struct json_t *object; /**< what is in it */
} HuggingFaceConfig;

/** A parameter's name in the kit and in the files. */
typedef struct HuggingFaceName {
    const char *kit;    /**< "attention.query.weight" */
    const char *theirs; /**< "attention.self.query.weight", behind the prefixes; NULL ends a list */
    /** The shape of their tensor, a letter for each dimension: V, H, P (positions), T (token types),
     *  F (inner), C (classes), K (the width of keys and values), 3 (3 H) */
    const char *shape;
    bool is_turned; /**< theirs is [in,out], the kit's [out,in] */
    int third;      /**< of their 3 H outputs, which H are the parameter; 0 if they are not 3 H */
    bool has_no_prefix;  /**< the model's prefix is never before it */
    bool may_be_missing; /**< a model that was trained for something else has none: it keeps its
                            initial values */
} HuggingFaceName;

/** What the kit knows about one of their architectures. */
typedef struct HuggingFaceModel {
    const char *type;                 /**< "bert": model_type in config.json */
    const Architecture *architecture; /**< the kit's */
    const char *prefix;               /**< "bert.": before the names in some files */
    const char *embedding;            /**< a tensor that shows whether it is there */
    const char *block;                /**< "encoder.layer.": before the number of a block */
    const HuggingFaceName *once;      /**< the names outside of the blocks */
    const HuggingFaceName *in_blocks; /**< those in each block */
    const char *const *unused;        /**< patterns of tensors that it does not need, then NULL */
    /** Fills `config` from config.json, or returns false with `problem`. */
    bool (*read)(const HuggingFaceConfig *from, TransformerConfig *config, Problem *problem);
} HuggingFaceModel;

/** Reads FOLDER/config.json: which model it is, and its sizes. Returns NULL with `problem` if it is
 *  damaged or asks for what the kit does not have. */
const HuggingFaceModel *hugging_face_config(const char *folder, TransformerConfig *config,
                                            Problem *problem);

/** The models that the kit reads, then NULL. */
extern const HuggingFaceModel *const hugging_face_models[];

/** Read the sizes of one architecture each: HuggingFaceModel.read. */
bool bert_config(const HuggingFaceConfig *from, TransformerConfig *config, Problem *problem);
bool gpt2_config(const HuggingFaceConfig *from, TransformerConfig *config,
                 Problem *problem); /**< see bert_config() */
bool llama_config(const HuggingFaceConfig *from, TransformerConfig *config,
                  Problem *problem); /**< see bert_config() */

/** The size of dimension `dim` of their tensor. */
int64_t hugging_face_size(const TransformerConfig *config, const HuggingFaceName *name, int dim);
