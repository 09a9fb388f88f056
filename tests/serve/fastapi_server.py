"""fastapi_server.py MODEL.onnx TOKENIZER.json PORT: what peers.sh compares with cloze-serve: ONNX Runtime behind FastAPI.

Requests that wait while a batch is computed form the next one, of at most BUDGET padded tokens. The strongest settings
found: one process, uvloop and httptools, both cores for each batch, no validation of bodies by pydantic.
"""
import asyncio
import concurrent.futures
import json
import os
import sys

for name in [name for name in os.environ if name.startswith("OPENBLAS_")]:
    del os.environ[name]
import fastapi
import numpy
import onnxruntime
import tokenizers
import uvicorn

BUDGET, MAX_TOKENS = 8192, 256
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = len(os.sched_getaffinity(0))
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
inputs = {entry.name for entry in session.get_inputs()}
tokenizer = tokenizers.Tokenizer.from_file(sys.argv[2])
tokenizer.no_padding()
tokenizer.enable_truncation(MAX_TOKENS)
app = fastapi.FastAPI()
waiting = asyncio.Queue()
worker = concurrent.futures.ThreadPoolExecutor(1)


def vectors(batch):
    """Returns a normalized mean vector for each list of ids."""
    longest = max(map(len, batch))
    ids = numpy.zeros((len(batch), longest), numpy.int64)
    mask = numpy.zeros_like(ids)
    for row, tokens in enumerate(batch):
        ids[row, :len(tokens)] = tokens
        mask[row, :len(tokens)] = 1
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
    out = session.run(None, {name: value for name, value in feed.items() if name in inputs})[0]
    if out.ndim == 3:
        weights = mask[:, :, None].astype(numpy.float32)
        out = (out * weights).sum(1) / weights.sum(1)
    return out / numpy.linalg.norm(out, axis=1, keepdims=True)


async def compute():
    held = None
    while True:
        batch = [held or await waiting.get()]
        held, longest = None, len(batch[0][0])
        while not waiting.empty():
            entry = waiting.get_nowait()
            longest = max(longest, len(entry[0]))
            if longest * (len(batch) + 1) > BUDGET:
                held = entry
                break
            batch.append(entry)
        out = await asyncio.get_running_loop().run_in_executor(worker, vectors, [ids for ids, _ in batch])
        for (_, answer), vector in zip(batch, out):
            answer.set_result(vector)


@app.on_event("startup")
async def begin():
    app.state.task = asyncio.create_task(compute())


@app.post("/embed")
async def embed(request: fastapi.Request):
    text = json.loads(await request.body())["inputs"]
    answer = asyncio.get_running_loop().create_future()
    waiting.put_nowait((tokenizer.encode(text).ids, answer))
    return fastapi.Response(json.dumps([(await answer).tolist()]), media_type="application/json")


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[3]), log_level="error", access_log=False)
