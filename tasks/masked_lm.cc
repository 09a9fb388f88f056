// Masked language modelling: predicts hidden tokens of unlabelled text; answers fill-mask.
#include <algorithm>
#include <numeric>

#include "core/base/text.h"
#include "tasks/build.h"
#include "tasks/data/readers.h"
#include "tasks/masker.h"

namespace cloze {
namespace {

// Cuts documents into sequences and writes them: full ones, except that the last two of a document
// share the rest evenly.
struct DocumentCutter {
  struct Ids {
    std::vector<int32_t> ids;
    int64_t invalid = 0;
  };

  // Adds a piece of a document; false when there are enough examples.
  absl::StatusOr<bool> Add(const DocumentPiece& piece, const Ids& ids) {
    if (piece.first) {
      ++stats.documents;
      bytes = tokens = written = 0;
    }
    bytes += piece.text.size();
    tokens += ids.ids.size();
    stats.invalid_bytes += ids.invalid;
    pending.insert(pending.end(), ids.ids.begin(), ids.ids.end());
    int64_t done = 0;  // of `pending`
    while (const int64_t size = NextSize(pending.size() - done, piece.last)) {
      RETURN_IF_ERROR(Write(absl::MakeSpan(pending).subspan(done, size)));
      done += size;
      if (max_examples == 0 || writer->size() < max_examples) continue;
      stats.bytes += static_cast<int64_t>(static_cast<double>(bytes) * written / tokens);
      return false;
    }
    pending.erase(pending.begin(), pending.begin() + done);
    if (piece.last) (tokens > 0 ? stats.bytes : stats.empty_documents) += tokens > 0 ? bytes : 1;
    return true;
  }

  // Tokens of the next sequence when `left` remain; 0 if more of the document are needed first.
  int64_t NextSize(int64_t left, bool complete) const {
    const int64_t capacity = spec.max_tokens() - 1 - spec.append_sep();
    if (left >= 2 * capacity) return capacity;
    if (!complete) return 0;
    return left > capacity ? (left + 1) / 2 : left;
  }

  absl::Status Write(absl::Span<const int32_t> sequence) {
    written += sequence.size();
    stats.text_tokens += sequence.size();
    stats.unknown_tokens += std::count(sequence.begin(), sequence.end(), special.unk);
    example.ids.assign(1, special.cls);
    example.ids.insert(example.ids.end(), sequence.begin(), sequence.end());
    if (spec.append_sep()) example.ids.push_back(special.sep);
    example.second = static_cast<int32_t>(example.ids.size());
    return writer->Add(example);
  }

  const SpecialIds& special;
  const MaskedLmSpec& spec;
  const int64_t max_examples;
  ExampleStoreWriter* writer;
  DataStats& stats;
  Example example = {};
  std::vector<int32_t> pending = {};
  int64_t bytes = 0, tokens = 0, written = 0;  // of this document
};

absl::Status FillMaskedLm(const DataSpec& data, const MaskedLmSpec& spec,
    const Tokenizer& tokenizer, const BuildOptions& options, ExampleStoreWriter* writer,
    DataStats* stats) {
  ASSIGN_OR_RETURN(DocumentReader reader, DocumentReader::Open(data));
  DocumentCutter cutter{tokenizer.special(), spec, data.max_examples(), writer, *stats};
  const auto read = [&](DocumentPiece* piece, int64_t* bytes) {
    absl::StatusOr<bool> more = reader.Next(piece);
    *bytes += piece->text.size();
    return more;
  };
  const auto encode = [&](const DocumentPiece& piece, DocumentCutter::Ids* ids) {
    tokenizer.AppendIds(piece.text, &ids->ids);
    ids->invalid = CountInvalidUtf8(piece.text);
  };
  const auto consume = [&](const DocumentPiece& piece, const DocumentCutter::Ids& ids) {
    return cutter.Add(piece, ids);
  };
  return RunPipeline<DocumentPiece, DocumentCutter::Ids>(
      read, encode, consume, Ticker(reader, options));
}

class MaskedLmEvaluation : public Evaluation {
 public:
  MaskedLmEvaluation(const Task& task, const Model& model, const DataStats& stats)
      : task_(task), head_(model.head()) {
    metric_.AddText(stats.text_tokens, stats.bytes);
  }
  Output Compute(const Pass& pass, ConstMat hidden) const override {
    return {.sum = HeadLoss(task_, head_, pass, hidden, 0, {}),
        .targets = static_cast<int64_t>(pass.batch.rows.size())};
  }
  void Add(Output output, absl::Span<const Example>) override {
    metric_.Add(output.sum.loss, output.sum.correct, output.targets);
  }
  MetricResults Results() override { return metric_.Results(); }

