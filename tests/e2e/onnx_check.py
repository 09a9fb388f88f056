"""Compares exported models, FOLDER in f32 and FOLDER-int8, with transformers, on a padded batch of random ids. Called by onnx.sh: pairs of a model folder and an exported folder."""
import json, os, sys
import numpy as np, onnxruntime, torch, transformers

worst = 0.0
for folder, exported in zip(sys.argv[1::2], sys.argv[2::2]):
    name = os.path.basename(folder)
    architectures = json.load(open(os.path.join(folder, "config.json"))).get("architectures") or ["AutoModel"]
    model = getattr(transformers, architectures[0]).from_pretrained(folder).eval()
    session = onnxruntime.InferenceSession(os.path.join(exported, "model.onnx"), providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    lengths = [14, 3, 9]
    ids = random.integers(5, model.config.vocab_size, (3, max(lengths)))
    mask = np.array([[int(i < n) for i in range(max(lengths))] for n in lengths])
    ids[mask == 0] = model.config.pad_token_id or 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if "token_type_ids" in [i.name for i in session.get_inputs()]:
        inputs["token_type_ids"] = np.array([[int(i > 4 and i < n) for i in range(max(lengths))] for n in lengths])
    with torch.no_grad():
        theirs = model(**{key: torch.tensor(value) for key, value in inputs.items()})
    int8 = onnxruntime.InferenceSession(os.path.join(exported + "-int8", "model.onnx"), providers=["CPUExecutionProvider"])
    ours = dict(zip([o.name for o in session.get_outputs()], zip(session.run(None, inputs), int8.run(None, inputs))))
    for key, (value, quantized) in ours.items():
        if key == "sentence_embedding":
            hidden = theirs["last_hidden_state"].numpy()
            wanted = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
        else:
            wanted = theirs[key].numpy()
        assert value.shape == wanted.shape, (name, key, value.shape, wanted.shape)
        if key in ("start_logits", "end_logits"):  # the best token of each text
            best = [np.where(mask == 1, x, -np.inf).argmax(-1) for x in (quantized, wanted)]
            assert (best[0] == best[1]).all(), (name, key)
        if value.ndim > 1 and value.shape[1] == mask.shape[1] and key != "sentence_embedding":
            value, wanted, quantized = value[mask == 1], wanted[mask == 1], quantized[mask == 1]
        error = np.abs(value - wanted)
        loss = np.abs(quantized - wanted).max()
        assert loss <= 0.01 * max(1, np.abs(wanted).max()), (name, key, loss)
        same = ""
        if key == "logits" and wanted.ndim > 1:
            equal = (quantized.argmax(-1) == wanted.argmax(-1)).mean()
            # Random weights have close scores for several of many tokens.
            assert equal == 1 or wanted.shape[-1] >= 100 and equal >= 0.9, (name, key, equal)
            same = f", {100 * equal:.0f} % equal labels"
        print(f"{name} {key}: largest difference {error.max():.2g}, int8 {loss:.2g}{same}")
        worst = max(worst, float(error.max()))
        assert error.max() <= 1e-5, (name, key)
print(f"all equal; largest difference {worst:.2g}")
