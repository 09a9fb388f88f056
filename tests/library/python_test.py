"""Tests of cloze.py: the answers of the program, wrong calls, threads, processes, memory."""

import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import unittest

import cloze

PROGRAM = os.environ["CLOZE_PROGRAM"]
TEXTS = ["Number 7, the box is wrong.", "", "the charge\0 is wrong", "Wärme", "a " * 100, "card"]
try:
    import numpy
except ImportError:
    numpy = None


def program(*arguments, texts=TEXTS):
    lines = "".join(json.dumps({"text": t} if isinstance(t, str) else {
        "text": t[0], "text_pair": t[1]}) + "\n" for t in texts)
    out = subprocess.run([PROGRAM, *arguments, "--input-format", "jsonl"], input=lines,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                         encoding="utf-8").stdout
    return [json.loads(line) for line in out.splitlines()]


def in_child(model, queue):
    """Answers in a forked process."""
    queue.put(model.predict(TEXTS))


def from_folder(folder, queue):
    """Answers in a process that was started anew."""
    queue.put(cloze.load(folder).predict(TEXTS))


class LibraryTest(unittest.TestCase):

    def test_answers_of_the_program(self):
        with cloze.load("model") as model:
            self.assertEqual(model.predict(TEXTS), program("predict", "--model", "model"))
            self.assertEqual(model.predict(TEXTS[0]), model.predict(TEXTS)[0])
            self.assertEqual(model.labels, ["billing", "delivery"])
            self.assertEqual(model.kind, "sequence_classification")
            self.assertEqual(model.tokenize(TEXTS), program("tokenize", "--model", "model"))
        with cloze.load("tagger", threads=2) as model:
            self.assertEqual(model.tag(TEXTS), program("tag", "--model", "tagger"))
        with cloze.load("masked") as model:
            self.assertEqual(model.score(TEXTS, tokens=True),
                             program("score", "--tokens", "--model", "masked"))
            masked = ["the <mask> is <mask>."]
            self.assertEqual(model.fill(masked, top=2),
                             program("fill-mask", "--top", "2", "--model", "masked", texts=masked))
            pair = ("the box", "is wrong")
            self.assertEqual(model.tokenize(pair),
                             program("tokenize", "--model", "masked", texts=[pair])[0])

    def test_vectors(self):
        with cloze.load("masked") as model:
            vectors = model.embed(TEXTS)
            expected = [row["vector"] for row in program("encode", "--out", "-", "--model", "masked")]
            self.assertEqual((len(TEXTS), model.info["dimensions"]), tuple(vectors.shape))
            for found, wanted in zip(vectors.tolist(), expected):
                for x, y in zip(found, wanted):
                    self.assertAlmostEqual(x, y, delta=1e-6 * max(1, abs(y)))
            one = model.embed(TEXTS[0])
            self.assertEqual(one.tolist(), vectors.tolist()[0])
            short = model.embed(TEXTS[:2], pool="cls", dimensions=3, normalize=True)
            self.assertEqual(tuple(short.shape), (2, 3))
            self.assertAlmostEqual(sum(x * x for x in short.tolist()[0]), 1, places=5)
            tokens = model.embed(TEXTS[:2], tokens=True)
            self.assertEqual([t.shape[0] for t in tokens],
                             [len(t["ids"]) for t in model.tokenize(TEXTS[:2])])
            before = vectors.tolist()
            del model, one, short, tokens
            gc.collect()
            self.assertEqual(vectors.tolist(), before)
            if numpy is None:
                self.assertIsInstance(vectors, memoryview)
            else:
                self.assertEqual(vectors.dtype, numpy.float32)
                self.assertFalse(vectors.flags.owndata)

    def test_without_numpy(self):
        code = ("import sys; sys.modules['numpy'] = None; import cloze; m = cloze.load('masked'); "
                "v = m.embed(['the box', 'card']); assert v.shape[0] == 2 and v[1, 0] == v.tolist()[1][0]; "
                "assert m.embed('card').tolist() == v.tolist()[1]; assert m.embed([]) == []")
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_adapters(self):
        with cloze.load("masked", adapters={"mail": "adapter"}) as model:
            alone = cloze.load("adapter").predict(TEXTS)
            self.assertEqual(model.info["adapters"], ["mail"])
            self.assertEqual(model.predict(TEXTS, adapter="mail"), alone)
            with self.assertRaisesRegex(cloze.Error, "unknown adapter post: expected one of mail"):
                model.predict(TEXTS, adapter="post")

    def test_wrong_calls(self):
        model = cloze.load("model")
        for texts, error in [(7, TypeError), ([7], TypeError), (b"bytes", TypeError),
                             (("a", "b", "c"), TypeError), ([("a", None)], TypeError),
                             ("\ud800", ValueError), ([None], TypeError)]:
            with self.subTest(texts=texts), self.assertRaises(error):
                model.predict(texts)
        for call, message in [
                (lambda: model.tag("a"), "cloze_tag: not for a model of sequence_classification"),
                (lambda: model.predict(("a", "b")), "a pair of texts"),
                (lambda: model.embed("a", pool="men"), "pool: men"),
                (lambda: cloze.load("missing"), "missing"),
                (lambda: cloze.load("model", compute="f64"), "compute: f64"),
                (lambda: cloze.load("model", threads=-1), "threads: -1")]:
            with self.subTest(message), self.assertRaisesRegex(cloze.Error, message):
                call()
        answers = model.predict(["card", ("a", "b"), "box"], each=True)
        self.assertIsInstance(answers[1], cloze.Error)
        self.assertEqual(answers[2], model.predict("box"))
        self.assertEqual(model.predict([]), [])
        model.close()
        with self.assertRaisesRegex(cloze.Error, "the model is closed"):
            model.predict("a")

    def test_threads(self):
        with cloze.load("model") as model:
            expected, different = model.predict(TEXTS), []
            def work():
                for _ in range(20):
                    if model.predict(TEXTS) != expected:
                        different.append(1)
            threads = [threading.Thread(target=work) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(different, [])

    def test_processes(self):
        with cloze.load("model", threads=2) as model:
            expected, stop = model.predict(TEXTS), threading.Event()
            def busy():  # in a call when the process forks
                while not stop.is_set():
                    model.predict(TEXTS)
            thread = threading.Thread(target=busy)
            thread.start()
            for method, target, argument in [("fork", in_child, model)] * 3 + [
                    ("spawn", from_folder, "model")]:
                context = multiprocessing.get_context(method)
                queue = context.Queue()
                child = context.Process(target=target, args=(argument, queue))
                child.start()
                self.assertEqual(queue.get(timeout=60), expected, method)
                child.join()
                self.assertEqual(child.exitcode, 0)
                self.assertEqual(model.predict(TEXTS), expected)
            stop.set()
            thread.join()

    def test_memory_stays(self):
        calls = int(os.environ.get("CLOZE_TEST_CALLS", "5000"))
        def pages():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1])
        with cloze.load("model") as model:
            for i in range(calls):
                model.predict(TEXTS[i % len(TEXTS)])
                model.embed("card")
                if i == calls // 10:
                    before = pages()
            self.assertLess(pages() - before, 100)

    def test_beside_others(self):
        for name in ("onnx", "torch", "google.protobuf"):
            for first, second in ((name, "cloze"), ("cloze", name)):
                code = (f"import importlib\ntry: importlib.import_module('{name}')\n"
                        "except ImportError: raise SystemExit(77)\n") if first == name else ""
                code += "import cloze; a = cloze.load('model').predict('card')\n"
                if first == "cloze":
                    code += f"try: import {second}\nexcept ImportError: raise SystemExit(77)\n"
                code += "assert cloze.load('tagger').tag('a') and cloze.load('model').predict('card') == a\n"
                if name == "onnx":
                    code += ("import onnx; from onnx import helper\n"
                             "m = helper.make_model(helper.make_graph([], 'g', [], []))\n"
                             "onnx.load_model_from_string(m.SerializeToString())\n")
                if name == "torch":
                    code += "torch = __import__('torch'); torch.ones(64, 64) @ torch.ones(64, 64)\n"
                code += "assert cloze.load('model').predict('card') == a\n"
                status = subprocess.run([sys.executable, "-c", code], check=False).returncode
                if status == 77:
                    print(f"not checked: no {name}")
                else:
                    self.assertEqual(status, 0, code)


class TrainTest(unittest.TestCase):

    def test_trains(self):
        lines = []
        result = cloze.train("model.textproto", program=PROGRAM, progress=lines.append,
                             output__directory="trained", schedule__steps=5)
        self.assertEqual((result["model"], result["steps"]), ("trained", 5))
        self.assertTrue(lines)
        self.assertTrue(cloze.load("trained").predict("card")["label"])
        result = cloze.train("masked.textproto", program=PROGRAM, progress=lines.append,
                             output__directory="trained2", schedule__steps=5)
        self.assertEqual(result["steps"], 5)
        with self.assertRaisesRegex(cloze.Error, "missing.textproto") as caught:
            cloze.train("missing.textproto", program=PROGRAM, progress=lines.append)
        self.assertEqual(caught.exception.status, 66)

    def test_interrupt(self):
        timer = threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            cloze.train("model.textproto", program=PROGRAM, progress=lambda line: None,
                        output__directory="long", schedule__steps=1000000)
        timer.join()
        self.assertTrue(any(name.startswith("step-") for name in os.listdir("long")))


if __name__ == "__main__":
    unittest.main()
