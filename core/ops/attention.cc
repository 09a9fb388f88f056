#include "core/ops/attention.h"

#include <algorithm>
#include <cmath>

#include "core/base/threads.h"
#include "core/ops/cost.h"
#include "core/ops/kernels/kernels.h"
#include "core/ops/rows.h"

namespace cloze {
namespace {

// Shared by all tasks of a call. A task is one head of one sequence.
struct Plan {
  ConstMat qkv;
  AttentionShape shape;
  DropoutSite dropout;
  int64_t dim, scratch_size;
  float* scratch;

  Plan(ConstMat qkv, const AttentionShape& shape, const DropoutSite& dropout, Arena& arena)
      : qkv(qkv), shape(shape), dropout(dropout), dim(qkv.cols / 3 / shape.heads) {
    int64_t longest = 1;
    for (size_t s = 0; s + 1 < shape.cu_seqlens.size(); ++s)
      longest = std::max<int64_t>(longest, shape.cu_seqlens[s + 1] - shape.cu_seqlens[s]);
    scratch_size = AttentionScratch(longest, dim);
    scratch = arena.NewArray<float>(scratch_size * Threads());
  }

  int64_t tasks() const {
    return (static_cast<int64_t>(shape.cu_seqlens.size()) - 1) * shape.heads;
  }

  AttentionArgs Args(int64_t task, ConstMat out, const float* lse) const {
    const int64_t sequence = task / shape.heads, head = task % shape.heads,
                  row = shape.cu_seqlens[sequence];
    const auto part = [&](ConstMat m, int64_t column) {
      return Columns(Rows(m, row, 0), column + head * dim, dim).data;
    };
    const int64_t hidden = shape.heads * dim;
    DropoutSite site = dropout;
    site.site = dropout.site << 12 | static_cast<uint32_t>(head);
    return {.tokens = shape.cu_seqlens[sequence + 1] - row,
        .head_dim = dim,
        .stride = qkv.stride,
        .out_stride = out.stride,
        .q = part(qkv, 0),
        .k = part(qkv, hidden),
        .v = part(qkv, 2 * hidden),
        .out = const_cast<void*>(part(out, 0)),
        .lse = const_cast<float*>(lse) + head * qkv.rows + row,
        .probs = nullptr,
        .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
        .dropout = RowsFrom(site, row),
        .scratch = scratch + ThreadIndex() * scratch_size};
  }
};

// Returns the work of `products` products with a [tokens, tokens] matrix per head.
double AttentionFlop(const AttentionShape& shape, int64_t hidden, int products) {
  double squares = 0;
  for (size_t s = 0; s + 1 < shape.cu_seqlens.size(); ++s) {
    const double tokens = shape.cu_seqlens[s + 1] - shape.cu_seqlens[s];
    squares += tokens * tokens;
  }
  return 2.0 * products * squares * hidden;
}

}  // namespace

void AttentionForward(ConstMat qkv, const AttentionShape& shape, const DropoutSite& dropout,
    Arena& arena, Mat out, float* lse, float* probs) {
  const Op op("attention", [&] { return Traffic({qkv, out}, AttentionFlop(shape, out.cols, 2)); });
  const Arena::Mark mark = arena.mark();
  const Plan plan(qkv, shape, dropout, arena);
  if (op.dry()) return arena.Rewind(mark);
  const auto* offsets = shape.cu_seqlens.data();
  const auto square = [&](int64_t s) {
    return int64_t{offsets[s + 1] - offsets[s]} * (offsets[s + 1] - offsets[s]);
  };
  ParallelFor(plan.tasks(), [&](int64_t task) {
    AttentionArgs args = plan.Args(task, out, lse);
    if (probs != nullptr) {
      args.probs = probs;
      for (int64_t s = 0; s < task / shape.heads; ++s) args.probs += square(s) * shape.heads;
      args.probs += task % shape.heads * square(task / shape.heads);
    }
    GetKernels().attention[qkv.type](args);
  });
  ZeroRowsFrom(out, shape.cu_seqlens.back());
  arena.Rewind(mark);
}

void AttentionBackward(ConstMat qkv, ConstMat out, ConstMat dout, const float* lse,
    const AttentionShape& shape, const DropoutSite& dropout, Arena& arena, Mat dqkv) {
  CLOZE_CHECK(dqkv.stride == qkv.stride && dout.stride == out.stride);
  const Op op("attention backward", [&] {
    return Traffic({qkv, out, dout, dqkv}, AttentionFlop(shape, out.cols, 5));
  });
  const Arena::Mark mark = arena.mark();
  const Plan plan(qkv, shape, dropout, arena);
  if (op.dry()) return arena.Rewind(mark);
  ParallelFor(plan.tasks(), [&](int64_t task) {
    const AttentionArgs forward = plan.Args(task, out, lse);
    // The place in `to` of p in `from`; both have the same stride.
    const auto moved = [](const void* p, ConstMat from, ConstMat to) {
      const auto at = static_cast<const char*>(p) - static_cast<const char*>(from.data);
      return static_cast<char*>(const_cast<void*>(to.data)) + at;
    };
    GetKernels().attention_grad[qkv.type]({.forward = forward,
        .dout = moved(forward.out, out, dout),
        .dq = moved(forward.q, qkv, dqkv),
        .dk = moved(forward.k, qkv, dqkv),
        .dv = moved(forward.v, qkv, dqkv)});
  });
  ZeroRowsFrom(dqkv, shape.cu_seqlens.back());
  arena.Rewind(mark);
}

}  // namespace cloze
