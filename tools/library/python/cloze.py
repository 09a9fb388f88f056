"""Cloze: classifiers, taggers, encoders and masked language models on CPUs.

    import cloze
    model = cloze.load("runs/sst2")
    model.predict(["A fine film.", "Too long."])

The library libcloze.so.0 does the work. It is taken from CLOZE_LIBRARY (a file), from beside this
file, from the prefix of its installation, or from where the system keeps its libraries. NumPy is used if it is there.
"""

import ctypes
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import threading

try:
    import numpy
except ImportError:
    numpy = None

__all__ = ["Error", "Model", "load", "train", "version"]

_SPEC, _USAGE = 78, 2  # exit codes of the program


class Error(Exception):
    """A call that failed. `status` is the exit code that the program would have."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("compute", ctypes.c_char_p),
                ("adapters", ctypes.POINTER(ctypes.c_char_p)), ("adapter_count", ctypes.c_size_t),
                ("threads", ctypes.c_int)]


class _Settings(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("each", ctypes.c_int), ("top", ctypes.c_int),
                ("tokens", ctypes.c_int), ("normalize", ctypes.c_int), ("pool", ctypes.c_char_p),
                ("prompt", ctypes.c_char_p), ("dimensions", ctypes.c_int64)]


class _Text(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("length", ctypes.c_int64), ("pair", ctypes.c_char_p),
                ("pair_length", ctypes.c_int64), ("adapter", ctypes.c_char_p)]


_lib = None


def _library():
    """Returns the loaded library."""
    global _lib
    if _lib is None:
        here = os.path.dirname(os.path.abspath(__file__))
        places = (".", "cloze.libs", "../..", "../../*")  # of a wheel, of cmake --install
        near = [path for place in places
                for path in glob.glob(os.path.join(here, place, "libcloze.so.0"))]
        path = os.environ.get("CLOZE_LIBRARY") or (near + ["libcloze.so.0"])[0]
        try:
            lib = ctypes.CDLL(path)
        except OSError as error:
            raise Error(f"cannot load libcloze ({error}): install the package libcloze0, or set "
                        "CLOZE_LIBRARY to the file libcloze.so.0", _USAGE) from None
        pointer, integer, out = ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER
        lib.cloze_version.restype = lib.cloze_error.restype = ctypes.c_char_p
        lib.cloze_count.restype = integer
        lib.cloze_open.argtypes = [ctypes.c_char_p, out(_Options), out(pointer)]
        lib.cloze_close.argtypes = lib.cloze_free.argtypes = lib.cloze_count.argtypes = [pointer]
        lib.cloze_info.argtypes = [pointer, out(pointer)]
        for name in ("predict", "tag", "fill", "score", "tokenize", "embed"):
            getattr(lib, "cloze_" + name).argtypes = [
                pointer, out(_Text), integer, out(_Settings), out(pointer)]
        lib.cloze_json.argtypes = [pointer, integer, out(pointer), out(integer)]
        lib.cloze_vectors.argtypes = [
            pointer, integer, out(pointer), out(integer), out(integer)]
        _lib = lib
    return _lib


def _check(status):
    if status != 0:
        raise Error(_library().cloze_error().decode(errors="replace"), status)


def _bytes(text, what):
    if not isinstance(text, str):
        raise TypeError(f"{what}: {type(text).__name__}: expected a str")
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # lone surrogates
        raise ValueError(f"{what}: {error.reason}: {text[:40]!r}") from None


def _name(text, what):
    """Returns the bytes of a name, None for None; the library would end it at a zero byte."""
    if text is None:
        return None
    if "\0" in os.fspath(text):
        raise ValueError(f"{what}: has a zero byte")
    return os.fsencode(text)


def version():
    """Returns the version of the library."""
    return _library().cloze_version().decode()


class _Result:
    """What a call returned; frees it at the end."""

    def __init__(self):
        self.handle = ctypes.c_void_p()

    def __del__(self):
        if self.handle and _lib is not None:
            _lib.cloze_free(self.handle)

    def __len__(self):
        return _lib.cloze_count(self.handle)

    def json(self, i):
        """Returns the answer of text `i`, or its Error."""
        text, length = ctypes.c_void_p(), ctypes.c_int64()
        status = _lib.cloze_json(self.handle, i, ctypes.byref(text), ctypes.byref(length))
        data = ctypes.string_at(text, length.value).decode()
        return json.loads(data) if status == 0 else Error(data, status)

    def vectors(self, i):
        """Returns the vectors of text `i`, -1: of all, as [rows, dimensions], without a copy."""
        values, rows, cols = ctypes.c_void_p(), ctypes.c_int64(), ctypes.c_int64()
        _check(_lib.cloze_vectors(self.handle, i, *map(ctypes.byref, (values, rows, cols))))
        shape = (rows.value, cols.value)
        if rows.value == 0:
            return numpy.empty(shape, numpy.float32) if numpy else []
        array = (ctypes.c_float * (shape[0] * shape[1])).from_address(values.value)
        array.owner = self  # lives as long as views of it
        if numpy:
            return numpy.frombuffer(array, numpy.float32).reshape(shape)
        return memoryview(array).cast("B").cast("f", shape)


class Model:
    """An open model; see load(). Its methods may be called from many threads, which then wait for
    each other, and from processes that are forked.

    `texts` is a str, a pair (str, str), or a list of these; the result is one answer or a list. An
    answer is the dict that the command of the program prints. With each=True, a text that is wrong
    does not raise its Error, but has it in the list. `adapter` names an adapter of load().
    """

    def __init__(self, handle):
        self._handle = handle
        result = _Result()
        _check(_library().cloze_info(handle, ctypes.byref(result.handle)))
        self.info = result.json(0)  # "kind", "labels", "adapters", "compute", "max_tokens", ...
        self.kind = self.info["kind"]
        self.labels = self.info["labels"]

    def close(self):
        """Closes the model; with the last one the library's threads end."""
        handle, self._handle = self._handle, None
        if handle and _lib is not None:
            _lib.cloze_close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def predict(self, texts, each=False, adapter=None):
        """Labels, a number, or the answer to a question (of a pair: question, text)."""
        return self._answers("predict", texts, each, adapter)

    def tag(self, texts, each=False, adapter=None):
        """A label for every word."""
        return self._answers("tag", texts, each, adapter)

    def fill(self, texts, top=5, each=False, adapter=None):
        """The `top` likeliest tokens for each <mask>."""
        return self._answers("fill", texts, each, adapter, top=top)

    def score(self, texts, tokens=False, each=False, adapter=None):
        """The pseudo-log-likelihood of texts, with `tokens` also that of each token."""
        return self._answers("score", texts, each, adapter, tokens=tokens)

    def tokenize(self, texts, each=False):
        """Token ids, tokens and their offsets."""
        return self._answers("tokenize", texts, each, None)

    def embed(self, texts, pool=None, prompt=None, normalize=None, dimensions=0, tokens=False,
              adapter=None):
        """Vectors as the folder says or, with `pool` "cls", "mean" or "max", of that pooling.

        Returns an array [texts, dimensions] of float32, for one text [dimensions]. With `tokens`, a
        list of arrays [tokens, dimensions]. Without NumPy arrays are memoryviews.
        `prompt` is "query" or "document": the folder's prompt for it, if it has one.
        """
        one, result = self._call(
            "embed", texts, False, adapter, pool=_name(pool, "pool"),
            prompt=_name(prompt, "prompt"), dimensions=dimensions, tokens=tokens,
            normalize=0 if normalize is None else 1 if normalize else -1)
        if tokens:
            rows = [result.vectors(i) for i in range(len(result))]
            return rows[0] if one else rows
        all_rows = result.vectors(-1)
        if not one:
            return all_rows
        return all_rows[0] if numpy else all_rows.cast("B").cast("f")

    def _answers(self, function, texts, each, adapter, **settings):
        one, result = self._call(function, texts, each, adapter, **settings)
        answers = [result.json(i) for i in range(len(result))]
        return answers[0] if one else answers

    def _call(self, function, texts, each, adapter, **settings):
        """Returns whether `texts` is one text, and the result."""
        if self._handle is None:
            raise Error("the model is closed", _USAGE)
        one = isinstance(texts, (str, tuple))
        texts = [texts] if one else list(texts)
        adapter = _name(adapter, "adapter")
        batch = (_Text * len(texts))()
        for i, text in enumerate(texts):
            pair = None
            if isinstance(text, tuple):
                if len(text) != 2:
                    raise TypeError(f"texts[{i}]: a tuple of {len(text)}: expected two texts")
                text, pair = text[0], _bytes(text[1], f"texts[{i}][1]")
            data = _bytes(text, f"texts[{i}]")
            batch[i] = (data, len(data), pair, len(pair or b""), adapter)
        own = _Settings(ctypes.sizeof(_Settings), int(bool(each)), **settings)
        result = _Result()
        _check(getattr(_lib, "cloze_" + function)(
            self._handle, batch, len(texts), ctypes.byref(own), ctypes.byref(result.handle)))
        return one, result


