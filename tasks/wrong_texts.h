// The wrong answers of an evaluation that a model is most sure of.
#ifndef CLOZE_TASKS_WRONG_TEXTS_H_
#define CLOZE_TASKS_WRONG_TEXTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/tokenizer/tokenizer.h"

namespace cloze {

// A text, or a word of a text, whose label was predicted wrong.
struct WrongText {
  int64_t number = 0;  // of the text, from 1
  int64_t word = 0;    // from 1; 0: the whole text
  int32_t label = 0;
  int64_t predicted = 0;
  double score = 0;          // of the predicted label
  std::vector<int32_t> ids;  // of the text
  std::vector<int32_t> word_ids = {};
  std::vector<float> logits = {};  // for a score that is fitted later; may be empty
};

class WrongTexts {
 public:
  // Keeps at most `most` texts.
  explicit WrongTexts(int most) : most_(most) {}

  // True if Add would keep a text with this score.
  bool Keeps(double score) const {
    return texts_.size() < most_ || (most_ > 0 && score > texts_.back().score);
  }
  void Add(WrongText text);
  // The kept texts, the highest score first unless the caller changes scores.
  std::vector<WrongText>& texts() { return texts_; }
  bool enabled() const { return most_ > 0; }

  // [{"example", "word" and "token" of a word, "label" (null for none of `labels`), "predicted",
  // "score", "text" (decoded, cut)}, ...], the highest score first. `tokenizer` may be null.
  std::string ToJson(const std::vector<std::string>& labels, const Tokenizer* tokenizer) const;

 private:
  size_t most_;
  std::vector<WrongText> texts_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_WRONG_TEXTS_H_
