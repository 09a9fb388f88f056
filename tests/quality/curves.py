"""Trains OUT/start on OUT/steps.jsonl (see batches.cc) in PyTorch, f32, and prints a line {"step", "loss"} a step."""
import json, sys
import torch
from transformers import BertForMaskedLM

folder = sys.argv[1]
model = BertForMaskedLM.from_pretrained(folder + "/start").float()
model.eval()  # no dropout
# As the spec's defaults have it: weight decay on matrices only.
matrices = [p for p in model.parameters() if p.dim() > 1]
vectors = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}], betas=(0.9, 0.999), eps=1e-8)
for step, line in enumerate(open(folder + "/steps.jsonl"), 1):
    data = json.loads(line)
    sequences = data["sequences"]
    longest = max(map(len, sequences))
    ids = torch.zeros(len(sequences), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    place = []  # of each packed row
    for s, sequence in enumerate(sequences):
        ids[s, : len(sequence)] = torch.tensor(sequence)
        mask[s, : len(sequence)] = 1
        place += [s * longest + i for i in range(len(sequence))]
    rows = torch.tensor([place[row] for row in data["rows"]])
    hidden = model.bert(input_ids=ids, attention_mask=mask).last_hidden_state.reshape(-1, model.config.hidden_size)
    loss = torch.nn.functional.cross_entropy(model.cls(hidden[rows]), torch.tensor(data["targets"]))
    for group in optimizer.param_groups:
        group["lr"] = data["rate"]
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(json.dumps({"step": step, "loss": loss.item()}), flush=True)
