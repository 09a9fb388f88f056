// The choice of the texts that are held out: `validation { share: 0.1 }`.
#ifndef CLOZE_TASKS_DATA_SPLIT_H_
#define CLOZE_TASKS_DATA_SPLIT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/hash_map.h"
#include "proto/task.pb.h"

namespace cloze {

// Returns the share of the texts that `spec` reads or leaves out; 0: no split.
inline float SplitShare(const DataSpec& spec) {
  return spec.share() > 0 ? spec.share() : spec.leave_out();
}

// Returns which part of the files `spec` reads, for messages that there are too few examples:
// " in the held-out share of 0.1", " beside the held-out share of 0.1", or "" for all.
std::string PartOfSplit(const DataSpec& spec);

// The texts that are held out: those whose hash is below the share, so that the choice depends on
// nothing but the text; and of labels, see Choose. share_rule 1, of runs begun by earlier versions,
// holds out empty texts too, and the exact share of each label.
//
// `parts` of a text: the text, the two texts of a pair, or the words of a sentence. Equal texts
// stay together.
class Split {
 public:
  using Parts = std::vector<absl::string_view>;

  explicit Split(const DataSpec& spec)
      : share_(SplitShare(spec)), reads_held_(spec.share() > 0), rule_(spec.share_rule()) {}

  // True if only a part of the texts is read.
  bool splits() const { return share_ > 0; }
  // Adds a text with one of its labels, for Choose. share_rule 1: the first label counts.
  void Add(const Parts& parts, const std::string& label);
  // Gives each label that has several texts one that is held out, that of the lowest hash, and one
  // that is not, that of the highest; the only text of a label is not held out. Where labels share
  // texts, the former has priority.
  // share_rule 1: chooses the share of the texts of each label, but never all of them; labels with
  // too few texts are pooled, and give at most one text each; does nothing if there are more than
  // half as many labels as texts, as when labels are numbers.
  void Choose();
  // True if the spec reads the text.
  bool Reads(const Parts& parts) const;

 private:
  void ChooseByRank();

  float share_;
  bool reads_held_;
  int rule_;
  bool ranked_ = false;  // share_rule 1: held_ has all texts that are held out
  std::map<std::string, std::vector<uint64_t>> by_label_;
  HashSet<uint64_t> seen_, held_, kept_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_SPLIT_H_
