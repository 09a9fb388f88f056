#include "tasks/data_duplicates.h"

#include <map>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/hash.h"
#include "core/base/hash_map.h"
#include "core/base/text.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

// The first target of each sequence, and whether another one followed.
struct Seen {
  uint64_t target = 0;
  bool conflicts = false;
};
using SeenSequences = HashMap<uint64_t, Seen>;

template <typename T>
uint64_t HashOf(const std::vector<T>& values, uint64_t seed) {
  return Hash64(values.data(), static_cast<int64_t>(values.size() * sizeof(T)), seed);
}

// Adds the examples of a store; counts those that `other` has too.
absl::Status AddStore(const ExampleStore& store, const SeenSequences* other,
    const std::atomic<bool>* stop, SeenSequences* seen, DataDuplicates::SplitCounts* split,
    int64_t* leaked) {
  Example example;
  for (int64_t i = 0; i < store.size(); ++i) {
    RETURN_IF_ERROR(CheckStopped(stop, "comparing the data"));
    RETURN_IF_ERROR(store.Read(i, &example));
    const uint64_t key = HashOf(example.ids, example.second),
                   target = HashOf(example.labels, HashOf(example.values, 0));
    const auto [entry, added] = seen->try_emplace(key, Seen{target});
    ++split->examples;
    split->repeated += !added;
    if (other != nullptr) *leaked += static_cast<int64_t>(other->count(key));
    if (entry->second.target == target || entry->second.conflicts) continue;
    entry->second.conflicts = true;
    ++split->conflicting;
  }
  return absl::OkStatus();
}

// The label in small letters, without white space.
std::string Folded(const std::string& label) {
  std::string folded;
  for (const char32_t c : CodePoints(label)) {
    if (IsSpace(c)) continue;
    for (const char32_t lower : Lowercase(c)) AppendUtf8(lower, &folded);
  }
  return folded;
}

}  // namespace

absl::StatusOr<DataDuplicates> FindDuplicates(
    const ExampleStore& train, const ExampleStore* validation, const std::atomic<bool>* stop) {
  DataDuplicates found;
  const int64_t size = train.size() + (validation != nullptr ? validation->size() : 0);
  if (size > kMaxCompared) return found;
  SeenSequences in_train, in_validation;
  RETURN_IF_ERROR(AddStore(train, nullptr, stop, &in_train, &found.train, nullptr));
  if (validation == nullptr) return found;
  RETURN_IF_ERROR(
      AddStore(*validation, &in_train, stop, &in_validation, &found.validation, &found.leaked));
  return found;
}

std::vector<std::vector<std::string>> LabelVariants(const std::vector<std::string>& labels) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const std::string& label : labels) groups[Folded(label)].push_back(label);
  std::vector<std::vector<std::string>> variants;
  for (auto& [folded, group] : groups) {
    if (group.size() > 1) variants.push_back(std::move(group));
  }
  return variants;
}

std::vector<std::string> LabelRepairs(const std::vector<std::string>& labels,
    absl::FunctionRef<int64_t(const std::string&)> count_of) {
  std::vector<std::string> lines;
  bool trims = false;
  for (const auto& group : LabelVariants(labels)) {
    std::map<std::string, int64_t> counts;  // by the label without white space around it
    for (const std::string& label : group) {
      const std::string trimmed(absl::StripAsciiWhitespace(label));
      counts[trimmed] += count_of(label);
      trims = trims || trimmed != label;
    }
    const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
    const std::string& best = absl::c_max_element(counts, less)->first;
    for (const auto& [label, count] : counts) {
      if (label == best) continue;
      lines.push_back(absl::StrCat(
          "label_map: \"", absl::Utf8SafeCEscape(label), "=", absl::Utf8SafeCEscape(best), "\""));
    }
  }
  if (trims) lines.insert(lines.begin(), "trim_labels: true");
  return lines;
}

std::vector<std::string> DescribeDuplicates(
    const DataDuplicates& duplicates, const std::vector<std::string>& labels) {
  std::vector<std::string> lines;
  const auto say = [&](const auto&... parts) { lines.push_back(absl::StrCat(parts...)); };
  for (const auto& [name, split] :
      {std::pair("train", duplicates.train), std::pair("validation", duplicates.validation)}) {
    if (split.repeated > 0)
      say(name, ": ", split.repeated, " of ", Counted(split.examples, "example"),
          " have the same tokens as an earlier one");
    if (split.conflicting > 0)
      say(name, ": ", Counted(split.conflicting, "text"),
          split.conflicting == 1 ? " occurs" : " occur", " with different labels");
  }
  if (duplicates.leaked > 0)
    say("validation: ", duplicates.leaked, " of ",
        Counted(duplicates.validation.examples, "example"),
        " are also in train, so the metrics are optimistic");
  for (const auto& group : LabelVariants(labels))
    say("labels that differ only in case or white space: ", ListNames(group));
  return lines;
}

}  // namespace cloze
