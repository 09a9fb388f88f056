// JSON from files of others.
#include "core/tensor/json.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace cloze {
namespace {

constexpr size_t kMaxDepth = 64;

// Builds nothing; only looks for what we refuse.
class StrictSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::string error;
  std::size_t at = 0;  // byte of a syntax error, from 1

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return Open(); }
  bool start_array(std::size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    return members_.back().insert(name).second
               ? true
               : Fail(absl::StrCat("member ", Quote(name), " comes twice"));
  }
  bool parse_error(
      std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    at = position;
    return Fail("not valid JSON");
  }

 private:
  bool Open() {
    members_.emplace_back();
    return members_.size() <= kMaxDepth ? true : Fail("nested too deeply");
  }
  bool Close() {
    members_.pop_back();
    return true;
  }
  bool Fail(std::string what) {
    error = std::move(what);
    return false;
  }
  std::vector<std::set<std::string>> members_;
};

}  // namespace

absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, absl::string_view path) {
  StrictSax sax;
  const bool zero =
      text.find('\0') != absl::string_view::npos;  // the parser would take it for the end
  if (zero) sax.error = "has a zero byte";
  if (zero || !nlohmann::json::sax_parse(text.begin(), text.end(), &sax)) {
    const size_t end = std::min<size_t>(sax.at, text.size());
    const std::string line =
        sax.at == 0 ? ""
                    : absl::StrCat(":", 1 + std::count(text.begin(), text.begin() + end, '\n'));
    return Error(Exit::kData, absl::StrCat(QuotePath(path), line, ": ", sax.error));
  }
  nlohmann::json root =
      nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object())
    return Error(Exit::kData, absl::StrCat(QuotePath(path), ": a JSON object expected"));
  return root;
}

}  // namespace cloze
