#include "core/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/ops/op.h"
#include "core/ops/rows.h"

namespace cloze {
namespace {

// Most sums of gradients of relative positions per head: each takes memory, and is one task.
constexpr int64_t kGradientParts = 8;

int64_t Tokens(const AttentionShape& shape, int64_t sequence) {
  return shape.cu_seqlens[sequence + 1] - shape.cu_seqlens[sequence];
}

int64_t Longest(const AttentionShape& shape) {
  int64_t longest = 1;
  for (size_t s = 0; s + 1 < shape.cu_seqlens.size(); ++s)
    longest = std::max(longest, Tokens(shape, s));
  return longest;
}

// Returns the sum of the squared lengths of the first `sequences` sequences.
int64_t Squares(const AttentionShape& shape, int64_t sequences) {
  int64_t sum = 0;
  for (int64_t s = 0; s < sequences; ++s) sum += Tokens(shape, s) * Tokens(shape, s);
  return sum;
}

// Shared by all tasks of a call. A task is one head of one sequence.
struct Plan {
  ConstMat qkv;
  AttentionShape shape;
  DropoutSite dropout;
  int64_t sequences, dim, scratch_size;  // scratch_size: floats of one thread
  float* scratch;
  float scale;

  Plan(ConstMat qkv, const AttentionShape& shape, const DropoutSite& dropout, Arena& arena)
      : qkv(qkv), shape(shape), dropout(dropout), sequences(std::ssize(shape.cu_seqlens) - 1),
        dim(qkv.cols / 3 / shape.heads) {
    const int64_t longest = Longest(shape);
    scratch_size = AttentionScratch(longest, dim, shape.visible);
    int terms = 1;
    if (shape.relative != nullptr) {
      CLOZE_CHECK(shape.visible.before >= longest && shape.visible.after >= longest);
      scratch_size += RelativeScratch(longest, dim);
      terms = shape.relative->terms();
    }
    scale = 1.0f / std::sqrt(static_cast<float>(dim * terms));
    scratch = arena.NewArray<float>(scratch_size * Threads());
  }

  // Returns the work of `products` products with the visible part of a [tokens, tokens] matrix per
  // head.
  double Flop(int products) const {
    double pairs = 0;
    for (int64_t s = 0; s < sequences; ++s) {
      const int64_t tokens = Tokens(shape, s);
      for (const int64_t reach : {shape.visible.before, shape.visible.after}) {
        const double seen = std::min(tokens - 1, reach);  // on one side, but for those at the end
        pairs += seen * (tokens - (seen + 1) / 2);
      }
      pairs += static_cast<double>(tokens);
    }
    return 2.0 * products * pairs * shape.heads * dim;
  }

  // Returns the part of `m` [rows, n heads dim] that belongs to a task, in columns of group
  // `group`.
  void* Part(ConstMat m, int64_t task, int64_t group = 0) const {
    const int64_t row = shape.cu_seqlens[task / shape.heads],
                  column = (group * shape.heads + task % shape.heads) * dim;
    return const_cast<void*>(Columns(Rows(m, row, 0), column, dim).data);
  }

  AttentionArgs Args(int64_t task, ConstMat out, const float* lse) const {
    const int64_t sequence = task / shape.heads, head = task % shape.heads,
                  row = shape.cu_seqlens[sequence];
    DropoutSite site = dropout;
    site.site = dropout.site << 12 | static_cast<uint32_t>(head);
    return {.tokens = Tokens(shape, sequence),
        .head_dim = dim,
        .stride = qkv.stride,
        .out_stride = out.stride,
        .q = Part(qkv, task, 0),
        .k = Part(qkv, task, 1),
        .v = Part(qkv, task, 2),
        .out = Part(out, task),
        .lse = const_cast<float*>(lse) + head * qkv.rows + row,
        .probs = nullptr,
        .scale = scale,
        .visible = shape.visible,
        .dropout = RowsFrom(site, row),
        .scratch = scratch + ThreadIndex() * scratch_size};
  }
};

}  // namespace

void AttentionForward(ConstMat qkv, const AttentionShape& shape, const DropoutSite& dropout,
    Arena& arena, Mat out, float* lse, float* probs) {
  const Arena::Mark mark = arena.mark();
  const Plan plan(qkv, shape, dropout, arena);
  std::optional<RelativeTables> relative;
  if (shape.relative != nullptr)
    relative.emplace(*shape.relative, shape.heads, plan.dim, qkv.type, Longest(shape), 0, arena);
  const Op op("attention", [&] { return Traffic({qkv, out}, plan.Flop(2)); });
  if (op.dry()) return arena.Rewind(mark);
  if (relative.has_value()) relative->Pack();
  ParallelFor(plan.sequences * shape.heads, [&](int64_t task) {
    AttentionArgs args = plan.Args(task, out, lse);
    const int64_t sequence = task / shape.heads, square = args.tokens * args.tokens;
    if (probs != nullptr)
      args.probs = probs + Squares(shape, sequence) * shape.heads + task % shape.heads * square;
    const RelativeArgs of_head =
        relative.has_value() ? relative->Args(task % shape.heads) : RelativeArgs();
    if (relative.has_value()) args.relative = &of_head;
    GetKernels().attention[qkv.type](args);
  });
  ZeroRowsFrom(out, shape.cu_seqlens.back());
  arena.Rewind(mark);
}

void AttentionBackward(ConstMat qkv, ConstMat out, ConstMat dout, const float* lse,
    const AttentionShape& shape, const DropoutSite& dropout, Arena& arena, Mat dqkv,
    const RelativeGrads& relative_grads) {
  CLOZE_CHECK(dqkv.stride == qkv.stride && dout.stride == out.stride);
  const Arena::Mark mark = arena.mark();
  const Plan plan(qkv, shape, dropout, arena);
  const Op op("attention backward", [&] { return Traffic({qkv, out, dout, dqkv}, plan.Flop(5)); });
  const auto run = [&](int64_t task, const RelativeArgs* relative) {
    AttentionArgs args = plan.Args(task, out, lse);
    args.relative = relative;
    GetKernels().attention_grad[qkv.type]({args, plan.Part(dout, task), plan.Part(dqkv, task, 0),
        plan.Part(dqkv, task, 1), plan.Part(dqkv, task, 2)});
  };
  if (shape.relative == nullptr) {
    if (op.dry()) return arena.Rewind(mark);
    ParallelFor(plan.sequences * shape.heads, [&](int64_t task) { run(task, nullptr); });
  } else {
    const int64_t longest = Longest(shape),
                  parts = std::clamp<int64_t>(shape.cu_seqlens.back() / longest, 1, kGradientParts);
    RelativeTables relative(
        *shape.relative, shape.heads, plan.dim, qkv.type, longest, parts, arena);
    if (op.dry()) return arena.Rewind(mark);
    relative.Pack();
    ParallelFor(parts * shape.heads, [&](int64_t task) {
      const int64_t head = task / parts, part = task % parts;
      const RelativeArgs args = relative.ArgsOfPart(head, part);
      for (int64_t s = part * plan.sequences / parts; s < (part + 1) * plan.sequences / parts; ++s)
        run(s * shape.heads + head, &args);
    });
    relative.Reduce(relative_grads);
  }
  ZeroRowsFrom(dqkv, shape.cu_seqlens.back());
  arena.Rewind(mark);
}

}  // namespace cloze
