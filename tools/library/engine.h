// A model folder, opened for calls from many threads. The C library and the server answer with it.
#ifndef CLOZE_TOOLS_LIBRARY_ENGINE_H_
#define CLOZE_TOOLS_LIBRARY_ENGINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/json.h"
#include "tasks/data/record.h"
#include "tasks/inference/session.h"

namespace cloze {

struct EngineOptions {
  std::string folder;                   // a run, a Hugging Face folder or an adapter folder
  std::vector<NamedAdapter> adapters;   // beside it; records name them
  std::string compute = "auto";         // as --compute: auto, f32, bf16, int8
};

// How texts become vectors. A value that is not set is what the folder says.
struct EmbedOptions {
  std::optional<std::string> pool;      // "cls", "mean", "max"
  std::optional<bool> normalize;        // to length 1
  std::optional<std::string> prompt;    // name of a prompt of the folder: "query", "document"
  int64_t dimensions = 0;               // the first ones, before normalizing; 0: all
  bool tokens = false;                  // a vector for each token instead of one for the text
};

// Vectors of texts. Text i has rows begin[i] to begin[i + 1] of `values` [rows, dimensions].
struct Vectors {
  int64_t dimensions = 0;
  std::vector<float> values;
  std::vector<int64_t> begin;           // [texts + 1]
  std::vector<absl::Status> status;     // [texts]; a text with an error has no rows
};

// Thread-safe: calls wait for each other. Never ends the process, writes to a stream or throws,
// but std::bad_alloc. The result of a record does not depend on the others of its call: it has the
// bits of the command of its kind. Errors of a call are kUsage for what the model cannot do; those
// of a record stand in its place.
class Engine {
 public:
  // Opens a model, or returns the engine that is open with the same options, if its files have not
  // changed. Errors of Session::Open.
  static absl::StatusOr<std::shared_ptr<Engine>> Open(const EngineOptions& options);
  ~Engine();

  // What the folder is: "sequence_classification", "token_tagging", "masked_lm",
  // "sentence_embedding", ...: the name of its task; "encoder" without a head.
  const std::string& kind() const;
  const ModelConfig& config() const;
  // Longest text in tokens, special ones included.
  int64_t max_tokens() const;
  // The names of the adapters that records may name.
  std::vector<std::string> adapters() const;
  // The type that computes: "f32", "bf16", "int8".
  std::string compute() const;

  // Returns for each record the answer of `cloze predict`, `cloze tag` or `cloze fill-mask`,
  // whichever fits the model. `top`: tokens of a mask.
absl::StatusOr<std::vector<absl::StatusOr<OrderedJson>>> Answer(
      absl::Span<const Record> records, int top = 5);
  // Returns the probability of each label, in the order of config().labels, or the number of a
  // regression. Requires sequence_classification.
absl::StatusOr<std::vector<absl::StatusOr<std::vector<float>>>> Probabilities(
      absl::Span<const Record> records);
  // Returns the vectors of `cloze encode`; any model has them.
absl::StatusOr<Vectors> Embed(
      absl::Span<const Record> records, const EmbedOptions& options);
  // Returns the answers of `cloze score`. Requires masked_lm.
absl::StatusOr<std::vector<absl::StatusOr<OrderedJson>>> Score(
      absl::Span<const Record> records);
  // Returns the tokens of a text as the model reads them, special ones included; not cut. Does not
  // wait for other calls.
  absl::StatusOr<Encoding> Tokenize(const Record& record) const;
  // Returns the token `id`; "" if there is none.
  std::string Token(int32_t id) const;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_LIBRARY_ENGINE_H_
