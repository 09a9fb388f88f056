// The description of a new model, from a spec.
#include <algorithm>

#include "encoder/families/families.h"
#include "proto/spec.h"

namespace cloze {
namespace {

// The values of EncoderSpec's enums.
constexpr Positions kSpecPositions[] = {
    Positions::kLearned, Positions::kSinusoidal, Positions::kSinusoidalStart};
static_assert(std::size(kSpecPositions) == EncoderSpec::Positions_ARRAYSIZE);
constexpr ActivationKind kSpecActivations[] = {
    ActivationKind::kGelu, ActivationKind::kGeluTanh, ActivationKind::kRelu};
static_assert(std::size(kSpecActivations) == EncoderSpec::Activation_ARRAYSIZE);

const Family& FamilyOf(const EncoderSpec& spec) {
  const Family* found = nullptr;
  const bool pre_norm = spec.norm() == EncoderSpec::PRE;
  for (const Family* family : kFamilies) {
    const bool fits = family->in_spec == spec.architecture();
    if (fits && (found == nullptr || family->architecture.pre_norm() == pre_norm)) found = family;
  }
  CLOZE_CHECK(found != nullptr);
  return *found;
}

}  // namespace

absl::StatusOr<ModelConfig> ConfigFromSpec(const EncoderSpec& given) {
  const EncoderSpec spec = FillSizes(given);
  if (!spec.has_layers() || !spec.has_hidden() || !spec.has_heads() || !spec.has_intermediate()) {
    return Error(Exit::kSpec, "model.encoder.",
        given.preset() == EncoderSpec::CUSTOM
            ? "preset: CUSTOM: expected layers, hidden, heads and intermediate"
            : absl::StrCat("heads: not set, and hidden ", spec.hidden(),
                  " is not a multiple of 64: expected a divisor of hidden"));
  }
  if (spec.heads() < 1 || spec.hidden() % spec.heads() != 0) {
    return Error(Exit::kSpec, "model.encoder.heads: ", spec.heads(), " does not divide hidden ",
        spec.hidden());
  }
  ModelConfig config(FamilyOf(spec));
  config.layers = spec.layers();
  config.hidden = spec.hidden();
  config.heads = spec.heads();
  config.intermediate = spec.intermediate();
  config.positions.count = spec.max_positions();
  config.initializer.range = spec.initializer_range();
  config.training.query_key_start = spec.query_key_start();
  if (spec.has_token_types()) config.embeddings.token_types = spec.token_types();
  if (spec.has_positions()) config.positions.kind = kSpecPositions[spec.positions()];
  if (spec.has_sinusoid_base()) config.positions.sinusoid_base = spec.sinusoid_base();
  if (spec.has_activation()) config.mlp.activation = kSpecActivations[spec.activation()];
  if (spec.has_norm_epsilon()) config.norm.epsilon = spec.norm_epsilon();
  if (config.embeddings.size > 0) {
    config.embeddings.size =
        spec.has_embedding() ? spec.embedding() : std::min(config.embeddings.size, config.hidden);
  }
  if (config.attention.window > 0) {
    config.attention.window = spec.window();
    for (int i = 0; i < config.layers; ++i)
      config.attention.local.push_back(i % spec.global_every() != 0);
  }
  if (RelativeConfig& relative = config.relative; relative.span > 0) {
    // Buckets if there are more positions.
    if (config.positions.count > relative.span) relative.furthest = config.positions.count;
    relative.span = std::min(relative.span, config.positions.count);
  }
  config.SetPad(0);
  return config;
}

}  // namespace cloze
