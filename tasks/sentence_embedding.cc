// Sentence embedding: vectors of texts, close to each other for texts of like meaning.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/ops/rows.h"
#include "encoder/folder/sentence_vectors.h"
#include "tasks/embedding_groups.h"
#include "tasks/embedding_loss.h"
#include "tasks/embedding_metrics.h"
#include "tasks/retrieval.h"
#include "tasks/store_builder.h"
#include "tasks/task.h"

namespace cloze {
namespace {

constexpr const char* kPools[] = {"cls", "mean", "max"};  // in SentenceVectors, by Pooling.Kind

// Each line of a plain text is a text, unless the spec says otherwise.
DataSpec ByLines(DataSpec data) {
  if (!data.has_documents()) data.set_documents(DataSpec::LINE);
  return data;
}

// The vectors of a batch, as f32 [texts, hidden].
Mat VectorsOf(const Pass& pass, ConstMat hidden) {
  const Mat v = pass.arena.New(std::ssize(pass.batch.rows), hidden.cols, DType::kF32);
  Convert(Rows(hidden, 0, v.rows), v);
  return v;
}

std::vector<float> ValuesOf(ConstMat v) { return {v.f32(), v.f32() + v.rows * v.cols}; }

class VectorEvaluation : public Evaluation {
 public:
  // `dense`, which must outlive this, follow the pooling.
  VectorEvaluation(const Model& model, absl::Span<const DenseLayer> dense)
      : model_(model), dense_(dense) {}
  // The logits are the vectors.
  absl::StatusOr<Output> Run(const Pass& pass, absl::Span<const Example>) const override {
    Output output;
    output.logits = ValuesOf(VectorsOf(pass, model_.backbone().Infer(pass)));
    return output;
  }
  void Add(Output output, absl::Span<const Example> examples) override {
    const int64_t n = std::ssize(output.logits) / std::max<int64_t>(std::ssize(examples), 1);
    for (size_t i = 0; i < examples.size(); ++i) {
      const auto* const begin = output.logits.data() + i * n;
      std::vector<float> vector(begin, begin + n);
      for (const DenseLayer& layer : dense_) vector = layer.Forward(vector);
      metrics_.Add(examples[i], absl::MakeSpan(vector));
    }
  }
  MetricResults Results() override { return metrics_.Results(); }

 private:
  const Model& model_;
  absl::Span<const DenseLayer> dense_;
  VectorMetrics metrics_;
};

// The passes of a step and their loss.
class EmbeddingObjective : public Task {
 public:
  int32_t max_tokens() const override { return spec_.max_tokens(); }
  int64_t max_example_tokens() const override {
    return int64_t{spec_.max_tokens()} * TextsOfExample();
  }

  std::vector<Example> Sequences(Example example, double) const override {
    return SequencesOfGroup(example, spec_);
  }
  std::vector<uint64_t> TextKeys(const Example& example) const override {
    std::vector<uint64_t> keys;
    if (spec_.loss() != EmbeddingSpec::IN_BATCH_NEGATIVES && spec_.loss() != EmbeddingSpec::SIMCSE)
      return keys;
    for (const Example& text : SequencesOfGroup(example, spec_))
      keys.push_back(Hash64(text.ids.data(), text.ids.size() * sizeof(int32_t), 0));
    return keys;
  }

  bool spans_batches() const override { return true; }
  std::vector<float> Outputs(
      Model& model, const Batch& batch, const PassOptions& options) const override {
    model.arena().Reset();
    const Pass pass = options.NewPass(model, batch);
    return ValuesOf(VectorsOf(pass, model.backbone().Infer(pass)));
  }
  double StepLoss(Model& model, absl::Span<const Batch> step,
      absl::Span<std::vector<float>> outputs) const override;
  double Train(Model& model, const Batch& batch, const PassOptions& options) const override;
  void Infer(Model& model, const Batch& batch, DType compute) const override {
    model.arena().Reset();
    const Pass pass = model.NewPass(batch, compute);
    VectorsOf(pass, model.backbone().Infer(pass));
  }
  double LossWeight(const Batch& batch) const override {
    return static_cast<double>(batch.groups.size());
  }
  int64_t TargetRows(int64_t rows, int64_t examples, const DataShape& data) const override {
    const int64_t texts = TextsOfExample(), most = examples > 0 ? examples * texts : rows / 2;
    return std::min(most,
        ShareOfRows(rows, 2.0 * static_cast<double>(texts) / std::max(data.mean_length, 8.0)));
  }
  Batch DryBatch(int64_t rows, int64_t longest, int64_t targets) const override;

 protected:
  explicit EmbeddingObjective(const EmbeddingSpec& spec)
      : Task("sentence_embedding", HeadKind::kNone, "encode"), spec_(spec) {}
  // Most texts of an example.
  int64_t TextsOfExample() const {
    const bool negatives =
        spec_.loss() == EmbeddingSpec::IN_BATCH_NEGATIVES || spec_.loss() == EmbeddingSpec::TRIPLET;
    return 2 + (negatives ? spec_.negatives() : 0);
  }

