// Scaled dot-product attention of packed sequences.
#ifndef CLOZE_CORE_OPS_ATTENTION_H_
#define CLOZE_CORE_OPS_ATTENTION_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/ops/dropout.h"
#include "core/ops/relative.h"
#include "core/tensor/arena.h"

namespace cloze {

// For decoders: a query sees its own token and those before it.
inline constexpr Visibility kCausal = {kAllKeys, 0};

// Sequence s is rows [cu_seqlens[s], cu_seqlens[s+1]).
struct AttentionShape {
  absl::Span<const int32_t> cu_seqlens;
  int heads;
  Visibility visible = {};
  // Null: scores do not depend on distances. Requires that all keys are visible.
  const RelativePositions* relative = nullptr;
  // Visibility::prefix of each sequence (0: none), for example the length of a prompt that all
  // causal queries see. Empty: visible.prefix for all.
  absl::Span<const int32_t> prefixes = {};
  // True for sequences with causal attention, whose queries see no later keys except those of a
  // prefix. Empty: none.
  absl::Span<const uint8_t> causal = {};
  // True: sequences in bf16 of kInt8AttentionTokens to kInt8MaxDepth tokens use products of int8
  // on CPUs where these are faster, unless they are causal or have a prefix, `relative` or dropout,
  // or `probs` are wanted. For inference: their lse is not written.
  bool int8 = false;
};
// out [rows, heads dim] = dropout(softmax(q k^T / sqrt(dim))) v for qkv [rows, 3 heads dim], where
// a query sees the keys of its sequence that `visible` names. Rows after the last sequence become
// zero. The work is proportional to the number of visible keys. lse [heads, rows] is kept for the
// backward pass. probs: null, or receives the probabilities before dropout: [heads, tokens,
// tokens] of each sequence, one sequence after the other.
void AttentionForward(ConstMat qkv, const AttentionShape& shape, const DropoutSite& dropout,
    Arena& arena, Mat out, float* lse, float* probs = nullptr);
// Overwrites dqkv [rows, 3 heads dim]. relative_grads: of shape.relative.
void AttentionBackward(ConstMat qkv, ConstMat out, ConstMat dout, const float* lse,
    const AttentionShape& shape, const DropoutSite& dropout, Arena& arena, Mat dqkv,
    const RelativeGrads& relative_grads = {});

// Attention of queries to the keys and values of other sequences (Vaswani et al. 2017, section
// 3.2.3): out [rows, heads dim] for q [rows, heads dim] and kv [key rows, 2 heads dim], where
// queries of sequence s, by shape.cu_seqlens, see all rows of sequence s by key_seqlens. Every
// sequence has a key. Requires the defaults of shape.visible and shape.relative. Rows of out after
// the last sequence become zero; lse and probs as above.
void CrossAttentionForward(ConstMat q, ConstMat kv, const AttentionShape& shape,
    absl::Span<const int32_t> key_seqlens, const DropoutSite& dropout, Arena& arena, Mat out,
    float* lse, float* probs = nullptr);
// Overwrites dq and dkv, which are zero after the last sequence and for sequences without a query.
void CrossAttentionBackward(ConstMat q, ConstMat kv, ConstMat out, ConstMat dout, const float* lse,
    const AttentionShape& shape, absl::Span<const int32_t> key_seqlens, const DropoutSite& dropout,
    Arena& arena, Mat dq, Mat dkv);

// Attention of a generating decoder to the cached keys and values of earlier tokens:
// out [n, heads dim] = softmax(q k^T / sqrt(dim)) v for q [n, heads dim] and a cache [., 2 heads
// dim] of keys and values. Query i sees the rows seen[ends[i - 1]] ... seen[ends[i] - 1] of the
// cache (ends[-1] is 0). Rows of out without a query become zero.
void DecodeAttention(ConstMat q, ConstMat cache, absl::Span<const int32_t> seen,
    absl::Span<const int32_t> ends, int heads, Arena& arena, Mat out);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_ATTENTION_H_
