// The shape of a model, and its config.json as Hugging Face writes it.
#ifndef CLOZE_ENCODER_CONFIG_H_
#define CLOZE_ENCODER_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "proto/task.pb.h"

namespace cloze {

// What stands on top of the encoder.
enum class HeadKind { kNone, kMaskedLm, kSequenceClassification, kTokenTagging };

struct ModelConfig {
  int32_t vocab = 0, hidden = 0, layers = 0, heads = 0, intermediate = 0, token_types = 2;
  int32_t max_positions = 512;  // rows of the position table, those before `position_offset` included
  EncoderSpec::Norm norm = EncoderSpec::POST;
  bool roberta = false;  // a post-norm model with RoBERTa's names, heads and positions; pre-norm models have them anyway
  EncoderSpec::Positions positions = EncoderSpec::LEARNED;  // SINUSOIDAL only while training; folders hold the table
  EncoderSpec::Activation activation = EncoderSpec::GELU;
  float sinusoid_base = 10000, dropout = 0.1, attention_dropout = 0.1, norm_epsilon = 1e-12, initializer_range = 0.02;
  float classifier_dropout = -1;  // < 0: as `dropout`
  int32_t pad_id = 0;
  int32_t position_offset = 0;  // first row used of the position table; RoBERTa kinds have pad_id + 1
  HeadKind head = HeadKind::kNone;
  bool pooler = false;              // tanh(W h + b) on <class>
  std::vector<std::string> labels;  // in the order of their ids

  // Longest sequence, special tokens included.
  int32_t max_tokens() const { return max_positions - position_offset; }
  int32_t head_dim() const { return hidden / heads; }
  bool like_roberta() const { return roberta || norm == EncoderSpec::PRE; }
  float head_dropout() const { return classifier_dropout < 0 ? dropout : classifier_dropout; }
};

// The config of a new encoder as the spec says, without vocab, head and labels; pad_id is 0. Where `hidden` is set and the preset's heads
// or intermediate are not, they follow it (heads of 64, 4 x hidden). kSpec when `hidden` is not divisible by `heads` or a size of a CUSTOM
// preset is missing.
absl::StatusOr<ModelConfig> ConfigFromSpec(const EncoderSpec& spec);

// Parses config.json. `path` only names the file in messages. Refuses, with the field's name, what the encoder cannot compute (unknown
// model_type or activation, relative positions, regression, sizes out of range, hidden not divisible by heads). Reads `bert`, `roberta`
// and `roberta-prelayernorm`.
absl::StatusOr<ModelConfig> ParseConfig(absl::string_view json, absl::string_view path);

// config.json that transformers reads: `bert`, `roberta`, or `roberta-prelayernorm` for pre-norm; where positions are RoBERTa's, pad_id + 1
// == position_offset has to hold.
// What no class of transformers can say (a sequence classifier without pooler, fixed sinusoids) stands under "cloze"; transformers then
// loads the encoder alone.
std::string FormatConfig(const ModelConfig& config);

// Prefix of encoder tensors: "bert.", "roberta." or "roberta_prelayernorm." ("" for bare encoders is accepted on load only).
std::string EncoderPrefix(const ModelConfig& config);

}  // namespace cloze

#endif  // CLOZE_ENCODER_CONFIG_H_
