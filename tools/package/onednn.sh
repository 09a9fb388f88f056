#!/usr/bin/env bash
# onednn.sh DIR: makes the static oneDNN of the download, DIR/lib/libdnnl.a and DIR/include, from Debian's source
# package: for CPUs, with OpenMP, with matmul and reorder alone. Does nothing if DIR is complete. Needs apt-get, dpkg-dev,
# cmake, ninja and a network; $TMPDIR gets 200 MB meanwhile.
set -euo pipefail
version=3.7.2+ds-2 suite=trixie
sha256=0cc51ca26c1af6a2bb1e71e378e7046f3ceb3e71791ee9d4e246d50f904a6ea6
source "$(dirname "$0")/source.sh"
begin_library "$@"

# Leaves out what the program would not link: three quarters of the time to compile. Argument: a CMakeLists.txt.
prune() {
  local unused='_conv[^e]|deconv|uni_eltwise[.]|eltwise_int|ref_eltwise|uni_binary[.]|binary_kernel|ref_binary|xf16_sum|reorder_comp|_fp[48][.]|_f16[.]|_[su][0-9]+[.]|pool|norm|rnn|lrn|shuffle|resampl|(simple|ref|uni)_concat|(simple|ref|uni)_sum|prelu|softmax|reduction|inner_product([^\/]*[^s])?[.]|wino|dw_|1x1|gates'
  sed -i "0,/^set(OBJ_LIB/s//set(lists \${SOURCES})\\
list(FILTER lists INCLUDE REGEX \"_list.cpp\$\")\\
list(FILTER SOURCES EXCLUDE REGEX \"\/[^\/]*($unused)[^\/]*cpp\$|\/rnn\/[^\/]*cpp\$\")\\
list(APPEND SOURCES \${lists})\\
list(REMOVE_DUPLICATES SOURCES)\\
set(OBJ_LIB/" "$1"
}

fetch_source onednn $version $suite $sha256
prune "$source/src/common/CMakeLists.txt"
prune "$source/src/cpu/CMakeLists.txt"
prune "$source/src/cpu/x64/CMakeLists.txt"
# Operands are moved in f32 or in bf16.
sed -i -E '/regular(_f32)?_(fp|f16|s|u)[0-9]*_impl|comp_[a-z0-9]*_s8_impl/d' "$source/src/cpu/reorder/cpu_reorder.cpp"
# Cloze multiplies bytes with kernels of its own; oneDNN's are a third of its size.
int8=$source/src/cpu/x64/gemm/s8x8s32
sed -i -E '/::generate\(\) \{$/,/^\}$/ { /::generate/ { s/\{$/{ std::abort(); }/; b }; d }' "$int8"/*_autogen.cpp
cat "$int8"/*_autogen.cpp > "$work/kernels.cpp"
rm "$int8"/*_autogen.cpp
mv "$work/kernels.cpp" "$int8/"
sed -i 's/set(OPT_LEVEL "-O1")/set(OPT_LEVEL "-O0")/' "$source/src/cpu/x64/CMakeLists.txt"  # code that writes kernels
sed -i 's/^find_package(spdlog REQUIRED)$//' "$source/src/CMakeLists.txt"  # only for its own log

# The kernels are made when the program runs, so the compiler's optimisation is of little use. Paths in the objects
# must not differ between machines.
echo "onednn.sh: compiles" >&2
{ cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$root" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG -ffile-prefix-map=$work=." -DDNNL_LIBRARY_TYPE=STATIC \
    -DDNNL_CPU_RUNTIME=OMP -DDNNL_GPU_RUNTIME=NONE -DDNNL_ENABLE_PRIMITIVE="MATMUL;REORDER" -DONEDNN_BUILD_GRAPH=OFF \
    -DONEDNN_ARCH_OPT_FLAGS="" -DDNNL_BUILD_TESTS=OFF -DDNNL_BUILD_EXAMPLES=OFF -DDNNL_ENABLE_ITT_TASKS=OFF \
    -DDNNL_ENABLE_JIT_PROFILING=OFF -DDNNL_EXPERIMENTAL_LOGGING=OFF &&
  cmake --build "$work/build" --target install; } > "$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
end_library LICENSE THIRD-PARTY-PROGRAMS
