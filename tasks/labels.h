// The labels of a task: given by the spec or learned from the training data, and their ids.
#ifndef CLOZE_TASKS_LABELS_H_
#define CLOZE_TASKS_LABELS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/hash_map.h"
#include "core/base/status.h"
#include "proto/task.pb.h"
#include "tasks/data/readers.h"

namespace cloze {

// Return all labels in the data (max_examples honoured), sorted: by value when all are numbers,
// else by bytes. kData when there are fewer than two (MULTI_LABEL: none) or more than kMaxLabels.
// Tags in IOB1 give the labels of IOB2. kInterrupted if *stop (may be null) becomes true.
absl::StatusOr<std::vector<std::string>> LearnClassLabels(const DataSpec& data,
    const SequenceClassificationSpec& task, const std::atomic<bool>* stop = nullptr);
absl::StatusOr<std::vector<std::string>> LearnTags(
    const DataSpec& data, const std::atomic<bool>* stop = nullptr);

// Return the labels that a task reads, and the rule by which it reads them.
Labels LabelsToRead(const SequenceClassificationSpec& task);
LabelRule LabelRuleOf(const SequenceClassificationSpec& task);

// Notices labels that are vectors: a 0 or 1 for each label, "[1, 0, 1]", in place of names.
class LabelVectors {
 public:
  // Adds the labels of a text.
  void Add(const std::vector<std::string>& labels);
  // kData, with the remedy, if there is a text and all of them have vectors of one length, at least
  // 2. The values are 0 and 1, also as 0.0 and 1.0, true and false, strings, or parts of a string.
  absl::Status Check(absl::string_view where) const;

 private:
  int64_t texts_ = 0, length_ = 0;  // length -1: some text has none, or another length
};

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
  HashMap<std::string, int32_t> ids_;
};

// Turns the labels of texts into targets, and keeps what they show. With `evaluates`, labels that
// the model lacks are allowed.
class FoundLabels {
 public:
  using Where = absl::FunctionRef<std::string()>;

  // `ids` must outlive this.
  FoundLabels(const LabelIds& ids, bool evaluates) : ids_(ids), evaluates_(evaluates) {}
  // Returns the id of the only label of a text. Labels that the model lacks follow its own, in the
  // order of the data, at most kMaxLabels.
  absl::StatusOr<int32_t> IdOf(const std::string& label, Where where);
  // Returns 1 or 0 for each label of the model and, with `evaluates`, for all others together.
  absl::StatusOr<std::vector<float>> ValuesOf(const std::vector<std::string>& labels, Where where);
  // Returns false after the last text; kData if the labels of MULTI_LABEL are LabelVectors.
  absl::StatusOr<bool> Finish(absl::string_view file) const;
  // Sorted labels that the model lacks.
  std::vector<std::string> Unseen() const;
  // Returns a warning about texts with a label that is given twice, or "".
  std::string Repeats() const;

 private:
  const LabelIds& ids_;
  const bool evaluates_;
  std::map<std::string, int32_t> unseen_;  // numbered in the order of the data
  LabelVectors vectors_;
  int64_t repeating_ = 0;
  std::string first_repeat_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_LABELS_H_
