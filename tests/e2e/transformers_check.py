"""Loads what `cloze` saved in transformers and compares logits and tokenizer. Called by transformers.sh with the folder that it made."""
import inspect, itertools, json, os, sys
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import (AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForPreTraining, AutoModelForQuestionAnswering, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification,
                          AutoModelForTokenClassification, AutoTokenizer, ElectraConfig, ElectraForMaskedLM)

# Families beside BERT: model_type and its configuration.
SIZES = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96, max_position_embeddings=34, initializer_range=0.2)
DEBERTA = dict(relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm", position_biased_input=False)
DECODER = dict(d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3, decoder_attention_heads=3, encoder_ffn_dim=96, decoder_ffn_dim=96,
               max_position_embeddings=34, init_std=0.2)
FAMILIES = {
    "roberta": ("roberta", SIZES | dict(type_vocab_size=1, layer_norm_eps=1e-5)),
    "xlm-roberta": ("xlm-roberta", SIZES | dict(type_vocab_size=1, layer_norm_eps=1e-5)),
    "camembert": ("camembert", SIZES | dict(type_vocab_size=1, layer_norm_eps=1e-5)),
    "distilbert": ("distilbert", dict(dim=48, n_layers=2, n_heads=3, hidden_dim=96, max_position_embeddings=32, initializer_range=0.2)),
    "electra": ("electra", SIZES | dict(embedding_size=24)),
    "albert": ("albert", SIZES | dict(embedding_size=24)),
    "modernbert": ("modernbert", SIZES | dict(num_hidden_layers=4, local_attention=6, pad_token_id=0, bos_token_id=2, cls_token_id=2, eos_token_id=3, sep_token_id=3)),
    "nomic_bert": ("nomic_bert", SIZES | dict(pad_token_id=0)),
    "mpnet": ("mpnet", SIZES),
    "deberta-v2": ("deberta-v2", SIZES | DEBERTA | dict(share_att_key=True)),
    "deberta-v2-xlarge": ("deberta-v2", SIZES | DEBERTA | dict(type_vocab_size=2, position_biased_input=True, conv_kernel_size=3, conv_act="gelu")),
    "gpt2": ("gpt2", dict(n_embd=48, n_layer=2, n_head=3, n_positions=32, initializer_range=0.2, bos_token_id=0, eos_token_id=2)),
    "bart": ("bart", DECODER | dict(pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)),
    "marian": ("marian", DECODER | dict(pad_token_id=1, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=2, scale_embedding=True)),
    "albert-groups": ("albert", SIZES | dict(embedding_size=48, num_hidden_groups=2, inner_group_num=2)),
}
work = sys.argv[1]
if sys.argv[2] == "make":
    name, vocabulary = sys.argv[3:]
    torch.manual_seed(1)
    words = Tokenizer.from_file(os.path.join(work, vocabulary, "tokenizer.json")).get_vocab_size()
    kind, config = FAMILIES[name]
    cls = {"gpt2": AutoModelForCausalLM, "bart": AutoModelForSeq2SeqLM, "marian": AutoModelForSeq2SeqLM}.get(kind, AutoModelForMaskedLM)
    cls.from_config(AutoConfig.for_model(kind, vocab_size=words, **config)).save_pretrained(os.path.join(work, f"{name}-start"))
    sys.exit(0)
worst = 0.0


def lines(name):
    return [line.rstrip("\n") for line in open(os.path.join(work, name))]


def compare(name, ours, theirs):
    global worst
    error = float((ours - theirs).abs().max())
    worst = max(worst, error)
    print(f"{name}: largest difference {error:.2g}")
    assert error <= 1e-5, name


def load(folder, cls):
    model, info = cls.from_pretrained(folder, output_loading_info=True)
    extra = {"crf.start_transitions", "crf.transitions", "crf.end_transitions"} if folder.endswith("-crf") else set()
    assert not info["missing_keys"] and set(info["unexpected_keys"]) == extra and not info["mismatched_keys"], (folder, info)
    if model.config.model_type in ("bert", "roberta-prelayernorm", "distilbert", "electra"):
        return model.eval(), AutoTokenizer.from_pretrained(folder)
    # Other classes expect other kinds of tokenizers, or differ on RobertaProcessing's arguments; the file itself is read.
    file = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    return model.eval(), lambda *texts, **_: {"input_ids": torch.tensor([file.encode(*texts).ids])}


def scores_of(model, logits):
    """What `cloze predict` calls scores, by the problem_type that it wrote."""
    kind = model.config.problem_type
    return {"single_label_classification": lambda: logits.softmax(-1), "multi_label_classification": logits.sigmoid, "regression": lambda: logits}[kind]()


def labelled(kind, model):
    """The labelled texts, each with its target as transformers takes it."""
    if kind == "several":
        names = [model.config.id2label[c] for c in range(model.config.num_labels)]
        return [([row["text"]], [float(n in row["label"]) for n in names]) for row in map(json.loads, lines("several.jsonl"))]
    rows = [line.split("\t") for line in lines("pairs.tsv" if kind == "number" else "classes.tsv")[1:]]
    return [(row[:-1], float(row[-1]) if kind == "number" else model.config.label2id[row[-1]]) for row in rows]


def check_loss(norm, kind, model, tokenizer):
    """The loss of `cloze evaluate` is the one by which transformers would train."""
    losses = []
    for texts, target in labelled(kind, model):
        batch = tokenizer(*texts, truncation=True, max_length=24, return_tensors="pt")
        with torch.no_grad():
            losses.append(model(**batch, labels=torch.tensor([target])).loss)
    ours = json.load(open(os.path.join(work, f"{norm}-{kind}.metrics.json")))["mse" if kind == "number" else "loss"]
    compare(f"{norm}-{kind} loss", torch.tensor(ours), torch.stack(losses).mean())


def marginals(logits, file):
    """Each word's label probabilities under a CRF, by adding up all paths."""
    start, between, end = (file["crf." + name].double() for name in ("start_transitions", "transitions", "end_transitions"))
    words, labels = logits.shape
    paths = torch.tensor(list(itertools.product(range(labels), repeat=words)))
    scores = start[paths[:, 0]] + end[paths[:, -1]] + between[paths[:, :-1], paths[:, 1:]].sum(1) + logits.double()[range(words), paths].sum(1)
    chosen = torch.nn.functional.one_hot(paths, labels)
    return (scores.softmax(0)[:, None, None] * chosen).sum(0).float()


def check_tags(name, folder, model, tokenizer):
    """The score of each word's label, from the logits of its first piece."""
    for i, (text, line) in enumerate(zip(sentences, lines(f"{name}.tags.jsonl"), strict=True)):
        words = json.loads(line)["words"]
        batch = tokenizer(text, return_offsets_mapping=True, return_tensors="pt")
        starts = batch.pop("offset_mapping")[0, :, 0].tolist()
        with torch.no_grad():
            logits = model(**batch).logits[0, [starts.index(word["start"], 1) for word in words]]
        p = marginals(logits, load_file(os.path.join(folder, "model.safetensors"))) if name.endswith("-crf") else logits.softmax(-1)
        labels = [model.config.label2id[word["label"]] for word in words]
        compare(f"{name} tags {i}", torch.tensor([word["score"] for word in words]), p[range(len(words)), labels])
        assert name.endswith("-crf") or labels == logits.argmax(-1).tolist(), folder


def check_answers(name, model, tokenizer):
    """The best span of each context, and its share of the probability of starts and ends in the context."""
    for i, (pair, line) in enumerate(zip(lines("questions.txt"), lines(f"{name}.out.jsonl"), strict=True)):
        question, context = pair.split("\t")
        batch = tokenizer(question, context, return_offsets_mapping=True, return_token_type_ids=True, return_tensors="pt")
        offsets = batch.pop("offset_mapping")[0].tolist()
        inside = [t for t, part in enumerate(batch["token_type_ids"][0].tolist()) if part == 1][:-1]
        with torch.no_grad():
            out = model(**{name: batch[name] for name in batch if name in inspect.signature(model.forward).parameters})
        start, end = out.start_logits[0, inside], out.end_logits[0, inside]
        sums = (start[:, None] + end[None, :]).masked_fill(torch.ones(len(inside), len(inside)).tril(-1).bool(), -1e9)
        first, last = divmod(int(sums.argmax()), len(inside))
        answer = json.loads(line)
        assert (answer["start"], answer["end"]) == (offsets[inside[first]][0], offsets[inside[last]][1]), (name, pair)
        compare(f"{name} answer {i}", torch.tensor(answer["score"]), start.softmax(0)[first] * end.softmax(0)[last])


def check_generated(name, model):
    """Greedy search and beams give the same tokens."""
    for beams in (1, 3):
        for prompt, ours in zip(lines("prompts.ids"), lines(f"{name}.generated-{beams}"), strict=True):
            ids = torch.tensor([[int(word) for word in prompt.split()]])
            theirs = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=15, num_beams=beams, do_sample=False, eos_token_id=2, pad_token_id=2)[0].tolist()
            while theirs[-2:] == [2, 2]:  # padding
                theirs.pop()
            assert [int(word) for word in ours.split()] == theirs, (name, beams, ours, theirs)


