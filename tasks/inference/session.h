// A model folder opened for use: tokenizer, model, and packed batches through it.
#ifndef CLOZE_TASKS_INFERENCE_SESSION_H_
#define CLOZE_TASKS_INFERENCE_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/text/tokenizer/tokenizer.h"
#include "encoder/folder/adapter.h"
#include "encoder/model.h"
#include "tasks/record.h"

namespace cloze {

inline constexpr int kDefaultAdapter = -2;

// When a session computes in int8.
enum class Int8 { kNever, kIfQuantized, kAlways };
inline bool Uses(Int8 int8, const ModelConfig& config) {
  return int8 == Int8::kAlways || (int8 == Int8::kIfQuantized && config.int8);
}

// A sequence; `rows` are the tokens whose logits are wanted, `adapter` comes from
// Session::AdapterNamed.
struct Query : Example {
  int adapter = kDefaultAdapter;
};

// An adapter of the base. Without a name it answers queries that name none.
struct NamedAdapter {
  std::string name, folder;
};

// Not thread-safe.
class Session {
 public:
  // The folder is a model's, or an adapter's, which then brings its base. kNoInput, kData and
  // kMismatch for a folder that is missing, broken or lacks the head that it claims, and for
  // adapters that do not fit. If `int8` says so, products are computed in int8, see UseInt8.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const std::string& folder, DType compute,
      std::vector<NamedAdapter> adapters = {}, Int8 int8 = Int8::kNever);

  // Null for a folder without a tokenizer, which only takes ids; TokenizerOr says so.
  absl::StatusOr<const Tokenizer*> TokenizerOr() const;
  // The folder that was opened, or that of one of the adapters beside it.
  const std::string& folder() const { return folder_; }
  const std::string& folder(int adapter) const {
    return Resolve(adapter) < 0 ? folder_ : adapters_[Resolve(adapter)].folder;
  }
  // The tokenizer and limit for encoding records.
  ModelInput input() const { return {TokenizerOr(), max_tokens()}; }
  const Model& model() const { return *model_; }
  Model& model() { return *model_; }
  DType compute() const { return compute_; }
  // From now on products are computed in int8, and the rest in the fastest type of this CPU.
  // See Model::UseInt8. Not if Open did so.
  void UseInt8(absl::FunctionRef<bool(const Param&)> wanted = [](const Param&) { return true; }) {
    model_->UseInt8(wanted);
    compute_ = FastestType();
  }
  // The table of word embeddings [vocab, hidden]. Errors of LazyRows::Read.
  absl::StatusOr<ConstMat> WordEmbeddings();
  // Of queries that name no adapter.
  const ModelConfig& config() const { return config(default_); }
  const ModelConfig& config(int adapter) const {
    return Resolve(adapter) < 0 ? model_->config() : configs_[Resolve(adapter)];
  }
  // True if queries can name adapters.
  bool has_named() const { return !adapters_.empty(); }
  // The number of an adapter for queries; "": of those that name none. kData when there is no such
  // adapter, or the base needs one.
  absl::StatusOr<int> AdapterNamed(const std::string& name) const;
  // Longest sequence.
  int64_t max_tokens() const { return config().max_positions - config().position_offset; }

  // f(i, logits [rows of query i, labels] f32) for each query in order. Sequences of like length
  // pass through the model together.
  absl::Status Logits(
      absl::Span<const Query> queries, absl::FunctionRef<void(int64_t query, ConstMat logits)> f);
  // Attention of one sequence: for each layer [heads, tokens, tokens], each row the softmax of one
  // token's scores.
  absl::StatusOr<std::vector<std::vector<float>>> Attention(const Query& query);
  // f(i, layer, hidden [tokens, hidden] f32) for each query and each layer: 0 the embeddings, then
  // one a block; a layer at a time for some queries. With only_last, the last layer only, for each
  // query in order.
  absl::Status Hidden(absl::Span<const Query> queries, bool only_last,
      absl::FunctionRef<void(int64_t query, int layer, ConstMat hidden)> f);

 private:
  Session() = default;
  int Resolve(int adapter) const { return adapter == kDefaultAdapter ? default_ : adapter; }
  absl::Status LoadBeside(const std::string& base, std::vector<NamedAdapter> named, Int8 int8);
  absl::Status LoadBase(const std::string& base, const std::vector<Adapter>& adapters, Int8 int8);
  absl::Status LoadTokenizer(const std::string& base);
  absl::Status Check(absl::Span<const Query> queries, bool needs_rows) const;
  // f(members, pass) for each batch of queries with these indices, which have one adapter, and with
  // `by_length` are sorted by length.
  absl::Status ForEachBatch(absl::Span<const Query> queries, bool by_length,
      absl::FunctionRef<void(absl::Span<const int64_t> members, const Pass& pass)> f);

  // f(i, result) in the order of the queries, while batches come in the order of lengths. run(pass,
  // keep) computes the results of a batch, for each query those of all rows if `hidden`, else those
  // of the wanted rows.
  absl::Status InOrder(absl::Span<const Query> queries, bool hidden,
      absl::FunctionRef<void(const Pass&, absl::FunctionRef<void(ConstMat)> keep)> run,
      absl::FunctionRef<void(int64_t query, ConstMat result)> f);

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
