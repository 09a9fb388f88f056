// Token tagging: one label for each word, read off one of its pieces or the mean of all; spans of
// BIO and IOBES labels.
#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "core/base/text.h"
#include "tasks/data/readers.h"
#include "tasks/labelled_task.h"
#include "tasks/labels.h"
#include "tasks/probabilities.h"
#include "tasks/store_builder.h"
#include "tasks/tag_metrics.h"
#include "tasks/tags.h"

namespace cloze {
namespace {

// A sentence with its labels' ids.
struct LabelledWords {
  std::vector<std::string> words;
  std::vector<int32_t> labels;
};

// The tags of data that is read with given labels.
struct TagsOfData {
  bool iob1 = false;                // IOB1, although the labels have the B of IOB2
  std::vector<std::string> unseen;  // sorted; those that are no labels
};

absl::StatusOr<TagsOfData> FindTags(
    const DataSpec& data, const LabelIds& ids, bool iob2, const BuildOptions& options) {
  ASSIGN_OR_RETURN(TaggedReader reader, TaggedReader::Open(data, Labels::kRequired));
  Iob1Finder finder;
  TaggedSentence sentence;
  std::set<std::string> unseen, unseen_iob2;
  const auto collect = [&](std::set<std::string>* set) {
    for (const std::string& tag : sentence.tags) {
      if (!ids.Has(tag) && set->size() < kMaxLabels) set->insert(tag);
    }
  };
  while (true) {
    RETURN_IF_ERROR(CheckStop(options));
    ASSIGN_OR_RETURN(const bool more, reader.Next(&sentence));
    if (!more) break;
    finder.Add(sentence.tags);
    collect(&unseen);
    Iob1ToIob2(&sentence.tags);
    collect(&unseen_iob2);
  }
  const bool iob1 = iob2 && finder.Found(false);
  const std::set<std::string>& found = iob1 ? unseen_iob2 : unseen;
  return TagsOfData{iob1, {found.begin(), found.end()}};
}

absl::Status FillTagging(const DataSpec& data, int32_t max_tokens, const LabelIds& ids, bool iob1,
    Overlap overlap, const Tokenizer& tokenizer, const BuildOptions& options,
    ExampleStoreWriter* writer, DataStats* stats) {
  ASSIGN_OR_RETURN(TaggedReader reader, TaggedReader::Open(data, Labels::kRequired));
  const auto read = [&](LabelledWords* item, int64_t* bytes) -> absl::StatusOr<bool> {
    TaggedSentence sentence;
    ASSIGN_OR_RETURN(const bool more, reader.Next(&sentence));
    if (!more) return false;
    if (iob1) Iob1ToIob2(&sentence.tags);
    for (size_t w = 0; w < sentence.words.size(); ++w) {
      *bytes += sentence.words[w].size() + 1;
      ASSIGN_OR_RETURN(const int32_t id, ids.IdOf(sentence.tags[w], "tags_field",
                                             [&] { return reader.Where(sentence.lines[w]); }));
      item->labels.push_back(id);
    }
    item->words = std::move(sentence.words);
    return true;
  };
  const auto encode = [&](const LabelledWords& item, EncodedText* out) {
    *out = CutIntoWindows(tokenizer, item.words, item.labels, max_tokens, overlap);
    for (const std::string& word : item.words) {
      out->stats.bytes += word.size();
      out->stats.invalid_bytes += CountInvalidUtf8(word);
    }
  };
  return FillWithTexts<LabelledWords>(read, encode, Ticker(reader, options), writer, stats);
}

// Answers of one model.
class TagAnswers {
 public:
  TagAnswers(const Model& model, const Tokenizer* tokenizer, bool viterbi)
      : decoder_(model, viterbi), tokenizer_(tokenizer), labels_(model.config().labels) {
    if (IsBio(labels_)) spans_.emplace(labels_);
  }

  OrderedJson Answer(const Record& record, ConstMat logits) const {
    switch (record.kind) {
      case Record::Kind::kIds:
        return WithTags({{"ids", record.ids}}, decoder_.Decode(logits, true));
      case Record::Kind::kWords:
        return WithTags({{"tokens", record.words}}, decoder_.Decode(logits));
      case Record::Kind::kText: return AnswerText(record.text, decoder_.Decode(logits));
      case Record::Kind::kPair: break;
    }
    CLOZE_CHECK(false);
  }

