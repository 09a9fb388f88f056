// Parsing with nlohmann's SAX interface: the handlers bound depth and memory, and see duplicates.
#include "core/base/json.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/charset.h"

namespace cloze {
namespace {

// The base of all handlers. A handler stops the parser by returning false.
class Sax : public nlohmann::json_sax<Json> {
 public:
  const std::string& error() const { return error_; }
  size_t error_at() const { return error_at_; }  // byte of a syntax error, from 1; else 0

  bool null() override { return Scalar(nullptr, "null"); }
  bool boolean(bool v) override { return Scalar(v, v ? "true" : "false"); }
  bool number_integer(number_integer_t v) override { return Scalar(v, absl::StrCat(v)); }
  bool number_unsigned(number_unsigned_t v) override { return Scalar(v, absl::StrCat(v)); }
  bool number_float(number_float_t v, const string_t& text) override { return Scalar(v, text); }
  bool string(string_t& v) override { return Scalar(std::move(v), ""); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Deeper() && Open(Json::object()); }
  bool start_array(size_t) override { return Deeper() && Open(Json::array()); }
  bool end_object() override {
    --depth_;
    Close();
    return true;
  }
  bool end_array() override { return end_object(); }
  bool parse_error(
      size_t position, const std::string&, const nlohmann::json::exception& e) override {
    constexpr int kSyntax = 101;
    error_at_ = position;
    return Fail(e.id == kSyntax ? "not valid JSON" : "a number is out of range");
  }

 protected:
  // Receives a scalar, and its spelling unless it is a string.
  virtual bool Scalar(Json value, absl::string_view text) = 0;
  // Receives a container, still empty, when it opens; depth() counts it already.
  virtual bool Open(Json container) = 0;
  virtual void Close() {}
  int depth() const { return depth_; }
  template <typename... Parts>
  bool Fail(const Parts&... parts) {
    if (error_.empty()) error_ = absl::StrCat(parts...);
    return false;
  }

 private:
  bool Deeper() {
    return ++depth_ <= kMaxJsonDepth || Fail("nested deeper than ", kMaxJsonDepth, " levels");
  }

  std::string error_;
  size_t error_at_ = 0;
  int depth_ = 0;
};

// Parses all of `text`. nlohmann takes a zero byte for the end.
bool Parse(absl::string_view text, Sax* sax, std::string* error) {
  const bool zero = text.find('\0') != absl::string_view::npos,
             parsed = !zero && Json::sax_parse(text.begin(), text.end(), sax);
  if (!parsed) *error = zero ? "contains a zero byte" : sax->error();
  return parsed;
}

// Builds the tree.
class TreeSax : public Sax {
 public:
  TreeSax(int64_t max_values, JsonList* list) : left_(max_values), list_(list) {}
  Json& root() { return root_; }

  bool key(string_t& name) override {
    if (open_.back() == listed_) {
      last_ = &list_->members.emplace_back(std::move(name), nullptr).second;
      return true;
    }
    const size_t before = depth() - 1;  // keys that lead to this object
    if (list_ != nullptr && before <= equal_ && before < list_->keys.size())
      equal_ = before + (name == list_->keys[before]);
    const auto [member, added] = open_.back()->emplace(name, nullptr);
    last_ = &*member;
    return added || Fail("member \"", Quote(name), "\" is given twice");
  }

 private:
  // Adds `value` to the innermost open container, and makes last_ point to it.
  bool Scalar(Json value, absl::string_view = "") override {
    if (--left_ < 0) return Fail("too many values");
    if (!open_.empty() && open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      last_ = &open_.back()->back();
    } else {
      *last_ = std::move(value);
    }
    return true;
  }
  bool Open(Json container) override {
    const bool object = container.is_object(), added = Scalar(std::move(container));
    open_.push_back(last_);
    if (object && equal_ > 0 && equal_ == list_->keys.size() && equal_ + 1 == open_.size())
      listed_ = last_;
    return added;
  }
  void Close() override { open_.pop_back(); }

