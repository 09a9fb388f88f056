#!/usr/bin/env bash
# fetch.sh: tools/fetch-model.sh against a server of this machine that answers as a model hub does: all files, an
# interrupted download, files that are there, wrong content, and models that cannot be fetched. Skipped (77) without
# python3 or curl.
set -euo pipefail
command -v python3 > /dev/null && command -v curl > /dev/null || { echo "no python3 or curl"; exit 77; }
source "$(dirname "$0")/../await.sh"
fetch=$(realpath "$(dirname "$0")/../../tools/fetch-model.sh")
work=$(mktemp -d)
server=
trap 'kill "$server" 2> /dev/null; rm -rf "$work"' EXIT
fail() { echo "fetch.sh: $*" >&2; exit 1; }
cd "$work"

mkdir -p hub/me/tiny/1_Pooling hub/me/bins
printf '{"model_type": "bert"}\n' > hub/me/tiny/config.json
printf '{}' > hub/me/tiny/1_Pooling/config.json
head -c 300000 /dev/urandom > hub/me/tiny/model.safetensors
printf 'no' > hub/me/tiny/pytorch_model.bin
printf '{}' > hub/me/bins/config.json
cat > server.py << 'END'
import hashlib, http.server, json, os, re, sys
class Hub(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_HEAD(self): self.do_GET()
    def send(self, code, body, **headers):
        self.send_response(code)
        for name, value in headers.items(): self.send_header(name.replace('_', '-'), value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command == 'GET': self.wfile.write(body)
    def do_GET(self):
        path = self.path.split('?')[0]
        with open('requests', 'a') as log: print(self.command, path, self.headers.get('Range', ''), file=log)
        tree = re.fullmatch('/api/models/(.*)/tree/main', path)
        if tree and os.path.isdir('hub/' + tree[1]):
            top, entries = 'hub/' + tree[1], []
            for folder, _, names in os.walk(top):
                entries.append({'type': 'directory', 'oid': '0' * 40, 'size': 0, 'path': 'x'})
                for name in names:
                    data = open(folder + '/' + name, 'rb').read()
                    oid = hashlib.sha1(b'blob %d\0' % len(data) + data).hexdigest()
                    entry = {'type': 'file', 'oid': oid, 'size': len(data)}
                    if name.endswith('safetensors'): entry['lfs'] = {'oid': hashlib.sha256(data).hexdigest(), 'size': len(data), 'pointerSize': 134}
                    entries.append({**entry, 'path': os.path.relpath(folder + '/' + name, top)})
            return self.send(200, json.dumps(entries).encode())
        file = re.fullmatch('/(.*)/resolve/main/(.*)', path)
        stored = re.fullmatch('/store/(.*)', path)
        name = 'hub/' + (file[1] + '/' + file[2] if file else stored[1] if stored else '?')
        if not os.path.isfile(name): return self.send(404, b'')
        data = open(name, 'rb').read()
        if file and name.endswith('safetensors'):
            return self.send(302, b'', Location='/store/' + file[1] + '/' + file[2], X_Linked_Size=str(len(data)),
                             X_Linked_Etag='"' + hashlib.sha256(data).hexdigest() + '"')
        if os.path.exists('broken'): data = data[:-1] + b'?'
        begin = int(re.fullmatch(r'bytes=(\d+)-', self.headers.get('Range', 'bytes=0-'))[1])
        self.send(206 if begin else 200, data[begin:], Content_Range='bytes %d-%d/%d' % (begin, len(data) - 1, len(data)))
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Hub)
print(server.server_port, file=open('port.new', 'w'), flush=True)
os.rename('port.new', 'port')
server.serve_forever()
END
python3 server.py & server=$!
await test -s port
export CLOZE_HUB=http://127.0.0.1:$(cat port) no_proxy=127.0.0.1

# All files that Cloze reads, and no others.
out=$("$fetch" me/tiny 2> log) || fail "$(cat log)"
[ "$out" = 'models/tiny: 3 files' ] || fail "said $out"
for file in config.json 1_Pooling/config.json model.safetensors; do
  cmp -s "hub/me/tiny/$file" "models/tiny/$file" || fail "$file differs"
done
[ ! -e models/tiny/pytorch_model.bin ] || fail 'pytorch_model.bin was fetched'

# What is there is kept; an interrupted download goes on.
: > requests
rm models/tiny/model.safetensors
head -c 100000 hub/me/tiny/model.safetensors > models/tiny/model.safetensors.part
"$fetch" me/tiny > /dev/null 2> log || fail "$(cat log)"
cmp -s hub/me/tiny/model.safetensors models/tiny/model.safetensors || fail 'the resumed file differs'
grep -q 'GET /store/me/tiny/model.safetensors bytes=100000-' requests || fail 'the download began again'
! grep -q 'GET /me/tiny/resolve/main/config.json' requests || fail 'config.json was fetched twice'

# Wrong content never gets its name.
rm -r models
touch broken
! "$fetch" me/tiny > /dev/null 2> log || fail 'took wrong content'
grep -q 'its size or hash is not what the hub tells' log || fail "$(cat log)"
[ -z "$(find models -type f)" ] || fail 'kept wrong content'
rm broken

# Models that cannot be fetched.
! "$fetch" me/missing > /dev/null 2> log || fail 'fetched what is not there'
grep -q 'me/missing: the hub does not list its files' log || fail "$(cat log)"
! "$fetch" me/bins > /dev/null 2> log || fail 'fetched a model without safetensors'
grep -q 'has no weights as safetensors' log || fail "$(cat log)"
! "$fetch" '../x' > /dev/null 2> log || fail 'took ../x'
! CLOZE_HUB= "$fetch" me/tiny > /dev/null 2> log || fail 'needs no CLOZE_HUB'
grep -q 'CLOZE_HUB: expected the address' log || fail "$(cat log)"
echo 'fetch.sh: ok'
