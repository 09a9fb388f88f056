#include "encoder/config.h"

#include "proto/spec.h"

namespace cloze {
namespace {

absl::Status SpecError(absl::string_view what) {
  return Error(Exit::kSpec, "model.encoder.", what);
}

Positions PositionsOf(EncoderSpec::Positions positions) {
  switch (positions) {
    case EncoderSpec::LEARNED: return Positions::kLearned;
    case EncoderSpec::SINUSOIDAL: return Positions::kSinusoidal;
    case EncoderSpec::SINUSOIDAL_START: return Positions::kSinusoidalStart;
  }
  CLOZE_CHECK(false);
}

ActivationKind ActivationOf(EncoderSpec::Activation activation) {
  switch (activation) {
    case EncoderSpec::GELU: return ActivationKind::kGelu;
    case EncoderSpec::GELU_TANH: return ActivationKind::kGeluTanh;
    case EncoderSpec::RELU: return ActivationKind::kRelu;
  }
  CLOZE_CHECK(false);
}

}  // namespace

absl::StatusOr<ModelConfig> ConfigFromSpec(const EncoderSpec& given) {
  const EncoderSpec spec = FillSizes(given);
  if (!spec.has_layers() || !spec.has_hidden() || !spec.has_heads() || !spec.has_intermediate()) {
    return SpecError(given.preset() == EncoderSpec::CUSTOM
                         ? "preset: CUSTOM: expected layers, hidden, heads and intermediate"
                         : absl::StrCat("heads: not set, and hidden ", spec.hidden(),
                               " is not a multiple of 64: expected a divisor of hidden"));
  }
  ModelConfig config;
  config.family = FindFamily(spec.norm() == EncoderSpec::PRE ? "roberta-prelayernorm" : "bert");
  config.layers = spec.layers();
  config.hidden = spec.hidden();
  config.heads = spec.heads();
  config.intermediate = spec.intermediate();
  if (config.heads < 1 || config.hidden % config.heads != 0) {
    return SpecError(
        absl::StrCat("heads: ", config.heads, " does not divide hidden ", config.hidden));
  }
  config.max_positions = spec.max_positions();
  config.SetPad(0);
  config.token_types = spec.token_types();
  config.positions = PositionsOf(spec.positions());
  config.sinusoid_base = spec.sinusoid_base();
  config.activation = ActivationOf(spec.activation());
  config.norm_epsilon = spec.norm_epsilon();
  config.initializer_range = spec.initializer_range();
  config.query_key_start = spec.query_key_start();
  return config;
}

}  // namespace cloze
