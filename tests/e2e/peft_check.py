"""Applies PEFT's formula to adapters of `cloze` in transformers and compares probabilities. Called by peft.sh with the folder that it made.

W' = W + s B A with s = alpha / r, or alpha / sqrt(r) for rsLoRA, in the modules that target_modules names; modules_to_save are replaced."""
import json, math, os, re, sys
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification
from transformers.pytorch_utils import Conv1D

try:
    import peft
except ImportError:
    peft = None

work = sys.argv[1]
PREFIX = "base_model.model."
worst = 0.0


def read(path):
    return json.load(open(path))


def is_target(name, targets):  # peft.tuners.tuners_utils.check_target_module_exists
    if isinstance(targets, str):
        return re.fullmatch(targets, name) is not None
    return name in targets or any(name.endswith("." + t) for t in targets)


def base_of(folder, name):
    labels = read(os.path.join(folder, "config.json"))["id2label"] if os.path.exists(os.path.join(folder, "config.json")) else {"0": 0, "1": 1, "2": 2}
    base = os.path.join(work, name.split("-")[0] + "-base")
    return AutoModelForSequenceClassification.from_pretrained(base, num_labels=len(labels)).eval()


def apply(model, folder):
    """Folds the adapter into the model; every tensor of the file must be used, and every target have its tensors."""
    config = read(os.path.join(folder, "adapter_config.json"))
    tensors = load_file(os.path.join(folder, "adapter_model.safetensors"))
    scale = config["lora_alpha"] / (math.sqrt(config["r"]) if config.get("use_rslora") else config["r"])
    unused = set(tensors)
    largest = 0.0
    with torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, (torch.nn.Linear, Conv1D)) and is_target(name, config["target_modules"]):
                a, b = (tensors[f"{PREFIX}{name}.lora_{x}.weight"] for x in "AB")
                assert config["fan_in_fan_out"] == isinstance(module, Conv1D) if "fan_in_fan_out" in config else isinstance(module, torch.nn.Linear), name
                weight = module.weight.T if isinstance(module, Conv1D) else module.weight  # [out, in]
                assert a.shape == (config["r"], weight.shape[1]) and b.shape == (weight.shape[0], config["r"]), name
                weight += scale * (b @ a)
                largest = max(largest, float((scale * (b @ a)).abs().max()))
                unused -= {f"{PREFIX}{name}.lora_{x}.weight" for x in "AB"}
        for name, parameter in model.named_parameters():
            if any(name.startswith(m + ".") or f".{m}." in name for m in config["modules_to_save"] or []):
                parameter.copy_(tensors[PREFIX + name])
                unused.discard(PREFIX + name)
    assert not unused, unused
    assert largest > 1e-3, "B was not trained"
    return model


def probabilities(model, ids):
    rows = []
    for sequence in ids:
        with torch.no_grad():
            rows.append(model(input_ids=torch.tensor([sequence]), attention_mask=torch.ones(1, len(sequence), dtype=torch.long)).logits[0].softmax(-1))
    return torch.stack(rows)


def compare(name, folder, out, want, labels):
    global worst
    lines = [json.loads(line) for line in open(out)]
    ours = torch.tensor([[line["scores"][label] for label in labels] for line in lines])
    error = float((ours - want).abs().max())
    worst = max(worst, error)
    print(f"{name}: largest difference {error:.2g}")
    assert error <= 1e-5, name


def ids_of(name):
    return [json.loads(line)["ids"] for line in open(os.path.join(work, name + ".ids.jsonl"))]


if len(sys.argv) > 2:  # the adapter that this script wrote before
    folder = os.path.join(work, "python")
    want = load_file(os.path.join(work, "python.want.safetensors"))["want"]
    compare("written by Python", folder, os.path.join(work, "python.out.jsonl"), want, ["LABEL_0", "LABEL_1", "LABEL_2"])
    sys.exit()

names = sorted(f[:-len("-merged")] for f in os.listdir(work) if f.endswith("-merged"))
assert len(names) == 2 * 3 + 7 * 2, names
for name in names:
    folder = os.path.join(work, name)
    labels = [label for _, label in sorted(read(os.path.join(folder, "config.json"))["id2label"].items())]
    want = probabilities(apply(base_of(folder, name), folder), ids_of(name))
    compare(f"{name} by PEFT's formula", folder, folder + ".out.jsonl", want, labels)
    merged = AutoModelForSequenceClassification.from_pretrained(folder + "-merged").eval()
    compare(f"{name} merged, in transformers", folder, folder + "-merged.out.jsonl", probabilities(merged, ids_of(name)), labels)
    compare(f"{name} merged, in both", folder, folder + "-merged.out.jsonl", want, labels)
    if peft is not None:
        model = peft.PeftModel.from_pretrained(base_of(folder, name), folder).eval()
        compare(f"{name} in PEFT", folder, folder + ".out.jsonl", probabilities(model, ids_of(name)), labels)

# A decoder: hidden states.
folder = os.path.join(work, "gpt2-lora")
assert {t.split(".")[-1] for t in read(os.path.join(folder, "adapter_config.json"))["target_modules"]} == {"c_attn", "c_proj", "c_fc"}
models = [apply(AutoModelForCausalLM.from_pretrained(os.path.join(work, "gpt2-base")).eval(), folder).transformer]
if peft is not None:
    models.append(peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(os.path.join(work, "gpt2-base")).eval(), folder).eval().base_model.model.transformer)
hidden = load_file(folder + ".hidden.safetensors")
for i, ids in enumerate(ids_of("gpt2-lora")):
    for model in models:
        with torch.no_grad():
            error = float((model(torch.tensor([ids])).last_hidden_state[0] - hidden[str(i)]).abs().max())
        worst = max(worst, error)
        assert error <= 1e-5, (i, error)
print("gpt2-lora by PEFT's formula: equal")

# The other way round: a folder as PEFT writes it, with random A, B and classifier.
torch.manual_seed(1)
folder = os.path.join(work, "python")
os.makedirs(folder, exist_ok=True)
tensors = {}
model = base_of(folder, "post-base")
for name, module in model.named_modules():
    if isinstance(module, torch.nn.Linear) and is_target(name, ["query", "value"]):
        tensors[f"{PREFIX}{name}.lora_A.weight"] = torch.randn(4, module.in_features) * 0.2
        tensors[f"{PREFIX}{name}.lora_B.weight"] = torch.randn(module.out_features, 4) * 0.2
for name, parameter in model.named_parameters():
    if name.startswith("classifier.") or ".pooler." in name:
        tensors[PREFIX + name] = torch.randn_like(parameter) * 0.3
save_file(tensors, os.path.join(folder, "adapter_model.safetensors"), metadata={"format": "pt"})
json.dump({"peft_type": "LORA", "task_type": "SEQ_CLS", "r": 4, "lora_alpha": 8, "target_modules": ["query", "value"], "inference_mode": True,
           "base_model_name_or_path": None, "modules_to_save": ["classifier", "pooler"]}, open(os.path.join(folder, "adapter_config.json"), "w"))
save_file({"want": probabilities(apply(model, folder), ids_of("post-default"))}, os.path.join(work, "python.want.safetensors"))
print(f"all equal; largest difference {worst:.2g}")
