#!/usr/bin/env bash
# clients.sh CLOZE CLOZE_SERVE: the npm packages openai and @huggingface/inference against cloze-serve, and Python's openai if
# $CLOZE_PYTHON (default: python3), which may run in a chroot, has it. Skipped (77) without node, npm or its registry.
# $CLIENTS: a folder with a node_modules to use instead.
set -euo pipefail
command -v node > /dev/null && command -v npm > /dev/null || { echo "no node or npm"; exit 77; }
here=$(realpath "$(dirname "$0")")
cloze=$(realpath "${1:?usage: clients.sh CLOZE CLOZE_SERVE}") serve=$(realpath "${2:?}")
source "$here/models.sh"
pid=
trap 'kill "$pid" 2> /dev/null || true; rm -rf "$work"' EXIT
if [ -n "${CLIENTS:-}" ]; then
  ln -s "$(realpath "$CLIENTS")/node_modules" .
else
  timeout 120 npm install --no-audit --no-fund --silent openai @huggingface/inference > npm.log 2>&1 || { echo "npm's registry cannot be reached"; exit 77; }
fi
make_models
echo secret > key
"$serve" --model cls --model tags --model mlm --model vectors --api-key-file key --listen 127.0.0.1:0 2> serve.log &
pid=$!
await grep -q listening serve.log
url=http://$(sed -n 's/.*listening on //p' serve.log)
cat > clients.mjs << 'END'
import assert from "node:assert";
import OpenAI from "openai";
import { InferenceClient } from "@huggingface/inference";
const url = process.argv[2], text = "Number 3, the parcel is wrong.";
const near = (a, b) => assert.ok(a.length === b.length && a.every((x, i) => Math.abs(x - b[i]) < 1e-6), `${a} ${b}`);

const openai = new OpenAI({ apiKey: "secret", baseURL: url + "/v1", maxRetries: 0 });
assert.deepEqual((await openai.models.list()).data.map(m => m.id), ["cls", "tags", "mlm", "vectors"]);
const base64 = await openai.embeddings.create({ model: "vectors", input: [text, "card"] });  // its default is base64
const float = await openai.embeddings.create({ model: "vectors", input: [text, "card"], encoding_format: "float" });
assert.equal(base64.data.length, 2);
for (const i of [0, 1]) near(base64.data[i].embedding, float.data[i].embedding);
assert.ok(float.usage.prompt_tokens > 5);
assert.equal((await openai.embeddings.create({ model: "vectors", input: text, dimensions: 16 })).data[0].embedding.length, 16);
const refused = async (f, type, code, param) => {
  const error = await f().then(() => assert.fail("not refused"), e => e);
  assert.ok(error instanceof type, String(error));
  assert.deepEqual([error.code, error.param ?? null], [code, param]);
};
await refused(() => openai.embeddings.create({ model: "none", input: text }), OpenAI.UnprocessableEntityError, "invalid_value", "model");
await refused(() => openai.embeddings.create({ model: "vectors", input: [[1, 2]] }), OpenAI.UnprocessableEntityError, "invalid_value", "input");
await refused(() => openai.embeddings.create({ model: "vectors", input: "" }), OpenAI.BadRequestError, "empty", "input");
const stranger = new OpenAI({ apiKey: "wrong", baseURL: url + "/v1", maxRetries: 0 });
await refused(() => stranger.models.list(), OpenAI.AuthenticationError, "invalid_api_key", null);

const hf = new InferenceClient("secret"), at = model => ({ endpointUrl: `${url}/?model=${model}` });
const vector = await hf.featureExtraction({ ...at("vectors"), inputs: text });
near(vector[0], float.data[0].embedding);
const close = await hf.sentenceSimilarity({ ...at("vectors"), inputs: { source_sentence: text, sentences: [text, "card"] } });
assert.ok(Math.abs(close[0] - 1) < 1e-5 && close[1] < 1);
const labels = await hf.textClassification({ ...at("cls"), inputs: text });
assert.equal(labels.length, 2);
assert.ok(labels[0].score >= labels[1].score);
const entities = await hf.tokenClassification({ ...at("tags"), inputs: text });
assert.ok(entities.some(e => text.slice(e.start, e.end) === e.word && e.entity_group), JSON.stringify(entities));
const fillings = await hf.fillMask({ ...at("mlm"), inputs: "the <mask> is wrong" });
assert.equal(fillings.length, 5);
assert.equal(fillings[0].sequence, `the ${fillings[0].token_str} is wrong`);

// The page: its script, with stand-ins for what a browser gives it, asks each model.
const page = await (await fetch(url + "/", { headers: { Authorization: "Bearer secret" } })).text();
const options = [...page.matchAll(/<option value="(\w+)" data-kind="(\w+)">/g)];
assert.equal(options.length, 4);
for (const [, value, kind] of options) {
  const elements = { model: { selectedOptions: [{ value, dataset: { kind } }] }, text: { value: text + " <mask>\n\nthe card" }, ask: {}, answer: {}, time: {} };
  const asBrowser = (route, init) => fetch(`${url}/${route}`, { ...init, headers: { Authorization: "Basic " + btoa("me:secret") } });
  new Function("document", "fetch", page.match(/<script>([^]*)<\/script>/)[1])({ getElementById: id => elements[id] }, asBrowser);
  await elements.ask.onclick();
  const answer = JSON.parse(elements.answer.textContent);
  assert.ok(kind === "masked_lm" ? answer.error.includes("no <mask>") : answer.length === 2, elements.answer.textContent);
}
console.log("clients: ok");
END
timeout 60 node clients.mjs "$url" || { cat serve.log >&2; exit 1; }

python=${CLOZE_PYTHON:-python3}
$python -c 'import openai' 2> /dev/null || { echo "clients: $python has no openai"; exit 0; }
timeout 60 $python - "$url" << 'END' || { cat serve.log >&2; exit 1; }
import sys
import openai
client = openai.OpenAI(api_key="secret", base_url=sys.argv[1] + "/v1", max_retries=0)
assert [model.id for model in client.models.list()] == ["cls", "tags", "mlm", "vectors"]
texts = ["Number 3, the parcel is wrong.", "card"]
base64 = client.embeddings.create(model="vectors", input=texts)  # its default
floats = client.embeddings.create(model="vectors", input=texts, encoding_format="float")
for a, b in zip(base64.data, floats.data):
    assert max(abs(x - y) for x, y in zip(a.embedding, b.embedding)) < 1e-6
assert len(client.embeddings.create(model="vectors", input="card", dimensions=16).data[0].embedding) == 16
for wrong, error in (("", openai.BadRequestError), ([[1, 2]], openai.UnprocessableEntityError)):
    try:
        client.embeddings.create(model="vectors", input=wrong)
        raise SystemExit(f"{wrong!r} is not refused")
    except error as refused:
        assert refused.param == "input", refused
print("clients in Python: ok")
END
