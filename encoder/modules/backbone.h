// A model without its head: an encoder or decoder alone, or an encoder-decoder.
#ifndef CLOZE_ENCODER_MODULES_BACKBONE_H_
#define CLOZE_ENCODER_MODULES_BACKBONE_H_

#include <utility>
#include <variant>

#include "encoder/modules/encoder_decoder.h"

namespace cloze {

// Has the functions that Encoder and EncoderDecoder share, and calls that of its module.
class Backbone {
 public:
  // Data for the backward pass, in the arena of the forward pass.
  struct Saved {
    std::variant<Encoder::Saved, EncoderDecoder::Saved> module;
    Mat y;  // [padded targets, hidden]
  };

  explicit Backbone(Encoder module) : module_(std::move(module)) {}
  explicit Backbone(EncoderDecoder module) : module_(std::move(module)) {}

  void AddLora(ParamStore* store, const LoraPlan& plan) {
    std::visit([&](auto& module) { module.AddLora(store, plan); }, module_);
  }
  bool requires_grad(const Pass& pass) const {
    return std::visit([&](const auto& module) { return module.requires_grad(pass); }, module_);
  }

  // See Encoder.
  Saved Forward(const Pass& pass) const {
    const auto forward = [&](const auto& module) -> Saved {
      auto saved = module.Forward(pass);
      const Mat y = saved.y;
      return {std::move(saved), y};
    };
    return std::visit(forward, module_);
  }
  Mat Infer(const Pass& pass) const {
    return std::visit([&](const auto& module) { return module.Infer(pass); }, module_);
  }
  void Backward(const Pass& pass, const Saved& saved, Mat dy) const {
    const auto backward = [&]<typename M>(const M& module) {
      module.Backward(pass, std::get<typename M::Saved>(saved.module), dy);
    };
    std::visit(backward, module_);
  }

  // The module; null if it is the other one.
  const Encoder* encoder() const { return std::get_if<Encoder>(&module_); }
  const EncoderDecoder* encoder_decoder() const { return std::get_if<EncoderDecoder>(&module_); }

  // Word embeddings [vocab, embedding] that the head reads.
  ParamId word_embeddings() const {
    return encoder() != nullptr ? encoder()->word_embeddings()
                                : encoder_decoder()->decoder().word_embeddings();
  }

 private:
  std::variant<Encoder, EncoderDecoder> module_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_BACKBONE_H_
