/** @file
 * Folders in Hugging Face's format: config.json, and the names of the tensors. "Their" and "theirs"
 * refer to Hugging Face's library.
 */
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/transformer.h"

/** A parameter's name in the kit and in the files. */
typedef struct HuggingFaceName {
    const char *kit;    /**< such as "attention.query_key_value.weight"; NULL ends a list */
    const char *theirs; /**< such as "attention.self.query.weight", after the prefixes */
    /** The shape of Hugging Face's tensor, a letter for each dimension: V, H, P (positions), T
     *  (token types), F (inner), C (classes), K (columns of keys and values), 3 (3 H) */
    const char *shape;
    bool is_transposed; /**< theirs is [in,out], the kit's [out,in] */
    bool in_thirds;     /**< the kit's parameter is [3,..], and this name belongs to one third */
    int third;          /**< the number of this third, 0 to 2, in the kit's parameter, and in their
                            tensor if it holds all three */
    bool has_no_prefix; /**< it never begins with the model's prefix */
    size_t flag;        /**< offset of the member of TransformerConfig without which a model lacks
                            this tensor; 0: every model has it */
    /** The library's class whose head it belongs to; models of other classes lack it, and the kit's
     *  parameter then keeps its initial values. NULL: models of all classes have it. */
    const char *head_of;
} HuggingFaceName;

/** One of their architectures. */
typedef struct HuggingFaceModel {
    const char *type;            /**< model_type in config.json, such as "bert" */
    const char *architecture;    /**< its name in the kit: Architecture.name */
    const char *library_class;   /**< such as "BertForSequenceClassification" */
    const char *prefix;          /**< before the names in some files, such as "bert." */
    const char *embedding;       /**< a tensor whose name shows whether the file uses the prefix */
    const char *block;           /**< before the number of a block, such as "encoder.layer." */
    const HuggingFaceName *once; /**< the names outside of the blocks */
    const HuggingFaceName *in_blocks; /**< those in each block */
    const char *const *unused;        /**< patterns of tensors that the kit ignores, then NULL */
    bool has_qkv_bias; /**< queries, keys and values have biases, but the layer after attention has
                          none */
} HuggingFaceModel;

/** Reads FOLDER/config.json: fills in the sizes. Returns the kind of model, or NULL with `problem`
 *  if the file is damaged or describes a model that the kit does not support. */
const HuggingFaceModel *hugging_face_config(const char *folder, TransformerConfig *config,
                                            Problem *problem);

/** The models that the kit reads, then NULL. The two heads of a BERT are two models, which read the
 *  same files. Of the models with the same tensors, the kit writes the first. */
extern const HuggingFaceModel *const hugging_face_models[];

/** Does a model with this config have the tensor of this name? */
bool hugging_face_has(const TransformerConfig *config, const HuggingFaceName *name);

/** The size of dimension `dim` of Hugging Face's tensor. */
int64_t hugging_face_size(const TransformerConfig *config, const HuggingFaceName *name, int dim);

/** The shape in the kit of the parameter, or third of one, that `name` names, if Hugging Face's
 *  tensor has the shape `theirs`. */
Shape hugging_face_shape_of_third(const HuggingFaceName *name, Shape theirs);

/** The shape of the whole parameter in the kit, if Hugging Face's tensor has the shape `theirs`. */
Shape hugging_face_shape_in_kit(const HuggingFaceName *name, Shape theirs);

/** Writes a checkpoint's weights to FOLDER in Hugging Face's format, config.json and
 *  model.safetensors; creates the folder if necessary. Returns false with `problem` if that fails,
 *  if the tensors do not have the checkpoint's sizes, or if their library has no such model. */
bool hugging_face_write(const SavedModel *saved, const char *folder, Problem *problem);
