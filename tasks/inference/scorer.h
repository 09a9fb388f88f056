// Scores of texts under a masked language model, and which of two similar texts scores higher.
#ifndef CLOZE_TASKS_INFERENCE_SCORER_H_
#define CLOZE_TASKS_INFERENCE_SCORER_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tasks/data/readers.h"
#include "tasks/inference/record_loop.h"
#include "tasks/inference/session.h"
#include "tasks/record.h"

namespace cloze {

struct ScoreOptions {
  int64_t batch_tokens = 2048;
  DType compute = DType::kF32;
  int adapter = 0;                          // of pairs, see Model::NewPass
  const std::atomic<bool>* stop = nullptr;  // may be null
};

// Computes the pseudo-log-likelihood of texts (Salazar et al. 2020): the sum over their tokens of
// log p(token | all others), where that token alone is masked. Calls f(i, logs) for each text in
// order; logs[k] is the logarithm of the token in `rows[k]` of text i. Adapters are those of
// Model::NewPass. Requires a masked-LM head. kInterrupted if *stop; kInternal if a logarithm is not
// finite; errors of Model::ReadEmbeddings.
absl::Status ScoreTexts(Model& model, int32_t mask, absl::Span<const Query> texts,
    const ScoreOptions& options,
    absl::FunctionRef<void(int64_t text, absl::Span<const double> logs)> f);

// Returns the sequence of a record; its rows are all tokens but <class> and <sep>. Errors of
// EncodeRecord, and without a tokenizer.
absl::StatusOr<Example> EncodeForScore(
    const Record& record, const ModelInput& input, CutCounts* cut);

// Scores records with the masked language model of a session. Not thread-safe.
class RecordScorer {
 public:
  // `session` must outlive it. kMismatch for another head and for a tokenizer without a mask token;
  // the error of Session::TokenizerOr.
  static absl::StatusOr<RecordScorer> Create(Session* session);

  // Calls f(i, score) for each record in order: InputMembers, "score", "token_count" and, with
  // `tokens`, "token_scores". An empty record has NoScore in their place, a wrong one that does not
  // end the input its error. Errors of ForEachRecord and ScoreTexts.
  absl::Status Score(absl::Span<const Record> records, const RecordSource& source, bool tokens,
      absl::FunctionRef<absl::Status(size_t i, absl::StatusOr<OrderedJson> score)> f);
  static OrderedJson NoScore(bool tokens);

  Session& session() { return *session_; }
  int32_t mask() const { return tokenizer_->special().mask; }
  // Counts of the texts so far that did not fit into the model, and of the empty ones.
  const CutCounts& cut() const { return cut_; }
  int64_t empty() const { return empty_; }

 private:
  Session* session_ = nullptr;
  const Tokenizer* tokenizer_ = nullptr;
  CutCounts cut_;
  int64_t empty_ = 0;
};

// Two texts that differ in one respect, of which the first should score higher.
struct TextPair {
  std::vector<std::string> texts;  // good, bad
  Example good, bad;
  std::string group;
  int64_t line = 0;
};

// Reads pairs one after the other: the fields `good` and `bad` of tables and JSON lines.
class PairReader {
 public:
  // `group`: the field that becomes TextPair::group; may be empty. `data`: how the files are
  // written. Errors of TextReader.
  static absl::StatusOr<PairReader> Open(
      absl::Span<const std::string> files, const std::string& group, DataSpec data = {});
  // Reads up to `most` pairs; none at the end.
  absl::StatusOr<std::vector<TextPair>> Next(int64_t most, const ModelInput& input, CutCounts* cut);

 private:
  explicit PairReader(TextReader reader) : reader_(std::move(reader)) {}
  TextReader reader_;
};

// Counts of pairs whose good text has the higher score.
struct PairCount {
  int64_t pairs = 0, right = 0, ties = 0;

  void Add(double good, double bad) { ++pairs, right += good > bad, ties += good == bad; }
  // The share of pairs that are right, where a tie counts as `tie`.
  double Accuracy(double tie = 0) const { return (right + tie * ties) / pairs; }
};

// Scores both texts of each pair. Calls f(pair, good, bad) for each in order. Errors of ScoreTexts.
absl::Status ScorePairs(Model& model, int32_t mask, absl::Span<const TextPair> pairs,
    const ScoreOptions& options,
    absl::FunctionRef<void(const TextPair& pair, double good, double bad)> f);

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_SCORER_H_
