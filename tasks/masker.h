// Masked language modelling: selects and replaces the tokens to predict.
#ifndef CLOZE_TASKS_MASKER_H_
#define CLOZE_TASKS_MASKER_H_

#include <cstdint>
#include <vector>

#include "core/base/philox.h"
#include "core/text/tokenizer/tokenizer.h"
#include "proto/task.pb.h"
#include "tasks/data/example_store.h"

namespace cloze {

// Returns the share of the tokens to predict when the share `done` of the run, 0 to 1, is done.
float MaskShare(const MaskedLmSpec& spec, double done);

// Returns the share of the sequences that are causal when the share `done` of the run is done.
float CausalShare(const MaskedLmSpec& spec, double done);

// Uses only Philox(seed, example, position): the same example number and share of the run always
// give the same mask.
class Masker {
 public:
  // kSpec if the vocabulary has no <mask>.
  static absl::StatusOr<Masker> Create(
      const MaskedLmSpec& spec, const Tokenizer& tokenizer, uint64_t seed);

  // Makes the share CausalShare(spec, done) of the examples causal: the label of each row is the
  // next token, unless that is special. In the others picks max(1, round(MaskShare(spec, done) *
  // n)) of the n ordinary tokens; each becomes <mask>, stays, or becomes a random ordinary token.
  // Sets causal, rows (ascending) and labels (the original ids). An example of special tokens only
  // gets no rows. A word or span that would exceed this number is left out or cut at the end of a
  // word, so fewer tokens may be picked; only the first word is taken whatever its length.
  void Apply(uint64_t example, double done, Example* e) const;

 private:
  // Tokens [begin, end) of a word.
  struct Word {
    int32_t begin, end;
    int32_t size() const { return end - begin; }
  };
  // A row to predict, and the row whose random number decides what replaces it.
  struct Pick {
    int32_t row, decider;
    bool operator<(const Pick& other) const { return row < other.row; }
  };

  Masker(const MaskedLmSpec& spec, uint64_t seed) : spec_(spec), philox_(seed, Purpose::kMask) {}
  // Makes the next token the label of each row, unless that token is special.
  void PredictNext(Example* e) const;
  // The units to pick: words, or with TOKEN single tokens.
  std::vector<Word> Words(const std::vector<int32_t>& ids) const;
  std::vector<Pick> PickWords(
      uint64_t example, const std::vector<int32_t>& ids, int64_t count) const;
  std::vector<Pick> PickSpans(
      uint64_t example, const std::vector<int32_t>& ids, int64_t count) const;

  MaskedLmSpec spec_;
  Philox philox_;
  int32_t mask_ = -1;
  std::vector<bool> special_,
      continues_;                  // [vocab] true if the token continues the previous token's word
  std::vector<int32_t> ordinary_;  // ids that are not special
  std::vector<float> span_cdf_;    // [longest_span] probability of a length of at most i + 1 words
};

// Splits <class> x ... [<sep>] into pieces of at most max_tokens tokens and nearly
// equal length, each with its own <class> [<sep>]. Short sequences give one piece.
std::vector<Example> SplitSequence(const Example& example, int64_t max_tokens, bool sep);

}  // namespace cloze

#endif  // CLOZE_TASKS_MASKER_H_
