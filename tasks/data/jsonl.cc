// JSONL files: one object per line, of which only the wanted members are kept.
#include <algorithm>

#include "core/base/json.h"
#include "tasks/data/rows.h"

namespace cloze {
namespace {

constexpr uint32_t kStrings = 1u << JsonValue::kString,
                   kLabels = kStrings | 1u << JsonValue::kNumber | 1u << JsonValue::kBoolean;

// Parses `json` into *values, one for each field; all members must be there.
absl::Status ParseFields(const std::string& path, int64_t line, const std::string& json,
    const std::vector<Field>& fields, std::vector<JsonValue>* values) {
  std::vector<std::string> names, found;
  for (const Field& field : fields) {
    if (std::find(names.begin(), names.end(), field.name) == names.end())
      names.push_back(field.name);
  }
  std::vector<JsonValue> members;
  const absl::Status status = ParseJsonLine(json, names, &members, &found);
  if (!status.ok()) return DataError(path, line, status.message());
  values->clear();
  for (const Field& field : fields) {
    const auto at = std::find(names.begin(), names.end(), field.name) - names.begin();
    if (members[at].kind == JsonValue::kMissing) {
      return DataError(path, line,
          absl::StrCat(field.spec_field, ": no field \"", Quote(field.name), "\"; there are ",
              ListNames(found)));
    }
    values->push_back(members[at]);
  }
  return absl::OkStatus();
}

class JsonlReader : public RowReader {
 public:
  JsonlReader(LineReader reader, std::vector<Field> fields)
      : reader_(std::move(reader)), fields_(std::move(fields)) {}

  absl::StatusOr<bool> Next(std::vector<std::string>* values) override {
    do {
      ASSIGN_OR_RETURN(const bool more, NextLine(&reader_, &text_));
      if (!more) return false;
    } while (IsBlank(text_));
    std::vector<JsonValue> members;
    RETURN_IF_ERROR(ParseFields(reader_.path(), line(), text_, fields_, &members));
    values->resize(fields_.size());
    for (size_t i = 0; i < fields_.size(); ++i) {
      JsonValue& value = members[i];
      const bool label = fields_[i].spec_field == "label_field", list = fields_[i].list;
      const bool scalar = (1u << value.kind & (label ? kLabels : kStrings)) != 0;
      if (!scalar && !(list && value.IsListOf(kLabels))) {
        return DataError(reader_.path(), line(),
            absl::StrCat(fields_[i].spec_field, ": \"", Quote(fields_[i].name),
                "\" is not a string", label ? ", number or boolean" : "",
                list ? ", or a list of them" : ""));
      }
      if (list) list_ = scalar ? std::vector<std::string>{value.text} : std::move(value.items);
      has_list_ |= list;
      (*values)[i] = std::move(value.text);
    }
    return true;
  }
  const std::vector<std::string>* list() const override { return has_list_ ? &list_ : nullptr; }
  int64_t line() const override { return reader_.line_number(); }
  int64_t position() const override { return reader_.position(); }

 private:
  LineReader reader_;
  std::vector<Field> fields_;
  std::string text_;
  std::vector<std::string> list_;
  bool has_list_ = false;
};

// Parses lists of words and, unless `fields` has only one, of tags.
absl::Status ParseTagged(const std::string& path, int64_t line, const std::string& json,
    const std::vector<Field>& fields, TaggedSentence* sentence) {
  std::vector<JsonValue> values;
  RETURN_IF_ERROR(ParseFields(path, line, json, fields, &values));
  for (size_t i = 0; i < fields.size(); ++i) {
    if (values[i].IsListOf(kStrings)) continue;
    return DataError(path, line,
        absl::StrCat(
            fields[i].spec_field, ": \"", Quote(fields[i].name), "\" is not a list of strings"));
  }
  sentence->words = values[0].items;
  sentence->lines.assign(sentence->words.size(), line);
  if (fields.size() == 1) return absl::OkStatus();
  sentence->tags = values[1].items;
  if (sentence->tags.size() != sentence->words.size()) {
    return DataError(path, line,
        absl::StrCat(fields[1].spec_field, ": ", sentence->tags.size(), " tags for ",
            sentence->words.size(), " words"));
  }
  for (const std::string& tag : sentence->tags) {
    if (tag.empty())
      return DataError(path, line, absl::StrCat(fields[1].spec_field, ": an empty tag"));
  }
  return absl::OkStatus();
}

class JsonlSentences : public SentenceReader {
 public:
  JsonlSentences(LineReader reader, std::vector<Field> fields)
      : reader_(std::move(reader)), fields_(std::move(fields)) {}

  absl::StatusOr<bool> Next(TaggedSentence* sentence, ConllSentence*) override {
    do {
      *sentence = {};
      ASSIGN_OR_RETURN(const bool more, NextLine(&reader_, &text_));
      if (!more) return false;
      if (IsBlank(text_)) continue;
      RETURN_IF_ERROR(ParseTagged(reader_.path(), reader_.line_number(), text_, fields_, sentence));
    } while (sentence->words.empty());
    return true;
  }
  int64_t position() const override { return reader_.position(); }

 private:
  LineReader reader_;
  std::vector<Field> fields_;
  std::string text_;
};

absl::StatusOr<std::unique_ptr<RowReader>> OpenRows(
    const std::string& path, const DataSpec&, std::vector<Field> fields) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path, kRowBytes));
  return std::make_unique<JsonlReader>(std::move(reader), std::move(fields));
}

absl::StatusOr<std::unique_ptr<SentenceReader>> OpenSentences(
    const std::string& path, const DataSpec& spec, Labels labels) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path, kRowBytes));
  std::vector<Field> fields = {
      {"words_field", spec.words_field().empty() ? "tokens" : spec.words_field()}};
  if (labels == Labels::kRequired)
    fields.push_back({"tags_field", spec.tags_field().empty() ? "tags" : spec.tags_field()});
  return std::make_unique<JsonlSentences>(std::move(reader), std::move(fields));
}

}  // namespace

Format JsonlFormat() {
  return {.format = DataSpec::JSONL,
      .extension = ".jsonl",
      .labels = true,
      .whole = WholeLines,
      .rows = OpenRows,
      .sentences = OpenSentences};
}

}  // namespace cloze