  int64_t left_;
  JsonList* list_;
  const Json* listed_ = nullptr;  // the object at its keys
  size_t equal_ = 0;              // its first keys that lead to the current place
  Json root_;
  Json* last_ = &root_;
  std::vector<Json*> open_;
};

// Keeps the wanted members of an object.
class LineSax : public Sax {
 public:
  LineSax(const std::vector<std::string>& names, std::vector<JsonValue>* values,
      std::vector<std::string>* found)
      : names_(names), values_(values), found_(found) {}

  bool key(string_t& name) override {
    if (depth() != 1) return true;
    if (found_ != nullptr && found_->size() < 20) found_->push_back(name);
    const auto known = std::find(names_.begin(), names_.end(), name);
    wanted_ = known == names_.end() ? nullptr : &(*values_)[known - names_.begin()];
    return wanted_ == nullptr || wanted_->kind == JsonValue::kMissing ||
           Fail("member \"", Quote(name), "\" is given twice");
  }

 private:
  bool Scalar(Json value, absl::string_view spelled) override {
    if (depth() == 0) return Fail("expected a JSON object");
    if (wanted_ == nullptr || (depth() > 1 && wanted_->kind != JsonValue::kList)) return true;
    const JsonValue::Kind kind = value.is_string()    ? JsonValue::kString
                                 : value.is_number()  ? JsonValue::kNumber
                                 : value.is_boolean() ? JsonValue::kBoolean
                                                      : JsonValue::kNull;
    std::string text(spelled);
    if (value.is_string()) text = std::move(value.get_ref<std::string&>());
    if (depth() == 1) {
      wanted_->kind = kind;
      wanted_->text = std::move(text);
      return true;
    }
    if (wanted_->items.size() >= JsonValue::kMaxItems)
      return Fail("a list of more than ", JsonValue::kMaxItems, " items");
    wanted_->items.push_back(std::move(text));
    wanted_->item_kinds |= 1u << kind;
    return true;
  }
  bool Open(Json container) override {
    if (depth() == 1) return container.is_object() || Fail("expected a JSON object");
    if (wanted_ != nullptr)
      wanted_->kind = depth() == 2 && container.is_array() ? JsonValue::kList : JsonValue::kOther;
    return true;
  }

  const std::vector<std::string>& names_;
  std::vector<JsonValue>* values_;
  std::vector<std::string>* found_;
  JsonValue* wanted_ = nullptr;
};

}  // namespace

absl::StatusOr<Json> ParseJson(
    absl::string_view text, absl::string_view path, int64_t max_values, JsonList* list) {
  TreeSax sax(max_values, list);
  std::string error;
  if (!Parse(text, &sax, &error)) {
    const auto end = text.begin() + std::min(sax.error_at(), text.size());
    const std::string line =
        sax.error_at() == 0 ? "" : absl::StrCat(":", 1 + std::count(text.begin(), end, '\n'));
    return Error(Exit::kData, QuotePath(path), line, ": ", error);
  }
  if (!sax.root().is_object())
    return Error(Exit::kData, QuotePath(path), ": expected a JSON object");
  return std::move(sax.root());
}

const Json& JsonMember(const Json& object, const char* name) {
  static const Json kNull;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? kNull : *found;
}

const Json* JsonFields::Find(const char* field) const {
  const Json& value = JsonMember(object_, field);
  return value.is_null() ? nullptr : &value;
}

void JsonFields::Integer(
    const char* field, bool required, int64_t low, int64_t high, int32_t* out) {
  const Json* value = Find(field);
  if (value == nullptr) return required ? Fail(field, "missing") : void();
  const int64_t number = value->is_number_integer() ? value->get<int64_t>() : -1;
  if (number < low || number > high)  // an unsigned number over 2^63 becomes negative
    return Fail(field, "expected a whole number from ", low, " to ", high, ", found ",
        Quote(value->dump(-1, ' ', true)));
  *out = static_cast<int32_t>(number);
}

void JsonFields::Number(const char* field, double low, double high, float* out) {
  const Json* value = Find(field);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= low && number <= high))
    return Fail(field, "expected a number from ", low, " to ", high, ", found ",
        Quote(value->dump(-1, ' ', true)));
  *out = static_cast<float>(number);
}

