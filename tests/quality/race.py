"""Trains OUT/start on OUT/steps.jsonl (see batches.cc) in PyTorch for MINUTES, and saves OUT/torch.

race.py OUT MINUTES [MUON_RATE]. The fastest loop found with transformers on a CPU: bf16 where the CPU has it, eager
attention (sdpa is slower for short sequences), logits of masked tokens only, fused AdamW, and sequences of similar length
together so that little is padded. The learning rate and the batch follow the share of the time, as with
schedule.time_budget_minutes. MUON_RATE, as optimizer.muon_rate: torch.optim.Muon for the matrices of the blocks.
"""
import json, sys, time
import torch
from transformers import ModernBertConfig, ModernBertForMaskedLM

folder, seconds, muon_rate = sys.argv[1], 60 * float(sys.argv[2]), float((sys.argv[3:] or [0])[0])
config = ModernBertConfig.from_pretrained(folder + "/start")
config.reference_compile = False
model = ModernBertForMaskedLM.from_pretrained(folder + "/start", config=config, attn_implementation="eager").float().train()
fast_bf16 = any(flag in open("/proc/cpuinfo").read() for flag in ("avx512_bf16", "amx_bf16"))
GROUPS = 2  # of a batch, each padded to its own length
DECAY = 0.1  # optimizer.weight_decay of the spec


def groups(data):
    sequences, rows = data["sequences"], iter(zip(data["rows"], data["targets"]))
    row, target = next(rows, (None, None))
    items, first = [], 0
    for sequence in sequences:
        labels = [-100] * len(sequence)
        while row is not None and row < first + len(sequence):
            labels[row - first] = target
            row, target = next(rows, (None, None))
        items.append((sequence, labels))
        first += len(sequence)
    items.sort(key=lambda item: len(item[0]))
    size = -(-len(items) // GROUPS)
    for at in range(0, len(items), size):
        part = items[at : at + size]
        longest = len(part[-1][0])
        pad = lambda xs, value: xs + [value] * (longest - len(xs))
        yield (torch.tensor([pad(s, 0) for s, _ in part]), torch.tensor([pad([1] * len(s), 0) for s, _ in part]),
               torch.tensor([pad(l, -100) for _, l in part]))


blocks = [p for n, p in model.named_parameters() if p.dim() > 1 and ".layers." in n]
taken = {id(p) for p in blocks} if muon_rate else set()
others = [p for p in model.parameters() if id(p) not in taken]
decay = [p for p in others if p.dim() > 1], [p for p in others if p.dim() <= 1]
optimizers = [torch.optim.AdamW([{"params": decay[0], "weight_decay": DECAY}, {"params": decay[1], "weight_decay": 0.0}],
                                betas=(0.9, 0.98), eps=1e-6, fused=True)]
factors = [1.0]
if muon_rate:
    optimizers.append(torch.optim.Muon(blocks, weight_decay=DECAY, momentum=0.9, ns_steps=4, adjust_lr_fn="match_rms_adamw"))
    factors.append(muon_rate)
lines = open(folder + "/steps.jsonl").readlines()
start = time.perf_counter()
tokens = step = at = 0
while (share := (time.perf_counter() - start) / seconds) < 1:
    # The batch for this share of the run, which decides on its rate, size and masks.
    at = max(at + 1, int(share * len(lines)))
    if at >= len(lines):
        sys.exit("steps.jsonl has too few steps")
    data = json.loads(lines[at])
    count = len(data["targets"])
    loss = 0.0
    for ids, mask, labels in groups(data):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=fast_bf16):
            hidden = model.model(input_ids=ids, attention_mask=mask).last_hidden_state
            place = labels.view(-1) != -100
            logits = model.decoder(model.head(hidden.reshape(-1, hidden.shape[-1])[place]))
        part = torch.nn.functional.cross_entropy(logits.float(), labels.view(-1)[place], reduction="sum") / count
        part.backward()
        loss += part.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer, factor in zip(optimizers, factors):
        for group in optimizer.param_groups:
            group["lr"] = data["rate"] * factor
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    tokens += sum(map(len, data["sequences"]))
    step += 1
    if step % 20 == 0:
        spent = time.perf_counter() - start
        print(f"step {step}  loss {loss:.4f}  {tokens / spent:.0f} tokens/s  {share:.3f}", file=sys.stderr, flush=True)
model.save_pretrained(folder + "/torch")
print(json.dumps({"steps": step, "tokens": tokens, "seconds": time.perf_counter() - start}))
