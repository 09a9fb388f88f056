#!/usr/bin/env python3
"""Writes mini/: hidden states of a model of a real size, in PyTorch. Its weights follow from a rule, so that no file holds them.

Needs python3 with torch, transformers and safetensors (Debian sid has all three as packages).
    python3 make_mini.py OUT_DIR
config.json             Google's "mini" with the vocabulary of BERT uncased
reference.safetensors   input_ids and lengths (ragged sequences, one after the other), rows (indexes among them), and hidden_states.I
                        of those rows after the embeddings (I = 0) and after each layer; logits of the rows for the first 50 tokens
"""
import os, sys
import numpy as np
import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForMaskedLM

LENGTHS = [128, 77, 5, 1]


def mixed(name, n):
    """32 bits for each of n numbers: FNV-1a of the name, then Murmur's finalizer over that plus the index times the golden ratio."""
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 & 0xFFFFFFFF
    x = np.arange(n, dtype=np.uint32) * np.uint32(0x9E3779B1) + np.uint32(seed)
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))


def values(name, n):
    """Exact in float32: [-1/8, 1/8), or 7/8 to 9/8 for the weights of norms."""
    x = (mixed(name, n) >> np.uint32(8)).astype(np.float32) * np.float32(2.0 ** -26) - np.float32(0.125)
    return x + np.float32(1) if name.endswith("LayerNorm.weight") else x


def main(out):
    os.makedirs(out, exist_ok=True)
    config = BertConfig(vocab_size=30522, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, hidden_dropout_prob=0.0,
                        attention_probs_dropout_prob=0.0, attn_implementation="eager")
    model = BertForMaskedLM(config).eval()
    for name, parameter in model.named_parameters():
        parameter.data = torch.from_numpy(values(name, parameter.numel())).reshape(parameter.shape)
    model.tie_weights()
    config.architectures = ["BertForMaskedLM"]
    config.save_pretrained(out)
    ids = torch.from_numpy((mixed("input_ids", sum(LENGTHS)) % np.uint32(30522)).astype(np.int64))
    states, logits, begin = [[] for _ in range(5)], [], 0
    model = model.double()
    for length in LENGTHS:
        with torch.no_grad():
            result = model(ids[None, begin:begin + length], output_hidden_states=True)
        for index, state in enumerate(result.hidden_states):
            states[index].append(state[0])
        logits.append(result.logits[0, :, :50])
        begin += length
    rows = torch.tensor([0, 1, 63, 127, 128, 204, 205, 209, 210])
    tensors = {"input_ids": ids.int(), "lengths": torch.tensor(LENGTHS).int(), "rows": rows.int(), "logits": torch.cat(logits)[rows].float()}
    for index, state in enumerate(states):
        tensors[f"hidden_states.{index}"] = torch.cat(state)[rows].float().contiguous()
    save_file({k: v.contiguous() for k, v in tensors.items()}, os.path.join(out, "reference.safetensors"))


main(sys.argv[1])
