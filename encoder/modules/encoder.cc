#include "encoder/modules/encoder.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "core/ops/embedding.h"
#include "core/ops/rows.h"

namespace cloze {
namespace {

// The rows whose hidden states the targets need.
absl::Span<const int32_t> RowsOfTargets(const Batch& batch) {
  return batch.averages() ? batch.pieces : batch.rows;
}

// Returns the hidden states of the targets [padded targets, n]: y, or means of its rows.
Mat Average(const Pass& pass, Mat y) {
  if (!pass.batch.averages()) return y;
  const Mat mean = pass.New(PaddedRows(pass.batch.rows.size()), y.cols);
  AverageRows(y, pass.batch.piece_ends, mean);
  return mean;
}

}  // namespace

Encoder::Encoder(ParamStore* store, const ModelConfig& config)
    : config_(config), pre_(config.pre_norm()) {
  const int64_t hidden = config.hidden;
  const auto table = [&](Role role, int64_t rows) {
    return store->AddMatrix(config.Key(role, -1).Of(Part::kWeight), rows, hidden);
  };
  words_ = table(Role::kWordEmbeddings, config.vocab);
  positions_ = table(Role::kPositionEmbeddings, config.max_positions);
  if (config.token_types > 0) types_ = table(Role::kTokenTypeEmbeddings, config.token_types);
  embedding_norm_ = Norm(store, config.Key(Role::kEmbeddingsNorm, -1), hidden, config.norm_epsilon);
  if (pre_)
    first_norm_ = Norm(store, config.Key(Role::kAttentionNorm, 0), hidden, config.norm_epsilon);
  for (int i = 0; i < config.layers; ++i) blocks_.emplace_back(store, config, i);
}

std::vector<int32_t> Encoder::PositionRows(const Pass& pass) const {
  std::vector<int32_t> rows = pass.batch.positions;
  for (int32_t& row : rows) row += config_.position_offset;
  return rows;
}

std::vector<int32_t> Encoder::TypeRows(const Pass& pass) const {
  if (config_.token_types > 1) return pass.batch.types;
  return std::vector<int32_t>(pass.batch.types.size());
}

void Encoder::AddLora(ParamStore* store, const LoraPlan& plan) {
  for (Block& block : blocks_) block.AddLora(store, plan);
}

int Encoder::LowestTrainable(const Pass& pass) const {
  const bool tables = pass.requires_grad(words_) || pass.requires_grad(positions_) ||
                      (types_ >= 0 && pass.requires_grad(types_));
  if (tables || embedding_norm_.requires_grad(pass) || (pre_ && first_norm_.requires_grad(pass)))
    return -1;
  return absl::c_find_if(blocks_, [&](const Block& b) { return b.requires_grad(pass); }) -
         blocks_.begin();
}

BlockState Encoder::NewState(const Pass& pass, int64_t rows) const {
  BlockState state;
  state.y = pass.New(rows, config_.hidden);
  state.residual = pre_ ? pass.New(rows, config_.hidden) : state.y;
  return state;
}

void Encoder::Embed(
    const Pass& pass, const BlockState& out, Norm::Saved* embeddings, Norm::Saved* first) const {
  const Batch& b = pass.batch;
  Mat z = pass.New(out.y.rows, config_.hidden);
  EmbeddingForward(pass.value(words_), b.ids.data(), pass.value(positions_),
      PositionRows(pass).data(), types_ < 0 ? ConstMat() : pass.value(types_),
      TypeRows(pass).data(), z);
  *embeddings = embedding_norm_.Forward(pass, {}, z, {},
      pass.Site(config_.dropout, DropoutSiteId(DropoutPlace::kEmbeddings)), z, out.residual);
  if (pre_) *first = first_norm_.Forward(pass, {}, out.residual, {}, {}, out.residual, out.y);
}

BlockState Encoder::RunBlocks(const Pass& pass, int count, const std::optional<TargetRows>& targets,
    Observer observe, const std::vector<float*>& probs) const {
  const int64_t rows = pass.batch.padded_rows();
  BlockState state = NewState(pass, rows), next = count > 0 ? NewState(pass, rows) : BlockState();
  const Arena::Mark mark = pass.arena.mark();
  Norm::Saved embeddings, first;
  Embed(pass, state, &embeddings, &first);
  pass.arena.Rewind(mark);
  observe(0, state.residual);
  for (int i = 0; i < count; ++i) {
    const std::optional<TargetRows> narrow = TargetsOf(i, targets);
    if (narrow.has_value())
      next = {Rows(next.y, 0, narrow->padded()), Rows(next.residual, 0, narrow->padded())};
    blocks_[i].Forward(pass, state, next, narrow, probs.empty() ? nullptr : probs[i]);
    pass.arena.Rewind(mark);
    std::swap(state, next);
    observe(i + 1, i + 1 == config_.layers ? state.y : state.residual);
  }
  return state;
}

Encoder::Saved Encoder::Forward(const Pass& pass) const {
  Saved saved;
  saved.lowest = LowestTrainable(pass);
  saved.targets.emplace(pass, RowsOfTargets(pass.batch));
  BlockState state;
  if (saved.lowest < 0) {
    state = NewState(pass, pass.batch.padded_rows());
    Embed(pass, state, &saved.embeddings, &saved.first);
  } else {
    state = RunBlocks(pass, saved.lowest, saved.targets, [](int, ConstMat) {});
  }
  for (int i = std::max(saved.lowest, 0); i < config_.layers; ++i) {
    const std::optional<TargetRows> narrow = TargetsOf(i, saved.targets);
    const BlockState next = NewState(pass, narrow.has_value() ? narrow->padded() : state.y.rows);
    const Arena::Mark mark = pass.arena.mark();
    const Block::Saved block = blocks_[i].Forward(pass, state, next, narrow);
    if (pass.recompute) {
      pass.arena.Rewind(mark);
      saved.states.push_back(state);
    } else {
      saved.blocks.push_back(block);
    }
    state = next;
  }
  if (pass.recompute) saved.states.push_back(state);
  saved.y = Average(pass, state.y);
  return saved;
}

Mat Encoder::Infer(const Pass& pass) const {
  const TargetRows targets(pass, RowsOfTargets(pass.batch));
  return Average(pass, RunBlocks(pass, config_.layers, targets, [](int, ConstMat) {}).y);
}

void Encoder::Observe(const Pass& pass, Observer observe, const std::vector<float*>& probs) const {
  RunBlocks(pass, config_.layers, {}, observe, probs);
}

void Encoder::Backward(const Pass& pass, const Saved& saved, Mat dy) const {
  const Arena::Mark mark = pass.arena.mark();
  if (pass.batch.averages()) {
    const Mat all = pass.New(saved.targets->padded(), dy.cols);
    AverageRowsBackward(dy, pass.batch.piece_ends, all);
    dy = all;
  }
  BlockState d = {dy, dy};
  if (pre_) d.residual = pass.arena.NewZero(dy.rows, dy.cols, pass.compute);
  const int first = std::max(saved.lowest, 0);
  for (int i = config_.layers - 1; i >= first; --i) {
    const bool need_dx = i > saved.lowest;
    const std::optional<TargetRows> narrow = TargetsOf(i, saved.targets);
    const BlockState d_in = !need_dx             ? BlockState()
                            : narrow.has_value() ? NewState(pass, pass.batch.padded_rows())
                                                 : d;
    const Arena::Mark block = pass.arena.mark();
    const int at = i - first;
    // Forward again writes the same bits to the next state.
    const Block::Saved s =
        pass.recompute ? blocks_[i].Forward(pass, saved.states[at], saved.states[at + 1], narrow)
                       : saved.blocks[at];
    blocks_[i].Backward(pass, s, d, d_in);
    pass.arena.Rewind(block);
    d = d_in;
  }
  if (saved.lowest < 0) EmbeddingsBackward(pass, saved, d);
  pass.arena.Rewind(mark);
}

void Encoder::EmbeddingsBackward(const Pass& pass, const Saved& saved, const BlockState& d) const {
  if (pre_) first_norm_.Backward(pass, saved.first, d.y, d.residual, {}, {}, nullptr, d.y, {});
  const DropoutSite dropout = pass.Site(config_.dropout, DropoutSiteId(DropoutPlace::kEmbeddings));
  embedding_norm_.Backward(pass, saved.embeddings, d.y, {}, {}, dropout, nullptr, d.y, {});
  const Batch& b = pass.batch;
  EmbeddingBackward(d.y, b.ids.data(), b.tokens(), pass.arena, pass.params.grad(words_));
  EmbeddingBackward(
      d.y, PositionRows(pass).data(), b.tokens(), pass.arena, pass.params.grad(positions_));
  if (types_ < 0) return;
  EmbeddingBackward(d.y, TypeRows(pass).data(), b.tokens(), pass.arena, pass.params.grad(types_));
}

}  // namespace cloze
