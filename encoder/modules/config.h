// The shape of a model, and its config.json as Hugging Face writes it.
#ifndef CLOZE_ENCODER_MODULES_CONFIG_H_
#define CLOZE_ENCODER_MODULES_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "proto/task.pb.h"

namespace cloze {

// What stands on top of the encoder.
enum class HeadKind { kNone, kMaskedLm, kSequenceClassification, kTokenTagging };

// What a sequence classifier tells: one of the labels, any number of them, or a number.
enum class Problem { kSingleLabel, kMultiLabel, kRegression };

// How a sequence classifier of ours reads texts; folders from elsewhere read what fits.
struct Reading {
  int32_t max_tokens = 0;  // 0: as many as the model takes
  SequenceClassificationSpec::LongTexts long_texts = SequenceClassificationSpec::HEAD;
  bool pairs = false;      // of two texts?
  float threshold = 0.5f;  // kMultiLabel: least probability of a label that is predicted
};

struct ModelConfig {
  int32_t vocab = 0, hidden = 0, layers = 0, heads = 0, intermediate = 0, token_types = 2;
  int32_t max_positions =
      512;  // rows of the position table, those before `position_offset` included
  EncoderSpec::Norm norm = EncoderSpec::POST;
  EncoderSpec::Positions positions =
      EncoderSpec::LEARNED;  // folders hold the table, so LEARNED once trained
  bool roberta = false;  // a post-norm model with RoBERTa's names, heads and positions; pre-norm
                         // models have them anyway
  EncoderSpec::Activation activation = EncoderSpec::GELU;
  float sinusoid_base = 10000, dropout = 0.1, attention_dropout = 0.1, norm_epsilon = 1e-12,
        initializer_range = 0.02;
  float query_key_start = 0;      // see EncoderSpec; of new encoders only, in no file
  float classifier_dropout = -1;  // < 0: as `dropout`
  int32_t pad_id = 0;
  int32_t position_offset =
      0;  // first row used of the position table; RoBERTa kinds have pad_id + 1
  HeadKind head = HeadKind::kNone;
  bool pooler = false;              // tanh(W h + b) on <class>
  std::vector<std::string> labels;  // in the order of their ids; of kRegression the number's name
  Problem problem = Problem::kSingleLabel;
  Reading reading;
  // token_tagging: a chain over the labels is trained; labels of spans are decoded by their
  // scheme's rules; longest window that was trained on (0: max_tokens()).
  bool crf = false, viterbi = true;
  int32_t window = 0;

  // Longest sequence, special tokens included.
  int32_t max_tokens() const { return max_positions - position_offset; }
  int32_t head_dim() const { return hidden / heads; }
  bool like_roberta() const { return roberta || norm == EncoderSpec::PRE; }
  float head_dropout() const { return classifier_dropout < 0 ? dropout : classifier_dropout; }
};

// The config of a new encoder as the spec says, without vocab, head and labels; pad_id is 0. Where
// `hidden` is set and the preset's heads or intermediate are not, they follow it (heads of 64, 4 x
// hidden). kSpec when `hidden` is not divisible by `heads` or a size of a CUSTOM preset is missing.
absl::StatusOr<ModelConfig> ConfigFromSpec(const EncoderSpec& spec);

// Parses config.json. `path` only names the file in messages. Refuses, with the field's name, what
// the encoder cannot compute (unknown model_type or activation, relative positions, regression of
// several numbers, sizes out of range, hidden not divisible by heads). Reads `bert`, `roberta` and
// `roberta-prelayernorm`.
absl::StatusOr<ModelConfig> ParseConfig(absl::string_view json, absl::string_view path);

// config.json that transformers reads: `bert`, `roberta`, or `roberta-prelayernorm` for pre-norm;
// where positions are RoBERTa's, pad_id + 1
// == position_offset has to hold.
// What no class of transformers can say stands under "cloze": how texts are read, which it leaves
// to the user, and a sequence classifier without pooler or fixed sinusoids, of which it then loads
// the encoder alone.
std::string FormatConfig(const ModelConfig& config);

// Prefix of encoder tensors: "bert.", "roberta." or "roberta_prelayernorm." ("" for bare encoders
// is accepted on load only).
std::string EncoderPrefix(const ModelConfig& config);

// The layer that a parameter belongs to by its name: -1 the embeddings, 0 ... layers - 1 the
// blocks, layers the head.
int LayerOf(const std::string& param, const ModelConfig& config);

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_CONFIG_H_
