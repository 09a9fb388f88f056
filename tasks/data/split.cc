#include "tasks/data/split.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

uint64_t SplitHash(const Split::Parts& parts) {
  Hasher hash;
  for (const absl::string_view part : parts) hash.AddText(part);
  return hash.Digest();
}

// True if the text is empty or white space.
bool IsEmptyText(const Split::Parts& parts) {
  return absl::c_all_of(parts, [](absl::string_view part) {
    for (size_t at = 0; at < part.size();) {
      const CodePoint c = CodePointAt(part, at);
      if (!IsSpace(c.value)) return false;
      at += c.size;
    }
    return true;
  });
}

bool IsBelow(uint64_t hash, float share) { return double(hash) * 0x1p-64 < share; }

}  // namespace

std::string PartOfSplit(const DataSpec& spec) {
  if (SplitShare(spec) <= 0) return "";
  return absl::StrCat(spec.share() > 0 ? " in" : " beside", " the held-out share of ",
      SplitShare(spec),
      " (equal texts stay together; use more rows, another share, or validation.files)");
}

void Split::Add(const Parts& parts, const std::string& label) {
  const uint64_t hash = SplitHash(parts);
  const bool counts = rule_ == 1 ? seen_.insert(hash).second : !IsEmptyText(parts);
  if (counts) by_label_[label].push_back(hash);
}

void Split::Choose() {
  if (rule_ == 1) return ChooseByRank();
  auto labels = std::exchange(by_label_, {});
  for (auto& [label, hashes] : labels) {
    absl::c_sort(hashes);
    hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
    kept_.insert(hashes.back());
  }
  for (const auto& [label, hashes] : labels) {
    const auto kept = [&](uint64_t hash) { return kept_.count(hash) > 0; };
    const auto first = absl::c_find_if_not(hashes, kept);
    if (hashes.size() > 1) held_.insert(first == hashes.end() ? hashes.front() : *first);
  }
}

void Split::ChooseByRank() {
  const auto labels = std::exchange(by_label_, {});
  const size_t texts = std::exchange(seen_, {}).size();
  if (labels.size() * 2 > texts) return;
  ranked_ = true;
  std::vector<std::pair<uint64_t, const std::string*>> rare;
  for (const auto& [label, all] : labels) {
    std::vector<uint64_t> hashes = all;
    std::sort(hashes.begin(), hashes.end());
    const size_t taken = std::min<size_t>(std::llround(share_ * hashes.size()), hashes.size() - 1);
    held_.insert(hashes.begin(), hashes.begin() + taken);
    for (size_t i = 0; taken == 0 && hashes.size() > 1 && i < hashes.size(); ++i)
      rare.emplace_back(hashes[i], &label);
  }
  std::sort(rare.begin(), rare.end());
  HashSet<const std::string*> had;
  for (const auto& [hash, label] : rare) {
    if (had.size() == static_cast<size_t>(std::llround(share_ * rare.size()))) break;
    if (had.insert(label).second) held_.insert(hash);
  }
}

bool Split::Reads(const Parts& parts) const {
  if (!splits()) return true;
  const uint64_t hash = SplitHash(parts);
  bool held = held_.count(hash) > 0;
  if (!held && !ranked_ && kept_.count(hash) == 0)
    held = IsBelow(hash, share_) && (rule_ == 1 || !IsEmptyText(parts));
  return held == reads_held_;
}

}  // namespace cloze
