#include "core/ops/matmul.h"

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"

namespace cloze {
namespace {

using dnnl::memory;

memory::data_type TypeOf(DType type) { return type == DType::kF32 ? memory::data_type::f32 : memory::data_type::bf16; }

// [rows, cols] with the given strides.
memory::desc Describe(int64_t rows, int64_t cols, DType type, int64_t row_stride, int64_t col_stride) {
  return memory::desc({rows, cols}, TypeOf(type), memory::dims{row_stride, col_stride});
}
memory::desc Describe(ConstMat m) { return Describe(m.rows, m.cols, m.type, m.stride, 1); }
memory::desc DescribeTransposed(ConstMat m) { return Describe(m.cols, m.rows, m.type, 1, m.stride); }

struct Operands {
  memory::desc src, weights, bias, dst;  // bias: zero desc when absent
  bool accumulate;
};

// The one place where oneDNN 2.x and 3.x differ for us.
dnnl::matmul::primitive_desc MakePrimitive(const dnnl::engine& engine, const Operands& o) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::library);
  if (o.accumulate) {
    dnnl::post_ops post;
    post.append_sum(1.0f);
    attr.set_post_ops(post);
  }
#if DNNL_VERSION_MAJOR >= 3
  const bool bias = !o.bias.is_zero();
  return bias ? dnnl::matmul::primitive_desc(engine, o.src, o.weights, o.bias, o.dst, attr)
              : dnnl::matmul::primitive_desc(engine, o.src, o.weights, o.dst, attr);
#else
  const bool bias = o.bias.data.ndims != 0;
  return bias ? dnnl::matmul::primitive_desc(dnnl::matmul::desc(o.src, o.weights, o.bias, o.dst), attr, engine)
              : dnnl::matmul::primitive_desc(dnnl::matmul::desc(o.src, o.weights, o.dst), attr, engine);
#endif
}

// What a cached primitive depends on: kind of product, sizes, strides, types, bias, accumulate.
using Key = std::tuple<int, int64_t, int64_t, int64_t, int64_t, int64_t, int, int, bool, bool>;

struct Cached {
  dnnl::matmul primitive;
  memory::desc src, weights, bias, dst;
};

struct Packed {
  memory data;
  uint64_t version = 0;
};

}  // namespace

struct Matmul::Rep {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, Cached> primitives;
  // Packed copies of a weight; more than one when shapes want different layouts.
  std::map<std::pair<const void*, int>, std::vector<Packed>> packed;

  const Cached& Primitive(const Key& key, const Operands& operands) {
    if (const auto it = primitives.find(key); it != primitives.end()) return it->second;
    const auto pd = MakePrimitive(engine, operands);
    return primitives.emplace(key, Cached{dnnl::matmul(pd), operands.src, pd.weights_desc(), operands.bias, operands.dst}).first->second;
  }

  // `plain` [k, n] f32 in the layout `wanted`.
  const memory& Pack(const Weight& w, int kind, const memory::desc& plain, const memory::desc& wanted) {
    std::vector<Packed>& copies = packed[{w.w.data, kind}];
    Packed* copy = nullptr;
    for (Packed& p : copies) {
      if (p.data.get_desc() == wanted) copy = &p;
    }
    if (copy == nullptr) copy = &copies.emplace_back(Packed{memory(wanted, engine), 0});
    if (copy->version != w.version) {
      memory source(plain, engine, const_cast<void*>(w.w.data));
      dnnl::reorder(source, copy->data).execute(stream, source, copy->data);
      stream.wait();
      copy->version = w.version;
    }
    return copy->data;
  }

  void Execute(const Cached& c, const void* src, const memory& weights, const float* bias, void* dst) {
    std::unordered_map<int, memory> args = {{DNNL_ARG_SRC, memory(c.src, engine, const_cast<void*>(src))},
                                            {DNNL_ARG_WEIGHTS, weights},
                                            {DNNL_ARG_DST, memory(c.dst, engine, dst)}};
    if (bias != nullptr) args.emplace(DNNL_ARG_BIAS, memory(c.bias, engine, const_cast<float*>(bias)));
    c.primitive.execute(stream, args);
    stream.wait();
  }

