// An encoder and a decoder whose blocks attend to the encoder's hidden states.
#ifndef CLOZE_ENCODER_MODULES_ENCODER_DECODER_H_
#define CLOZE_ENCODER_MODULES_ENCODER_DECODER_H_

#include <memory>
#include <utility>

#include "encoder/modules/encoder.h"

namespace cloze {

// The sources and the targets of a batch for an encoder-decoder: the tokens of type 0 and of type 1
// of each sequence. All source rows are wanted; the labelled rows are among the targets.
struct SplitBatch {
  explicit SplitBatch(const Batch& pairs);
  Batch source, target;
};

// A batch has pairs of source (type 0) and target (type 1), see SplitBatch. The functions are those
// of Encoder; their hidden states are the decoder's.
class EncoderDecoder {
 public:
  struct Saved {
    std::unique_ptr<const SplitBatch> split;  // `encoder` and `decoder` refer to its batches
    Encoder::Saved encoder, decoder;
    Mat y;  // [padded targets, hidden]
  };

  // `decoder` has attention.cross.
  EncoderDecoder(Encoder encoder, Encoder decoder)
      : encoder_(std::move(encoder)), decoder_(std::move(decoder)) {}

  // Adds LoRAs to the decoder.
  void AddLora(ParamStore* store, const LoraPlan& plan) { decoder_.AddLora(store, plan); }

  bool requires_grad(const Pass& pass) const {
    return encoder_.requires_grad(pass) || decoder_.requires_grad(pass);
  }

  Saved Forward(const Pass& pass) const;
  // A batch without sources needs Pass::decoding, whose cache has their keys and values.
  Mat Infer(const Pass& pass) const;
  void Backward(const Pass& pass, const Saved& saved, Mat dy) const;

  const Encoder& encoder() const { return encoder_; }
  const Encoder& decoder() const { return decoder_; }

 private:
  Encoder encoder_, decoder_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_ENCODER_DECODER_H_
