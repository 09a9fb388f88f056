// The labels of a task: given by the spec or learned from the training data, and their ids.
#ifndef CLOZE_TASKS_LABELS_H_
#define CLOZE_TASKS_LABELS_H_

#include <atomic>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "encoder/modules/config.h"
#include "proto/task.pb.h"

namespace cloze {

// Return all labels in the data (max_examples honoured), sorted: by value when all are numbers,
// else by bytes. kData when there are fewer than two (MULTI_LABEL: none) or more than kMaxLabels.
// Tags in IOB1 give the labels of IOB2. kInterrupted if *stop (may be null) becomes true.
absl::StatusOr<std::vector<std::string>> LearnClassLabels(const DataSpec& data,
    const SequenceClassificationSpec& task, const std::atomic<bool>* stop = nullptr);
absl::StatusOr<std::vector<std::string>> LearnTags(
    const DataSpec& data, const std::atomic<bool>* stop = nullptr);

// Returns the labels of `folder` if its head is `head` and they cover the learned ones, so that a
// classifier that is trained further keeps its ids; else the learned ones.
std::vector<std::string> KeepLabels(
    const ModelConfig& folder, HeadKind head, std::vector<std::string> learned);

// Maps labels to ids.
class LabelIds {
 public:
  // kSpec if a label is empty or duplicate.
  static absl::StatusOr<LabelIds> Create(const std::vector<std::string>& labels);
  size_t size() const { return ids_.size(); }
  // Returns true if `label` is one of the labels.
  bool Has(const std::string& label) const { return ids_.count(label) > 0; }
  // Returns the id of a label. kData, "where: field: unknown label ...", with the first 20 known
  // ones.
  absl::StatusOr<int32_t> IdOf(const std::string& label, absl::string_view field,
      absl::FunctionRef<std::string()> where) const;

 private:
  std::vector<std::string> labels_;
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_LABELS_H_
