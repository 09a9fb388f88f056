#include "encoder/encoder.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace cloze {
namespace {

Block::Names BlockNames(const ModelConfig& config, int i) {
  const std::string prefix = EncoderPrefix(config), layer = absl::StrCat(prefix, "encoder.layer.", i, ".");
  if (config.norm == EncoderSpec::POST) return {layer, layer + "attention.output.LayerNorm", layer + "output.LayerNorm"};
  const bool last = i + 1 == config.layers;
  return {layer, layer + "intermediate.LayerNorm",
          last ? prefix + "LayerNorm" : absl::StrCat(prefix, "encoder.layer.", i + 1, ".attention.LayerNorm")};
}

// Types of the rows; all 0 for a model that knows one type only, as RoBERTa.
const std::vector<int32_t>& TypeRows(const ModelConfig& config, const Batch& batch, std::vector<int32_t>* zeros) {
  if (config.token_types > 1) return batch.types;
  zeros->assign(batch.types.size(), 0);
  return *zeros;
}

}  // namespace

Encoder::Encoder(ParamStore* store, const ModelConfig& config) : config_(config), pre_(config.norm == EncoderSpec::PRE) {
  const std::string prefix = EncoderPrefix(config), embeddings = prefix + "embeddings.";
  words_ = store->AddMatrix(embeddings + "word_embeddings.weight", config.vocab, config.hidden);
  positions_ = store->AddMatrix(embeddings + "position_embeddings.weight", config.max_positions, config.hidden);
  types_ = store->AddMatrix(embeddings + "token_type_embeddings.weight", config.token_types, config.hidden);
  embedding_norm_ = Norm(store, embeddings + "LayerNorm", config.hidden, config.norm_epsilon);
  if (pre_) first_norm_ = Norm(store, prefix + "encoder.layer.0.attention.LayerNorm", config.hidden, config.norm_epsilon);
  for (int i = 0; i < config.layers; ++i) blocks_.emplace_back(store, config, BlockNames(config, i), i);
}

const std::vector<int32_t>& Encoder::PositionRows(const Step& step, std::vector<int32_t>* shifted) const {
  if (config_.position_offset == 0) return step.batch.positions;
  *shifted = step.batch.positions;
  for (int32_t& p : *shifted) p += config_.position_offset;
  return *shifted;
}

Stream Encoder::Embed(const Step& step, Norm::Saved* embeddings, Norm::Saved* first) const {
  const Batch& b = step.batch;
  const int64_t rows = b.padded_rows();
  std::vector<int32_t> shifted, zeros;
  Mat z = step.New(rows, config_.hidden), y = step.New(rows, config_.hidden);
  EmbeddingForward(step.params.value(words_), b.ids.data(), step.params.value(positions_), PositionRows(step, &shifted).data(),
                   step.params.value(types_), TypeRows(config_, b, &zeros).data(), z);
  *embeddings = embedding_norm_.Forward(step, {}, z, {}, step.Site(config_.dropout, DropoutStream(DropoutPlace::kEmbeddings)), z, y);
  if (!pre_) return {y, y};
  Mat normed = step.New(rows, config_.hidden);
  *first = first_norm_.Forward(step, {}, y, {}, {}, y, normed);
  return {normed, y};
}

Encoder::Saved Encoder::Forward(const Step& step) const {
  Saved saved;
  Stream stream = Embed(step, &saved.embeddings, &saved.first);
  for (const Block& block : blocks_) {
    Stream next;
    next.y = step.New(stream.y.rows, config_.hidden);
    next.residual = pre_ ? step.New(stream.y.rows, config_.hidden) : next.y;
    saved.blocks.push_back(block.Forward(step, stream, next));
    stream = next;
  }
  saved.y = stream.y;
  return saved;
}

Mat Encoder::Infer(const Step& step, Observer observe, const std::vector<float*>& probs) const {
  Norm::Saved embeddings, first;
  Stream stream = Embed(step, &embeddings, &first), next;
  observe(0, stream.residual);
  next.y = step.New(stream.y.rows, config_.hidden);
  next.residual = pre_ ? step.New(stream.y.rows, config_.hidden) : next.y;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Arena::Mark mark = step.arena.mark();
    blocks_[i].Forward(step, stream, next, probs.empty() ? nullptr : probs[i]);
    step.arena.Rewind(mark);
    std::swap(stream, next);
    observe(static_cast<int>(i) + 1, i + 1 == blocks_.size() ? stream.y : stream.residual);
  }
  return stream.y;
}

void Encoder::Backward(const Step& step, const Saved& saved, Mat dy) const {
  const Arena::Mark mark = step.arena.mark();
  Stream d = {dy, dy};
  if (pre_) d.residual = step.arena.NewZero(dy.rows, dy.cols, step.compute);
  for (int i = static_cast<int>(blocks_.size()) - 1; i >= 0; --i) blocks_[i].Backward(step, saved.blocks[i], d, true);
  if (pre_) first_norm_.Backward(step, saved.first, d.y, d.residual, {}, {}, nullptr, d.y, {});
  const DropoutSite dropout = step.Site(config_.dropout, DropoutStream(DropoutPlace::kEmbeddings));
  embedding_norm_.Backward(step, saved.embeddings, d.y, {}, {}, dropout, nullptr, d.y, {});
  const Batch& b = step.batch;
  std::vector<int32_t> shifted, zeros;
  EmbeddingBackward(d.y, b.ids.data(), b.tokens(), step.arena, step.params.grad(words_));
  EmbeddingBackward(d.y, PositionRows(step, &shifted).data(), b.tokens(), step.arena, step.params.grad(positions_));
  EmbeddingBackward(d.y, TypeRows(config_, b, &zeros).data(), b.tokens(), step.arena, step.params.grad(types_));
  step.arena.Rewind(mark);
}

void Encoder::SetSinusoids(ParamStore* store) const {
  Mat table = store->value(positions_);
  for (int64_t n = 0; n < table.rows; ++n) {
    for (int64_t i = 0; i < table.cols; ++i) {
      const double angle = n / std::pow(double{config_.sinusoid_base}, double(i - i % 2) / table.cols);
      table.f32(n)[i] = static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  store->Changed();
}

}  // namespace cloze