def check_targets(name):
    """A model of sequence_to_sequence loads and writes the same targets."""
    model, info = AutoModelForSeq2SeqLM.from_pretrained(os.path.join(work, name), output_loading_info=True)
    missing = {key for key in info["missing_keys"] if not key.startswith("encoder.pooler.") and "embed_positions" not in key}
    assert not missing and not info["unexpected_keys"] and not info["mismatched_keys"], (name, info)
    for beams in (1, 3):
        for source, ours in zip(lines("prompts.ids"), lines(f"{name}.generated-{beams}"), strict=True):
            ids = torch.tensor([[int(word) for word in source.split()]])
            theirs = model.eval().generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=15, num_beams=beams, do_sample=False)[0].tolist()
            assert [int(word) for word in ours.split()] == theirs, (name, beams, ours, theirs)
    print(f"{name}: the same targets")


def check_scores(name, folder, model):
    """`cloze score`: the sum over all tokens of the logarithm of their probability when they alone are masked."""
    tokens = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    mask = tokens.token_to_id("[MASK]" if tokens.token_to_id("<mask>") is None else "<mask>")
    for sentence, line in zip(sentences, lines(f"{name}.score.jsonl"), strict=True):
        ids = torch.tensor(tokens.encode(sentence).ids)
        inner = torch.arange(1, len(ids) - 1)
        masked = ids.repeat(len(inner), 1)
        masked[torch.arange(len(inner)), inner] = mask
        with torch.no_grad():
            logs = model(input_ids=masked).logits.log_softmax(-1)
        theirs = float(logs[torch.arange(len(inner)), inner, ids[inner]].sum())
        ours = json.loads(line)
        print(f"{name} score: difference {abs(ours['score'] - theirs):.2g}")
        assert ours["token_count"] == len(inner) and abs(ours["score"] - theirs) <= 1e-4, (name, sentence, ours, theirs)


