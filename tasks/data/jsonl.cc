// JSONL files: one object a line, read by a SAX handler that keeps only the wanted members and
// bounds the depth.
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "tasks/data/rows.h"

namespace cloze {
namespace {

constexpr int kMaxDepth = 64;
constexpr int64_t kMaxItems = 1000000;

// A wanted member's value.
struct Value {
  enum Kind { kMissing, kString, kNumber, kBoolean, kList, kOther };
  Kind kind = kMissing;
  std::string text;                // kString, kNumber, kBoolean
  std::vector<std::string> items;  // kList, as long as all are strings (for a field that may be a
                                   // list: or numbers or booleans)
};

class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Handler(const std::vector<Field>& fields) : fields_(fields), values_(fields.size()) {}

  bool null() override { return Scalar(Value::kOther, ""); }
  bool boolean(bool v) override { return Scalar(Value::kBoolean, v ? "true" : "false"); }
  bool number_integer(number_integer_t v) override {
    return Scalar(Value::kNumber, std::to_string(v));
  }
  bool number_unsigned(number_unsigned_t v) override {
    return Scalar(Value::kNumber, std::to_string(v));
  }
  bool number_float(number_float_t, const string_t& v) override {
    return Scalar(Value::kNumber, v);
  }
  bool string(string_t& v) override { return Scalar(Value::kString, std::move(v)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(Value::kOther); }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override {
    return depth_ == 0 ? Fail("a JSON object expected") : Open(Value::kList);
  }
  bool end_array() override { return --depth_, true; }

  bool key(string_t& name) override {
    if (depth_ != 1) return true;
    if (names_.size() < 20) names_.push_back(name);
    wanted_.clear();
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].name != name) continue;
      if (values_[i].kind != Value::kMissing)
        return Fail(absl::StrCat(fields_[i].spec_field, ": \"", Quote(name), "\" occurs twice"));
      wanted_.push_back(&values_[i]);
    }
    return true;
  }
  bool parse_error(
      std::size_t position, const std::string&, const nlohmann::json::exception& e) override {
    return Fail(e.id == 101 ? absl::StrCat("not valid JSON at byte ", position)
                            : "a number is out of range");
  }

  const std::string& error() const { return error_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  bool Fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
    return false;
  }
  bool Scalar(Value::Kind kind, std::string text) {
    if (depth_ == 0) return Fail("a JSON object expected");
    for (Value* value : wanted_) {
      if (depth_ == 1) {
        value->kind = kind;
        value->text = text;
      } else if (IsItem(kind, fields_[value - values_.data()]) && depth_ == 2 &&
                 value->kind == Value::kList) {
        if (value->items.size() >= kMaxItems)
          return Fail(absl::StrCat("a list of more than ", kMaxItems, " strings"));
        value->items.push_back(text);
      } else {
        value->kind = Value::kOther;
      }
    }
    return true;
  }
  static bool IsItem(Value::Kind kind, const Field& field) {
    return kind == Value::kString ||
           (field.list && (kind == Value::kNumber || kind == Value::kBoolean));
  }
  bool Open(Value::Kind kind) {
    if (depth_ >= kMaxDepth) return Fail(absl::StrCat("nested deeper than ", kMaxDepth));
    for (Value* value : wanted_) value->kind = depth_ == 1 ? kind : Value::kOther;
    ++depth_;
    return true;
  }

  const std::vector<Field>& fields_;
  std::vector<Value> values_;
  std::vector<Value*> wanted_;
  std::vector<std::string> names_;
  std::string error_;
  int depth_ = 0;
};

// Parses `json` into the handler's values; all wanted members must be there.
absl::Status Parse(const std::string& path, int64_t line, const std::string& json,
    const std::vector<Field>& fields, Handler* handler) {
  if (absl::StrContains(json, '\0'))
    return DataError(path, line, "a zero byte");  // the parser would take it for the end
  if (!nlohmann::json::sax_parse(json, handler)) return DataError(path, line, handler->error());
  for (size_t i = 0; i < fields.size(); ++i) {
    if (handler->values()[i].kind != Value::kMissing) continue;
    return DataError(path, line,
        absl::StrCat(fields[i].spec_field, ": no field \"", Quote(fields[i].name), "\"; there are ",
            ListNames(handler->names())));
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
    values->assign(1, text_);
    if (fields_.empty()) return true;
    Handler handler(fields_);
    RETURN_IF_ERROR(Parse(reader_.path(), line(), text_, fields_, &handler));
    values->resize(fields_.size());
    for (size_t i = 0; i < fields_.size(); ++i) {
      const Value& value = handler.values()[i];
      const bool label = fields_[i].spec_field == "label_field", list = fields_[i].list;
      const bool scalar =
          value.kind == Value::kString ||
          (label && (value.kind == Value::kNumber || value.kind == Value::kBoolean));
      if (!scalar && !(list && value.kind == Value::kList)) {
        return DataError(reader_.path(), line(),
            absl::StrCat(fields_[i].spec_field, ": \"", Quote(fields_[i].name),
                "\" is not a string", label ? ", number or boolean" : "",
                list ? ", or a list of them" : ""));
      }
      (*values)[i] = value.text;
      if (list) list_ = scalar ? std::vector<std::string>{value.text} : value.items;
      has_list_ |= list;
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

}  // namespace

absl::StatusOr<std::unique_ptr<RowReader>> OpenJsonl(
    const std::string& path, std::vector<Field> fields) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path, kRowBytes));
  return std::make_unique<JsonlReader>(std::move(reader), std::move(fields));
}

absl::Status ParseTaggedJson(const std::string& path, int64_t line, const std::string& json,
    const std::vector<Field>& fields, TaggedSentence* sentence) {
  Handler handler(fields);
  RETURN_IF_ERROR(Parse(path, line, json, fields, &handler));
  for (size_t i = 0; i < fields.size(); ++i) {
    if (handler.values()[i].kind == Value::kList) continue;
    return DataError(path, line,
        absl::StrCat(
            fields[i].spec_field, ": \"", Quote(fields[i].name), "\" is not a list of strings"));
  }
  sentence->words = handler.values()[0].items;
  sentence->lines.assign(sentence->words.size(), line);
  if (fields.size() == 1) return absl::OkStatus();
  sentence->tags = handler.values()[1].items;
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

}  // namespace cloze
