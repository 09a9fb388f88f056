// A model folder, opened for calls from many threads. The C library and the server answer with it.
#ifndef CLOZE_TOOLS_LIBRARY_ENGINE_H_
#define CLOZE_TOOLS_LIBRARY_ENGINE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/json.h"
#include "core/base/threads.h"
#include "tasks/data/record.h"
#include "tasks/inference/predictor.h"
#include "tasks/inference/record_vectors.h"
#include "tasks/inference/scorer.h"
#include "tasks/inference/session.h"

namespace cloze {

// A call into engines while the object exists; calls may nest. Forks wait for the calls of all
// threads, so the child finds whole engines. The thread keeps its number of OpenMP threads.
class Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  const LibraryThreadsKept kept_;
};

struct EngineOptions {
  std::string folder;                       // a run, a Hugging Face folder or an adapter folder
  std::vector<NamedAdapter> adapters = {};  // beside it; records name them
  std::string compute = "auto";             // as --compute: auto, f32, bf16, int8
};

// Rules for vectors of texts, those of `cloze encode` with the same options. A value that is not
// set is what the folder says.
struct EmbedOptions {
  // "cls", "mean", "max" as --pool: the other rules of the folder (prompt, limit, normalization)
  // then do not apply.
  std::optional<std::string> pool = {};
  std::optional<bool> normalize = {};  // to length 1
  std::string prompt = {};             // "query", "document" as --prompt; not with `pool`
  int64_t dimensions = 0;              // the first ones, before normalizing; 0: all
  bool tokens = false;  // a vector for each token instead of one for the text, as --pool none
  bool operator==(const EmbedOptions&) const = default;
};

// Vectors of texts. Text i has rows begin[i] to begin[i + 1] of `values` [rows, dimensions].
struct Vectors {
  int64_t dimensions = 0;
  std::vector<float> values;
  std::vector<int64_t> begin;        // [texts + 1]
  std::vector<absl::Status> status;  // [texts]; a text with an error has no rows
};

// Results of records, in their order.
template <typename T>
using Results = std::vector<absl::StatusOr<T>>;

// Thread-safe: calls wait for each other. Never ends the process, writes to a stream or throws,
// but std::bad_alloc. The result of a record does not depend on the others of its call: it has the
// bits of the command of its kind. Errors of a call are kUsage for what the model cannot do; those
// of a record stand in its place.
class Engine {
 public:
  // Opens a model, or returns the engine that is open with the same options, if its files have not
  // changed. kUsage for a wrong option, kCpu; errors of Session::Open.
  static absl::StatusOr<std::shared_ptr<Engine>> Open(const EngineOptions& options);
  // With the last engine of the process end its threads.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Sets the number of threads that compute in this process, for all engines; 0: AvailableCores().
  // Waits for calls.
  static void UseThreads(int threads);

  // The kind of the model: "sequence_classification", "token_tagging", "masked_lm",
  // "sentence_embedding", ...: the name of its task; "encoder" without a head.
  const std::string& kind() const { return kind_; }
  const ModelConfig& config() const { return session_->config(); }
  // Longest text in tokens, special ones included.
  int64_t max_tokens() const { return max_tokens_; }
  // Columns of Embed without options.
  int64_t dimensions() const { return dimensions_; }
  // The names of the adapters that records may name.
  const std::vector<std::string>& adapters() const { return adapters_; }
  // The type that computes: "f32", "bf16", "int8".
  const std::string& compute() const { return compute_; }

  // Returns for each record the answer of `cloze predict`, `cloze tag` or `cloze fill-mask`,
  // whichever fits the model. `top`: tokens of a mask, 1 to 1000.
  absl::StatusOr<Results<OrderedJson>> Answer(absl::Span<const Record> records, int top = 5);
  // Returns the vectors of `cloze encode`; any encoder has them.
  absl::StatusOr<Vectors> Embed(absl::Span<const Record> records, const EmbedOptions& options);
  // Returns the answers of `cloze score`, with `tokens` those of --tokens. Requires masked_lm.
  absl::StatusOr<Results<OrderedJson>> Score(absl::Span<const Record> records, bool tokens = false);
  // Returns the tokens of a record that is not of ids, as `cloze tokenize`, special ones included;
  // not cut, and without the folder's prompt. Does not wait for other calls.
  absl::StatusOr<Encoding> Tokenize(const Record& record) const;
  // Returns the token `id`; "" if there is none.
  std::string Token(int32_t id) const;

 private:
  Engine();
  absl::Status Load(const EngineOptions& options);
  absl::StatusOr<std::unique_ptr<Predictor>> NewPredictor(int top) const;
  // Valid until the next call.
  absl::StatusOr<const TextPooling*> PoolingFor(const EmbedOptions& options);

  std::mutex mutex_;  // of all that computes
  std::unique_ptr<Session> session_;
  // An error: what the model cannot do.
  absl::StatusOr<std::unique_ptr<Predictor>> predictor_;
  absl::StatusOr<std::optional<SentenceVectors>> vectors_;
  absl::StatusOr<RecordScorer> scorer_;
  std::map<std::string, TextPooling> poolings_;  // of Embed, by prompt; "pool": that of its options
  std::string kind_, compute_;
  std::vector<std::string> adapters_;
  int64_t max_tokens_ = 0, dimensions_ = 0;
  int top_ = 5;  // of predictor_
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_LIBRARY_ENGINE_H_
