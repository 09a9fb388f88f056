#include "core/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/ops/matmul.h"
#include "core/ops/op.h"
#include "core/ops/rows.h"

namespace cloze {
namespace {

// Largest number of partial gradient sums of relative positions per head. Each is one task and
// needs its own memory.
constexpr int64_t kGradientParts = 8;

using Offsets = absl::Span<const int32_t>;

int64_t Tokens(Offsets cu_seqlens, int64_t sequence) {
  return cu_seqlens[sequence + 1] - cu_seqlens[sequence];
}

int64_t Longest(Offsets cu_seqlens) {
  int64_t longest = 1;
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s)
    longest = std::max(longest, Tokens(cu_seqlens, s));
  return longest;
}

// Shared by all tasks of a call. A task is one head of one sequence.
struct Plan {
  ConstMat q, kv;  // kv [., 2 heads dim]
  AttentionShape shape;
  Offsets keys;  // as shape.cu_seqlens
  DropoutSite dropout;
  int64_t sequences, dim, scratch_size;  // scratch_size: floats of one thread
  float* scratch;
  float scale;

  Plan(ConstMat q, ConstMat kv, const AttentionShape& shape, Offsets keys,
      const DropoutSite& dropout, Arena& arena)
      : q(q), kv(kv), shape(shape), keys(keys), dropout(dropout),
        sequences(std::ssize(shape.cu_seqlens) - 1), dim(q.cols / shape.heads) {
    const int64_t longest = std::max(Longest(shape.cu_seqlens), Longest(keys));
    Visibility widest = shape.visible;
    for (const int64_t prefix : shape.prefixes) widest.prefix = std::max(widest.prefix, prefix);
    scratch_size = AttentionScratch(longest, dim, widest);
    int terms = 1;
    if (shape.relative != nullptr) {
      CLOZE_CHECK(shape.visible.before >= longest && shape.visible.after >= longest);
      scratch_size += RelativeScratch(longest, dim);
      terms = shape.relative->terms();
    }
    scale = 1.0f / std::sqrt(static_cast<float>(dim * terms));
    scratch = arena.NewArray<float>(scratch_size * Threads());
  }

  int64_t Queries(int64_t sequence) const { return Tokens(shape.cu_seqlens, sequence); }
  Visibility VisibleIn(int64_t sequence) const {
    Visibility visible = shape.visible;
    if (!shape.prefixes.empty()) visible.prefix = shape.prefixes[sequence];
    if (!shape.causal.empty() && shape.causal[sequence]) visible.after = 0;
    return visible;
  }
  // True if a task, of those arguments, may use products of int8. The scales of a causal sequence
  // would depend on tokens that a query does not see.
  bool InInt8(const AttentionArgs& a) const {
    return shape.int8 && q.type == DType::kBf16 && a.tokens >= kInt8AttentionTokens &&
           a.tokens <= kInt8MaxDepth && a.visible.after > 0 && a.visible.prefix == 0 &&
           a.relative == nullptr && a.dropout.threshold == 0 && a.probs == nullptr;
  }
  bool cross() const { return keys.data() != shape.cu_seqlens.data(); }

  // Returns the work of `products` products with the visible part of a [queries, keys] matrix per
  // head.
  double Flop(int products) const {
    double pairs = 0;
    for (int64_t s = 0; s < sequences; ++s) {
      const int64_t tokens = Queries(s);
      if (cross()) {
        pairs += static_cast<double>(tokens * Tokens(keys, s));
        continue;
      }
      const Visibility visible = VisibleIn(s);
      for (const int64_t reach : {visible.before, visible.after}) {
        const double seen = std::min(tokens - 1, reach);  // on one side, away from both ends
        pairs += seen * (tokens - (seen + 1) / 2);
      }
      const double more = std::max<int64_t>(visible.prefix - 1 - visible.after, 0);
      pairs += static_cast<double>(tokens) + more * (more + 1) / 2;
    }
    return 2.0 * products * pairs * shape.heads * dim;
  }

