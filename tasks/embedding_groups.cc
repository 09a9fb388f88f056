#include "tasks/embedding_groups.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "core/base/hash_map.h"
#include "core/base/text.h"
#include "tasks/data/readers.h"
#include "tasks/embedding_loss.h"
#include "tasks/store_builder.h"

namespace cloze {
namespace {

// More classes than any data have.
constexpr int32_t kLabels = 1 << 27;

// A group of texts as it is read.
struct Group {
  std::vector<std::string> texts;  // the anchor, its positive, its negatives; or a single text
  float score = 0;                 // of kScored
  int32_t text_class = 0;          // of kLabelled
};

Labels LabelsOfKind(GroupKind kind) {
  switch (kind) {
    case GroupKind::kPairs: return Labels::kGroups;
    case GroupKind::kScored: return Labels::kNumber;
    case GroupKind::kLabelled: return Labels::kRequired;
    case GroupKind::kTexts:
    case GroupKind::kRetrieval: return Labels::kIgnored;
  }
  CLOZE_CHECK(false);
}

bool IsBlankText(const std::string& text) { return absl::StripAsciiWhitespace(text).empty(); }

// Reads groups from rows.
class GroupReader {
 public:
  GroupReader(TextReader reader, GroupKind kind, const EmbeddingSpec& spec)
      : reader_(std::move(reader)), kind_(kind), negatives_(spec.negatives()),
        cosines_(spec.loss() == EmbeddingSpec::COSINE) {}

  // Reads the next group; false at the end.
  absl::StatusOr<bool> Next(Group* group) {
    while (groups_.empty()) {
      TextExample row;
      ASSIGN_OR_RETURN(const bool more, reader_.Next(&row));
      if (!more) return false;
      RETURN_IF_ERROR(AddRow(row));
    }
    *group = std::move(groups_.front());
    groups_.pop_front();
    return true;
  }
  const TextReader& reader() const { return reader_; }

 private:
  template <typename... Parts>
  absl::Status Wrong(const TextExample& row, const Parts&... what) const {
    return Error(Exit::kData, reader_.Where(row.line), ": ", what...);
  }

  absl::Status AddRow(const TextExample& row) {
    if (kind_ == GroupKind::kTexts) {
      if (!IsBlankText(row.text)) groups_.push_back({{row.text}});
      return absl::OkStatus();
    }
    if (IsBlankText(row.text)) return Wrong(row, "text_field: is empty: expected a text");
    if (kind_ == GroupKind::kLabelled) return AddLabelled(row);
    if (kind_ == GroupKind::kPairs) return AddPairs(row);
    float score = 0;
    if (IsBlankText(row.text_pair)) return EmptyPair(row);
    if (!ParseDecimal(row.label, &score))
      return Wrong(row, "label_field: \"", Quote(row.label),
          "\" is not a finite number in decimal notation: expected the score of the pair");
    if (cosines_ && !(score >= -1 && score <= 1))
      return Wrong(row, "label_field: ", score,
          " is not from -1 to 1: COSINE compares scores with cosines (divide them, or use COSENT)");
    groups_.push_back({{row.text, row.text_pair}, score});
    return absl::OkStatus();
  }

  absl::Status EmptyPair(const TextExample& row) const {
    return Wrong(row, "text_pair_field: is empty: expected a text for each text_field");
  }

  absl::Status AddPairs(const TextExample& row) {
    if (row.pairs.empty()) return EmptyPair(row);
    for (const std::string& positive : row.pairs) {
      if (IsBlankText(positive)) return EmptyPair(row);
      Group group = {{row.text, positive}};
      for (const std::string& negative : row.negatives) {
        if (std::ssize(group.texts) == 2 + negatives_) break;
        if (!IsBlankText(negative)) group.texts.push_back(negative);
      }
      groups_.push_back(std::move(group));
    }
    return absl::OkStatus();
  }

  absl::Status AddLabelled(const TextExample& row) {
    const auto next = static_cast<int32_t>(last_of_label_.size()) + 1;
    auto& [text_class, last] = last_of_label_[row.label];
    if (text_class == 0) {
      text_class = next;
    } else {
      groups_.push_back({{row.text, last}, 0, text_class});
    }
    last = row.text;
    return absl::OkStatus();
  }

