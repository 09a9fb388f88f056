#include "tools/bench/peak_product.h"

#include <unordered_map>

#include "core/base/threads.h"
#include "core/ops/onednn.h"

namespace cloze::bench {

using dnnl::memory;

struct PeakProduct::Rep {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul primitive;
  std::unordered_map<int, memory> args;
};

PeakProduct::PeakProduct(int64_t m, int64_t n, int64_t k, DType type)
    : rep_(std::make_unique<Rep>()) {
  SetLibraryThreads(Threads());
  const auto any = [&](int64_t rows, int64_t cols) {
    return memory::desc({rows, cols}, TypeOf(type), memory::format_tag::any);
  };
  const auto pd =
      MakePrimitive(rep_->engine, {any(m, k), any(k, n), {}, Describe(m, n, type, n, 1), false});
  rep_->primitive = dnnl::matmul(pd);
  const auto filled = [&](const memory::desc& desc) {
    memory out(desc, rep_->engine);
    auto* words = static_cast<uint16_t*>(out.get_data_handle());
    for (size_t i = 0; i < desc.get_size() / 2; ++i)
      words[i] = static_cast<uint16_t>(0x3F00 + i % 113);  // about 1, in either type
    return out;
  };
  rep_->args = {{DNNL_ARG_SRC, filled(pd.src_desc())},
      {DNNL_ARG_WEIGHTS, filled(pd.weights_desc())}, {DNNL_ARG_DST, filled(pd.dst_desc())},
      {DNNL_ARG_SCRATCHPAD, memory(pd.scratchpad_desc(), rep_->engine)}};
}
PeakProduct::~PeakProduct() = default;

void PeakProduct::Run() {
  SetLibraryThreads(Threads());
  rep_->primitive.execute(rep_->stream, rep_->args);
  rep_->stream.wait();
}

}  // namespace cloze::bench
