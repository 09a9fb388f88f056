# Sourced by the scripts of this folder: NAME.sh PROGRAM [--full]. Each does the tasks of one kind of user in an empty
# folder, on data that it generates, and checks the results. --full: data of real size (minutes).
set -euo pipefail
program=$(realpath "${1:?usage: $(basename "$0") PROGRAM [--full]}")
full=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin && ln -s "$program" bin/cloze
PATH=$work/bin:$PATH
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive LC_ALL=C.UTF-8

fail() { echo "$(basename "$0"): $*" >&2; [ ! -s log ] || tail -n 20 log >&2; exit 1; }
# Fails unless the condition of awk holds. Arguments: what is checked, condition.
check() { awk "BEGIN { exit !($2) }" || fail "$1: not $2"; }
# Prints a number of a JSON object. Arguments: name, file.
number() { sed -n "s/.*\"$1\": *\([-+0-9.eE]*\).*/\1/p" "$2" | tail -n 1; }
# Prints the number of records of a CSV, line breaks in quotes included.
records() { awk '{ quotes += gsub(/"/, "\""); if (quotes % 2 == 0) ++n } END { print n }' "$1"; }

# Prints a table of tickets: 10 queues from 27 to 1 %, cells with quotes, commas, line breaks and emoji.
# Arguments: rows, seed.
tickets() {
  awk -v rows="$1" -v seed="$2" 'BEGIN {
    srand(seed)
    split("delivery billing login returns damage account newsletter warranty invoice legal", queue, " ")
    split("27 20 14 11 9 7 5 4 2 1", share, " ")
    split("parcel payment password refund broken profile unsubscribe repair receipt lawyer", word, " ")
    print "id,subject,body,queue"
    for (i = 1; i <= rows; ++i) {
      x = rand() * 100
      for (q = 1; q < 10 && x >= share[q]; ++q) x -= share[q]
      text = "Hello, I wrote \"\"" word[q] "\"\" before"
      if (rand() < 0.5) text = text ",\nand nobody answered"
      if (rand() < 0.3) text = text " 😡"
      if (rand() < 0.5) text = text ". My " word[q] " is late, number " int(rand() * 1000)
      printf "T%d,\"About my %s, please\",\"%s.\",%s\n", i, rand() < 0.7 ? word[q] : "order", text, queue[q]
    } }'
}
