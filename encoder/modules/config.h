// The description of a model.
#ifndef CLOZE_ENCODER_MODULES_CONFIG_H_
#define CLOZE_ENCODER_MODULES_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "encoder/modules/family.h"
#include "encoder/modules/head_type.h"

namespace cloze {

// The position table: learned, fixed sinusoids, or learned from sinusoids as start values.
enum class Positions : uint8_t { kLearned, kSinusoidal, kSinusoidalStart };

struct ModelConfig {
  const Family* family = nullptr;
  int32_t vocab = 0, hidden = 0, layers = 0, heads = 0, intermediate = 0;
  int32_t token_types = 2;      // 0: no table
  int32_t max_positions = 512;  // rows of the position table, unused ones included
  int32_t position_offset = 0;  // first row of the position table that is used
  int32_t pad_id = 0;
  Positions positions = Positions::kLearned;  // kSinusoidalStart becomes kLearned in folders
  ActivationKind activation = ActivationKind::kGelu;
  float sinusoid_base = 10000, dropout = 0.1, attention_dropout = 0.1, norm_epsilon = 1e-12,
        initializer_range = 0.02;
  float query_key_start = 0;      // see EncoderSpec; new encoders only, not stored
  float classifier_dropout = -1;  // < 0: same as `dropout`
  HeadKind head = HeadKind::kNone;
  bool pooler = false;              // the head has a dense layer before its output layer
  bool crf = false;                 // the head has a CRF over the labels
  std::vector<std::string> labels;  // in the order of their ids; of a regression the number's name
  // The task's part of config.json, which the task reads and writes: the member that transformers
  // has for classifiers, and members of "cloze".
  std::string problem_type;
  Json task_fields = Json::object();

  // Longest sequence, special tokens included.
  int32_t max_tokens() const { return max_positions - position_offset; }
  int32_t head_dim() const { return hidden / heads; }
  float head_dropout() const;  // before the output layer
  bool pre_norm() const { return family->pre_norm; }
  // Sets pad_id and, for families with positions_after_pad, position_offset and max_positions.
  void SetPad(int32_t id);
  // Returns the key of a module. `layer`: see ParamKey.
  ParamKey Key(Role role, int layer) const;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_CONFIG_H_
