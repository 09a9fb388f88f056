// JSON: a strict parser for files, a flat reader for lines of data, and writers.
#ifndef CLOZE_CORE_BASE_JSON_H_
#define CLOZE_CORE_BASE_JSON_H_

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace cloze {

using Json = nlohmann::json;                 // members sorted by name: for reading and for files
using OrderedJson = nlohmann::ordered_json;  // members in the order of insertion: for output

inline constexpr int kMaxJsonDepth = 64;

// The members of one object in the order of the file; Json would sort them. There may be many.
struct JsonList {
  std::vector<std::string> keys;  // path from the root to the object
  std::vector<std::pair<std::string, Json>> members;
};

// Parses a file that holds one object. kData, with `path` and the line of a syntax error, for
// invalid JSON, another type, a zero byte, a duplicate member, a depth over kMaxJsonDepth or more
// than max_values values. A byte order mark is allowed. If `list` is not null, the members of the
// object at list->keys (at least one key), duplicates included, go to list->members, and that
// object is empty in the result.
absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view path,
    int64_t max_values = 10'000'000, JsonList* list = nullptr);

// Returns the member `name` of `object`; a JSON null when there is none or `object` is no object.
const Json& JsonMember(const Json& object, const char* name);

// Reads the members of one object and checks their types. After the first error, which status()
// keeps, further reads are allowed and record no other error. A member that is null counts as
// missing.
class JsonFields {
 public:
  // `object` must outlive this; `path` names its file in messages.
  JsonFields(const Json& object, absl::string_view path) : object_(object), path_(path) {}

  const absl::Status& status() const { return status_; }
  // Records "path: field: what" as kData unless there is an error already.
  template <typename... Parts>
  void Fail(absl::string_view field, const Parts&... what) {
    if (status_.ok()) status_ = Error(Exit::kData, QuotePath(path_), ": ", field, ": ", what...);
  }

  // Returns a reader of the object in `field`; its messages name the field. Pass its status to
  // Take() afterwards.
  JsonFields Part(absl::string_view field, const Json& object) const {
    return JsonFields(object, absl::StrCat(path_, ": ", field));
  }
  // Records the error of a part unless there is an error already.
  void Take(const absl::Status& status) { status_.Update(status); }

  // Returns the member, or nullptr when it is missing.
  const Json* Find(const char* field) const;
  // True if the member is there and null.
  bool IsNull(const char* field) const {
    const auto found = object_.find(field);
    return found != object_.end() && found->is_null();
  }
  // Leave *out unchanged when the member is missing; an error when it is required, of another type,
  // or outside low ... high. Requires low >= 0 for Integer.
  void Integer(const char* field, bool required, int64_t low, int64_t high, int32_t* out);
  void Number(const char* field, double low, double high, float* out);
  // Return "" or `fallback` if the member is missing; another type is also recorded as an error.
  std::string String(const char* field);
  bool Bool(const char* field, bool fallback);

  // Records the first member that is not in `known`: the members that a reader understands and
  // those that cannot change a result.
  void AllowOnly(absl::Span<const absl::string_view> known);
  // Records the first member that is not in `known`, unless it is null, false, an empty string,
  // list or object, or its name begins with '_'. For files to which any program adds settings.
  void AllowOnlyUnset(absl::Span<const absl::string_view> known);
  // Records a member that has another value than one of `values`; it may be missing.
  void AllowValues(const char* field, std::initializer_list<Json> values);

 private:
  const Json& object_;
  std::string path_;
  absl::Status status_;
};

// One member of an object: scalars and flat lists with their content, other values by kind only.
struct JsonValue {
  enum Kind { kMissing, kNull, kBoolean, kNumber, kString, kList, kOther };
  static constexpr int64_t kMaxItems = 1'000'000;

  Kind kind = kMissing;
  std::string text;                // of a scalar: numbers as they are spelled, "true", "null"
  std::vector<std::string> items;  // of a kList, whose items are all scalars
  uint32_t item_kinds = 0;         // bit 1 << kind for each kind of item

  // True for a list whose items are all of the `kinds` (bits).
  bool IsListOf(uint32_t kinds) const { return kind == kList && (item_kinds & ~kinds) == 0; }
};

// Reads the members `names` of the object in `line` into *values (one for each name, in their
// order) and skips all others without keeping them. *found, unless null, receives the names of the
// first 20 members. kData, without the file and line, for invalid JSON, another type, a zero byte,
// a depth over kMaxJsonDepth, one of `names` twice, or a list of more than kMaxItems.
absl::Status ParseJsonLine(absl::string_view line, const std::vector<std::string>& names,
    std::vector<JsonValue>* values, std::vector<std::string>* found = nullptr);

// Returns `text` as a JSON string with its quotes (RFC 8259). Each maximal invalid sequence of
// UTF-8 becomes one U+FFFD, as in CodePoint, so that offsets fit. MustEscape characters are
// escaped.
std::string JsonString(absl::string_view text);

// Returns the shortest decimal that reads back as the same number; "null" for NaN and infinities,
// which JSON does not have.
template <typename Float>
std::string JsonNumber(Float value) {
  return std::isfinite(value) ? Shortest(value) : "null";
}

// Returns `json` on one line, as {"a": 1, "b": [2, 3]}, with JsonString and JsonNumber. Use
// Decimal(x) of core/base/text.h for floats.
std::string ToJsonLine(const OrderedJson& json);

// Returns `json` indented by two spaces with a newline at the end: the form of files.
template <typename AnyJson>
std::string ToJsonText(const AnyJson& json) {
  return json.dump(2, ' ', false, AnyJson::error_handler_t::replace) + "\n";
}

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_JSON_H_
