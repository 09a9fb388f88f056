"""Compares cloze-serve with cloze, in a folder that models.sh made. Arguments: cloze, cloze-serve."""
import atexit, base64, concurrent.futures, http.client, json, os, re, signal, socket, struct, subprocess, sys, time

CLOZE, SERVE = sys.argv[1:3]
TEXTS = open("text.txt", encoding="utf-8").read().splitlines()[:64]


def check(condition, *what):
    if not condition:
        raise SystemExit("end_to_end.py: " + " ".join(map(str, what)))


class Server:
    """A running server. `port` is None for a Unix socket alone."""

    def __init__(self, *options, env=None, listen="127.0.0.1:0"):
        self.log = open("serve.log", "w+")
        self.process = subprocess.Popen([SERVE, *options, "--listen", listen], stdout=subprocess.DEVNULL, stderr=self.log, env={**os.environ, **(env or {})})
        atexit.register(self.process.kill)
        line, end = None, time.time() + 30
        while not line and time.time() < end and self.process.poll() is None:
            time.sleep(0.02)
            line = re.search("listening on (.*)", self.lines())
        check(line, "does not start:", self.lines())
        port = re.search(r"127\.0\.0\.1:(\d+)", line[1])
        self.port = int(port[1]) if port else None

    def lines(self):
        return open("serve.log").read()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def send(self, method, path, body=None, headers=None, connection=None):
        """Returns status, body as bytes, and headers."""
        c = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        c.request(method, path, body, headers or {})
        r = c.getresponse()
        return r.status, r.read(), r.headers

    def post(self, path, **members):
        status, body, _ = self.send("POST", path, json.dumps(members))
        check(status == 200, path, members, status, body)
        return json.loads(body)

    def raw(self, data, half=False):
        """Sends bytes and returns all that comes until the server closes."""
        with self.connect() as s:
            out = b""
            try:
                s.sendall(data)
                if half:
                    s.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # the server has closed
            while True:
                try:
                    part = s.recv(65536)
                except (ConnectionResetError, socket.timeout):
                    break
                if not part:
                    break
                out += part
            return out

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(30)
        check(code == 0, "exit code", code, self.lines())


def run(*command, text=None):
    return subprocess.run([CLOZE, *command], input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, encoding="utf-8").stdout


def lines(command, model, texts=TEXTS, *options):
    out = run(command, "--model", model, "--input-format", "text", *options, text="".join(t + "\n" for t in texts))
    return [json.loads(line) for line in out.splitlines()]


