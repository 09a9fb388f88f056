#!/usr/bin/env bash
# readme.sh PROGRAM: runs the README's section "Your own CSV" as it is written, in an empty folder, on a
# small data.csv.
set -eu
program=$(realpath "${1:?usage: readme.sh PROGRAM}")
readme=$(cd "$(dirname "$0")/../.." && pwd)/README.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/empty"
ln -s "$program" "$work/bin/cloze"
PATH=$work/bin:$PATH
cd "$work/empty"

awk 'BEGIN { srand(1); split("great warm funny clever", good, " "); split("dull flat empty tired", bad, " ")
  print "text,label"
  for (i = 0; i < 2000; ++i) {
    like = rand() < 0.5
    word = 1 + int(rand() * 4)
    print "\"a film, " (like ? good[word] : bad[word]) " and number " i "\"," (like ? "positive" : "negative")
  } }' > data.csv

# The spec: the first block of indented lines that begins with "model {".
awk '/^    model \{/ { on = 1 } on && !/^    / { exit } on { print substr($0, 5) }' "$readme" > reviews.textproto
[ "$(wc -l < reviews.textproto)" -eq 5 ] || { echo "the spec of the README was not found"; exit 1; }

# The commands: lines indented by seven blanks, from the second step on.
awk '/^## Your own CSV/ { on = 1 } /^## Documentation/ { exit } on && /^2\. / { step = 1 } on && step && /^       [a-z]/ { print substr($0, 8) }' \
  "$readme" > commands
[ "$(wc -l < commands)" -eq 5 ] || { echo "the commands of the README were not found"; exit 1; }
OMP_NUM_THREADS=2 bash -eux commands > out
grep -q '"label": "\(positive\|negative\)"' out || { echo "no answer"; cat out; exit 1; }
[ "$(wc -l < predictions.csv)" -eq 2001 ] && [ -s report.html ] || { echo "no predictions or report"; exit 1; }
cloze evaluate --model runs/reviews --data data.csv >> out
accuracy=$(tail -n 1 out | sed -n 's/^{"accuracy": *\([0-9.]*\).*/\1/p')
awk -v a="${accuracy:-0}" 'BEGIN { exit !(a > 0.95) }' || { echo "accuracy $accuracy"; cat out; exit 1; }
