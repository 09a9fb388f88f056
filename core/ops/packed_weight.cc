#include "core/ops/packed_weight.h"

#include "core/base/threads.h"
#include "core/ops/cost.h"
#include "core/ops/kernels/kernels.h"
#include "core/ops/tiles.h"

namespace cloze {

void PackedWeights::Share(bool share) {
  if (share != share_) packed_.clear();
  share_ = share;
}

int64_t PackedWeights::bytes() const {
  int64_t bytes = 0;
  for (const auto& [key, copies] : packed_) {
    for (const PackedWeight& copy : copies) bytes += copy.layout.bytes;
  }
  return bytes;
}

const void* PackedWeights::Get(const Weight& w, bool transposed, int64_t col,
    const WeightLayout& layout, absl::FunctionRef<void(void* to)> pack) {
  const uintptr_t at = share_ ? col : reinterpret_cast<uintptr_t>(w.w.data);
  std::vector<PackedWeight>& copies = packed_[{at, transposed, layout.type}];
  PackedWeight* copy = nullptr;
  for (PackedWeight& p : copies) {
    if (p.layout == layout) copy = &p;
  }
  if (copy == nullptr) copy = &copies.emplace_back(layout);
  char* const data = copy->memory.get();
  if (copy->source == w.w.data && copy->version == w.version) return data;
  copy->source = w.w.data, copy->version = w.version;
  if (layout.block_depth == 0) pack(data);
  if (layout.block_depth > 0) Queue(w.w, transposed, layout, data);
  return data;
}

// Splits the work so that each task reads whole rows of w.
void PackedWeights::Queue(ConstMat w, bool transposed, const WeightLayout& layout, char* to) {
  PackArgs args = {.depth = layout.depth,
      .cols = layout.cols,
      .depth_step = transposed ? 1 : w.stride,
      .cols_step = transposed ? w.stride : 1,
      .block_depth = layout.block_depth,
      .block_cols = layout.block_cols,
      .depth_stride = layout.depth_stride,
      .cols_stride = layout.cols_stride,
      .from = nullptr,
      .to = nullptr};
  const int64_t step = transposed ? layout.block_cols : layout.block_depth,
                stride = transposed ? layout.cols_stride : layout.depth_stride;
  ForTiles(w.rows, step, [&](int64_t row, int64_t rows) {
    (transposed ? args.cols : args.depth) = rows;
    args.from = static_cast<const float*>(w.data) + row * w.stride;
    args.to = to + row / step * stride * SizeOf(layout.type);
    queue_.push_back({args, layout.type});
  });
}

void PackedWeights::Run() {
  if (queue_.empty()) return;
  const Op op("pack weights", [&] {
    OpCost cost;
    for (const auto& [args, type] : queue_)
      cost.bytes += args.depth * args.cols * (4 + SizeOf(type));
    return cost;
  });
  ParallelFor(queue_.size(), [&](int64_t i) { GetKernels().pack[queue_[i].type](queue_[i].args); });
  queue_.clear();
}

}  // namespace cloze
