// SentencePiece's precompiled table of replacements.
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/base/text.h"
#include "core/text/tokenizer/text_step.h"

namespace cloze {
namespace {

// Gives each code point the source of the one `lag` code points before it.
void LagSources(int64_t lag, NormalText* text) {
  if (lag == 0 || !text->tracked) return;
  std::vector<Span> old;  // of code points
  for (size_t at = 0; at < text->text.size();) {
    const size_t size = CodePointAt(text->text, at).size;
    old.push_back(text->source[at]);
    const auto index = static_cast<int64_t>(old.size()) - 1;
    std::fill_n(text->source.begin() + at, size, old[std::max<int64_t>(index - lag, 0)]);
    at += size;
  }
}

class Charsmap final : public TextStep {
 public:
  Charsmap(std::vector<uint32_t> units, std::string pool)
      : units_(std::move(units)), pool_(std::move(pool)) {
    for (size_t b = 0; b < ascii_.size(); ++b) {
      const char byte = static_cast<char>(b);
      ascii_[b] = {&byte, 1};
      if (const char* with = Find({&byte, 1})) ascii_[b] = with;
      same_[b] = byte != '\r' && ascii_[b] == absl::string_view(&byte, 1);
    }
  }

  void Apply(NormalText* text) const override;

 private:
  // Returns the replacement of the shortest prefix of `key` that has one, or null.
  const char* Find(absl::string_view key) const;
  // Returns the end of the grapheme cluster (UAX 29) at text[at].
  static size_t ClusterEnd(absl::string_view text, size_t at);

  const std::vector<uint32_t> units_;
  const std::string pool_;              // ends with a NUL
  std::array<std::string, 128> ascii_;  // replacements
  std::array<bool, 256> same_ = {};     // ASCII that stays as it is, unless a mark follows
};

const char* Charsmap::Find(absl::string_view key) const {
  const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); };
  size_t at = offset(units_[0]);
  for (const char byte : key) {
    const auto label = static_cast<uint8_t>(byte);
    at ^= label;
    if (label == 0 || at >= units_.size() || (units_[at] & 0x800000FF) != label) return nullptr;
    const bool leaf = (units_[at] >> 8 & 1) != 0;
    at ^= offset(units_[at]);
    if (!leaf) continue;
    const size_t value = at < units_.size() ? units_[at] & 0x7FFFFFFF : pool_.size();
    // A replacement that starts inside a code point would not be UTF-8.
    return value < pool_.size() && (pool_[value] & 0xC0) != 0x80 ? &pool_[value] : nullptr;
  }
  return nullptr;
}

size_t Charsmap::ClusterEnd(absl::string_view text, size_t at) {
  CodePoint c = CodePointAt(text, at);
  utf8proc_int32_t state = 0;
  for (at += c.size; at < text.size(); at += c.size) {
    const auto before = static_cast<utf8proc_int32_t>(c.value);
    c = CodePointAt(text, at);
    if (utf8proc_grapheme_break_stateful(before, static_cast<utf8proc_int32_t>(c.value), &state))
      break;
  }
  return at;
}

void Charsmap::Apply(NormalText* text) const {
  const std::string& old = text->text;
  TextEdit edit(text);
  // Hugging Face charges code points that are dropped at the start to those that follow.
  size_t dropped = 0;  // bytes
  int64_t lag = 0;     // code points; -1: they have been charged
  const auto charge = [&] {
    if (lag >= 0) LagSources(std::exchange(lag, -1), text);
  };
  const auto replace = [&](size_t at, size_t bytes, const char* with) {
    if (lag >= 0 && at == dropped && *with == '\0') {
      dropped += bytes;
      lag += CountCodePoints(absl::string_view(old).substr(at, bytes));
    } else {
      charge();
    }
    edit.KeepTo(at);
    edit.Replace(bytes, with);
  };
  for (size_t at = 0, begin = 0; at < old.size(); begin = at) {
    while (at < old.size() && same_[static_cast<uint8_t>(old[at])]) ++at;
    if (at == old.size()) break;
    const auto byte = static_cast<uint8_t>(old[at]);
    const uint8_t next = at + 1 < old.size() ? old[at + 1] : 0;
    if (byte < 0x80 && next < 0x80 && byte != '\r') {  // a cluster by itself
      replace(at, 1, ascii_[byte].c_str());
      ++at;
      continue;
    }
    // The character before it may be in its cluster.
    if (byte >= 0x80 && at > begin) --at;
    const size_t end = ClusterEnd(old, at);
    const absl::string_view cluster(old.data() + at, end - at);
    const char* with = cluster.size() < 6 ? Find(cluster) : nullptr;
    if (with != nullptr) {
      replace(at, cluster.size(), with);
      at = end;
    }
    while (at < end) {
      const size_t size = CodePointAt(old, at).size;
      with = Find({old.data() + at, size});
      if (with != nullptr) replace(at, size, with);
      at += size;
    }
  }
  charge();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TextStep>> MakeCharsmap(std::string table) {
  uint32_t bytes = 0;
  if (table.size() >= sizeof(bytes)) std::memcpy(&bytes, table.data(), sizeof(bytes));
  if (bytes < 4 || bytes % 4 != 0 || bytes > table.size() - sizeof(bytes)) {
    return Error(Exit::kData, "charsmap of ", table.size(), " bytes: array of ", bytes,
        ": expected a multiple of 4 bytes inside it (is it cut off?)");
  }
  std::vector<uint32_t> units(bytes / 4);
  std::memcpy(units.data(), table.data() + sizeof(bytes), bytes);
  std::string pool = table.substr(sizeof(bytes) + bytes);
  if (pool.empty() || pool.back() != '\0' || !IsUtf8(pool))
    return Error(Exit::kData, "charsmap: replacements: expected UTF-8 that ends with a NUL");
  return std::make_shared<Charsmap>(std::move(units), std::move(pool));
}

}  // namespace cloze
