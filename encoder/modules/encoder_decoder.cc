#include "encoder/modules/encoder_decoder.h"

#include <numeric>

namespace cloze {
namespace {

// Returns the pass of the encoder, whose dropout differs from the decoder's.
Pass EncoderPass(const Pass& pass, const SplitBatch& split) {
  Pass encoder = pass.Over(split.source);
  encoder.seed = ~pass.seed;
  encoder.decoding = nullptr;
  return encoder;
}

Pass DecoderPass(const Pass& pass, const SplitBatch& split, const SourceStates& states) {
  Pass decoder = pass.Over(split.target);
  decoder.states = &states;
  return decoder;
}

}  // namespace

SplitBatch::SplitBatch(const Batch& pairs) {
  size_t next = 0;  // in pairs.rows
  for (int64_t s = 0; s < pairs.sequences(); ++s) {
    const int32_t begin = pairs.cu_seqlens[s], end = pairs.cu_seqlens[s + 1];
    int32_t middle = begin;
    while (middle < end && pairs.types[middle] == 0) ++middle;
    const auto ids = absl::MakeSpan(pairs.ids).subspan(begin, end - begin);
    const int32_t length = middle - begin, first = static_cast<int32_t>(target.tokens()) - middle;
    const uint64_t example = pairs.row_examples[begin];
    source.Add(ids.subspan(0, length), length, example);
    target.Add(ids.subspan(length), end - middle, example);
    for (int32_t r = middle; r < end; ++r)
      target.positions[r + first] = pairs.positions[r] - length;
    for (; next < pairs.rows.size() && pairs.rows[next] < end; ++next) {
      CLOZE_CHECK(pairs.rows[next] >= middle);
      target.rows.push_back(pairs.rows[next] + first);
    }
  }
  source.rows.resize(source.tokens());
  std::iota(source.rows.begin(), source.rows.end(), 0);
  source.Pad();
  target.Pad();
}

EncoderDecoder::Saved EncoderDecoder::Forward(const Pass& pass) const {
  Saved saved;
  saved.split = std::make_unique<const SplitBatch>(pass.batch);
  saved.encoder = encoder_.Forward(EncoderPass(pass, *saved.split));
  const SourceStates states = {saved.encoder.y, saved.split->source.cu_seqlens};
  saved.decoder = decoder_.Forward(DecoderPass(pass, *saved.split, states));
  saved.y = saved.decoder.y;
  return saved;
}

Mat EncoderDecoder::Infer(const Pass& pass) const {
  const SplitBatch split(pass.batch);
  SourceStates states = {{}, split.source.cu_seqlens};
  if (split.source.tokens() > 0) states.y = encoder_.Infer(EncoderPass(pass, split));
  return decoder_.Infer(DecoderPass(pass, split, states));
}

void EncoderDecoder::Backward(const Pass& pass, const Saved& saved, Mat dy) const {
  const Pass encoder = EncoderPass(pass, *saved.split);
  SourceStates states = {saved.encoder.y, saved.split->source.cu_seqlens};
  const bool trained = encoder_.requires_grad(encoder);
  const Arena::Mark mark = pass.arena.mark();
  CLOZE_CHECK(
      !trained || saved.decoder.lowest < 0);  // else blocks would leave out their part of dy
  if (trained) states.dy = pass.arena.NewZero(states.y.rows, states.y.cols, pass.compute);
  decoder_.Backward(DecoderPass(pass, *saved.split, states), saved.decoder, dy);
  if (trained) encoder_.Backward(encoder, saved.encoder, states.dy);
  pass.arena.Rewind(mark);
}

}  // namespace cloze
