// Masked language modelling: predicts hidden tokens of unlabelled text; answers fill-mask.
#include <algorithm>
#include <numeric>

#include "core/base/text.h"
#include "tasks/build.h"
#include "tasks/data/readers.h"
#include "tasks/masker.h"
#include "tasks/scores.h"
#include "tasks/task.h"
#include "tasks/windows.h"

namespace cloze {
namespace {

// Cuts documents into sequences and writes them.
class MaskedLmFill {
 public:
  MaskedLmFill(const DataSpec& data, const MaskedLmSpec& task, const Tokenizer& tokenizer,
      ExampleStoreWriter* writer, DataStats* stats)
      : data_(data), tokenizer_(tokenizer), append_sep_(task.append_sep()),
        cutter_(task.max_tokens() - 1 - task.append_sep()), writer_(writer), stats_(*stats) {}

  struct Ids {
    std::vector<int32_t> ids;
    int64_t invalid = 0;
  };

  absl::Status Run(const BuildOptions& options) {
    ASSIGN_OR_RETURN(DocumentReader reader, DocumentReader::Open(data_));
    const auto read = [&](DocumentPiece* piece, int64_t* bytes) {
      absl::StatusOr<bool> more = reader.Next(piece);
      *bytes += piece->text.size();
      return more;
    };
    const auto encode = [&](const DocumentPiece& piece, Ids* ids) {
      tokenizer_.AppendIds(piece.text, &ids->ids);
      ids->invalid = CountInvalidUtf8(piece.text);
    };
    const auto consume = [&](const DocumentPiece& piece, const Ids& ids) {
      return Consume(piece, ids);
    };
    return RunPipeline<DocumentPiece, Ids>(read, encode, consume, Ticker(reader, options));
  }

 private:
  absl::StatusOr<bool> Consume(const DocumentPiece& piece, const Ids& ids) {
    if (piece.first) {
      ++stats_.documents;
      bytes_ = tokens_ = written_ = 0;
    }
    bytes_ += piece.text.size();
    tokens_ += ids.ids.size();
    stats_.invalid_bytes += ids.invalid;
    cutter_.Add(ids.ids);
    while (cutter_.Take(piece.last, &sequence_)) {
      RETURN_IF_ERROR(Write());
      if (data_.max_examples() == 0 || writer_->size() < data_.max_examples()) continue;
      stats_.bytes += static_cast<int64_t>(static_cast<double>(bytes_) * written_ / tokens_);
      return false;
    }
    if (piece.last)
      (tokens_ > 0 ? stats_.bytes : stats_.empty_documents) += tokens_ > 0 ? bytes_ : 1;
    return true;
  }

  absl::Status Write() {
    const SpecialIds& special = tokenizer_.special();
    written_ += sequence_.size();
    stats_.text_tokens += sequence_.size();
    stats_.unknown_tokens += std::count(sequence_.begin(), sequence_.end(), special.unk);
    example_.ids.assign(1, special.cls);
    example_.ids.insert(example_.ids.end(), sequence_.begin(), sequence_.end());
    if (append_sep_) example_.ids.push_back(special.sep);
    example_.second = example_.ids.size();
    return writer_->Add(example_);
  }

  const DataSpec& data_;
  const Tokenizer& tokenizer_;
  bool append_sep_;
  SequenceCutter cutter_;
  ExampleStoreWriter* writer_;
  DataStats& stats_;
  Example example_;
  std::vector<int32_t> sequence_;
  int64_t bytes_ = 0, tokens_ = 0, written_ = 0;  // of this document
};

class MaskedLmEvaluation : public Evaluation {
 public:
  MaskedLmEvaluation(const Task& task, const Model& model, const DataStats& stats)
      : task_(task), head_(model.head()) {
    metric_.AddText(stats.text_tokens, stats.bytes);
  }
  void AddBatch(const Pass& pass, ConstMat hidden, absl::Span<const Example>) override {
    const LossSum loss = HeadLoss(task_, head_, pass, hidden, 0, {});
    metric_.Add(loss.loss, loss.correct, pass.batch.rows.size());
  }
  MetricResults Results() override { return metric_.Results(); }

 private:
  const Task& task_;
  const Head& head_;
  MaskedLmMetric metric_;
};

// The likeliest tokens for each mask.
class MaskDecoder : public Decoder {
 public:
  MaskDecoder(const Tokenizer* tokenizer, int top) : tokenizer_(tokenizer), top_(top) {}

  OrderedJson Answer(const Record& record, const TextLogits& text) const override {
    OrderedJson masks = OrderedJson::array();
    for (int64_t r = 0; r < text.logits.rows; ++r)
      masks.push_back(Fillings({text.logits.f32(r), static_cast<size_t>(text.logits.cols)}));
    return {{"text", record.text}, {"masks", std::move(masks)}};
  }

 private:
  OrderedJson Fillings(absl::Span<const float> logits) const {
    std::vector<float> scores(logits.begin(), logits.end());
    Softmax(scores.data(), scores.size());
    std::vector<int32_t> order(tokenizer_->vocab_size());
    std::iota(order.begin(), order.end(), 0);
    const int64_t count = std::min<int64_t>(top_, order.size());
    std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int32_t a, int32_t b) {
      return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    OrderedJson fillings = OrderedJson::array();
    for (int64_t i = 0; i < count; ++i) {
      const int32_t id = order[i];
      fillings.push_back(
          {{"token", tokenizer_->TokenText(id)}, {"id", id}, {"score", Decimal(scores[id])}});
    }
    return fillings;
  }

  const Tokenizer* tokenizer_;
  int top_;
};

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
  explicit MaskedLm(const MaskedLmSpec& spec) : Task("masked_lm"), spec_(spec) {}

  HeadKind head() const override { return HeadKind::kMaskedLm; }
  int32_t max_tokens() const override { return spec_.max_tokens(); }
  absl::string_view command() const override { return "fill-mask"; }
  bool pretrains() const override { return true; }
  bool evaluates_each_epoch() const override { return false; }

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

  absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse, const Tokenizer& tokenizer,
      const BuildOptions& options) override {
    RETURN_IF_ERROR(RequireTokens(tokenizer, {.sep = spec_.append_sep(), .mask = true}));
    return OpenOrBuild(data,
        StoreKindOf("masked_lm", tokenizer, {}, spec_.max_tokens(), spec_.append_sep()), tokenizer,
        options, [&](ExampleStoreWriter* writer, DataStats* stats) {
          return MaskedLmFill(data, spec_, tokenizer, writer, stats).Run(options);
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
  void Draw(uint64_t number, Example* example) const override { masker_->Apply(number, example); }
  int64_t TargetRows(int64_t rows, int64_t, const DataShape&) const override {
    return ShareOfRows(rows, double{spec_.mask_share()} + 1.0 / 32);
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
  std::unique_ptr<Decoder> NewDecoder(const Model&, const DecodeOptions& options) const override {
    return std::make_unique<MaskDecoder>(tokenizer(), options.top);
  }

 private:
  MaskedLmSpec spec_;
  std::optional<Masker> masker_;
};

}  // namespace

std::unique_ptr<Task> MakeMaskedLm(const MaskedLmSpec& spec) {
  return std::make_unique<MaskedLm>(spec);
}

}  // namespace cloze