def check_vectors(name):
    """A folder of sentence-transformers: its modules, in that library if Python has it, and their arithmetic."""
    folder = os.path.join(work, name)
    read = lambda file: json.load(open(os.path.join(folder, file)))
    modules = [m["type"].split(".")[-1] for m in read("modules.json")]
    assert modules == ["Transformer", "Pooling", "Normalize"], modules
    assert read("config_sentence_transformers.json")["prompts"]["query"] == "the film"
    (mode,) = (k.split("_")[2] for k, v in read("1_Pooling/config.json").items() if k.startswith("pooling_mode") and v)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    ours = torch.tensor([json.loads(line)["vector"] for line in lines(f"{name}.jsonl")])
    compare(f"{name} by --pool", load_file(folder + ".safetensors")["vectors"], ours)
    for i, text in enumerate(sentences):
        batch = tokenizer(text, truncation=True, max_length=read("sentence_bert_config.json")["max_seq_length"], return_tensors="pt")
        with torch.no_grad():
            hidden = model(**batch).last_hidden_state[0]
        vector = {"cls": hidden[0], "mean": hidden.mean(0), "max": hidden.max(0).values}[mode]
        compare(f"{name} {i}", ours[i], torch.nn.functional.normalize(vector, dim=0))
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        return
    compare(f"{name} in sentence-transformers", ours, torch.tensor(SentenceTransformer(folder, device="cpu").encode(sentences)))