  // Returns the part of `m` [rows, n heads dim] that belongs to a task, in columns of group
  // `group`.
  void* ColumnsOf(ConstMat m, Offsets cu_seqlens, int64_t task, int64_t group = 0) const {
    const int64_t row = cu_seqlens[task / shape.heads],
                  column = (group * shape.heads + task % shape.heads) * dim;
    return const_cast<void*>(Columns(Rows(m, row, 0), column, dim).data);
  }
  void* OfQueries(ConstMat m, int64_t task) const { return ColumnsOf(m, shape.cu_seqlens, task); }
  void* OfKeys(ConstMat m, int64_t task) const { return ColumnsOf(m, keys, task, 0); }
  void* OfValues(ConstMat m, int64_t task) const { return ColumnsOf(m, keys, task, 1); }

  // probs: see AttentionForward.
  AttentionArgs Args(int64_t task, ConstMat out, const float* lse, float* probs = nullptr) const {
    const int64_t sequence = task / shape.heads, head = task % shape.heads,
                  row = shape.cu_seqlens[sequence],
                  square = Queries(sequence) * Tokens(keys, sequence);
    for (int64_t s = 0; probs != nullptr && s < sequence; ++s)
      probs += Queries(s) * Tokens(keys, s) * shape.heads;
    DropoutSite site = dropout;
    site.site = dropout.site << 12 | static_cast<uint32_t>(head);
    return {.queries = Queries(sequence),
        .tokens = Tokens(keys, sequence),
        .head_dim = dim,
        .stride = q.stride,
        .key_stride = kv.stride,
        .out_stride = out.stride,
        .q = OfQueries(q, task),
        .k = OfKeys(kv, task),
        .v = OfValues(kv, task),
        .out = OfQueries(out, task),
        .lse = const_cast<float*>(lse) + head * q.rows + row,
        .probs = probs == nullptr ? nullptr : probs + head * square,
        .scale = scale,
        .visible = VisibleIn(sequence),
        .dropout = RowsFrom(site, row),
        .scratch = scratch + ThreadIndex() * scratch_size};
  }
};

// CrossAttentionBackward, with relative positions of self-attention.
void Backward(ConstMat q, ConstMat kv, ConstMat out, ConstMat dout, const float* lse,
    const AttentionShape& shape, Offsets keys, const DropoutSite& dropout, Arena& arena, Mat dq,
    Mat dkv, const RelativeGrads& relative_grads) {
  CLOZE_CHECK(dq.stride == q.stride && dkv.stride == kv.stride && dout.stride == out.stride);
  const Arena::Mark mark = arena.mark();
  const Plan plan(q, kv, shape, keys, dropout, arena);
  const Op op("attention backward", [&] {
    return MemoryCost({q, kv, out, dout, dq, dkv}, plan.Flop(5));
  });
  const auto run = [&](int64_t task, const RelativeArgs* relative) {
    AttentionArgs args = plan.Args(task, out, lse);
    args.relative = relative;
    GetKernels().attention_grad[q.type]({args, plan.OfQueries(dout, task), plan.OfQueries(dq, task),
        plan.OfKeys(dkv, task), plan.OfValues(dkv, task)});
  };
  if (shape.relative == nullptr) {
    if (op.dry()) return arena.Rewind(mark);
    ParallelFor(plan.sequences * shape.heads, [&](int64_t task) { run(task, nullptr); });
  } else {
    const int64_t longest = Longest(keys),
                  parts = std::clamp<int64_t>(shape.cu_seqlens.back() / longest, 1, kGradientParts);
    RelativeScores relative(*shape.relative, shape.heads, plan.dim, q.type, longest, parts, arena);
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
  ZeroRowsFrom(dq, shape.cu_seqlens.back());
  ZeroRowsFrom(dkv, keys.back());
  arena.Rewind(mark);
}

}  // namespace

void AttentionForward(ConstMat qkv, const AttentionShape& shape, const DropoutSite& dropout,
    Arena& arena, Mat out, float* lse, float* probs) {
  const int64_t hidden = qkv.cols / 3;
  CrossAttentionForward(Columns(qkv, 0, hidden), Columns(qkv, hidden, 2 * hidden), shape,
      shape.cu_seqlens, dropout, arena, out, lse, probs);
}

void CrossAttentionForward(ConstMat q, ConstMat kv, const AttentionShape& shape, Offsets keys,
    const DropoutSite& dropout, Arena& arena, Mat out, float* lse, float* probs) {
  const Arena::Mark mark = arena.mark();
  const Plan plan(q, kv, shape, keys, dropout, arena);
  std::optional<RelativeScores> relative;
  if (shape.relative != nullptr)
    relative.emplace(*shape.relative, shape.heads, plan.dim, q.type, Longest(keys), 0, arena);
  const Op op("attention", [&] { return MemoryCost({q, kv, out}, plan.Flop(2)); });
  if (op.dry()) return arena.Rewind(mark);
  if (relative.has_value()) relative->Pack();
  ParallelFor(plan.sequences * shape.heads, [&](int64_t task) {
    AttentionArgs args = plan.Args(task, out, lse, probs);
    const RelativeArgs of_head =
        relative.has_value() ? relative->Args(task % shape.heads) : RelativeArgs();
    if (relative.has_value()) args.relative = &of_head;
    if (plan.InInt8(args)) return GetKernels().int8_attention(args);
    GetKernels().attention[q.type](args);
  });
  ZeroRowsFrom(out, shape.cu_seqlens.back());
  arena.Rewind(mark);
}

void AttentionBackward(ConstMat qkv, ConstMat out, ConstMat dout, const float* lse,
    const AttentionShape& shape, const DropoutSite& dropout, Arena& arena, Mat dqkv,
    const RelativeGrads& relative_grads) {
  const int64_t hidden = qkv.cols / 3;
  Backward(Columns(qkv, 0, hidden), Columns(qkv, hidden, 2 * hidden), out, dout, lse, shape,
      shape.cu_seqlens, dropout, arena, Columns(dqkv, 0, hidden), Columns(dqkv, hidden, 2 * hidden),
      relative_grads);
}

void CrossAttentionBackward(ConstMat q, ConstMat kv, ConstMat out, ConstMat dout, const float* lse,
    const AttentionShape& shape, Offsets keys, const DropoutSite& dropout, Arena& arena, Mat dq,
    Mat dkv) {
  Backward(q, kv, out, dout, lse, shape, keys, dropout, arena, dq, dkv, {});
}

void DecodeAttention(ConstMat q, ConstMat cache, absl::Span<const int32_t> seen,
    absl::Span<const int32_t> ends, int heads, Arena& arena, Mat out) {
  CLOZE_CHECK(cache.cols == 2 * q.cols && q.type == cache.type && q.type == out.type);
  const Arena::Mark mark = arena.mark();
  const int64_t dim = q.cols / heads, queries = ends.size(), size = std::ssize(seen) + dim;
  float* const scratch = arena.NewArray<float>(size * Threads());
  const Op op("attention to cache", [&] {
    const ConstMat read = Rows(cache, 0, seen.size());
    return MemoryCost({q, read, out}, 4.0 * static_cast<double>(seen.size() * q.cols));
  });
  if (op.dry()) return arena.Rewind(mark);
  ParallelFor(queries * heads, [&](int64_t task) {
    const int64_t i = task / heads, column = task % heads * dim, begin = i > 0 ? ends[i - 1] : 0;
    GetKernels().decode_attention[q.type]({.keys = ends[i] - begin,
        .head_dim = dim,
        .stride = cache.stride,
        .rows = seen.data() + begin,
        .q = Columns(Rows(q, i, 1), column, dim).data,
        .k = Columns(cache, column, dim).data,
        .v = Columns(cache, q.cols + column, dim).data,
        .out = Columns(Rows(out, i, 1), column, dim).data,
        .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
        .scratch = scratch + ThreadIndex() * size});
  });
  ZeroRowsFrom(out, queries);
  arena.Rewind(mark);
}

}  // namespace cloze
