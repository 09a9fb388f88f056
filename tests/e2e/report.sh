#!/usr/bin/env bash
# report.sh PROGRAM: makes reports of small runs and a page of explanations, and opens them in headless Chromium: every
# picture has marks, nothing is cut or scrolled sideways at widths from 420 to 1600, nothing is loaded, nothing is said on
# the console. Skipped (77) without Chromium. SHOTS=DIR keeps the pictures of the pages.
set -euo pipefail
program=$(realpath "${1:?usage: report.sh PROGRAM}")
browser=$(command -v chromium || command -v chromium-browser) || { echo "no chromium"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "report.sh: $*" >&2; exit 1; }
cd "$work"

awk 'BEGIN { srand(4); print "text,label"
  split("billing delivery technical", label, " "); split("invoice parcel error", mark, " "); split("the a my was again today please order", word, " ")
  for (i = 0; i < 400; ++i) {
    k = 1 + int(rand() * 3); text = rand() < 0.8 ? mark[k] : mark[1 + int(rand() * 3)]
    for (j = rand() * 20; j > 0; --j) text = text " " word[1 + int(rand() * 8)]
    print text " <b>" i "</b>," label[k] } }' > data.csv
cat > run.textproto << 'END'
model { tokenizer: "vocab" encoder { preset: CUSTOM layers: 1 hidden: 32 heads: 2 intermediate: 32 max_positions: 64 } }
sequence_classification { max_tokens: 48 calibrate: true }
train { files: "data.csv" }
validation { share: 0.3 }
batch { examples: 16 }
optimizer { learning_rate: 3e-3 }
schedule { epochs: 6 }
output { directory: "run" log_every_steps: 2 }
END
"$program" vocab --text data.csv --size 200 --out vocab 2> log
"$program" finetune run.textproto > result.json 2> log || fail "$(cat log)"
"$program" finetune run.textproto --set output.directory=other --set seed=2 > result.json 2> log
"$program" report run --out report.html > log
"$program" report run other --out both.html > log
"$program" predict --model run --explain data.csv --out why.html 2> log
# A run of an older version has neither about.json nor calibration.
rm other/about.json
sed -i 's/,"calibration":.*/}}/' other/metrics.json
"$program" report other --out old.html > log
grep -q '<h3>Calibration' old.html && fail "old.html has a calibration"
grep -q 'class="lead">Right on .* of 1[0-9][0-9] held-out rows.*words alone' report.html || fail "report.html: no sentence"
grep -qE '<small>(id|data.csv:)[^<]*' report.html || fail "report.html: errors without their rows"
grep -q 'seed</td><td>.*2</td>' both.html || fail "both.html: the seeds that differ are missing"
grep -q 'paired bootstrap' both.html || fail "both.html: the answers are not compared"
grep -q '<mark style' why.html || fail "why.html has no highlights"
for heading in Labels Confusion Calibration 'Most confident errors' Data 'Machine and versions' Spec; do
  grep -q "<h3>$heading" report.html || fail "report.html: no $heading"
done
grep -q '&lt; *b' report.html || fail "report.html: texts are missing or not escaped"

! grep -oE '(src|href)=|url\(|@import|<script' report.html both.html old.html why.html || fail "a page refers to the above"

flags="--headless --no-sandbox --disable-gpu --user-data-dir=$work/profile --disable-background-networking --disable-component-update --disable-sync --no-first-run --hide-scrollbars"
# Checks that nothing on a page needs a scroll bar or is cut at a width. Windows have a least width, frames have none.
fits() {
  local script='<script>addEventListener("load", () => { const cut = [...document.querySelectorAll("*")].filter(e => e.clientWidth > 0 &&
    e.scrollWidth > e.clientWidth + 1 && !e.closest("pre, svg") && getComputedStyle(e).display != "inline");
    parent.postMessage("cut:" + cut.map(e => e.tagName + "." + e.className + " " + e.textContent.slice(0, 40)).join(", ") + ":" + innerWidth, "*"); })</script>'
  sed 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' "$1.html" > frame.html
  echo "$script" >> frame.html
  echo "<!DOCTYPE html><title>none</title><script>addEventListener('message', e => { document.title = e.data })</script>
    <iframe src='frame.html' style='border:0;width:$2px;height:3000px'></iframe>" > window.html
  # shellcheck disable=SC2086
  "$browser" $flags --virtual-time-budget=5000 --window-size=1700,3000 --dump-dom "file://$work/window.html" 2> log | grep -o '<title>cut:[^<]*' | head -n 1 > cut || true
  grep -qx "<title>cut::$2" cut || fail "$1: at a width of $2: $(cat cut)"
}

for page in report both old why; do
  for width in 500 1400; do
    "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --disable-background-networking --disable-component-update \
      --disable-sync --no-first-run --force-device-scale-factor=1 --hide-scrollbars --enable-logging=stderr --log-net-log="$work/net.json" \
      --screenshot="$work/$page-$width.png" --window-size="$width,5000" "file://$work/$page.html" > log 2>&1 || fail "$page: $(tail -3 log)"
    [ -s "$page-$width.png" ] || fail "$page: no picture"
    ! grep 'CONSOLE' log || fail "$page: see the console above"
    # The browser itself asks its maker for updates.
    ! grep -oE '"url":"(https?|wss?|ftp)://[^"]*' net.json | grep -vE '://[a-z0-9.-]*\.(google|googleapis)\.com/' || fail "$page: it loads the above"
  done
  for width in 420 800 1600; do fits "$page" "$width"; done
  "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --disable-background-networking --dump-dom \
    "file://$work/$page.html" > dom.html 2> log
  [ "$page" != why ] || continue
  pictures=$(grep -o '<svg' dom.html | wc -l)
  marked=$(tr -d '\n' < dom.html | sed 's/<svg/\n<svg/g' | sed -n 's/^\(<svg.*\)<\/svg>.*/\1/p' | grep -cE '<(polyline|rect|circle|path)')
  [ "$pictures" -ge 5 ] && [ "$pictures" = "$marked" ] || fail "$page: $marked of $pictures pictures have marks"
done
if [ -n "${SHOTS:-}" ]; then cp ./*.png "$SHOTS"; fi
echo "report: ok"
