"""Loads what `cloze` saved in transformers and compares logits and tokenizer. Called by transformers.sh with the folder that it made."""
import json, os, sys
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import (AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer,
                          RobertaConfig, RobertaForMaskedLM)

work = sys.argv[1]
if sys.argv[2] == "make-roberta":
    torch.manual_seed(1)
    vocab = json.load(open(os.path.join(work, "bpe", "vocab.json")))
    RobertaForMaskedLM(RobertaConfig(vocab_size=len(vocab), hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96,
                                     max_position_embeddings=34, type_vocab_size=1, layer_norm_eps=1e-5, initializer_range=0.2)
                       ).save_pretrained(os.path.join(work, "roberta-start"))
    sys.exit(0)
sentences = [l.rstrip("\n") for l in open(os.path.join(work, "sentences.txt"))]
worst = 0.0


def compare(name, ours, theirs):
    global worst
    error = float((ours - theirs).abs().max())
    worst = max(worst, error)
    print(f"{name}: largest difference {error:.2g}")
    assert error <= 1e-5, name


for norm in ("post", "pre", "roberta"):
    for kind, cls in (("start", AutoModelForMaskedLM), ("mlm", AutoModelForMaskedLM), ("classifier", AutoModelForSequenceClassification), ("tagger", AutoModelForTokenClassification)):
        folder = os.path.join(work, f"{norm}-{kind}")
        if not os.path.exists(folder):
            continue
        model, info = cls.from_pretrained(folder, output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], (folder, info)
        model.eval()
        ours_ids = [json.loads(l)["ids"] for l in open(folder + ".ids.jsonl")]
        if norm == "roberta":  # transformers 5.12.1 and tokenizers 0.23.1 disagree on RobertaProcessing's arguments; the file itself is read
            tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
            assert ours_ids == [tokenizer.encode(s).ids for s in sentences], folder
        else:
            tokenizer = AutoTokenizer.from_pretrained(folder)
            assert ours_ids == [tokenizer(s)["input_ids"] for s in sentences], folder
        hidden = load_file(folder + ".hidden.safetensors")
        for i, ids in enumerate(ours_ids):
            batch = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
            with torch.no_grad():
                out = model(**batch, output_hidden_states=True)
                base = getattr(model, model.base_model_prefix)(**batch).last_hidden_state[0]
            compare(f"{norm}-{kind} hidden {i}", hidden[str(i)], base)
            if kind == "classifier":
                scores = json.loads(open(folder + ".out.jsonl").read().splitlines()[i])["scores"]
                ours = torch.tensor([scores[model.config.id2label[c]] for c in range(model.config.num_labels)])
                compare(f"{norm}-{kind} scores {i}", ours, out.logits[0].softmax(-1))
print(f"all equal; largest difference {worst:.2g}")
