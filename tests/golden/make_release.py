#!/usr/bin/env python3
"""Writes tests/golden/release_0.1: tiny run folders and the answers of the program that made them.

    make_release.py PROGRAM OUT

tests/e2e/compatibility_test.cc loads them with the program of today. The folder was written by commit
4a9ef4e and stays as it is: a later release adds a folder of its own. Everything computes in f32 with one
thread, so the numbers hardly depend on the CPU.
"""
import ctypes
import ctypes.util
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys

ANIMALS = ["cat", "dog", "fox", "owl", "hen", "cow"]
VERBS = ["sat", "ran", "hid", "sang"]
PLACES = ["mat", "box", "hill", "barn", "tree"]
SHAPE = "layers: 1 hidden: 16 heads: 2 intermediate: 32 max_positions: 40 initializer_range: 0.1"
PRE_NORM = "norm: PRE positions: SINUSOIDAL_START sinusoid_base: 1000 query_key_start: 2 norm_epsilon: 1e-5"


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def jsonl(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def tsv(rows):
    return "".join("\t".join(row) + "\n" for row in rows)


def sentence(i):
    return f"the {ANIMALS[i % 6]} {VERBS[i // 6 % 4]} by the {PLACES[i // 5 % 5]} ."


def make_data():
    write("data/text.txt", "".join(sentence(i * 7) + " " + sentence(i * 11 + 3) + "\n\n" for i in range(60)))
    write("data/classes.tsv", tsv([["text", "label"]] +
          [[sentence(i), "bird" if i % 6 in (3, 4) else "mammal"] for i in range(60)]))
    write("data/several.jsonl", jsonl({"text": sentence(i), "label": [ANIMALS[i % 6]] * (i % 3 > 0) + ["sang"] *
                                       (i // 6 % 4 == 3)} for i in range(60)))
    write("data/scores.tsv", tsv([["text", "label"]] + [[sentence(i), str(0.5 * (i // 5 % 5))] for i in range(60)]))
    write("data/pairs.tsv", tsv([["first", "second", "label"]] + [
        [sentence(i), sentence(i + i % 2), "same" if i % 2 == 0 else "other"] for i in range(60)]))
    write("data/long.tsv", tsv([["text", "label"]] + [
        [" ".join(sentence(i + j) for j in range(1 + i % 4)), "odd" if i % 2 else "even"] for i in range(60)]))
    tags = ""
    for i in range(60):
        for word in sentence(i).split():
            tags += word + (" B-ANIMAL\n" if word in ANIMALS else " B-PLACE\n" if word in PLACES else " O\n")
        tags += "\n"
    write("data/tags.conll", tags)
    write("data/new.txt", "the owl hid by the tree .\nA Cow, the HEN: caf\u00e9!\nthe fox " + "ran by the box . " * 12 +
          "\n\u96ea cat\n")
    write("data/new_pairs.txt", "the cat sat\tthe cat sat .\nthe dog ran by the hill .\tthe owl hid\n")


def make_roberta(out, vocab_size):
    """A RoBERTa-named masked LM with weights from a small generator, as Hugging Face writes its folders."""
    hidden, intermediate, positions = 16, 32, 42
    config = {
        "architectures": ["RobertaForMaskedLM"], "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "hidden_size": hidden, "initializer_range": 0.02, "intermediate_size": intermediate,
        "layer_norm_eps": 1e-5, "max_position_embeddings": positions, "model_type": "roberta", "num_attention_heads": 2,
        "num_hidden_layers": 1, "pad_token_id": 1, "type_vocab_size": 1, "vocab_size": vocab_size}
    shapes = {"roberta.embeddings.word_embeddings.weight": [vocab_size, hidden],
              "roberta.embeddings.position_embeddings.weight": [positions, hidden],
              "roberta.embeddings.token_type_embeddings.weight": [1, hidden]}

    def norm(name):
        shapes[name + ".weight"] = shapes[name + ".bias"] = [hidden]

    def linear(name, outputs, inputs):
        shapes[name + ".weight"], shapes[name + ".bias"] = [outputs, inputs], [outputs]

    norm("roberta.embeddings.LayerNorm")
    layer = "roberta.encoder.layer.0."
    for name in ("query", "key", "value"):
        linear(layer + "attention.self." + name, hidden, hidden)
    linear(layer + "attention.output.dense", hidden, hidden)
    norm(layer + "attention.output.LayerNorm")
    linear(layer + "intermediate.dense", intermediate, hidden)
    linear(layer + "output.dense", hidden, intermediate)
    norm(layer + "output.LayerNorm")
    linear("lm_head.dense", hidden, hidden)
    norm("lm_head.layer_norm")
    shapes["lm_head.bias"] = [vocab_size]

    state, header, data = 1, {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = []
        for _ in range(count):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            uniform = (state >> 40) / 2**24 - 0.5
            is_norm_weight = name.endswith(("LayerNorm.weight", "layer_norm.weight"))
            values.append(1.0 if is_norm_weight else 0.1 * uniform)
        begin = len(data)
        data += struct.pack(f"<{count}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(out)
    write(out + "/config.json", json.dumps(config, indent=2) + "\n")
    with open(out + "/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def spec(name, model, task, data, steps, fields="", batch="tokens: 512 micro_tokens: 256",
         optimizer="learning_rate: 0.01", more=""):
    write(f"specs/{name}.textproto", f"""model {{ {model} }}
{task}
train {{ files: "data/{data}" {fields} }}
validation {{ files: "data/{data}" {fields} max_examples: 20 }}
evaluation {{ every_steps: 10 }}
batch {{ {batch} }}
optimizer {{ {optimizer} }}
schedule {{ steps: {steps} }}
runtime {{ compute: F32 threads: 1 }}
output {{ directory: "runs/{name}" checkpoint_every_steps: 20 log_every_steps: 20 }}
{more}""")


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def xxh128(data):
    library = ctypes.CDLL(ctypes.util.find_library("xxhash"))
    library.XXH3_128bits.restype = Hash128
    library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    hashed = library.XXH3_128bits(data, len(data))
    return f"{hashed.high:016x}{hashed.low:016x}"


def replace_base(folder, base):
    """Writes another base into an adapter folder, and the MANIFEST that goes with it."""
    path = folder + "/adapter_config.json"
    text = re.sub(r'("base_model_name_or_path": )"[^"]*"', rf'\1"{base}"', open(path, encoding="utf-8").read())
    write(path, text)
    lines = open(folder + "/MANIFEST", encoding="utf-8").read().splitlines()[:-1]
    data = text.encode()
    lines = [f"{xxh128(data)} {len(data)} adapter_config.json" if line.endswith(" adapter_config.json") else line
             for line in lines]
    manifest = "\n".join(lines) + "\n"
    write(folder + "/MANIFEST", manifest + f"manifest {xxh128(manifest.encode())}\n")


class Maker:
    def __init__(self, program):
        self.program = program
        self.cases = []

    def run(self, *arguments):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def train(self, name, keep_checkpoints=False):
        command = "pretrain" if "masked_lm {" in open(f"specs/{name}.textproto").read() else "finetune"
        self.run(command, f"specs/{name}.textproto")
        if not keep_checkpoints:
            for entry in os.listdir(f"runs/{name}"):
                if entry == "cache" or entry == "log.jsonl" or entry.startswith("step-"):
                    path = f"runs/{name}/{entry}"
                    shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)

    def stop(self, name):
        """Ends a run by a signal soon after its second checkpoint."""
        process = subprocess.Popen([self.program, "pretrain", f"specs/{name}.textproto"], text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for line in process.stderr:
            if re.match(r"saved .*step-0*20$", line):
                process.send_signal(signal.SIGTERM)
        if process.wait() != 75:
            sys.exit(f"{name}: ended with {process.returncode}, not by the signal")

    def case(self, *arguments):
        out = self.run(*arguments)
        lines = [json.loads(line) for line in out.splitlines()] if out.startswith("{") else out.splitlines()
        self.cases.append({"arguments": list(arguments), "lines": lines})

    def encode(self, name, *arguments):
        self.run("encode", *arguments, "--out", f"expected/{name}.safetensors")
        self.cases.append({"arguments": ["encode", *arguments], "file": f"expected/{name}.safetensors"})


def main():
    program, out = os.path.abspath(sys.argv[1]), sys.argv[2]
    os.makedirs(out)
    os.chdir(out)
    make = Maker(program)
    make_data()
    make.run("vocab", "--text", "data/text.txt", "--size", "70", "--out", "vocab")
    make.run("vocab", "--kind", "bpe", "--text", "data/text.txt", "--size", "300", "--out", "bpe")
    make_roberta("roberta", len(json.load(open("bpe/vocab.json"))))

    new = f'tokenizer: "vocab" encoder {{ preset: CUSTOM {SHAPE} }}'
    pre = f'tokenizer: "vocab" encoder {{ preset: CUSTOM {SHAPE} {PRE_NORM} }}'
    start = 'start_from: "runs/pre_norm"'
    spec("post_norm", new, "masked_lm { max_tokens: 32 }", "text.txt", 60,
         batch="tokens: 2048 micro_tokens: 1024",
         optimizer="learning_rate: 0.001")
    spec("pre_norm", pre, "masked_lm { max_tokens: 32 unit: WORD random_share: 0.1 keep_share: 0.1 }", "text.txt", 150)
    spec("roberta", 'start_from: "roberta" tokenizer: "bpe"', "masked_lm { max_tokens: 32 }", "text.txt", 100)
    spec("classifier", start, "sequence_classification { max_tokens: 32 }", "classes.tsv", 150)
    spec("several", start, "sequence_classification { max_tokens: 32 kind: MULTI_LABEL threshold: 0.4 }",
         "several.jsonl", 150, optimizer="learning_rate: 0.01 ema_decay: 0.9")
    spec("regression", start, "sequence_classification { max_tokens: 32 kind: REGRESSION pooler: false }", "scores.tsv", 150)
    spec("pairs", new, "sequence_classification { max_tokens: 32 }", "pairs.tsv", 150,
         fields='text_field: "first" text_pair_field: "second"')
    spec("windows", start, "sequence_classification { max_tokens: 16 long_texts: WINDOWS label_smoothing: 0.1 }",
         "long.tsv", 150)
    spec("tagger", start, "token_tagging { max_tokens: 24 crf: true }", "tags.conll", 150)
    spec("plain_tagger", start, "token_tagging { max_tokens: 24 }", "tags.conll", 150)
    spec("lora", start, "sequence_classification { max_tokens: 32 }", "classes.tsv", 150,
         more="trainable { lora { rank: 2 targets: QUERY targets: INTERMEDIATE } }")
    spec("roberta_classifier", 'start_from: "runs/roberta"', "sequence_classification { max_tokens: 32 }", "classes.tsv", 150)

    # The run that is stopped, and what becomes of it when it is not.
    make.train("post_norm", keep_checkpoints=True)
    os.rename("runs/post_norm", "finished")
    for entry in os.listdir("finished"):
        if entry not in ("model.safetensors", "metrics.json", "samples.safetensors", "step-00000060"):
            path = f"finished/{entry}"
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    os.rename("finished/step-00000060/optimizer.safetensors", "finished/optimizer.safetensors")
    os.rename("finished/step-00000060/model.safetensors", "finished/last.safetensors")
    shutil.rmtree("finished/step-00000060")
    make.stop("post_norm")

    for name in ("pre_norm", "roberta", "classifier", "several", "regression", "pairs", "windows", "tagger", "plain_tagger",
                 "lora", "roberta_classifier"):
        make.train(name)
    shutil.rmtree("roberta")
    replace_base("runs/lora", "runs/pre_norm")

    os.makedirs("expected")
    for name in ("pre_norm", "roberta"):
        make.case("fill-mask", "--model", f"runs/{name}", "the [MASK] sat by the mat .", "the cat [MASK] by the [MASK] .")
        make.case("evaluate", "--model", f"runs/{name}", "--data", "data/text.txt")
        make.case("tokenize", "--model", f"runs/{name}", "data/new.txt")
        make.encode(name, "--model", f"runs/{name}", "data/new.txt")
    for name, data in (("classifier", "classes.tsv"), ("several", "several.jsonl"), ("regression", "scores.tsv"),
                       ("windows", "long.tsv"), ("lora", "classes.tsv"), ("roberta_classifier", "classes.tsv")):
        make.case("predict", "--model", f"runs/{name}", "data/new.txt")
        make.case("evaluate", "--model", f"runs/{name}", "--data", f"data/{data}")
    make.case("predict", "--pairs", "--model", "runs/pairs", "data/new_pairs.txt")
    make.case("evaluate", "--model", "runs/pairs", "--data", "data/pairs.tsv")
    for name in ("tagger", "plain_tagger"):
        make.case("tag", "--model", f"runs/{name}", "data/new.txt")
        make.case("tag", "--no-viterbi", "--model", f"runs/{name}", "data/new.txt")
        make.case("evaluate", "--model", f"runs/{name}", "--data", "data/tags.conll")
    write("expected/cases.jsonl", jsonl(make.cases))


if __name__ == "__main__":
    main()
