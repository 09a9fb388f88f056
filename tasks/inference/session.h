// A model folder opened for use: tokenizer, model, and packed batches through it.
#ifndef CLOZE_TASKS_INFERENCE_SESSION_H_
#define CLOZE_TASKS_INFERENCE_SESSION_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/text/tokenizer/tokenizer.h"
#include "encoder/folder/adapter.h"
#include "encoder/model.h"
#include "tasks/record.h"

namespace cloze {

// Query::adapter: the adapter without a name or, if there is none, the base.
inline constexpr int kDefaultAdapter = -2;

// A sequence; `rows` are the tokens whose logits are wanted, `adapter` comes from
// Session::AdapterNamed.
struct Query : Example {
  int adapter = kDefaultAdapter;
};

// Returns kInternal: the results of a model have numbers that are not finite.
absl::Status NotFinite();

// Returns `hidden` [tokens, hidden] reduced to [hidden]: the first token for `pool` "class" or
// "cls", or the "mean" or "max" of all; with `normalize`, of length 1 (zeros stay zeros).
std::vector<float> Pooled(ConstMat hidden, absl::string_view pool, bool normalize);
// Returns the product of two vectors of one length, summed in order.
double Dot(absl::Span<const float> a, absl::Span<const float> b);
// Scales a vector to length 1; zeros stay zeros.
void ScaleToUnitLength(absl::Span<float> vector);

// An adapter of the base. One with an empty name answers queries that name no adapter.
struct NamedAdapter {
  std::string name, folder;

  // Reads NAME=FOLDER, or the name of a folder, which may have a = after a /.
  static NamedAdapter Parse(const std::string& text);
};

// Not thread-safe.
class Session {
 public:
  // Opens a model folder, or an adapter folder with its base, and `adapters` beside it. kNoInput,
  // kData and kMismatch for a folder that is missing, broken or lacks the head that it claims, and
  // for adapters that do not fit. With `int8`, or without a value if the folder is quantized,
  // computes products in int8, see UseInt8.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const std::string& folder, DType compute,
      std::vector<NamedAdapter> adapters = {}, std::optional<bool> int8 = false);

  // Returns the tokenizer; an error for a folder without one, which takes only token ids.
  absl::StatusOr<const Tokenizer*> TokenizerOr() const;
  // Returns the folder of the model: of its only adapter, if that has no name; or that of
  // `adapter`.
  const std::string& folder() const { return folder_; }
  const std::string& folder(int adapter) const {
    return Resolve(adapter) < 0 ? folder_ : adapters_[Resolve(adapter)].folder;
  }
  // The tokenizer and limit for encoding records.
  ModelInput input() const {
    return {TokenizerOr(), config().max_tokens(), config().embeddings.token_types};
  }
  const Model& model() const { return *model_; }
  Model& model() { return *model_; }
  DType compute() const { return compute_; }
  // From now on computes linear layers in int8, with activations of kInt8Activations. See
  // Model::UseInt8. Must not be called if Open has done so.
  void UseInt8(absl::FunctionRef<bool(const Param&)> wanted = [](const Param&) { return true; }) {
    model_->UseInt8(wanted);
    compute_ = kInt8Activations;
  }
  // Returns the description of the model for queries that name no adapter, or for `adapter`.
  const ModelConfig& config(int adapter = kDefaultAdapter) const {
    return Resolve(adapter) < 0 ? model_->config() : configs_[Resolve(adapter)];
  }
  // True if queries can name adapters.
  bool has_adapters_beside() const { return !adapters_.empty(); }
  // Returns the number of an adapter for queries; for "" that of queries that name none. kData when
  // there is no such adapter, or the base needs one.
  absl::StatusOr<int> AdapterNamed(const std::string& name) const;
  // Returns the number of `adapter`, from AdapterNamed, for Model::NewPass.
  int PassAdapter(int adapter) const { return adapters_.empty() ? 0 : Resolve(adapter); }

  // Calls f(i, logits [rows of query i, labels] f32) for each query in order. Sequences of similar
  // length pass through the model together.
  absl::Status Logits(
      absl::Span<const Query> queries, absl::FunctionRef<void(int64_t query, ConstMat logits)> f);
  // Returns the attention of one sequence: for each layer [heads, tokens, tokens], each row the
  // softmax of the scores of one token.
  absl::StatusOr<std::vector<std::vector<float>>> Attention(const Query& query);
  // Calls f(i, layer, hidden [tokens, hidden] f32) for each query and layer: layer 0 is the
  // embeddings, then one per block. Within a batch of queries, layer by layer. With only_last,
  // calls f only for the last layer, for each query in order.
  absl::Status Hidden(absl::Span<const Query> queries, bool only_last,
      absl::FunctionRef<void(int64_t query, int layer, ConstMat hidden)> f);

 private:
  Session() = default;
  int Resolve(int adapter) const { return adapter == kDefaultAdapter ? default_ : adapter; }
  absl::Status LoadWithAdapters(
      const std::string& base, std::vector<NamedAdapter> named, std::optional<bool> int8);
  absl::Status LoadBase(const std::string& base, const std::vector<Adapter>& adapters);

  std::string folder_;
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer_;
  std::unique_ptr<Model> model_;
  std::vector<NamedAdapter> adapters_;
  std::vector<ModelConfig> configs_;  // of the adapters
  int default_ = -1;                  // adapter of queries that name none; -1: the base alone
  bool base_usable_ = true;
  DType compute_ = DType::kF32;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_SESSION_H_
