#!/usr/bin/env bash
# tsan.sh [FOLDER]: builds the program with clang's ThreadSanitizer and libomp (packages clang, libomp-dev)
# in FOLDER (default build-tsan), and runs short pretraining and fine-tuning with 4 threads. Libraries
# built without the sanitizer are trusted (ignore_noninstrumented_modules); Archer tells the sanitizer
# about OpenMP's barriers. Prints the number of reports; exits with 1 if there is any.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
folder=${1:-build-tsan}
command -v clang++ > /dev/null || { echo "skipped: no clang++"; exit 77; }
cmake -G Ninja -S . -B "$folder" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++ -DCLOZE_TESTS=OFF -DCLOZE_WERROR=OFF \
  -DCMAKE_CXX_FLAGS="-fsanitize=thread" -DCMAKE_EXE_LINKER_FLAGS="-fsanitize=thread" ${CMAKE_ARGS:-} > /dev/null
cmake --build "$folder" --target cloze -j "${JOBS:-2}"
export CLOZE=$folder/cloze OMP_NUM_THREADS=4 TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=0 ${TSAN_OPTIONS:-}"
. "$here/tiny.sh"
set +e
for kind in pretrain finetune; do
  spec $kind > $kind.textproto
  "$CLOZE" $kind $kind.textproto --set schedule.steps=12 --set output.directory=$kind.run --set runtime.threads=4 > out 2>> err || fail "$(tail -n 3 err)"
  "$CLOZE" $kind $kind.textproto --set schedule.steps=12 --set output.directory=$kind.run --set runtime.threads=4 > out 2>> err || fail "$(tail -n 3 err)"
done
reports=$(grep -c 'WARNING: ThreadSanitizer' err)
[ "$reports" -eq 0 ] || grep -A 25 'WARNING: ThreadSanitizer' err | head -n 100
echo "$reports reports of ThreadSanitizer"
[ "$reports" -eq 0 ]