def vectors(*options):
    open("in.txt", "w", encoding="utf-8").write("".join(t + "\n" for t in TEXTS))
    run("encode", "--model", "vectors", "--out", "v.npy", "--force", *options, "in.txt")
    data = open("v.npy", "rb").read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    values = struct.unpack("<%df" % ((len(data) - start) // 4), data[start:])
    n = len(values) // len(TEXTS)
    return [list(values[i * n : (i + 1) * n]) for i in range(len(TEXTS))]


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def same_floats(got, want):
    return [f32(x) for x in got] == [f32(x) for x in want]


def predictions(answer):
    if "scores" not in answer:
        return [{"score": answer["score"], "label": answer["label"]}]
    return [{"score": s, "label": n} for n, s in sorted(answer["scores"].items(), key=lambda x: -x[1])]


def answers_of_the_program():
    """Returns functions that ask a server and check the answer, one or more for each text and route."""
    checks = []

    def add(path, want, **members):
        def ask(server):
            got = server.post(path, **members)
            check(got == want, path, members, "\n  got ", got, "\n  want", want)

        checks.append(ask)

    predicted, numbers, tagged = lines("predict", "cls"), lines("predict", "number"), lines("tag", "tags")
    masked = [t.replace("wrong", "<mask>") for t in TEXTS]
    filled = lines("fill-mask", "mlm", masked)
    plain, unit = vectors("--pool", "mean"), vectors()  # the folder normalizes
    pairs = lines("predict", "pairs", [TEXTS[0] + "\t" + t for t in TEXTS], "--pairs")
    check(any(a["entities"] for a in tagged), "no entities: the test is weak")
    for i, text in enumerate(TEXTS):
        add("/predict", predictions(predicted[i]), inputs=text, model="cls")
        add("/predict", [predictions(numbers[i])], inputs=[[text]], model="number")
        add("/predict", predictions(pairs[i]), inputs=[TEXTS[0], text], model="pairs")
        add("/", [predictions(predicted[i])], inputs=text, model="cls")
        add("/tag", tagged[i], inputs=text)
        add("/", tagged[i]["entities"], inputs=text, model="tags")
        add("/fill-mask", [filled[i]], inputs=[masked[i]])

        def embed(server, i=i, text=text):
            check(same_floats(server.post("/embed", inputs=text, normalize=False)[0], plain[i]), "/embed", i)
            check(same_floats(server.post("/embed", inputs=[text])[0], unit[i]), "/embed normalized", i)
            reply = server.post("/v1/embeddings", input=text, model="vectors", encoding_format="base64")
            check(base64.b64decode(reply["data"][0]["embedding"]) == struct.pack("<%df" % len(unit[i]), *unit[i]), "base64", i)

        checks.append(embed)
    many = [predictions(a) for a in predicted[:32]]
    add("/predict", many, inputs=[[t] for t in TEXTS[:32]], model="cls")

    def others(server):
        ranks = server.post("/rerank", query=TEXTS[0], texts=TEXTS[:8], model="pairs", return_text=True)
        check(sorted(r["index"] for r in ranks) == list(range(8)), ranks)
        check([r["score"] for r in ranks] == sorted((r["score"] for r in ranks), reverse=True), ranks)
        second = list(pairs[0]["scores"])[1]
        check(all(r["score"] == pairs[r["index"]]["scores"][second] and r["text"] == TEXTS[r["index"]] for r in ranks), ranks)
        raw = server.post("/predict", inputs=TEXTS[0], model="number", raw_scores=True)
        check(raw == predictions(numbers[0]), raw)
        tokens = server.post("/tokenize", inputs=TEXTS[0], model="cls")[0]
        check(tokens[0]["special"] and tokens[0]["start"] is None and tokens[1]["text"] == "Number", tokens)
        check(all(TEXTS[0][t["start"] : t["stop"]] == t["text"] for t in tokens if not t["special"]), tokens)
        reply = server.post("/v1/embeddings", input=TEXTS[:2], model="vectors")
        check([d["index"] for d in reply["data"]] == [0, 1] and reply["usage"]["prompt_tokens"] > 10, reply)
        short = server.post("/embed", inputs=TEXTS[0], dimensions=8, normalize=False)[0]
        check(same_floats(short, plain[0][:8]), "dimensions")
        rows = server.post("/embed_all", inputs=TEXTS[:2])
        check(len(rows[0]) == len(tokens) and len(rows[0][0]) == len(plain[0]), "embed_all")
        close = server.post("/similarity", inputs={"source_sentence": TEXTS[0], "sentences": TEXTS[:3]})
        check(len(close) == 3 and abs(close[0] - 1) < 1e-6 and close[1] < 1, close)
        sequence = server.post("/", inputs=masked[0], model="mlm")[0]
        check(sequence["sequence"] == masked[0].replace("<mask>", sequence["token_str"]), sequence)

    checks.append(others)
    return checks


def error_table(server):
    """Every row of the table of docs/serving.md."""

    def refuse(path, status, kind, body, headers=None, method="POST", hint=""):
        body = body if isinstance(body, (bytes, type(None))) else json.dumps(body)
        got, text, _ = server.send(method, path, body, headers)
        check(got == status, path, body, "status", got, text)
        if path.startswith("/v1/"):
            error = json.loads(text)["error"]
            check(set(error) == {"message", "type", "param", "code"} and error["code"] == kind, text)
        else:
            error = json.loads(text)
            check(set(error) == {"error", "error_type"} and error["error_type"] == kind, text)
        check(hint in text.decode(), "no", hint, "in", text)
        check(b"\\n" not in text, text)

    long = "word " * 200
    cls = {"model": "cls"}
    refuse("/predict", 400, "Empty", {"inputs": "", **cls})
    refuse("/predict", 400, "Empty", {"inputs": " \t", **cls})
    refuse("/predict", 400, "Empty", {"inputs": [], **cls})
    refuse("/embed", 400, "Empty", {"inputs": ["a", ""]}, hint="text 2")
    refuse("/v1/embeddings", 400, "empty", {"input": []})
    refuse("/v1/embeddings", 400, "empty", {"input": ""})
    refuse("/embed", 400, "Syntax", b"")
    refuse("/embed", 400, "Syntax", b"{", hint="not valid JSON")
    refuse("/embed", 400, "Syntax", b"[1]")
    refuse("/embed", 400, "Syntax", b'{"inputs": "a", "inputs": "b"}')
    refuse("/embed", 400, "Syntax", b'{"inputs": "\xff"}', hint="UTF-8")
    refuse("/embed", 400, "Syntax", b'{"inputs": "\\ud800"}')
    refuse("/embed", 400, "Syntax", b"[" * 100000)
    refuse("/v1/embeddings", 400, "invalid_json", b"{")
    refuse("/none", 404, "NotFound", {})
    refuse("/v1/none", 404, "not_found", {})
    refuse("/embed", 405, "Method", None, method="GET", hint="POST")
    refuse("/health", 405, "Method", {}, hint="GET")
    check(server.send("PUT", "/", "{}")[2]["Allow"] == "POST, GET", "Allow")
    refuse("/embed", 413, "Body", b" " * 300_000, hint="--max-body")
    refuse("/embed", 422, "Validation", {})
    refuse("/embed", 422, "Validation", {"inputs": 1})
    refuse("/embed", 422, "Validation", {"inputs": ["a", 1]}, hint="item 1")
    refuse("/embed", 422, "Validation", {"inputs": ["a"] * 33}, hint="at most 32")
    refuse("/embed", 422, "Validation", {"inputs": long}, hint="truncate")
    refuse("/embed", 422, "Validation", {"inputs": ["a", long]}, hint="text 2")
    refuse("/embed", 422, "Validation", {"inputs": "a", "truncate": "yes"}, hint="true or false")
    refuse("/embed", 422, "Validation", {"inputs": "a", "dimensions": 0})
    refuse("/embed", 422, "Validation", {"inputs": "a", "dimensions": 1e9})
    refuse("/embed", 422, "Validation", {"inputs": "a", "prompt_name": "none"})
    refuse("/embed", 422, "Validation", {"inputs": "a", "model": "none"}, hint="cls")
    refuse("/embed", 422, "Validation", {"inputs": "a", "model": 3})
    refuse("/embed", 422, "Validation", {"inputs": "a", "adapter": "none"}, hint="adapter")
    refuse("/predict", 422, "Validation", {"inputs": "a"}, hint="cls")
    refuse("/predict", 422, "Validation", {"inputs": "a", "model": "tags"}, hint="token_tagging")
    refuse("/predict", 422, "Validation", {"inputs": ["a", "b"], **cls}, hint="pair")
    refuse("/predict", 422, "Validation", {"inputs": [["a", "b", "c"]], **cls})
    refuse("/rerank", 422, "Validation", {"texts": ["a"], "model": "pairs"}, hint="query")
    refuse("/rerank", 422, "Validation", {"query": "a", "model": "pairs"}, hint="texts")
    refuse("/similarity", 422, "Validation", {"inputs": "a"}, hint="source_sentence")
    refuse("/fill-mask", 422, "Validation", {"inputs": "no mask"}, hint="mask")
    refuse("/tag", 422, "Validation", {"inputs": "a", "model": "cls"})
    refuse("/v1/embeddings", 422, "invalid_value", {"input": [1, 2]}, hint="check_embedding_ctx_length=False")
    refuse("/v1/embeddings", 422, "invalid_value", {"input": [[1, 2]]}, hint="check_embedding_ctx_length=False")
    refuse("/v1/embeddings", 422, "invalid_value", {"input": "a", "encoding_format": "int8"}, hint="base64")
    refuse("/v1/embeddings", 422, "invalid_value", {"input": "a", "model": "text-embedding-3-small"}, hint="vectors")
    refuse("/v1/embeddings", 422, "invalid_value", {})
    check(server.post("/embed", inputs=long, truncate=True), "truncated")
    start = b"POST /embed HTTP/1.1\r\nHost: x\r\n"
    twice = server.raw(start + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x")
    check(twice.startswith(b"HTTP/1.1 400") and twice.count(b"HTTP/1.1") == 1, twice)
    both = server.raw(start + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    check(both.startswith(b"HTTP/1.1 400") and both.count(b"HTTP/1.1") == 1, both)
    expects = server.raw(start + b"Content-Length: 5000000\r\nExpect: 100-continue\r\n\r\n")
    check(expects.startswith(b"HTTP/1.1 413"), expects)
    chunks = b"".join(b"%x\r\n%s\r\n" % (50_000, b" " * 50_000) for _ in range(6)) + b"0\r\n\r\n"
    chunked = server.raw(start + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    check(chunked.startswith(b"HTTP/1.1 413"), chunked)


def chunked_and_kept(server):
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    for _ in range(3):
        status, body, _ = server.send("POST", "/predict", json.dumps({"inputs": "a", "model": "cls"}), connection=c)
        check(status == 200, body)
        socket_before = c.sock
        c.request("POST", "/predict", iter([b'{"inputs": "a",', b'"model": "cls"}']), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
        r = c.getresponse()
        check(r.status == 200 and json.loads(r.read()) == json.loads(body), "chunked")
        check(c.sock is socket_before, "the connection was closed")


def about(server):
    info = json.loads(server.send("GET", "/info")[1])
    check({m["name"]: m["kind"] for m in info["models"]} == {"cls": "sequence_classification", "pairs": "sequence_classification",
          "number": "sequence_classification", "tags": "token_tagging", "mlm": "masked_lm", "vectors": "sentence_embedding"}, info)
    check([m["id"] for m in json.loads(server.send("GET", "/v1/models")[1])["data"]] == [m["name"] for m in info["models"]], "models")
    status, body, headers = server.send("GET", "/metrics")
    check(headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers)
    for line in body.decode().splitlines():
        check(re.fullmatch(r'# TYPE [a-z_]+ (counter|gauge|histogram)|[a-z_]+(\{[^}]*\})? [-+0-9.e]+', line), line)
    count = re.search(r'cloze_request_success\{route="/predict"\} (\d+)', body.decode())
    check(count and int(count[1]) > 64, body)
    page = server.send("GET", "/")[1].decode()
    check("<option" in page and "src=" not in page and "href=" not in page, page)
    check(server.send("HEAD", "/health")[0] == 200, "HEAD")
    check(server.send("OPTIONS", "/embed")[0] == 405, "OPTIONS without --allow-origin")


def slow_and_broken_clients(server):
    """With --timeout 1."""
    begin = time.time()
    idle, headers, body = server.connect(), server.connect(), server.connect()
    headers.sendall(b"POST /embed HT")
    body.sendall(b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    for step in range(30):
        for s, part in ((headers, b"x"), (body, b" ")):
            try:
                s.sendall(part)
            except OSError:
                pass
        time.sleep(0.2)
        if step > 20:
            break
    for s in (idle, headers, body):
        s.settimeout(5)
        try:
            while s.recv(1000):
                pass
        except ConnectionResetError:
            pass
        except socket.timeout:
            check(False, "a slow client keeps its connection")
    check(time.time() - begin < 20, "late")
    for garbage in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"\0" * 5000, b"POST /embed HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"A" * 100_000):
        server.raw(garbage, half=True)
    server.raw(b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", half=True)
    gone = server.connect()  # asks and does not wait for the answer
    gone.sendall(b'POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\n{"inputs": "a", "model": "cls"}')
    gone.close()
    check(server.send("GET", "/health")[0] == 200, "health")


def reload_folders(server):
    """SIGHUP while clients ask: no request fails; a broken folder keeps the old model."""
    check(server.post("/embed", inputs="a"), "embed")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(server.post, "/predict", inputs=t, model="cls") for t in TEXTS * 4]
        for _ in range(3):
            server.process.send_signal(signal.SIGHUP)
            time.sleep(0.1)
        os.rename("vectors", "vectors.away")
        server.process.send_signal(signal.SIGHUP)
        for f in asked:
            f.result()
    end = time.time() + 10
    while "not loaded, the old one stays" not in server.lines() and time.time() < end:
        time.sleep(0.05)
    check("vectors: not loaded, the old one stays" in server.lines(), server.lines()[-500:])
    check(server.post("/embed", inputs="a"), "the old model")
    os.rename("vectors.away", "vectors")
    before = server.post("/predict", inputs="a", model="cls")
    os.rename("cls", "cls.old")
    subprocess.run(["cp", "-r", "number", "cls"], check=True)
    server.process.send_signal(signal.SIGHUP)
    while server.post("/predict", inputs="a", model="cls") == before and time.time() < end:
        time.sleep(0.05)
    check(len(server.post("/predict", inputs="a", model="cls")) == 1, "the new model")
    subprocess.run("rm -r cls && mv cls.old cls", shell=True, check=True)


def drain():
    """SIGTERM: what waits is answered; a client that sends no more does not hold it up."""
    server = Server("--model", "vectors", "--max-batch-tokens", "1", "--timeout", "2", "--quiet")
    half = server.connect()
    half.sendall(b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    connections = [server.connect() for _ in range(32)]
    body = json.dumps({"inputs": [TEXTS[0]] * 32}).encode()
    waiting = 0
    for c in connections:
        c.sendall(b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        metrics = server.send("GET", "/metrics")[1].decode()
        waiting = int(re.search(r"cloze_queue_size (\d+)", metrics)[1])
        if waiting > 3:
            break
    check(waiting > 0, "nothing waits: the test is weak")
    server.process.send_signal(signal.SIGTERM)
    answered = 0
    for c in connections:
        try:
            answered += c.recv(100).startswith(b"HTTP/1.1 200")
        except ConnectionResetError:
            pass
        c.close()
    check(answered >= waiting, answered, "of", waiting, "are answered")
    check(server.process.wait(30) == 0, "exit code")
    half.close()


def keys_and_sockets():
    open("key", "w").write("s3cret\n")
    server = Server("--model", "one=cls", "--api-key-file", "key", "--allow-origin", "https://a.example", "--quiet", env={"CLOZE_API_KEY": "other"})
    body = json.dumps({"inputs": "a"})
    for header, want in ((None, 401), ("Bearer wrong", 401), ("Bearer s3cre", 401), ("Bearer s3cretx", 401), ("Bearer ", 401), ("Bearer s3cret", 200),
                         ("Basic " + base64.b64encode(b"me:s3cret").decode(), 200), ("Basic !", 401)):
        status, text, headers = server.send("POST", "/predict", body, {"Authorization": header} if header else {})
        check(status == want, header, status, text)
        check(headers["Access-Control-Allow-Origin"] == "https://a.example", headers)
    status, text, _ = server.send("POST", "/v1/embeddings", body)
    check(status == 401 and json.loads(text)["error"]["code"] == "invalid_api_key", text)
    check(server.send("GET", "/health")[0] == 200 and server.send("GET", "/metrics")[0] == 401, "open routes")
    check(server.send("OPTIONS", "/predict")[0] == 204, "preflight")
    server.stop(signal.SIGINT)
    check("time" not in server.lines(), "--quiet", server.lines())

    for _ in range(2):  # the second replaces the socket that a dead process left
        server = Server("--model", "cls", listen="unix:" + os.path.abspath("socket"))
        with socket.socket(socket.AF_UNIX) as s:
            s.connect("socket")
            s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            check(s.recv(100).startswith(b"HTTP/1.1 200"), "Unix socket")
        server.process.kill()
        server.process.wait()
    server = Server("--model", "cls", listen="unix:" + os.path.abspath("socket"))
    server.stop()
    check(not os.path.exists("socket"), "the socket stays")

    listening = socket.create_server(("127.0.0.1", 0))
    code = f"import os; os.dup2({listening.fileno()}, 3); os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid())); os.execv('{SERVE}', ['cloze-serve', '--model', 'cls'])"
    child = subprocess.Popen([sys.executable, "-c", code], pass_fds=[listening.fileno()], stderr=subprocess.DEVNULL)
    with socket.create_connection(listening.getsockname(), timeout=20) as s:  # waits in the backlog until the server is there
        s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        check(s.recv(100).startswith(b"HTTP/1.1 200"), "socket activation")
    child.terminate()
    check(child.wait(20) == 0, "exit code")


def adapters():
    options = ["--model", "mlm", "--adapter", "late=late", "--adapter", "size=size"]
    records = [{"text": t, "adapter": a} for t in TEXTS[:20] for a in ("late", "size")]
    out = run("predict", *options, "--input-format", "jsonl", text="".join(json.dumps(r) + "\n" for r in records))
    server = Server("--model", "cls", "--model", "base=mlm", "--adapter", "base:late=late", "--adapter", "base:size=size", "--quiet")

    def ask(record, answer):
        got = server.post("/predict", model="base", inputs=record["text"], adapter=record["adapter"])
        check(got == predictions(answer), got, answer)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for f in [pool.submit(ask, r, json.loads(a)) for r, a in zip(records, out.splitlines())]:
            f.result()
    for members in ({"adapter": "none"}, {"adapter": ""}, {}):
        status, body, _ = server.send("POST", "/predict", json.dumps({"model": "base", "inputs": "a", **members}))
        check(status == 422, members, status, body)
    status, body, _ = server.send("POST", "/fill-mask", json.dumps({"model": "base", "inputs": "a <mask>", "adapter": "late"}))
    check(status == 422 and b"another kind" in body, status, body)
    server.stop()


def queue_is_full():
    server = Server("--model", "vectors", "--max-queue", "1", "--max-texts", "2000", "--max-batch-tokens", "1", "--quiet")
    body = json.dumps({"inputs": [TEXTS[0]] * 500}).encode()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        got = [f.result() for f in [pool.submit(server.send, "POST", "/embed", body) for _ in range(16)]]
    states = [g[0] for g in got]
    check(set(states) == {200, 429}, states)
    refused = next(g for g in got if g[0] == 429)
    check(json.loads(refused[1])["error_type"] == "Overloaded" and refused[2]["Retry-After"], refused)
    server.stop()


def exit_codes():
    for options, code, words in (([], 2, "--model"), (["--model", "none"], 66, "none"), (["--model", "cls", "--listen", "x"], 2, "ADDRESS:PORT"),
                                 (["--model", "cls", "--model", "x/../cls"], 2, "two models"), (["--model", "cls", "--adapter", "x:a=b"], 2, "unknown model"),
                                 (["--model", "a=cls", "--model", "b=cls", "--adapter", "a=b"], 2, "MODEL:NAME"), (["--model", "cls", "--unknown"], 2, "unknown flag"),
                                 (["--model", "cls", "--api-key-file", "none"], 66, "none"), (["--model", "cls", "--listen", "127.0.0.1:1x"], 2, "ADDRESS:PORT"),
                                 (["--model", "cls", "--listen", "192.0.2.1:80"], 73, "cannot listen")):
        got = subprocess.run([SERVE, *options], stderr=subprocess.PIPE, stdout=subprocess.PIPE, timeout=30)
        check(got.returncode == code and words in got.stderr.decode(), options, got)
    got = subprocess.run([SERVE, "help", "--write", "manual"], stderr=subprocess.PIPE, timeout=30)
    check(got.returncode == 0 and "--listen" in open("manual/cloze-serve.1").read().replace("\\", ""), "man page")
    check(subprocess.run(["bash", "-n", "manual/cloze-serve.bash"]).returncode == 0, "completion")


def main():
    exit_codes()
    names = [x for m in ("cls", "pairs", "number", "tags", "mlm", "vectors") for x in ("--model", m)]
    server = Server(*names, "--max-body", "200000", "--timeout", "1")
    checks = answers_of_the_program()
    for ask in checks:
        ask(server)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for f in [pool.submit(ask, server) for ask in checks * 2]:
            f.result()
    metrics = server.send("GET", "/metrics")[1].decode()
    joined = [float(re.search(r"cloze_batch_next_size_%s (\S+)" % x, metrics)[1]) for x in ("sum", "count")]
    check(joined[0] > joined[1], "no requests were joined", joined)
    error_table(server)
    chunked_and_kept(server)
    about(server)
    log = [json.loads(x) for x in server.lines().splitlines() if x.startswith("{")]
    check(any(x["path"] == "/predict" and x["status"] == 200 and x["model"] == "cls" for x in log), log[:3])
    check(not any("Number" in x for x in server.lines().splitlines()), "the log has texts")
    slow_and_broken_clients(server)
    reload_folders(server)
    server.stop()
    drain()
    keys_and_sockets()
    queue_is_full()
    adapters()


main()
