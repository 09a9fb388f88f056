# Compiles the kernels once per instruction set. core/ops/op.cc selects one at start, so that one binary
# runs on any x86-64.
set(isa_amx -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mavx512vnni -mfma -mamx-tile -mamx-bf16 -mamx-int8 -mprefer-vector-width=512)
set(isa_avx512bf16 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mavx512vnni -mfma -mprefer-vector-width=512)
set(isa_avx512vnni -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mprefer-vector-width=512)
set(isa_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mprefer-vector-width=512)
set(isa_avx2vnni -mavx2 -mavxvnni -mfma)
set(isa_avx2 -mavx2 -mfma)
set(isa_baseline)
file(GLOB kernel_sources CONFIGURE_DEPENDS core/ops/kernels/*.cc)
foreach(isa amx avx512bf16 avx512vnni avx512 avx2vnni avx2 baseline)
  add_library(cloze_kernels_${isa} OBJECT ${kernel_sources})
  target_include_directories(cloze_kernels_${isa} PRIVATE ${PROJECT_SOURCE_DIR})
  # No sanitizers or library assertions: kernels are plain loops over ranges that their callers check, and no
  # inline function of a header may be compiled for a newer CPU than the one that runs it.
  target_compile_options(cloze_kernels_${isa} PRIVATE -O3 -Wall -Wextra -Wno-psabi -fno-math-errno -fno-trapping-math -ffp-contract=fast
    -fno-exceptions -fno-rtti ${isa_${isa}})
  target_compile_definitions(cloze_kernels_${isa} PRIVATE CLOZE_ISA=${isa})
  target_sources(cloze_ops PRIVATE $<TARGET_OBJECTS:cloze_kernels_${isa}>)
endforeach()
