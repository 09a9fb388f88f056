// Decodes the logits of a sentence's words to labels.
#ifndef CLOZE_TASKS_TAG_DECODER_H_
#define CLOZE_TASKS_TAG_DECODER_H_

#include <vector>

#include "encoder/model.h"

namespace cloze {

struct WordTag {
  int label = 0;  // index into config().labels
  float score = 0;
};

// Const and thread-safe. Copies the CRF of the model at construction.
class TagDecoder {
 public:
  // With `viterbi`, labels of a span scheme keep its rules (SpanTags::Follows).
  explicit TagDecoder(const Model& model, bool viterbi = true);

  // logits [words, labels] f32 of one whole sentence. Without rules and crf, the best label of
  // each word; else the best sequence of labels; of words alone again when the rules leave no
  // sequence (BIES labels without O or S on one word). Scores: the softmax probability of the
  // chosen label at its word; of a model with a chain (CRF) its marginal probability there, among
  // the sequences that keep the rules.
  std::vector<WordTag> Decode(ConstMat logits) const;

 private:
  Crf crf() const { return {start_.data(), between_.data(), end_.data()}; }

  bool crf_;
  std::vector<float> start_, between_, end_;  // empty: every word alone
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TAG_DECODER_H_