sentences, pairs = lines("sentences.txt"), [line.split("\t") for line in lines("pairs.txt")]
kinds = {"causal": AutoModelForCausalLM, "merged": AutoModelForCausalLM, "start": AutoModelForMaskedLM, "mlm": AutoModelForMaskedLM, "classifier": AutoModelForSequenceClassification, "tagger": AutoModelForTokenClassification,
         "replaced": AutoModelForPreTraining, "crf": AutoModelForTokenClassification, "several": AutoModelForSequenceClassification, "number": AutoModelForSequenceClassification, "question": AutoModelForQuestionAnswering}
for norm in ("post", "pre", *(name for name in FAMILIES if name not in ("bart", "marian")), "new-electra", "new-albert", "new-deberta", "modern", "new-gpt2"):
    for kind, cls in kinds.items():
        cls = AutoModelForCausalLM if norm == "gpt2" else cls
        folder = os.path.join(work, f"{norm}-{kind}")
        if not os.path.exists(folder) or (norm, kind) == ("nomic_bert", "question"):  # transformers has no such class
            continue
        model, tokenizer = load(folder, cls)
        ours_ids = [json.loads(line)["ids"] for line in lines(f"{norm}-{kind}.ids.jsonl")]
        assert ours_ids == [torch.as_tensor(tokenizer(s)["input_ids"]).flatten().tolist() for s in sentences], folder
        hidden = load_file(folder + ".hidden.safetensors")
        for i, ids in enumerate(ours_ids):
            with torch.no_grad():
                base = getattr(model, model.base_model_prefix)(torch.tensor([ids])).last_hidden_state[0]
            compare(f"{norm}-{kind} hidden {i}", hidden[str(i)], base)
        if kind == "mlm":
            check_scores(f"{norm}-{kind}", folder, model)
        if cls is AutoModelForCausalLM:
            check_generated(f"{norm}-{kind}", model)
        if cls is AutoModelForTokenClassification and norm in ("post", "pre"):
            check_tags(f"{norm}-{kind}", folder, model, tokenizer)
        if cls is AutoModelForQuestionAnswering and norm in ("post", "pre"):
            check_answers(f"{norm}-{kind}", model, tokenizer)
        if cls is not AutoModelForSequenceClassification:
            continue
        if norm in ("post", "pre"):
            check_loss(norm, kind, model, tokenizer)
        texts = pairs if kind == "number" else [[s] for s in sentences]
        for i, (text, line) in enumerate(zip(texts, lines(f"{norm}-{kind}.out.jsonl"), strict=True)):
            batch = tokenizer(*text, truncation=True, max_length=24, return_tensors="pt")
            if norm not in ("post", "pre"):
                batch = {"input_ids": torch.as_tensor(batch["input_ids"])}
            with torch.no_grad():
                theirs = scores_of(model, model(**batch).logits[0])
            answer = json.loads(line)
            names = [model.config.id2label[c] for c in range(model.config.num_labels)]
            ours = [answer["score"]] if kind == "number" else [answer["scores"][n] for n in names]
            compare(f"{norm}-{kind} scores {i}", torch.tensor(ours), theirs)
            if kind == "several":
                assert answer["labels"] == [n for n, p in zip(names, theirs) if p >= 0.5], folder
for name in ("bart-targets", "marian-targets", "bert-targets", "roberta-targets"):
    check_targets(name)
for name in ("vectors-CLASS", "vectors-MEAN", "vectors-MAX"):
    check_vectors(name)
folder = os.path.join(work, "new-electra-replaced")
generator, info = ElectraForMaskedLM.from_pretrained(
    folder, config=ElectraConfig.from_json_file(f"{folder}/generator_config.json"), variant="generator", output_loading_info=True)
assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
own = load_file(f"{folder}/model.safetensors")["electra.embeddings.word_embeddings.weight"]
assert torch.equal(generator.electra.embeddings.word_embeddings.weight, own), "the embeddings are shared"
print(f"all equal; largest difference {worst:.2g}")