  // dst (+)= src weights, with w or w^T as weights.
  void WithWeight(int kind, ConstMat src, const Weight& w, const memory::desc& plain, const float* bias, Mat dst, bool accumulate) {
    CLOZE_CHECK(src.rows == dst.rows && w.w.type == DType::kF32);
    if (src.rows == 0) return;
    const Key key = {kind, src.rows, src.cols, dst.cols, src.stride, dst.stride, int(src.type), int(dst.type), bias != nullptr, accumulate};
    const memory::desc any({src.cols, dst.cols}, TypeOf(src.type), memory::format_tag::any);
    const memory::desc bias_desc = bias == nullptr ? memory::desc() : Describe(1, dst.cols, DType::kF32, dst.cols, 1);
    const Cached& cached = Primitive(key, {Describe(src), any, bias_desc, Describe(dst), accumulate});
    Execute(cached, src.data, Pack(w, kind * 2 + int(src.type), plain, cached.weights), bias, dst.data);
  }
};

Matmul::Matmul() : rep_(std::make_unique<Rep>()) { dnnl::set_primitive_cache_capacity(4096); }
Matmul::~Matmul() = default;

void Matmul::Forward(ConstMat x, const Weight& w, const float* bias, Mat y) {
  CLOZE_CHECK(x.cols == w.w.cols && y.cols == w.w.rows);
  rep_->WithWeight(0, x, w, DescribeTransposed(w.w), bias, y, false);
}

void Matmul::BackwardData(ConstMat dy, const Weight& w, Mat dx, bool accumulate) {
  CLOZE_CHECK(dy.cols == w.w.rows && dx.cols == w.w.cols);
  rep_->WithWeight(1, dy, w, Describe(w.w), nullptr, dx, accumulate);
}

void Matmul::BackwardWeight(ConstMat dy, ConstMat x, Mat dw) {
  CLOZE_CHECK(dy.rows == x.rows && dw.rows == dy.cols && dw.cols == x.cols && dw.type == DType::kF32 && x.type == dy.type);
  if (x.rows == 0) return;
  const Key key = {2, x.rows, dy.cols, x.cols, dy.stride, x.stride, int(x.type), int(dw.stride), false, true};
  const Cached& cached = rep_->Primitive(key, {DescribeTransposed(dy), Describe(x), memory::desc(), Describe(dw), true});
  rep_->Execute(cached, dy.data, memory(cached.weights, rep_->engine, const_cast<void*>(x.data)), nullptr, dw.data);
}

int64_t Matmul::packed_bytes() const {
  int64_t bytes = 0;
  for (const auto& [key, copies] : rep_->packed) {
    for (const Packed& copy : copies) bytes += copy.data.get_desc().get_size();
  }
  return bytes;
}

std::string MatmulLibrary() {
  const dnnl::version_t* v = dnnl::version();
  const auto isa = dnnl::get_effective_cpu_isa();
  const auto is = [&](dnnl::cpu_isa other) { return isa == other; };
  const char* name = is(dnnl::cpu_isa::avx512_core_bf16) ? "avx512_core_bf16"
                     : is(dnnl::cpu_isa::avx512_core_vnni) ? "avx512_core_vnni"
                     : is(dnnl::cpu_isa::avx512_core)      ? "avx512_core"
                     : is(dnnl::cpu_isa::avx2)             ? "avx2"
                     : is(dnnl::cpu_isa::sse41)            ? "sse41"
                                                           : "other";
  return absl::StrCat("oneDNN ", v->major, ".", v->minor, ".", v->patch, " (", name, ")");
}

}  // namespace cloze