 private:
  const Task& task_;
  const Head& head_;
  MaskedLmMetric metric_;
};

// The likeliest tokens of a mask.
OrderedJson Fillings(const Tokenizer& tokenizer, ConstMat logits, int64_t row, int64_t top) {
  std::vector<float> scores(logits.f32(row), logits.f32(row) + logits.cols);
  Softmax(scores.data(), scores.size());
  std::vector<int32_t> order(tokenizer.vocab_size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min<int64_t>(top, order.size());
  std::partial_sort(order.begin(), end, order.end(),
      [&](int32_t a, int32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  OrderedJson fillings = OrderedJson::array();
  for (auto id = order.begin(); id != end; ++id)
    fillings.push_back(
        {{"token", tokenizer.TokenText(*id)}, {"id", *id}, {"score", Decimal(scores[*id])}});
  return fillings;
}

// Replaces "<mask>" and "[MASK]" by the model's own mask token.
std::string WithOwnMask(std::string text, const std::string& own) {
  for (const std::string other : {"<mask>", "[MASK]"}) {
    if (other == own) continue;
    for (size_t at = 0; (at = text.find(other, at)) != std::string::npos; at += own.size())
      text.replace(at, other.size(), own);
  }
  return text;
}

class MaskedLm : public Task {
 public:
  explicit MaskedLm(const MaskedLmSpec& spec, HeadKind head = HeadKind::kMaskedLm)
      : Task("masked_lm", head, "fill-mask"), spec_(spec) {}

  int32_t max_tokens() const override { return spec_.max_tokens(); }
  bool pretrains() const override { return true; }
  std::vector<std::string> metrics() const override {
    return {"loss", "perplexity", "accuracy", "bits_per_byte"};
  }

  void Describe(const DataSpec&, ModelConfig* config) const override {
    config->head = HeadKind::kMaskedLm;
  }
  void Restore(const ModelConfig&, JsonFields&, int64_t longest) override {
    spec_.set_max_tokens(std::min<int64_t>(longest, spec_.max_tokens()));
  }

  absl::Status Bind(const ModelConfig& config, const Tokenizer* tokenizer, uint64_t seed) override {
    RETURN_IF_ERROR(Task::Bind(config, tokenizer, seed));
    if (tokenizer == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(masker_, Masker::Create(spec_, *tokenizer, seed));
    return absl::OkStatus();
  }

  absl::Status CheckData(const DataSpec& data) const override {
    return CheckFirst<DocumentPiece>(data, Labels::kIgnored);
  }
  absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse, const Tokenizer& tokenizer,
      const BuildOptions& options) override {
    RETURN_IF_ERROR(RequireTokens(tokenizer, {.sep = spec_.append_sep(), .mask = true}));
    return OpenOrBuild(data,
        StoreKindOf("masked_lm", tokenizer, {}, spec_.max_tokens(), spec_.append_sep()), tokenizer,
        options, [&](ExampleStoreWriter* writer, DataStats* stats) {
          return FillMaskedLm(data, spec_, tokenizer, options, writer, stats);
        });
  }

  std::vector<Example> Sequences(Example example, double done) const override {
    if (spec_.warmup_from_tokens() == 0 || done >= spec_.warmup_share())
      return Task::Sequences(std::move(example), done);
    constexpr int64_t kMultiple = 8;  // of lengths
    const double from = spec_.warmup_from_tokens(), to = spec_.max_tokens();
    const auto longest = static_cast<int64_t>(from + (to - from) * done / spec_.warmup_share());
    return SplitSequence(example, longest / kMultiple * kMultiple, spec_.append_sep());
  }
  void Draw(uint64_t number, double done, Example* example) const override {
    masker_->Apply(number, done, example);
  }
  absl::StatusOr<double> ChanceLoss(const ExampleStore& train) const override {
    std::vector<double> counts(tokenizer()->vocab_size());
    RETURN_IF_ERROR(ForSomeExamples(train, [&](const Example& example) {
      for (const int32_t id : example.ids) counts[id] += !tokenizer()->is_special(id);
    }));
    return Entropy(counts);
  }
  int64_t TargetRows(int64_t rows, int64_t, const DataShape&) const override {
    return ShareOfRows(rows, std::max(MaskShare(spec_, 0), MaskShare(spec_, 1)) + 1.0 / 32);
  }

  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats& stats, const DecodeOptions&) const override {
    return std::make_unique<MaskedLmEvaluation>(*this, model, stats);
  }
  bool evaluates_logits() const override { return false; }
  absl::StatusOr<std::vector<Example>> Encode(
      const Record& record, const ModelInput& input, CutCounts* cut) const override {
    ASSIGN_OR_RETURN(const Tokenizer* tokenizer, input.tokenizer);
    const int32_t mask = tokenizer->special().mask;
    const int64_t cut_before = cut->texts;
    Record own = record;
    own.text = WithOwnMask(std::move(own.text), tokenizer->token(mask));
    ASSIGN_OR_RETURN(Example example, EncodeRecord(own, input, cut));
    for (size_t i = 0; i < example.ids.size(); ++i) {
      if (example.ids[i] == mask) example.rows.push_back(static_cast<int32_t>(i));
    }
    if (example.rows.empty()) {
      return Error(Exit::kData, "no ", tokenizer->token(mask), " in \"", Quote(own.text), "\"",
          cut->texts > cut_before ? " after cutting it to the model's length" : "");
    }
    return std::vector<Example>{std::move(example)};
  }
  Decoder NewDecoder(const Model&, const DecodeOptions& options) const override {
    return [this, top = options.top](const Record& record, const TextLogits& text) -> OrderedJson {
      OrderedJson masks = OrderedJson::array();
      for (int64_t r = 0; r < text.logits.rows; ++r)
        masks.push_back(Fillings(*tokenizer(), text.logits, r, top));
      return {{"text", record.text}, {"masks", std::move(masks)}};
    };
  }

 protected:
  const MaskedLmSpec& spec() const { return spec_; }

 private:
  MaskedLmSpec spec_;
  std::optional<Masker> masker_;
};

class ReplacedTokensEvaluation : public Evaluation {
 public:
  ReplacedTokensEvaluation(const Model& model, double weight) : model_(model), metric_(weight) {}
  // The logits, then 1 for each token that is replaced, else 0.
  Output Compute(const Pass& pass, ConstMat hidden) const override {
    const std::vector<float>& replaced = pass.batch.values;
    const Mat logits = Rows(model_.head().Logits(pass, hidden), 0, replaced.size());
    Output output;
    for (int64_t r = 0; r < logits.rows; ++r) output.logits.push_back(*logits.f32(r));
    output.logits.insert(output.logits.end(), replaced.begin(), replaced.end());
    output.sum = BinaryCrossEntropy(logits, replaced.data(), 0, pass.arena);
    return output;
  }
  void Add(Output output, absl::Span<const Example>) override {
    const auto middle = output.logits.begin() + output.logits.size() / 2;
    const std::vector<float> replaced(middle, output.logits.end());
    metric_.Add(output.sum.loss, View(output.logits.data(), replaced.size(), 1), replaced);
  }
  void AddGenerator(const LossSum& loss, int64_t targets) override {
    metric_.AddGenerator(loss, targets);
  }
  MetricResults Results() override { return metric_.Results(); }

 private:
  const Model& model_;
  ReplacedTokensMetric metric_;
};

// Trains a discriminator and its generator; the masked batches are the generator's.
class ReplacedTokens : public MaskedLm {
 public:
  explicit ReplacedTokens(const MaskedLmSpec& spec) : MaskedLm(spec, HeadKind::kReplacedTokens) {}
  std::vector<std::string> metrics() const override {
    return {"loss", "generator_loss", "replaced_loss", "accuracy", "precision", "recall", "f1",
        "generator_accuracy"};
  }

  void Describe(const DataSpec&, ModelConfig* config) const override {
    config->head = HeadKind::kReplacedTokens;
    config->pooler = true;
    config->training.generator = {
        GeneratorOf(*config, own().generator_size(), own().share_embeddings())};
  }
  LossSum Loss(const Head&, const Pass& pass, Mat logits, int64_t first, float scale,
      Arena& arena) const override {
    LossSum sum =
        BinaryCrossEntropy(logits, pass.batch.values.data() + first, scale * own().weight(), arena);
    sum.loss *= own().weight();
    return sum;
  }
  absl::StatusOr<double> ChanceLoss(const ExampleStore& train) const override {
    return Task::ChanceLoss(train);
  }
  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats&, const DecodeOptions&) const override {
    return std::make_unique<ReplacedTokensEvaluation>(model, own().weight());
  }
  bool evaluates_logits() const override { return true; }

 private:
  const ReplacedTokensSpec& own() const { return spec().replaced_tokens(); }
};

}  // namespace

std::unique_ptr<Task> MakeMaskedLm(const MaskedLmSpec& spec) {
  if (spec.has_replaced_tokens()) return std::make_unique<ReplacedTokens>(spec);
  return std::make_unique<MaskedLm>(spec);
}

}  // namespace cloze
