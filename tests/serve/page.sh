#!/usr/bin/env bash
# page.sh CLOZE CLOZE_SERVE: the page of cloze-serve in headless Chromium: a text for each model, its answer, nothing on the
# console. Skipped (77) without chromium, chromedriver and python3. SHOT=FILE.png keeps a picture.
set -euo pipefail
for tool in chromium chromedriver python3; do command -v $tool > /dev/null || { echo "no $tool"; exit 77; }; done
here=$(realpath "$(dirname "$0")")
cloze=$(realpath "${1:?usage: page.sh CLOZE CLOZE_SERVE}") serve=$(realpath "${2:?}") shot=$(realpath -m "${SHOT:-/dev/null}")
source "$here/models.sh"
pids=()
trap 'kill "${pids[@]}" 2> /dev/null || true; wait; rm -rf "$work"' EXIT
make_models
"$serve" --model cls --model tags --model mlm --model vectors --listen 127.0.0.1:0 2> serve.log &
pids+=($!)
chromedriver --port=0 > driver.log 2>&1 &
pids+=($!)
await grep -q listening serve.log
await grep -q 'successfully on port' driver.log
python3 - "$(sed -n 's/.*successfully on port \([0-9]*\).*/\1/p' driver.log)" "$(sed -n 's/.*listening on //p' serve.log)" "$work/profile" "$shot" << 'END_OF_PYTHON'
import base64, json, sys, time, urllib.request
port, page, profile, shot = sys.argv[1:]

def call(method, path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method, data=None if body is None else json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request))["value"]

arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}"]
session = "/session/" + call("POST", "/session", {"capabilities": {"alwaysMatch": {
    "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": {"args": arguments}}}})["sessionId"]

def run(script, *values):
    return call("POST", session + "/execute/sync", {"script": script, "args": values})

try:
    call("POST", session + "/url", {"url": f"http://{page}/"})
    expected = {"cls": "label", "tags": "words", "mlm": "token", "vectors": "0."}
    for model, member in expected.items():
        run("document.getElementById('answer').textContent = ''; document.getElementById('model').value = arguments[0];"
            "document.getElementById('text').value = arguments[1]; document.getElementById('ask').click()",
            model, "Number 3, the <mask> is wrong.\nNumber 4, the <mask> was wrong.")
        for _ in range(100):
            answer = run("return document.getElementById('answer').textContent")
            if answer:
                break
            time.sleep(0.1)
        assert len(json.loads(answer)) == 2 and member in answer, (model, answer)
        assert run("return document.getElementById('time').textContent").endswith(" ms")
    cut = run("return document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert not cut, "a scroll bar"
    console = [entry for entry in call("POST", session + "/se/log", {"type": "browser"}) if "favicon" not in entry["message"]]
    assert not console, console
    if shot != "/dev/null":
        open(shot, "wb").write(base64.b64decode(call("GET", session + "/screenshot")))
finally:
    call("DELETE", session)
END_OF_PYTHON
echo "page: ok"