def load(folder, adapters=(), compute="auto", threads=0):
    """Opens a model folder: a run, a Hugging Face folder or an adapter.

    adapters: folders, "NAME=FOLDER", or a dict from names to folders.
    compute: "auto", "f32", "bf16" or "int8". threads: for all models of the process; 0: all cores.
    """
    lib = _library()
    if isinstance(adapters, dict):
        adapters = [f"{name}={os.fspath(path)}" for name, path in adapters.items()]
    names = [_name(adapter, "adapters") for adapter in adapters]
    options = _Options(ctypes.sizeof(_Options), _name(compute, "compute"),
                       (ctypes.c_char_p * len(names))(*names), len(names), threads)
    handle = ctypes.c_void_p()
    _check(lib.cloze_open(_name(folder, "folder"), ctypes.byref(options), ctypes.byref(handle)))
    return Model(handle)


def _setting(value):
    if isinstance(value, (list, tuple)):
        return ",".join(map(_setting, value))
    return str(value).lower() if isinstance(value, bool) else os.fspath(value) if isinstance(
        value, os.PathLike) else str(value)


def train(spec, program=None, progress=None, **settings):
    """Trains as `cloze finetune` or `cloze pretrain` does, in a process of its own.

    settings: fields of the spec, with __ for the dot: optimizer__learning_rate=1e-4.
    progress: called with each line that the program prints about its progress; default: sys.stderr.
    Returns the result of the run, a dict. Ctrl-C (KeyboardInterrupt) is passed on: the run saves a
    checkpoint, and the same call resumes it.
    """
    program = program or os.environ.get("CLOZE_PROGRAM") or shutil.which("cloze")
    if not program:
        raise Error("no program `cloze` in PATH: install the package cloze, or set CLOZE_PROGRAM",
                    _USAGE)
    arguments = [os.fspath(spec)]
    for field, value in settings.items():
        arguments += ["--set", f"{field.replace('__', '.')}={_setting(value)}"]
    try:
        return _run([program, "finetune", *arguments], progress)
    except Error as error:
        if error.status != _SPEC or "is a task for `cloze pretrain`" not in str(error):
            raise
    return _run([program, "pretrain", *arguments], progress)


def _run(command, progress):
    lines = []

    def read(stream):
        for line in stream:
            lines.append(line.rstrip("\n"))
            if "is a task for `cloze" in line:
                continue
            if progress is not None:
                progress(lines[-1])
            else:
                sys.stderr.write(line)
                sys.stderr.flush()

    # A session of its own: a terminal's Ctrl-C would reach the program twice.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          encoding="utf-8", errors="replace", start_new_session=True) as child:
        reader = threading.Thread(target=read, args=(child.stderr,), daemon=True)
        reader.start()
        try:
            out = child.stdout.read()
            child.wait()
        except BaseException:
            child.send_signal(signal.SIGINT)
            child.wait()
            raise
        finally:
            reader.join()
    if child.returncode != 0:
        raise Error("\n".join(lines[-3:]) or f"{command[0]}: status {child.returncode}",
                    child.returncode)
    return json.loads(out.splitlines()[-1])