 private:
  OrderedJson WithTags(OrderedJson answer, const std::vector<WordTag>& tags) const {
    OrderedJson names = OrderedJson::array(), scores = OrderedJson::array();
    for (const WordTag& tag : tags) {
      names.push_back(labels_[tag.label]);
      scores.push_back(Decimal(tag.score));
    }
    answer["tags"] = std::move(names);
    answer["scores"] = std::move(scores);
    return answer;
  }
  OrderedJson AnswerText(const std::string& text, const std::vector<WordTag>& tags) const {
    const std::vector<TextWord> words = WordsOfText(*tokenizer_, text);
    OrderedJson list = OrderedJson::array();
    for (size_t w = 0; w < words.size(); ++w) {
      OrderedJson word = OffsetsJson(words[w].bytes, words[w].chars);
      word["label"] = labels_[tags[w].label];
      word["score"] = Decimal(tags[w].score);
      word["text"] = Slice(text, words[w].bytes);
      list.push_back(std::move(word));
    }
    OrderedJson answer = {{"text", text}, {"words", std::move(list)}};
    if (spans_.has_value()) answer["entities"] = Entities(text, words, tags);
    return answer;
  }

  // In the fields of Hugging Face's pipeline; the score is the mean of the words' scores.
  OrderedJson Entities(const std::string& text, const std::vector<TextWord>& words,
      const std::vector<WordTag>& tags) const {
    std::vector<int> ids;
    for (const WordTag& tag : tags) ids.push_back(tag.label);
    OrderedJson entities = OrderedJson::array();
    for (const TagSpan& span : spans_->Lenient(ids)) {
      double score = 0;
      for (int64_t w = span.begin; w < span.end; ++w)
        score += tags[w].score / (span.end - span.begin);
      const TextWord &first = words[span.begin], &last = words[span.end - 1];
      const Span bytes = {first.bytes.begin, last.bytes.end},
                 chars = {first.chars.begin, last.chars.end};
      OrderedJson entity = {{"entity_group", spans_->types()[span.type]},
          {"score", Decimal(static_cast<float>(score))}, {"word", Slice(text, bytes)}};
      entity.update(OffsetsJson(bytes, chars));
      entities.push_back(std::move(entity));
    }
    return entities;
  }

  TagDecoder decoder_;
  const Tokenizer* tokenizer_;
  std::vector<std::string> labels_;
  std::optional<SpanTags> spans_;
};

class TokenTagging : public LabelledTask {
 public:
  explicit TokenTagging(const TokenTaggingSpec& spec)
      : LabelledTask("token_tagging", HeadKind::kTokenTagging, "tag", LabelSettings::Of(spec)),
        spec_(spec) {}

  int32_t max_tokens() const override { return spec_.max_tokens(); }
  std::vector<Metric> metrics() const override {
    return {{"span_f1", Better::kLarger}, {"span_precision", Better::kLarger},
        {"span_recall", Better::kLarger}, {"strict_span_f1", Better::kLarger},
        {"accuracy", Better::kLarger}, {"accuracy_multi_piece", Better::kLarger},
        {"macro_f1", Better::kLarger}, {"mcc", Better::kLarger}, {"loss", Better::kSmaller}};
  }

