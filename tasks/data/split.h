// Which texts are held out: `validation { share: 0.1 }`.
#ifndef CLOZE_TASKS_DATA_SPLIT_H_
#define CLOZE_TASKS_DATA_SPLIT_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/task.pb.h"

namespace cloze {

// Returns the hash of a text that decides where it goes; of a pair, or of the words of a sentence,
// with all parts. Equal texts stay together.
uint64_t SplitHash(const std::vector<absl::string_view>& parts);

// Returns the share of the texts that `spec` reads or leaves out; 0: no split.
inline float SplitShare(const DataSpec& spec) {
  return spec.share() > 0 ? spec.share() : spec.leave_out();
}

// The texts that are held out. By hash alone until Stratify: those with the smallest hashes.
class Split {
 public:
  explicit Split(float share) : share_(share) {}
  // Adds a text of the data, for Stratify. The label of its first occurrence counts.
  void Add(uint64_t hash, const std::string& label);
  // Takes the share of each label, but leaves one text of each; rare labels are taken together.
  // Labels that are mostly unique, such as numbers, do not count.
  void Stratify();
  bool Holds(uint64_t hash) const;

 private:
  float share_;
  bool stratified_ = false;
  std::map<std::string, std::vector<uint64_t>> by_label_;
  std::unordered_set<uint64_t> seen_, held_;
};

// True if `spec` reads the text of this hash.
inline bool IsRead(const DataSpec& spec, const Split& split, uint64_t hash) {
  return SplitShare(spec) <= 0 || split.Holds(hash) == (spec.share() > 0);
}

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_SPLIT_H_