std::string JsonFields::String(const char* field) {
  const Json* value = Find(field);
  if (value == nullptr) return "";
  if (!value->is_string()) Fail(field, "expected a string");
  return value->is_string() ? value->get<std::string>() : "";
}

bool JsonFields::Bool(const char* field, bool fallback) {
  const Json* value = Find(field);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) Fail(field, "expected true or false");
  return value->is_boolean() ? value->get<bool>() : fallback;
}

void JsonFields::AllowOnly(absl::Span<const absl::string_view> known) {
  for (const auto& [name, value] : object_.items()) {
    if (!absl::c_linear_search(known, name))
      Fail(Quote(name), "unknown member, ", Quote(value.dump(-1, ' ', true)), ": expected only ",
          absl::StrJoin(known, ", "));
  }
}

void JsonFields::AllowOnlyUnset(absl::Span<const absl::string_view> known) {
  for (const auto& [name, value] : object_.items()) {
    const bool unset = value.is_null() || value == false || value == "" ||
                       (value.is_structured() && value.empty());
    if (unset || absl::StartsWith(name, "_") || absl::c_linear_search(known, name)) continue;
    Fail(Quote(name), "unknown member, ", Quote(value.dump(-1, ' ', true)),
        ", which may change results (remove it if it has no meaning for this model)");
  }
}

void JsonFields::AllowValues(const char* field, std::initializer_list<Json> values) {
  const auto found = object_.find(field);
  if (found == object_.end() || absl::c_linear_search(values, *found)) return;
  const auto text = [](std::string* out, const Json& value) { out->append(value.dump()); };
  Fail(field, "is ", Quote(found->dump(-1, ' ', true)), ", which is not supported: expected ",
      absl::StrJoin(values, " or ", text));
}

absl::Status ParseJsonLine(absl::string_view line, const std::vector<std::string>& names,
    std::vector<JsonValue>* values, std::vector<std::string>* found) {
  values->assign(names.size(), {});
  LineSax sax(names, values, found);
  std::string error;
  if (Parse(line, &sax, &error)) return absl::OkStatus();
  if (sax.error_at() > 0) absl::StrAppend(&error, " at byte ", sax.error_at());
  if (!IsUtf8(line))
    absl::StrAppend(&error, " (JSON is UTF-8, but this is perhaps ", LikelyEncoding(line),
        ": convert the file with iconv)");
  return Error(Exit::kData, error);
}

std::string JsonString(absl::string_view text) {
  constexpr absl::string_view kShort = "\"\\\n\r\t", kLetters = "\"\\nrt";
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    const size_t letter = c.size == 1 ? kShort.find(text[at]) : kShort.npos;
    if (letter != kShort.npos) {
      absl::StrAppend(&out, "\\", kLetters.substr(letter, 1));
    } else if (!c.valid) {
      AppendUtf8(c.value, &out);
    } else if (MustEscape(c.value)) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<uint32_t>(c.value));
    } else {
      out.append(text.data() + at, c.size);
    }
    at += c.size;
  }
  out.push_back('"');
  return out;
}

std::string ToJsonLine(const OrderedJson& json) {
  if (json.is_object()) {
    const auto member = [](std::string* out, const OrderedJson::object_t::value_type& m) {
      absl::StrAppend(out, JsonString(m.first), ": ", ToJsonLine(m.second));
    };
    return absl::StrCat(
        "{", absl::StrJoin(json.get_ref<const OrderedJson::object_t&>(), ", ", member), "}");
  }
  if (json.is_array()) {
    const auto item = [](std::string* out, const OrderedJson& value) {
      out->append(ToJsonLine(value));
    };
    return absl::StrCat("[", absl::StrJoin(json, ", ", item), "]");
  }
  if (json.is_string()) return JsonString(json.get_ref<const std::string&>());
  return json.is_number_float() ? JsonNumber(json.get<double>()) : json.dump();
}

}  // namespace cloze