  void Describe(const DataSpec&, ModelConfig* config) const override {
    config->head = head();
    config->crf = spec_.crf();
    if (!spec_.viterbi()) config->task_fields["viterbi"] = false;
    config->task_fields["window"] = spec_.max_tokens();
    if (spec_.pieces() != TokenTaggingSpec::FIRST)
      config->task_fields["pieces"] =
          absl::AsciiStrToLower(TokenTaggingSpec::Pieces_Name(spec_.pieces()));
  }
  void Restore(const ModelConfig& config, JsonFields& fields, int64_t longest) override {
    int32_t window = 0;  // folders from elsewhere have none
    fields.Integer("window", false, 3, 1'000'000, &window);
    spec_.set_max_tokens(
        std::min<int64_t>({window > 0 ? window : longest, longest, kMaxLabelledTokens}));
    spec_.set_crf(config.crf);
    spec_.set_viterbi(fields.Bool("viterbi", true));
    const std::string name = absl::AsciiStrToUpper(fields.String("pieces"));
    TokenTaggingSpec::Pieces pieces = TokenTaggingSpec::FIRST;
    if (!name.empty() && !TokenTaggingSpec::Pieces_Parse(name, &pieces))
      fields.Fail("pieces", Quote(name), ": expected first, mean or last");
    spec_.set_pieces(pieces);
    if (config.problem_type != "" && config.problem_type != "single_label_classification") {
      fields.Fail(
          "problem_type", Quote(config.problem_type), ": expected \"single_label_classification\"");
    }
  }

  absl::Status CheckData(const DataSpec& data) const override {
    return CheckFirst<TaggedSentence>(data, Labels::kRequired);
  }
  absl::StatusOr<LabelledReader> OpenLabelled(const DataSpec& data) const override {
    ASSIGN_OR_RETURN(TaggedReader opened, TaggedReader::Open(data, Labels::kRequired));
    const auto reader = std::make_shared<TaggedReader>(std::move(opened));
    return [reader, iob1 = iob1_](LabelledRecord* item) -> absl::StatusOr<bool> {
      TaggedSentence sentence;
      ASSIGN_OR_RETURN(const bool more, reader->Next(&sentence));
      if (!more) return false;
      if (iob1) Iob1ToIob2(&sentence.tags);
      item->where = reader->Where(sentence.lines.front());
      item->answer = {{"words", sentence.words}, {"true_tags", sentence.tags}};
      item->record.kind = Record::Kind::kWords;
      item->record.words = std::move(sentence.words);
      return true;
    };
  }
  absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse use, const Tokenizer& tokenizer,
      const BuildOptions& options) override {
    RETURN_IF_ERROR(RequireTokens(tokenizer, {.unk = true}));
    ASSIGN_OR_RETURN(LabelIds ids, LabelIds::Create(labels()));
    const bool evaluates = use == DataUse::kEvaluation;
    const bool iob2 = std::any_of(labels().begin(), labels().end(),
        [](const std::string& label) { return label == "B" || label.compare(0, 2, "B-") == 0; });
    TagsOfData tags;
    std::vector<std::string> all = labels();
    if (evaluates || iob2) {
      RETURN_IF_ERROR(RequireFiles(data, "tags are compared with the labels in a first pass"));
      ASSIGN_OR_RETURN(tags, FindTags(data, ids, iob2, options));
    }
    if (evaluates) {
      iob1_ = tags.iob1;
      unseen_ = tags.unseen;
      all.insert(all.end(), unseen_.begin(), unseen_.end());
      ASSIGN_OR_RETURN(ids, LabelIds::Create(all));
    }
    // Evaluation reads sentences as inference does.
    const Overlap overlap = evaluates ? Overlap::kHalf : Overlap::kNone;
    StoreKind kind = StoreKindOf("tagging", tokenizer, all, spec_.max_tokens(), true);
    kind.key.AddText("further pieces");
    if (tags.iob1) kind.key.AddText("iob1");
    if (overlap == Overlap::kHalf) kind.key.AddText("overlap");
    const auto fill = [&](ExampleStoreWriter* writer, DataStats* stats) {
      return FillTagging(
          data, spec_.max_tokens(), ids, tags.iob1, overlap, tokenizer, options, writer, stats);
    };
    ASSIGN_OR_RETURN(
        BuiltStore built, OpenOrBuild(data, std::move(kind), tokenizer, options, fill));
    if (tags.iob1) built.AddNote("the tags are IOB1 (spans begin with I); they are read as IOB2");
    if (evaluates) built.unseen_labels = unseen_;
    if (evaluates && !unseen_.empty())
      built.AddNote("tags that the model does not have count as wrong: ", ListNames(unseen_));
    return built;
  }

