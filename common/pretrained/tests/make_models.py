"""Makes small random models with Hugging Face's library, and writes the results that it computes.

make_models.py FOLDER [large] writes FOLDER/bert, masked_bert, gpt2, llama, llama3 (scaled rotary
positions, and biases), qwen2 and mistral, as comparison.h describes them. The small ones, without
mistral, are in common/pretrained/tests/models. make_models.py FOLDER hidden|logits writes the
results of the model in FOLDER, which must have all tensors and no others. Needs transformers, torch
and safetensors.
"""
import json
import os
import sys

import numpy
import torch
import transformers
from safetensors.numpy import save_file

STEP = {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-2, "weight_decay": 0.1}  # comparison_step


def bert(large, library_class=transformers.BertForSequenceClassification):
    sizes = {"vocab_size": 211, "hidden_size": 96, "num_hidden_layers": 3, "intermediate_size": 200, "max_position_embeddings": 64} if large \
        else {"vocab_size": 17, "hidden_size": 8, "num_hidden_layers": 2, "intermediate_size": 8, "max_position_embeddings": 8}
    return library_class(transformers.BertConfig(
        **sizes, num_attention_heads=8 if large else 4, num_labels=3, hidden_dropout_prob=0, attention_probs_dropout_prob=0))


def masked_bert(large):
    return bert(large, transformers.BertForMaskedLM)


def gpt2(large):
    sizes = {"vocab_size": 211, "n_embd": 96, "n_layer": 3, "n_positions": 64} if large \
        else {"vocab_size": 17, "n_embd": 8, "n_layer": 2, "n_positions": 8, "n_inner": 8}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        **sizes, n_head=8 if large else 4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0))


def llama(large):
    sizes = {"vocab_size": 211, "hidden_size": 96, "num_hidden_layers": 3, "intermediate_size": 200, "max_position_embeddings": 64} if large \
        else {"vocab_size": 17, "hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 8, "max_position_embeddings": 8}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **sizes, num_attention_heads=8, num_key_value_heads=4, tie_word_embeddings=large))


def with_pairs(large):
    """Sizes of models whose heads have several pairs of numbers, of which some turn slowly. The large
    ones have the vocabulary of data/stories/llama."""
    sizes = {"vocab_size": 708, "hidden_size": 96, "num_hidden_layers": 3, "intermediate_size": 200, "max_position_embeddings": 64} if large \
        else {"vocab_size": 17, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 8, "max_position_embeddings": 8}
    return {**sizes, "num_attention_heads": 8, "num_key_value_heads": 4, "rope_theta": 100.0}


def llama3(large):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**with_pairs(large), attention_bias=True, rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}))


def qwen2(large):
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        **with_pairs(large), tie_word_embeddings=not large, rope_scaling={"type": "linear", "factor": 2.5}))


def mistral(large):
    return transformers.MistralForCausalLM(transformers.MistralConfig(**with_pairs(large), sliding_window=64 if large else None))


def draw(model):
    """Draws weights so large that every part of the model affects the logits, which stay below
    3."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm = name.endswith("weight") and parameter.dim() == 1
            parameter.normal_(1 if is_norm else 0, 0.2 if is_norm else 0.6 / parameter.shape[-1] ** 0.5 if parameter.dim() > 1 else 0.1)
    return model


def batch_of(model, large):
    """Draws ids and a mask. One token is 0, because their BERT gives its vector no gradient."""
    texts, length = (4, 48) if large else (3, 7)
    ids = torch.randint(1, model.config.vocab_size, (texts, length))
    ids[0, 1] = 0
    tokens = torch.tensor([length - 2 * i for i in range(texts)])
    return ids, (torch.arange(length) < tokens[:, None]).long()


def loss_of(model, logits, ids, mask):
    """The labels in the kit's form, and the mean of the losses."""
    if logits.dim() == 2:
        labels = torch.arange(len(logits)) % logits.shape[1]
    else:
        labels = torch.cat([torch.where(mask[:, 1:] > 0, ids[:, 1:], -1), torch.full((len(ids), 1), -1)], 1)
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=-1)
    return labels, loss


def save(folder, model, tensors):
    os.makedirs(folder, exist_ok=True)
    model.config.architectures = [type(model).__name__]
    model.config.to_json_file(f"{folder}/config.json")
    save_file({name: numpy.ascontiguousarray(tensor.detach().numpy()) for name, tensor in tensors.items()}, f"{folder}/model.safetensors")


def save_expected(folder, **tensors):
    save_file({name: tensor.detach().numpy().astype(numpy.float32) for name, tensor in tensors.items()}, f"{folder}/expected.safetensors")


def parameters(model):
    """The parameters by name, each once, because a tied head has no name of its own."""
    return dict(model.named_parameters())


def make(folder, model, large):
    draw(model)
    ids, mask = batch_of(model, large)
    logits = model(input_ids=ids, attention_mask=mask).logits
    labels, loss = loss_of(model, logits, ids, mask)
    save(folder, model, parameters(model))
    save_expected(folder, ids=ids, mask=mask, logits=logits, labels=labels)
    loss.backward()
    save(f"{folder}/gradients", model, {name: parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
                                        for name, parameter in parameters(model).items()})
    torch.optim.AdamW(model.parameters(), **STEP).step()
    save(f"{folder}/stepped", model, parameters(model))


def loaded(library_class, folder):
    model, tensors = library_class.from_pretrained(folder, output_loading_info=True)
    wrong = {what: names for what, names in tensors.items() if names}
    if wrong:
        sys.exit(f"{folder}: {wrong}")
    return model.eval()


def compute(folder, what):
    """Writes a model's results: "hidden" (after a BERT's last block) or "logits"."""
    with open(f"{folder}/config.json", encoding="utf-8") as file:
        name = json.load(file)["architectures"][0]
    model = loaded(getattr(transformers, name), folder)
    ids, mask = batch_of(model, model.config.max_position_embeddings >= 48)
    with torch.no_grad():
        results = model(input_ids=ids, attention_mask=mask)
        save_expected(folder, ids=ids, mask=mask, **{what: results.last_hidden_state if what == "hidden" else results.logits})


def main():
    torch.manual_seed(1)
    large = sys.argv[2:] == ["large"]
    if sys.argv[2:] in (["hidden"], ["logits"]):
        compute(sys.argv[1], sys.argv[2])
        return
    models = {"bert": bert, "masked_bert": masked_bert, "gpt2": gpt2, "llama": llama, "llama3": llama3, "qwen2": qwen2, "mistral": mistral}
    for name, new in models.items():
        make(f"{sys.argv[1]}/{name}", new(large).eval(), large)


main()
