#include "tasks/data/split.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/hash.h"

namespace cloze {

uint64_t SplitHash(const std::vector<absl::string_view>& parts) {
  Hasher hash;
  for (const absl::string_view part : parts) hash.AddText(part);
  return hash.Digest();
}

std::string PartOfSplit(const DataSpec& spec) {
  if (SplitShare(spec) <= 0) return "";
  return absl::StrCat(spec.share() > 0 ? " in" : " beside", " the held-out share of ",
      SplitShare(spec),
      " (equal texts stay together; more rows, another share or files for "
      "validation help)");
}

void Split::Add(uint64_t hash, const std::string& label) {
  if (seen_.insert(hash).second) by_label_[label].push_back(hash);
}

void Split::Stratify() {
  const auto labels = std::exchange(by_label_, {});
  const size_t texts = std::exchange(seen_, {}).size();
  if (labels.size() * 2 > texts) return;
  stratified_ = true;
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
  std::unordered_set<const std::string*> had;
  for (const auto& [hash, label] : rare) {
    if (had.size() == static_cast<size_t>(std::llround(share_ * rare.size()))) break;
    if (had.insert(label).second) held_.insert(hash);
  }
}

bool Split::Holds(uint64_t hash) const {
  return stratified_ ? held_.count(hash) > 0 : double(hash) * 0x1p-64 < share_;
}

}  // namespace cloze