  // Sets the pieces that decide.
  void PrepareExample(uint64_t, double, Example* example) const override {
    example->averages = spec_.pieces() == TokenTaggingSpec::MEAN;
    if (spec_.pieces() != TokenTaggingSpec::LAST) return;
    for (size_t i = 0; i < example->rows.size(); ++i) example->rows[i] += example->further[i];
  }
  // With MEAN, the rows are divided evenly among the targets.
  Batch DryBatch(int64_t rows, int64_t longest, int64_t targets) const override {
    Batch batch = Task::DryBatch(rows, longest, targets);
    if (spec_.pieces() != TokenTaggingSpec::MEAN) return batch;
    for (int64_t i = 1; i <= targets; ++i)
      batch.piece_ends.push_back(static_cast<int32_t>(i * rows / targets));
    batch.pieces.resize(rows);
    return batch;
  }
  LossSum Loss(const Head& head, const Pass& pass, Mat logits, int64_t first, float scale,
      Arena& arena) const override {
    if (head.has_crf()) return head.CrfLoss(pass, logits, scale);
    return LabelledTask::Loss(head, pass, logits, first, scale, arena);
  }
  absl::StatusOr<double> ChanceLoss(const ExampleStore& train) const override {
    return spec_.crf() ? Task::ChanceLoss(train) : LabelledTask::ChanceLoss(train);
  }
  int64_t TargetRows(int64_t rows, int64_t, const DataShape& data) const override {
    return ShareOfRows(rows, 1.25 * data.words);
  }

  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats&, const DecodeOptions& options) const override {
    return NewTagMetrics(model, unseen_, options.viterbi.value_or(spec_.viterbi()), options.errors,
        tokenizer(), spec_.pieces() == TokenTaggingSpec::LAST);
  }
  absl::StatusOr<std::vector<Example>> Encode(
      const Record& record, const ModelInput& input, CutCounts* cut) const override;
  // Each word has its probabilities by itself, without the rules of spans and a CRF.
  std::vector<float> Probabilities(const TextLogits& text) const override {
    std::vector<float> all;
    for (int64_t row = 0; row < text.logits.rows; ++row) {
      all.insert(all.end(), text.logits.f32(row), text.logits.f32(row) + text.logits.cols);
      Softmax(all.data() + row * text.logits.cols, text.logits.cols);
    }
    return all;
  }
  Decoder NewDecoder(const Model& model, const DecodeOptions& options) const override {
    const bool viterbi = options.viterbi.value_or(spec_.viterbi());
    return [answers = TagAnswers(model, tokenizer(), viterbi)](const Record& record,
               const TextLogits& text) { return answers.Answer(record, text.logits); };
  }

 private:
  absl::StatusOr<std::vector<std::string>> LabelsInData(
      const DataSpec& train, const std::atomic<bool>* stop) const override {
    return LearnTags(train, stop);
  }

  TokenTaggingSpec spec_;
  std::vector<std::string> unseen_;  // labels of the evaluation data that the model does not have
  bool iob1_ = false;                // its tags are IOB1, and read as IOB2
};

absl::StatusOr<std::vector<Example>> TokenTagging::Encode(
    const Record& record, const ModelInput& input, CutCounts* cut) const {
  if (record.kind == Record::Kind::kPair)
    return Error(Exit::kData, "a pair of texts: a tagger takes texts, words or ids");
  if (record.kind == Record::Kind::kIds) {
    ASSIGN_OR_RETURN(Example example, EncodeRecord(record, input, cut));
    SetAllRows(&example);
    return std::vector<Example>{std::move(example)};
  }
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, input.tokenizer);
  const std::vector<std::string> words =
      record.kind == Record::Kind::kText ? Slices(record.text, WordsOfText(*tokenizer, record.text))
                                         : record.words;
  EncodedText sequences = CutIntoWindows(*tokenizer, words, {}, spec_.max_tokens(), Overlap::kHalf);
  cut->words += sequences.stats.truncated;
  for (Example& window : sequences.windows) PrepareExample(0, 1, &window);
  return std::move(sequences.windows);
}

}  // namespace

std::unique_ptr<Task> MakeTokenTagging(const TokenTaggingSpec& spec) {
  return std::make_unique<TokenTagging>(spec);
}

}  // namespace cloze