  TextReader reader_;
  const GroupKind kind_;
  const int32_t negatives_;
  const bool cosines_;
  std::deque<Group> groups_;
  HashMap<std::string, std::pair<int32_t, std::string>> last_of_label_;  // class and last text
};

// Returns the sequence of `text` after `prompt`, both without white space at their ends.
EncodedText EncodePrompted(const std::string& prompt, absl::string_view text,
    const EmbeddingSpec& spec, const Tokenizer& tokenizer) {
  const std::string whole(
      absl::StripAsciiWhitespace(absl::StrCat(prompt, absl::StripAsciiWhitespace(text))));
  EncodedText out = SequencesOfText(
      tokenizer, whole, nullptr, spec.max_tokens(), SequenceClassificationSpec::HEAD);
  out.stats.bytes += std::ssize(text);
  out.stats.invalid_bytes += CountInvalidUtf8(text);
  return out;
}

// Returns the group as one example: its texts one after the other, with the label of each at its
// first token or, of a scored pair, the score.
EncodedText EncodedGroup(
    const Group& group, GroupKind kind, const EmbeddingSpec& spec, const Tokenizer& tokenizer) {
  EncodedText out;
  Example& example = out.windows.emplace_back();
  const bool prompts_differ = kind == GroupKind::kPairs;
  for (size_t i = 0; i < group.texts.size(); ++i) {
    const std::string& prompt =
        i > 0 && prompts_differ ? spec.document_prompt() : spec.query_prompt();
    const EncodedText encoded = EncodePrompted(prompt, group.texts[i], spec, tokenizer);
    const std::vector<int32_t>& ids = encoded.windows[0].ids;
    if (std::ssize(example.ids) + std::ssize(ids) > kMaxLabelledTokens) break;
    AddStats(encoded.stats, &out.stats);
    example.rows.push_back(static_cast<int32_t>(example.ids.size()));
    example.labels.push_back(
        LabelOf(static_cast<GroupRole>(std::min<size_t>(i, 2)), group.text_class));
    example.ids.insert(example.ids.end(), ids.begin(), ids.end());
  }
  example.second = static_cast<int32_t>(example.ids.size());
  if (kind == GroupKind::kScored) {
    example.second = example.rows[1];
    example.rows.clear(), example.labels.clear();
    example.values = {group.score};
  }
  out.stats.empty_documents = out.stats.text_tokens == 0;
  return out;
}

// A text of a retrieval collection.
struct CollectionText {
  const std::string* text = nullptr;
  const Judgements* judged = nullptr;  // of a query
};

// Builds or opens the store of the collection in `folder`: an example for each document, in the
// order of the corpus, then one for each query.
absl::StatusOr<BuiltStore> BuildRetrievalStore(const std::string& folder, StoreKind kind,
    const EmbeddingSpec& spec, const Tokenizer& tokenizer, const BuildOptions& options) {
  DataSpec files;
  files.set_format(DataSpec::TEXT);
  for (const std::string& path : RetrievalFiles(folder)) files.add_files(path);
  std::vector<std::string> notes;
  ASSIGN_OR_RETURN(BuiltStore built,
      OpenOrBuild(files, std::move(kind), tokenizer, options,
          [&](ExampleStoreWriter* writer, DataStats* stats) -> absl::Status {
            ASSIGN_OR_RETURN(RetrievalData data, ReadRetrieval(folder));
            notes = data.notes;
            std::vector<CollectionText> items;
            for (const std::string& text : data.corpus.texts) items.push_back({&text});
            for (size_t q = 0; q < data.judged.size(); ++q)
              items.push_back({&data.queries.texts[q], &data.judged[q]});
            size_t next = 0;
            const auto read = [&](CollectionText* item, int64_t* bytes) -> absl::StatusOr<bool> {
              if (next == items.size()) return false;
              *item = items[next++];
              *bytes += std::ssize(*item->text);
              return true;
            };
            const auto encode = [&](const CollectionText& item, EncodedText* out) {
              const bool query = item.judged != nullptr;
              *out = EncodePrompted(query ? spec.query_prompt() : spec.document_prompt(),
                  *item.text, spec, tokenizer);
              Example& example = out->windows[0];
              example.labels = {LabelOf(query ? GroupRole::kQuery : GroupRole::kDocument)};
              for (const auto& [document, grade] : query ? *item.judged : Judgements()) {
                example.labels.push_back(static_cast<int32_t>(document + 1));  // 0: not there
                example.labels.push_back(
                    static_cast<int32_t>(std::clamp<int64_t>(grade, 0, kMaxGrade)));
              }
              example.rows.assign(example.labels.size(), 0);
            };
            return FillWithTexts<CollectionText>(
                read, encode, [&] { return CheckStop(options); }, writer, stats);
          }));
  for (const std::string& note : notes) built.AddNote(note);
  return built;
}

}  // namespace

GroupKind GroupKindOf(const DataSpec& data, bool training, EmbeddingSpec::Loss loss) {
  if (data.files_size() == 1 && IsRetrievalFolder(data.files(0))) return GroupKind::kRetrieval;
  if (data.text_pair_field().empty())
    return training && loss == EmbeddingSpec::SIMCSE ? GroupKind::kTexts : GroupKind::kLabelled;
  if (loss == EmbeddingSpec::COSENT || loss == EmbeddingSpec::COSINE) return GroupKind::kScored;
  if (training || data.label_field().empty()) return GroupKind::kPairs;
  const bool named = data.label_field() != DataSpec::default_instance().label_field();
  if (HasStream(data)) return named ? GroupKind::kScored : GroupKind::kPairs;
  return named || CheckFirst<TextExample>(data, Labels::kNumber).ok() ? GroupKind::kScored
                                                                      : GroupKind::kPairs;
}

absl::Status CheckGroups(const DataSpec& data, GroupKind kind) {
  if (kind == GroupKind::kRetrieval) return ReadRetrieval(data.files(0)).status();
  return CheckFirst<TextExample>(data, LabelsOfKind(kind));
}

absl::StatusOr<BuiltStore> BuildGroups(const DataSpec& data, GroupKind kind,
    const EmbeddingSpec& spec, const Tokenizer& tokenizer, const BuildOptions& options) {
  StoreKind store = StoreKindOf("sentences", tokenizer, {}, spec.max_tokens(), true);
  store.labels = kLabels;
  if (kind == GroupKind::kScored) store.targets = Targets::kNumber;
  store.key.AddNumber(static_cast<int>(kind));
  store.key.AddNumber(kGroupRoles);
  store.key.AddNumber(spec.negatives());
  for (const std::string* text : {&spec.query_prompt(), &spec.document_prompt()})
    store.key.AddText(*text);
  for (const std::string& field : data.negative_field()) store.key.AddText(field);
  if (kind == GroupKind::kRetrieval)
    return BuildRetrievalStore(data.files(0), std::move(store), spec, tokenizer, options);
  return OpenOrBuild(data, std::move(store), tokenizer, options,
      [&](ExampleStoreWriter* writer, DataStats* stats) -> absl::Status {
        ASSIGN_OR_RETURN(TextReader texts, TextReader::Open(data, LabelsOfKind(kind)));
        GroupReader reader(std::move(texts), kind, spec);
        const auto read = [&](Group* group, int64_t* bytes) -> absl::StatusOr<bool> {
          ASSIGN_OR_RETURN(const bool more, reader.Next(group));
          for (const std::string& text : group->texts) *bytes += std::ssize(text);
          return more;
        };
        const auto encode = [&](const Group& group, EncodedText* out) {
          *out = EncodedGroup(group, kind, spec, tokenizer);
        };
        RETURN_IF_ERROR(
            FillWithTexts<Group>(read, encode, Ticker(reader.reader(), options), writer, stats));
        if (kind == GroupKind::kLabelled && stats->documents == 0)
          return Error(Exit::kData, QuoteInput(data.files(0)),
              ": label_field: no two texts have the same label: expected texts that are alike");
        return absl::OkStatus();
      });
}

Judgements JudgementsOf(absl::Span<const int32_t> labels) {
  Judgements judged;
  for (size_t i = 1; i + 1 < labels.size(); i += 2)
    judged.emplace_back(labels[i] - 1, labels[i + 1]);
  return judged;
}

std::vector<Example> SequencesOfGroup(const Example& example, const EmbeddingSpec& spec) {
  const bool scored = !example.values.empty();
  std::vector<int32_t> starts = example.rows, labels = example.labels;
  const bool collection = !scored && RoleOf(labels[0]) >= GroupRole::kDocument;
  if (scored) starts = {0, example.second}, labels = {};
  if (collection) starts = {0};
  starts.push_back(static_cast<int32_t>(example.ids.size()));
  std::vector<Example> texts;
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    Example& text = texts.emplace_back();
    text.ids.assign(example.ids.begin() + starts[i], example.ids.begin() + starts[i + 1]);
    text.second = static_cast<int32_t>(text.ids.size());
    text.rows = {0};
    text.further = {text.second - 1};
    text.averages = spec.pooling() != Pooling::CLASS;
    text.largest = spec.pooling() == Pooling::MAX;
    text.labels = {scored ? LabelOf(static_cast<GroupRole>(i)) : labels[i]};
    if (collection) text.labels = labels;
    text.values = example.values;
    text.joined = i > 0;
  }
  if (texts.size() == 1 && !collection) {  // SIMCSE
    texts.push_back(texts[0]);
    texts[1].labels = {LabelOf(GroupRole::kPositive)};
    texts[1].joined = true;
  }
  return texts;
}

}  // namespace cloze
