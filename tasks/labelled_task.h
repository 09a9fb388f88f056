// Base of tasks that learn labels from the data: the labels, their weights, and the loss.
#ifndef CLOZE_TASKS_LABELLED_TASK_H_
#define CLOZE_TASKS_LABELLED_TASK_H_

#include <atomic>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace cloze {

// The settings of labels that the specs of these tasks have.
struct LabelSettings {
  template <typename Spec>
  static LabelSettings Of(const Spec& spec) {
    return {{spec.labels().begin(), spec.labels().end()},
        {spec.label_weights().begin(), spec.label_weights().end()},
        {spec.class_weights().begin(), spec.class_weights().end()}, spec.label_smoothing(),
        spec.balance_classes()};
  }
  std::vector<std::string> labels, label_weights;  // label_weights: "LABEL=WEIGHT"
  std::vector<float> class_weights;
  float smoothing = 0;
  bool balance = false;
};

// The targets are labels; the loss is the cross entropy with the weights and the smoothing of the
// labels.
class LabelledTask : public Task {
 public:
  LabelledTask* labelled() override { return this; }
  // Labels of the model: those of the spec, else learned from `train`. `folder` is the model that
  // the run starts from, whose labels are kept if they cover the data.
  absl::StatusOr<std::vector<std::string>> LearnLabels(
      const DataSpec& train, const ModelConfig& folder, const std::atomic<bool>* stop) const;
  // Sets the weights of labels as the spec gives them, by id or by name. balance_classes learns
  // them from the data: examples / (labels x examples of the label), as scikit-learn's "balanced";
  // 1 for a label without examples. Adds lines for the user. kSpec for unknown names.
  absl::Status WeighLabels(const ExampleStore& train, std::vector<std::string>* notes);

  absl::Status Bind(const ModelConfig& config, const Tokenizer* tokenizer, uint64_t seed) override;
  LossSum Loss(const Head& head, const Pass& pass, Mat logits, int64_t first, float scale,
      Arena& arena) const override;
  double LossWeight(const Batch& batch) const override;
  absl::StatusOr<double> ChanceLoss(const ExampleStore& train) const override;
  bool has_discrete_answers() const override { return true; }

 protected:
  LabelledTask(std::string name, HeadKind head, std::string command, LabelSettings settings)
      : Task(std::move(name), head, std::move(command)), settings_(std::move(settings)) {}
  const std::vector<std::string>& labels() const { return labels_; }
  // Returns the labels in the data.
  virtual absl::StatusOr<std::vector<std::string>> LabelsInData(
      const DataSpec& train, const std::atomic<bool>* stop) const = 0;

 private:
  absl::Status Balance(const ExampleStore& train, std::vector<std::string>* notes);

  LabelSettings settings_;
  std::vector<std::string> labels_;
  std::vector<float> weights_;  // of labels; empty: all 1
  float smoothing_ = 0;         // set with the weights
};

}  // namespace cloze

#endif  // CLOZE_TASKS_LABELLED_TASK_H_
