"""Loads what `cloze` saved in transformers and compares logits and tokenizer. Called by transformers.sh with the folder that it made."""
import json, os, sys
import torch
from safetensors.torch import load_file
from transformers import (AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer)

work = sys.argv[1]
sentences = [l.rstrip("\n") for l in open(os.path.join(work, "sentences.txt"))]
worst = 0.0


def compare(name, ours, theirs):
    global worst
    error = float((ours - theirs).abs().max())
    worst = max(worst, error)
    print(f"{name}: largest difference {error:.2g}")
    assert error <= 1e-5, name


for norm in ("post", "pre"):
    for kind, cls in (("mlm", AutoModelForMaskedLM), ("classifier", AutoModelForSequenceClassification), ("tagger", AutoModelForTokenClassification)):
        folder = os.path.join(work, f"{norm}-{kind}")
        model, info = cls.from_pretrained(folder, output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], (folder, info)
        model.eval()
        tokenizer = AutoTokenizer.from_pretrained(folder)
        ours_ids = [json.loads(l)["ids"] for l in open(folder + ".ids.jsonl")]
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
