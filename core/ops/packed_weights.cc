#include "absl/algorithm/container.h"
#include "core/ops/matmul_engine.h"
#include "core/ops/op.h"

namespace cloze {

void PackedWeights::Share(bool share) {
  if (share != share_) Drop();
  share_ = share;
}

int64_t PackedWeights::bytes() const {
  int64_t bytes = 0;
  for (const auto& [key, copies] : packed_) {
    for (const Copy& copy : copies) bytes += copy.layout.bytes;
  }
  return bytes;
}

const void* PackedWeights::Get(const Weight& w, bool transposed, int64_t col,
    const WeightLayout& layout, absl::FunctionRef<void(void* to)> pack, bool pin) {
  const uintptr_t at = share_ ? col : reinterpret_cast<uintptr_t>(w.w.data);
  std::vector<Copy>& copies = packed_[{at, transposed, layout.type}];
  auto copy = absl::c_find_if(copies, [&](const Copy& c) { return c.layout == layout; });
  if (copy == copies.end())
    copy = copies.insert(copy, {.layout = layout, .to = memory_.NewArray<char>(layout.bytes)});
  char* const to = copy->to;
  if (copy->source == w.w.data && copy->version.value_or(w.version) == w.version) return to;
  copy->source = w.w.data;
  copy->version = pin ? std::nullopt : std::optional(w.version);
  if (layout.blocks.depth == 0) {
    pack(to);
  } else {
    Queue(w.w, transposed, layout, to);
  }
  return to;
}

// Each task reads whole rows of w.
void PackedWeights::Queue(
    const ConstMat& w, bool transposed, const WeightLayout& layout, char* to) {
  const PackBlocks& blocks = layout.blocks;
  const int64_t step = transposed ? blocks.cols : blocks.depth,
                stride = transposed ? blocks.cols_stride : blocks.depth_stride;
  ForTiles(w.rows, step, [&](int64_t row, int64_t rows) {
    const auto* from = static_cast<const float*>(w.data) + row * w.stride;
    char* const strip = to + row / step * stride * SizeOf(layout.type);
    queue_.emplace_back(transposed ? PackArgs{layout.depth, rows, 1, w.stride, blocks, from, strip}
                                   : PackArgs{rows, layout.cols, w.stride, 1, blocks, from, strip},
        layout.type);
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
  ParallelFor(
      queue_.size(), [&](int64_t i) { GetKernels().pack[queue_[i].second](queue_[i].first); });
  queue_.clear();
}

}  // namespace cloze
