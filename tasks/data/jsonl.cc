// JSONL files: one object per line, or an array of objects, of which only the wanted members are
// kept.
#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "core/base/json.h"
#include "tasks/data/format.h"

namespace cloze {
namespace {

constexpr uint32_t kStrings = 1u << JsonValue::kString,
                   kLabels = kStrings | 1u << JsonValue::kNumber | 1u << JsonValue::kBoolean;

class JsonlReader : public FileReader {
 public:
  using FileReader::FileReader;

  absl::StatusOr<bool> NextRow(Row* row) override {
    std::vector<JsonValue> members;
    ASSIGN_OR_RETURN(const bool more, NextObject(request_.fields, &members));
    if (!more) return false;
    row->line = line_;
    row->values.clear();
    row->items.clear();
    for (size_t i = 0; i < members.size(); ++i) {
      const auto& [spec_field, name, list] = request_.fields[i];
      JsonValue& value = members[i];
      const bool label = spec_field == "label_field";
      const bool scalar = (1u << value.kind & (label ? kLabels : kStrings)) != 0;
      if (!scalar && !(list && value.IsListOf(label ? kLabels : kStrings))) {
        return Fail(row->line, spec_field, ": \"", Quote(name), "\" is not a string",
            label ? ", number or boolean" : "", list ? ", or a list of them" : "");
      }
      std::vector<std::string> items =
          scalar ? std::vector<std::string>{value.text} : std::move(value.items);
      if (label && list) row->list = std::move(items);
      if (request_.labels == Labels::kGroups) row->items.push_back(std::move(items));
      row->values.push_back(std::move(value.text));
    }
    if (request_.keep_lines) row->cells = {text_};
    return true;
  }

  absl::StatusOr<bool> NextRecord(bool wait, Record* record) override {
    if (!wait) {
      ASSIGN_OR_RETURN(const bool ready, Ready());
      if (!ready) return false;
    }
    const auto next_line = [&](std::string* line) {
      return NextLine(wait || in_array_, line, record);
    };
    ASSIGN_OR_RETURN(const bool more, NextText(next_line));
    if (!more) return false;
    record->line = line_;
    if (!record->wrong.ok()) return true;
    record->wrong =
        Annotate(ParseJsonRecord(std::move(text_), request_.record, request_.spec, record),
            QuotePath(path()), ":", record->line);
    return true;
  }

  absl::StatusOr<bool> NextSentence(TaggedSentence* sentence) override {
    const std::string &words_field = request_.spec.words_field(),
                      &tags_field = request_.spec.tags_field();
    std::vector<Field> fields = {{"words_field", words_field.empty() ? "tokens" : words_field}};
    if (request_.labels == Labels::kRequired)
      fields.push_back({"tags_field", tags_field.empty() ? "tags" : tags_field});
    std::vector<JsonValue> lists;
    do {
      ASSIGN_OR_RETURN(const bool more, NextObject(fields, &lists));
      if (!more) return false;
      const int64_t line = line_;
      for (size_t i = 0; i < fields.size(); ++i) {
        if (lists[i].IsListOf(kStrings)) continue;
        return Fail(line, fields[i].spec_field, ": \"", Quote(fields[i].name),
            "\" is not a list of strings",
            lists[i].IsListOf(1u << JsonValue::kNumber)
                ? " (datasets: write names in place of numbers, with int2str)"
                : "");
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
    ASSIGN_OR_RETURN(const bool more, NextText([&](std::string* line) { return NextLine(line); }));
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

  // Reads a line into its argument; false at the end of the file.
  using ReadLine = absl::FunctionRef<absl::StatusOr<bool>(std::string*)>;

  // Reads the text of the next object into text_; in a file without an array, the next line that is
  // not blank. kData if an array is not closed or has other elements; ParseJsonLine finds what is
  // wrong inside objects.
  absl::StatusOr<bool> NextText(ReadLine next_line) {
    while (!in_array_) {
      ASSIGN_OR_RETURN(const bool more, next_line(&text_));
      if (!more) return false;
      line_ = lines_.line_number();
      if (IsBlank(text_)) continue;
      const size_t first = text_.find_first_not_of(" \t");
      in_array_ = !had_text_ && text_[first] == '[';
      had_text_ = true;
      if (!in_array_) return true;
      rest_ = text_.substr(first + 1);
    }
    return NextElement(next_line);
  }

  absl::StatusOr<bool> NextElement(ReadLine next_line) {
    text_.clear();
    bool quoted = false, escaped = false;  // inside a string; after a backslash
    for (int64_t depth = 0;; ++at_) {
      while (at_ >= rest_.size()) {
        ASSIGN_OR_RETURN(const bool more, next_line(&rest_));
        at_ = 0;
        if (!more && *next_ == '\0') return false;
        if (!more) return Fail(line_, "the array that begins the file is not closed: expected ]");
        if (depth > 0) text_ += ' ';
      }
      const char c = rest_[at_];
      if (depth == 0) {
        if (c == ' ' || c == '\t' || c == '\r') continue;
        line_ = lines_.line_number();
        if (!absl::StrContains(next_, c))
          return Fail(line_, "expected an array of objects with commas between them");
        next_ = c == '{' ? ",]" : c == ',' ? "{" : "";
        if (c != '{') continue;
      }
      text_ += c;
      if (static_cast<int64_t>(text_.size()) > kRowBytes)
        return Fail(line_, "the object is longer than ", kRowBytes, " bytes");
      depth += quoted ? 0 : (c == '{' || c == '[') - (c == '}' || c == ']');
      quoted = quoted != (c == '"' && !escaped);
      escaped = quoted && c == '\\' && !escaped;
      if (depth > 0) continue;
      ++at_;
      return true;
    }
  }

  std::string text_;  // of the object
  int64_t line_ = 0;  // where it begins
  bool had_text_ = false, in_array_ = false;
  // In an array: the line being read, the position in it, and the characters allowed next.
  std::string rest_;
  size_t at_ = 0;
  const char* next_ = "{]";
};

}  // namespace

extern const Format kJsonlFormat = {DataSpec::JSONL, ".jsonl",
    Format::kTexts | Format::kLabelledTexts | Format::kSentences, WholeLines, OpenAs<JsonlReader>,
    kRowBytes, ".json"};

}  // namespace cloze
