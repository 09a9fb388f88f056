// The choice of the texts that are held out: `validation { share: 0.1 }`.
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

// Returns the hash of a text, which decides if it is held out. `parts`: the text, the two texts of
// a pair, or the words of a sentence. Equal texts stay together.
uint64_t SplitHash(const std::vector<absl::string_view>& parts);

// Returns the share of the texts that `spec` reads or leaves out; 0: no split.
inline float SplitShare(const DataSpec& spec) {
  return spec.share() > 0 ? spec.share() : spec.leave_out();
}

// Returns which part of the files `spec` reads, for messages that there are too few examples:
// " in the held-out share of 0.1", " beside the held-out share of 0.1", or "" for all.
std::string PartOfSplit(const DataSpec& spec);

// The texts that are held out: those with the smallest hashes, or after Stratify those it chose.
class Split {
 public:
  explicit Split(float share) : share_(share) {}
  // Adds a text of the data, for Stratify. If it occurs again, its first label counts.
  void Add(uint64_t hash, const std::string& label);
  // Chooses the share of the texts of each label, but never all of them. Labels with too few texts
  // for their share are pooled, and give at most one text each. Does nothing if there are more than
  // half as many labels as texts, as when labels are numbers.
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
