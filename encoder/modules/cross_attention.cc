#include "encoder/modules/cross_attention.h"

#include "core/ops/attention.h"
#include "core/ops/rows.h"

namespace cloze {

CrossAttention::CrossAttention(
    ParamStore* store, const Architecture& config, ModuleKeys keys, int index)
    : config_(config), index_(index) {
  const int64_t hidden = config.hidden;
  const auto key = [&](Role role) { return keys(role, index); };
  query_ = Linear(store, {key(Role::kCrossQuery)}, hidden, hidden);
  key_value_ = Linear(store, {key(Role::kCrossKey), key(Role::kCrossValue)}, hidden, hidden);
  output_ = Linear(store, {key(Role::kCrossOutput)}, hidden, hidden);
  norm_ = Norm(store, key(Role::kCrossNorm), hidden, config.norm.epsilon);
}

CrossAttention::Saved CrossAttention::Forward(const Pass& pass, ConstMat x, Mat y) const {
  const int64_t hidden = config_.hidden;
  const Decoding* decoding = pass.decoding;
  Saved s;
  s.x = x;
  s.q = pass.New(x.rows, hidden);
  query_.Forward(pass, x, s.q);
  s.context = pass.New(x.rows, hidden);
  const int cached = config_.layers + index_;  // in the cache
  if (decoding != nullptr && !decoding->seen.empty()) {
    DecodeAttention(s.q, decoding->cache[cached], decoding->source_rows, decoding->source_ends,
        config_.heads, pass.arena, s.context);
  } else {
    s.key_value = pass.New(pass.states->y.rows, 2 * hidden);
    key_value_.Forward(pass, pass.states->y, s.key_value);
    if (decoding != nullptr) KeepRows(s.key_value, decoding->source_rows, decoding->cache[cached]);
    s.lse = pass.arena.NewArray<float>(x.rows * config_.heads);
    CrossAttentionForward(s.q, s.key_value, {pass.cu_seqlens(), config_.heads},
        pass.states->cu_seqlens, Site(pass, DropoutKind::kAttention), pass.arena, s.context, s.lse);
  }
  const Mat z = pass.New(x.rows, hidden);
  output_.Forward(pass, s.context, z);
  s.norm = norm_.Forward(pass, z, x, Site(pass, DropoutKind::kAttentionOutput), {}, z, y);
  return s;
}

void CrossAttention::Backward(const Pass& pass, const Saved& s, Mat d) const {
  const Arena::Mark mark = pass.arena.mark();
  const auto like = [&](const Mat& m) { return pass.New(m.rows, m.cols); };
  const bool dropout = pass.training && config_.dropout > 0;
  const Mat dropped = dropout ? like(d) : Mat();
  norm_.Backward(pass, s.norm, d, {}, Site(pass, DropoutKind::kAttentionOutput), {},
      output_.bias_grad(pass), d, dropped);
  const Mat dcontext = like(s.context), dq = like(s.q), dkv = like(s.key_value);
  output_.Backward(pass, s.context, dropout ? dropped : d, dcontext);
  CrossAttentionBackward(s.q, s.key_value, s.context, dcontext, s.lse,
      {pass.cu_seqlens(), config_.heads}, pass.states->cu_seqlens,
      Site(pass, DropoutKind::kAttention), pass.arena, dq, dkv);
  AddColumnSums(dq, pass.arena, query_.bias_grad(pass));
  query_.Backward(pass, s.x, dq, d, true);
  AddColumnSums(dkv, pass.arena, key_value_.bias_grad(pass));
  key_value_.Backward(pass, pass.states->y, dkv, pass.states->dy, true);
  pass.arena.Rewind(mark);
}

}  // namespace cloze
