// Models and types of `cloze bench`.

#include <algorithm>

#include "absl/strings/ascii.h"
#include "core/base/file.h"
#include "encoder/families/families.h"
#include "proto/spec.h"
#include "tasks/compute_type.h"
#include "tasks/training/run_inputs.h"
#include "tools/bench/bench.h"

namespace cloze::bench {

namespace {

// The sizes of --encoder: of a preset, or of a config.json.
absl::StatusOr<ModelConfig> SizesOf(const std::string& encoder) {
  EncoderSpec spec;
  if (EncoderSpec::Preset preset;
      EncoderSpec::Preset_Parse(absl::AsciiStrToUpper(encoder), &preset) &&
      preset != EncoderSpec::CUSTOM) {
    spec.set_preset(preset);
    return ConfigFromSpec(spec);
  }
  if (!PathExists(encoder)) {
    return Error(Exit::kUsage, "--encoder ", Quote(encoder),
        ": expected tiny, mini, small, medium, base or the path of a config.json");
  }
  ASSIGN_OR_RETURN(const std::string json, ReadFile(encoder, 1 << 20));
  return ParseConfig(json, encoder);
}

}  // namespace

absl::StatusOr<ModelConfig> ConfigOf(const Options& o, HeadKind head) {
  ASSIGN_OR_RETURN(ModelConfig config, SizesOf(o.encoder));
  if (config.attention.causal) {
    const absl::string_view wrong = config.encoder != nullptr ? "an encoder-decoder: not supported"
                                    : head != HeadKind::kMaskedLm ? "a decoder: only for train"
                                                                  : "";
    if (!wrong.empty()) return Error(Exit::kUsage, "--encoder ", Quote(o.encoder), ": ", wrong);
    head = HeadKind::kCausalLm;
  }
  config.vocab = o.vocab > 0 ? o.vocab : 30522;
  config.SetPad(0);
  config.head = head;
  config.pooler = TypeOf(head).pooler;
  config.labels.clear();
  if (TypeOf(head).per_text) config.labels = {"0", "1"};
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
      pairs += n * (c.attention.is_local(i) ? std::min(n, c.attention.window + 1.0)
                       : c.attention.causal ? (n + 1) / 2
                                            : n);
  }
  const double after_attention =
      hidden * hidden +
      (c.mlp.gated ? 3 : 2) * hidden * c.intermediate;  // in the last layer only for `rows`
  const double linear = tokens * c.layers * (3 * hidden * hidden + after_attention) -
                        (tokens - rows) * after_attention;
  const double embedding = c.projects_embeddings() ? tokens * c.embedding_size() * hidden : 0;
  const double encoder = 2 * (embedding + linear) + 4.0 * pairs * hidden;
  if (c.head == HeadKind::kNone) return encoder;
  const double width = TypeOf(c.head).tied ? c.embedding_size() : hidden,
               dense = LayoutOf(c).dense.has_value() ? hidden : 0;
  return encoder + 2 * rows * width * (dense + static_cast<double>(c.logits()));
}

std::vector<int32_t> RandomIds(const Philox& philox, uint64_t example, int64_t length, int vocab) {
  std::vector<int32_t> ids(length);
  for (int64_t i = 0; i < length; ++i)
    ids[i] = kFirstWord + Philox::Below(philox(example, i, 0)[0], vocab - kFirstWord);
  return ids;
}

absl::StatusOr<std::vector<DType>> TypesOf(const Options& o, bool all) {
  if (o.compute == "int8") {
    if (!all) return Error(Exit::kUsage, "--compute int8: only for infer and start");
    return std::vector<DType>{kInt8Activations};
  }
  const RuntimeSpec::Compute compute = o.compute == "bf16"  ? RuntimeSpec::BF16
                                       : o.compute == "f32" ? RuntimeSpec::F32
                                                            : RuntimeSpec::AUTO;
  const DType type = TrainingType(compute);
  if (all && compute == RuntimeSpec::AUTO && type == DType::kBf16)
    return std::vector<DType>{DType::kF32, DType::kBf16};
  return std::vector<DType>{type};
}

}  // namespace cloze::bench
