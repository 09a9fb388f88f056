// JSONL files: one object per line, or an array of objects, of which only the wanted members are
// kept.
#include <algorithm>

#include "core/base/json.h"
#include "tasks/data/format.h"
#include "tasks/data/json_objects.h"

namespace cloze {
namespace {

constexpr uint32_t kStrings = 1u << JsonValue::kString,
                   kLabels = kStrings | 1u << JsonValue::kNumber | 1u << JsonValue::kBoolean;

class JsonlReader : public FileReader {
 public:
  using FileReader::FileReader;

  absl::StatusOr<bool> NextRow(Row* row) override {
    std::vector<JsonValue> members;
    ASSIGN_OR_RETURN(const bool more, NextObject(wanted_.fields, &members));
    if (!more) return false;
    row->line = line_;
    row->values.clear();
    for (size_t i = 0; i < members.size(); ++i) {
      const auto& [spec_field, name, list] = wanted_.fields[i];
      JsonValue& value = members[i];
      const bool label = spec_field == "label_field";
      const bool scalar = (1u << value.kind & (label ? kLabels : kStrings)) != 0;
      if (!scalar && !(list && value.IsListOf(kLabels))) {
        return Fail(row->line, spec_field, ": \"", Quote(name), "\" is not a string",
            label ? ", number or boolean" : "", list ? ", or a list of them" : "");
      }
      if (list) row->list = scalar ? std::vector<std::string>{value.text} : std::move(value.items);
      row->values.push_back(std::move(value.text));
    }
    if (wanted_.keep_lines) row->cells = {text_};
    return true;
  }

  absl::StatusOr<bool> NextRecord(bool wait, Record* record) override {
    const auto next_line = [&](std::string* line) {
      return NextLine(wait || objects_.in_array(), line, record);
    };
    ASSIGN_OR_RETURN(const bool more, objects_.Next(lines_, next_line, &text_));
    if (!more) return false;
    record->line = objects_.line();
    if (!record->wrong.ok()) return true;
    record->wrong =
        Annotate(ParseJsonRecord(std::move(text_), wanted_.record, wanted_.spec, record),
            QuotePath(path()), ":", record->line);
    return true;
  }

  absl::StatusOr<bool> NextSentence(TaggedSentence* sentence) override {
    const std::string &words_field = wanted_.spec.words_field(),
                      &tags_field = wanted_.spec.tags_field();
    std::vector<Field> fields = {{"words_field", words_field.empty() ? "tokens" : words_field}};
    if (wanted_.labels == Labels::kRequired)
      fields.push_back({"tags_field", tags_field.empty() ? "tags" : tags_field});
    std::vector<JsonValue> lists;
    do {
      ASSIGN_OR_RETURN(const bool more, NextObject(fields, &lists));
      if (!more) return false;
      const int64_t line = line_;
      for (size_t i = 0; i < fields.size(); ++i) {
        if (lists[i].IsListOf(kStrings)) continue;
        return Fail(line, fields[i].spec_field, ": \"", Quote(fields[i].name),
            "\" is not a list of strings");
      }
      const size_t words = lists[0].items.size();
      sentence->words = std::move(lists[0].items);
      sentence->lines.assign(words, line);
      if (fields.size() == 1) continue;
      sentence->tags = std::move(lists[1].items);
      if (sentence->tags.size() != words)
        return Fail(line, "tags_field: ", sentence->tags.size(), " tags for ", words, " words");
      if (std::count(sentence->tags.begin(), sentence->tags.end(), "") > 0)
        return Fail(line, "tags_field: an empty tag");
    } while (sentence->words.empty());
    return true;
  }

 private:
  // Reads the members `fields` of the next object; all must be there.
  absl::StatusOr<bool> NextObject(
      const std::vector<Field>& fields, std::vector<JsonValue>* values) {
    ASSIGN_OR_RETURN(const bool more, NextText());
    if (!more) return false;
    std::vector<std::string> names, found;
    for (const Field& field : fields) {
      if (std::find(names.begin(), names.end(), field.name) == names.end())
        names.push_back(field.name);
    }
    std::vector<JsonValue> members;
    const absl::Status status = ParseJsonLine(text_, names, &members, &found);
    if (!status.ok()) return Fail(line_, status.message());
    values->clear();
    for (const Field& field : fields) {
      const auto at = std::find(names.begin(), names.end(), field.name) - names.begin();
      if (members[at].kind == JsonValue::kMissing) {
        return Fail(line_, field.spec_field, ": no field \"", Quote(field.name), "\"; there are ",
            ListNames(found));
      }
      values->push_back(members[at]);
    }
    return true;
  }

  // Reads the text of the next object into text_.
  absl::StatusOr<bool> NextText() {
    absl::StatusOr<bool> more = objects_.Next(
        lines_, [&](std::string* line) { return NextLine(line); }, &text_);
    line_ = objects_.line();
    return more;
  }

  std::string text_;
  int64_t line_ = 0;  // where text_ begins
  JsonObjects objects_;
};

}  // namespace

extern const Format kJsonlFormat = {DataSpec::JSONL, ".jsonl",
    Format::kTexts | Format::kLabelledTexts | Format::kSentences, WholeLines, OpenAs<JsonlReader>,
    kRowBytes, ".json"};

}  // namespace cloze