  EmbeddingSpec spec_;
};

double EmbeddingObjective::StepLoss(
    Model& model, absl::Span<const Batch> step, absl::Span<std::vector<float>> outputs) const {
  Arena& arena = model.arena();
  arena.Reset();
  std::vector<int32_t> labels;
  std::vector<float> scores;
  for (const Batch& batch : step) {
    labels.insert(labels.end(), batch.targets.begin(), batch.targets.end());
    scores.insert(scores.end(), batch.values.begin(), batch.values.end());
  }
  const int64_t hidden = model.config().hidden, texts = std::ssize(labels);
  const Mat v = arena.New(texts, hidden, DType::kF32),
            dv = arena.NewZero(texts, hidden, DType::kF32);
  int64_t row = 0;
  for (const std::vector<float>& part : outputs) {  // empty in a dry run
    absl::c_copy(part, v.f32(row));
    row += std::ssize(part) / hidden;
  }
  const double loss = EmbeddingLoss(spec_, labels, scores, v, arena, dv);
  row = 0;
  for (std::vector<float>& part : outputs) {
    std::copy_n(dv.f32(row), part.size(), part.begin());
    row += std::ssize(part) / hidden;
  }
  return loss;
}

double EmbeddingObjective::Train(
    Model& model, const Batch& batch, const PassOptions& options) const {
  model.arena().Reset();
  const Pass pass = options.NewPass(model, batch);
  const Backbone::Saved saved = model.backbone().Forward(pass);
  const int64_t texts = std::ssize(batch.rows);
  const Mat dy = pass.New(saved.y.rows, saved.y.cols);
  const Arena::Mark mark = pass.arena.mark();
  double loss = 0;
  ConstMat dv;
  if (options.output_gradients != nullptr) {
    dv = View(options.output_gradients->data(), texts, saved.y.cols);
  } else {
    const Mat own = pass.arena.NewZero(texts, saved.y.cols, DType::kF32);
    loss = LossWeight(batch) * EmbeddingLoss(spec_, batch.targets, batch.values,
                                   VectorsOf(pass, saved.y), pass.arena, own);
    dv = own;
  }
  Convert(dv, Rows(dy, 0, texts));
  ZeroRowsFrom(dy, texts);
  pass.arena.Rewind(mark);
  if (options.scale != 0 && model.backbone().requires_grad(pass))
    model.backbone().Backward(pass, saved, dy);
  return loss;
}

Batch EmbeddingObjective::DryBatch(int64_t rows, int64_t longest, int64_t targets) const {
  targets = std::max<int64_t>(targets / 2 * 2, 2);
  Batch batch = Task::DryBatch(rows, longest, targets);
  for (int64_t i = 0; i < targets; ++i)
    batch.targets[i] = LabelOf(i % 2 == 0 ? GroupRole::kAnchor : GroupRole::kPositive);
  batch.values.resize(targets);
  batch.groups.resize(targets / 2);
  batch.largest = spec_.pooling() == Pooling::MAX;
  for (int32_t r = 0; spec_.pooling() != Pooling::CLASS && r < rows; ++r) batch.pieces.push_back(r);
  for (int64_t i = 0; i < targets; ++i)
    batch.piece_ends.push_back(static_cast<int32_t>((i + 1) * rows / targets));
  return batch;
}

// Its data, its model and its folder.
class SentenceEmbedding : public EmbeddingObjective {
 public:
  explicit SentenceEmbedding(const EmbeddingSpec& spec) : EmbeddingObjective(spec) {}

  std::vector<Metric> metrics() const override { return VectorMetrics::All(); }

  void Describe(const DataSpec&, ModelConfig* config) const override {
    config->head = head();
    config->task_fields["max_tokens"] = spec_.max_tokens();
    config->task_fields[kVectorsMember] = VectorsMember(Vectors());
  }
  absl::Status CheckModel(const LoadedSpec& loaded, const ModelConfig& config) const override;
  void Restore(const ModelConfig&, JsonFields& fields, int64_t longest) override {
    int32_t max_tokens = 0;  // folders from elsewhere have none
    fields.Integer("max_tokens", false, 8, 1'000'000, &max_tokens);
    spec_.set_max_tokens(max_tokens > 0 ? std::min<int64_t>(longest, max_tokens) : longest);
  }
  absl::Status WriteFiles(const ModelConfig& config, const std::string& folder) const override {
    return WriteSentenceVectors(Vectors(), config.hidden, folder);
  }
  absl::Status ReadFiles(const std::string& folder) override;

