// A SAX handler with bounded depth: nothing is kept of members that are not known.
#include "tools/input_json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "tools/output.h"

namespace cloze {
namespace {

constexpr int kMaxDepth = 64;

class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Handler(InputRecord* record) : record_(record) {}

  bool null() override { return Scalar("null"); }
  bool boolean(bool v) override { return Scalar(v ? "true" : "false"); }
  bool number_integer(number_integer_t v) override { return Integer(v, std::to_string(v)); }
  bool number_unsigned(number_unsigned_t v) override {
    return Integer(
        v > std::numeric_limits<int32_t>::max() ? -1 : static_cast<int64_t>(v), std::to_string(v));
  }
  bool number_float(number_float_t, const string_t& v) override { return Scalar(v); }
  bool binary(binary_t&) override { return false; }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool start_object(std::size_t) override { return Open(false); }
  bool start_array(std::size_t) override { return Open(true); }
  bool string(string_t& v) override;
  bool key(string_t& name) override;
  bool parse_error(
      std::size_t position, const std::string&, const nlohmann::json::exception& e) override {
    return Fail(e.id == 101 ? absl::StrCat("not valid JSON at byte ", position)
                            : "a number is out of range");
  }

  absl::Status Finish(bool parsed);

 private:
  enum Member { kOther, kText, kPair, kWords, kIds, kAdapter, kId };
  static Member MemberOf(const std::string& name);

  bool Fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
    return false;
  }
  bool FailMember(const char* expected) {
    return Fail(absl::StrCat("\"", name_, "\": ", expected, " expected"));
  }
  bool WrongKind();
  bool Scalar(const std::string& text);
  bool Integer(int64_t value, const std::string& text);
  bool Open(bool array);

  InputRecord* record_;
  Member member_ = kOther;
  std::string name_, error_;
  bool seen_[kId + 1] = {};
  int depth_ = 0;
};

Handler::Member Handler::MemberOf(const std::string& name) {
  static constexpr struct {
    const char* name;
    Member member;
  } kMembers[] = {{"text", kText}, {"text_a", kText}, {"text_pair", kPair}, {"text_b", kPair},
      {"words", kWords}, {"tokens", kWords}, {"ids", kIds}, {"id", kId}, {"adapter", kAdapter}};
  for (const auto& known : kMembers) {
    if (name == known.name) return known.member;
  }
  return kOther;
}

bool Handler::key(string_t& name) {
  if (depth_ != 1) return true;
  member_ = MemberOf(name);
  if (member_ == kOther) return true;
  name_ = name;
  if (std::exchange(seen_[member_], true))
    return Fail(absl::StrCat("\"", name_, "\" is given twice"));
  return true;
}

// A value whose type does not fit the member it stands in.
bool Handler::WrongKind() {
  switch (member_) {
    case kText:
    case kPair: return FailMember("a string");
    case kWords: return FailMember("a list of strings");
    case kIds: return FailMember("a list of token ids");
    case kAdapter: return true;  // only a string can be meant for us
    case kId: return FailMember("a string or number");
    case kOther: break;
  }
  return true;
}

bool Handler::Open(bool array) {
  if (depth_ >= kMaxDepth) return Fail(absl::StrCat("nested deeper than ", kMaxDepth));
  if (depth_ == 0 && array) return Fail("a JSON object expected");
  const bool list = array && depth_ == 1 && (member_ == kWords || member_ == kIds);
  if (depth_ > 0 && !list && !WrongKind()) return false;
  return ++depth_, true;
}

bool Handler::string(string_t& v) {
  if (depth_ == 0) return Fail("a JSON object expected");
  if (member_ == kWords && depth_ == 2) return record_->words.push_back(std::move(v)), true;
  if (member_ == kText && depth_ == 1) return record_->text = std::move(v), true;
  if (member_ == kPair && depth_ == 1) return record_->text_pair = std::move(v), true;
  if (member_ == kAdapter && depth_ == 1) return record_->adapter = std::move(v), true;
  if (member_ == kId && depth_ == 1) return record_->id = JsonString(v), true;
  return WrongKind();
}

bool Handler::Scalar(const std::string& text) {
  if (depth_ == 0) return Fail("a JSON object expected");
  if (member_ == kId && depth_ == 1) return record_->id = text, true;
  if (member_ == kPair && depth_ == 1 && text == "null") return seen_[kPair] = false, true;
  return WrongKind();
}

bool Handler::Integer(int64_t value, const std::string& text) {
  if (member_ != kIds || depth_ != 2) return Scalar(text);
  if (value < 0 || value > std::numeric_limits<int32_t>::max())
    return Fail(absl::StrCat("\"ids\": ", text, " is not a token id"));
  return record_->ids.push_back(static_cast<int32_t>(value)), true;
}

absl::Status Handler::Finish(bool parsed) {
  if (!parsed) return Error(Exit::kData, error_.empty() ? "not valid JSON" : error_);
  if (seen_[kText]) {
    record_->kind = seen_[kPair] ? InputRecord::Kind::kPair : InputRecord::Kind::kText;
  } else if (seen_[kPair]) {
    return Error(Exit::kData, "a second text without a first");
  } else if (seen_[kWords]) {
    record_->kind = InputRecord::Kind::kWords;
  } else if (seen_[kIds]) {
    record_->kind = InputRecord::Kind::kIds;
  } else {
    return Error(Exit::kData, "no member \"text\", \"words\" or \"ids\"");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseInputJson(const std::string& json, InputRecord* record) {
  if (absl::StrContains(json, '\0'))
    return Error(Exit::kData, "a zero byte");  // the parser would take it for the end
  Handler handler(record);
  return handler.Finish(nlohmann::json::sax_parse(json, &handler));
}

}  // namespace cloze
