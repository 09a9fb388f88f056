// Models and types of `cloze bench`.

#include <algorithm>

#include "absl/strings/ascii.h"
#include "proto/spec.h"
#include "tasks/training/setup.h"
#include "tools/bench/bench.h"

namespace cloze::bench {

absl::StatusOr<ModelConfig> ConfigOf(const Options& o, HeadKind head) {
  EncoderSpec spec;
  if (EncoderSpec::Preset preset;
      EncoderSpec::Preset_Parse(absl::AsciiStrToUpper(o.encoder), &preset)) {
    spec.set_preset(preset);
  } else {  // ModernBERT-base
    spec.set_architecture(EncoderSpec::MODERN);
    spec.set_preset(EncoderSpec::BASE);
    spec.set_layers(22), spec.set_intermediate(1152);
  }
  ASSIGN_OR_RETURN(ModelConfig config, ConfigFromSpec(spec));
  config.vocab = o.vocab > 0 ? o.vocab : 30522;
  config.head = head;
  config.pooler = head == HeadKind::kSequenceClassification;
  if (head == HeadKind::kSequenceClassification) config.labels = {"0", "1"};
  if (head == HeadKind::kTokenTagging)
    config.labels = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
  return config;
}

double ForwardFlop(const ModelConfig& c, const std::vector<int64_t>& lengths, double rows) {
  const double hidden = c.hidden;
  double tokens = 0, pairs = 0;  // of tokens that see each other, in all layers
  for (const double n : lengths) {
    tokens += n;
    for (int i = 0; i < c.layers; ++i)
      pairs += n * (c.is_local(i) ? std::min(n, c.window + 1.0) : n);
  }
  const double after_attention =
      hidden * hidden +
      (c.family->gated ? 3 : 2) * hidden * c.intermediate;  // in the last layer only for `rows`
  const double linear = tokens * c.layers * (3 * hidden * hidden + after_attention) -
                        (tokens - rows) * after_attention;
  const double encoder = 2 * linear + 4.0 * pairs * hidden;
  switch (c.head) {
    case HeadKind::kMaskedLm: return encoder + 2 * rows * (hidden * hidden + hidden * c.vocab);
    case HeadKind::kCausalLm: return encoder + 2 * rows * hidden * c.vocab;
    case HeadKind::kSequenceClassification: return encoder + 2 * rows * hidden * hidden;
    case HeadKind::kTokenTagging:
    case HeadKind::kQuestionAnswering:
    case HeadKind::kReplacedTokens:
    case HeadKind::kNone: break;
  }
  return encoder;
}

absl::StatusOr<std::vector<DType>> TypesOf(const Options& o, bool all) {
  if (o.compute == "int8") {
    if (!all) return Error(Exit::kUsage, "--compute int8: only for infer and start");
    return std::vector<DType>{FastestType()};
  }
  const RuntimeSpec::Compute compute = o.compute == "bf16"  ? RuntimeSpec::BF16
                                       : o.compute == "f32" ? RuntimeSpec::F32
                                                            : RuntimeSpec::AUTO;
  ASSIGN_OR_RETURN(const DType type, ComputeOf(compute, Use::kTraining));
  if (all && compute == RuntimeSpec::AUTO && type == DType::kBf16)
    return std::vector<DType>{DType::kF32, DType::kBf16};
  return std::vector<DType>{type};
}

}  // namespace cloze::bench