  absl::Status CheckData(const DataSpec& data) const override {
    return CheckGroups(ByLines(data), KindOf(data, DataUse::kTraining));
  }
  absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse use, const Tokenizer& tokenizer,
      const BuildOptions& options) override {
    RETURN_IF_ERROR(RequireTokens(tokenizer, {}));
    return BuildGroups(ByLines(data), KindOf(data, use), spec_, tokenizer, options);
  }
  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats&, const DecodeOptions&) const override {
    return std::make_unique<VectorEvaluation>(model, dense_);
  }
  absl::StatusOr<std::vector<Example>> Encode(
      const Record&, const ModelInput&, CutCounts*) const override {
    return Error(Exit::kUsage, "a model of sentence_embedding answers with `cloze encode`");
  }

 private:
  GroupKind KindOf(const DataSpec& data, DataUse use) const {
    return GroupKindOf(data, use == DataUse::kTraining, spec_.loss());
  }
  SentenceVectors Vectors() const {
    SentenceVectors vectors;
    vectors.pool = kPools[spec_.pooling()];
    vectors.normalize = spec_.normalize();
    vectors.max_tokens = spec_.max_tokens();
    vectors.query_prompt = spec_.query_prompt();
    vectors.document_prompt = spec_.document_prompt();
    if (spec_.loss() == EmbeddingSpec::TRIPLET && !spec_.normalize())
      vectors.similarity = "euclidean";
    return vectors;
  }

  std::vector<DenseLayer> dense_;  // of a folder that is evaluated
};

absl::Status CheckCollections(const LoadedSpec& loaded) {
  const auto names = [](const DataSpec& data) {
    return data.files_size() == 1 && IsRetrievalFolder(data.files(0));
  };
  const TaskSpec& spec = loaded.spec;
  if (names(spec.train()))
    return SpecError(loaded, "train.files", QuotePath(spec.train().files(0)),
        " is a retrieval collection, for validation: expected pairs, such as its corpus.jsonl "
        "with text_field \"title\" and text_pair_field \"text\"");
  const DataSpec& validation = spec.validation();
  if (names(validation))
    return spec.evaluation().max_examples() == 0
               ? absl::OkStatus()
               : SpecError(loaded, "evaluation.max_examples",
                     "is set, but a retrieval collection is evaluated as a whole");
  if (spec.sentence_embedding().loss() == EmbeddingSpec::SIMCSE && validation.files_size() > 0 &&
      validation.text_pair_field().empty())
    return SpecError(loaded, "validation.text_pair_field",
        "is not set: SIMCSE is evaluated on pairs, or on the folder of a retrieval collection");
  return absl::OkStatus();
}

absl::Status SentenceEmbedding::CheckModel(
    const LoadedSpec& loaded, const ModelConfig& config) const {
  RETURN_IF_ERROR(Task::CheckModel(loaded, config));
  RETURN_IF_ERROR(CheckCollections(loaded));
  for (const int32_t columns : spec_.dimensions()) {
    if (columns > config.hidden)
      return SpecError(loaded, "sentence_embedding.dimensions", columns,
          ", but vectors of the model have ", config.hidden, " columns");
  }
  const std::string& start = loaded.spec.model().start_from();
  if (start.empty()) return absl::OkStatus();
  const auto vectors = ReadSentenceVectors(start);
  if (!vectors.ok()) return AtField(loaded, "model.start_from", vectors.status());
  if (!vectors->has_value()) return absl::OkStatus();
  if (!(*vectors)->dense.empty())
    return SpecError(loaded, "model.start_from",
        "its vectors end with a Dense layer, which is not trained: expected a model without one "
        "(remove modules.json to train the encoder below it)");
  const Pooling::Kind pooling =
      static_cast<Pooling::Kind>(absl::c_find(kPools, (*vectors)->pool) - std::begin(kPools));
  if (pooling != spec_.pooling())
    return SpecError(loaded, "sentence_embedding.pooling", "is ",
        Pooling::Kind_Name(spec_.pooling()), ", but model.start_from makes vectors by ",
        Pooling::Kind_Name(pooling));
  return absl::OkStatus();
}

// Folders without such files have the mean, of length 1.
absl::Status SentenceEmbedding::ReadFiles(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto vectors, ReadSentenceVectors(folder));
  if (!vectors.has_value()) return absl::OkStatus();
  const auto* const pool = absl::c_find(kPools, vectors->pool);
  spec_.set_pooling(static_cast<Pooling::Kind>(pool - std::begin(kPools)));
  spec_.set_normalize(vectors->normalize);
  dense_ = vectors->dense;
  const std::string& prompt = vectors->prompt;
  spec_.set_query_prompt(prompt.empty() ? vectors->query_prompt : prompt);
  spec_.set_document_prompt(prompt.empty() ? vectors->document_prompt : prompt);
  if (vectors->max_tokens > 0)
    spec_.set_max_tokens(std::min<int64_t>(spec_.max_tokens(), vectors->max_tokens));
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Task> MakeSentenceEmbedding(const SentenceEmbeddingSpec& spec) {
  return std::make_unique<SentenceEmbedding>(spec);
}

}  // namespace cloze
