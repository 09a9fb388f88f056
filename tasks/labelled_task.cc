#include "tasks/labelled_task.h"

#include <set>

#include "absl/algorithm/container.h"
#include "core/ops/loss.h"
#include "tasks/labels.h"

namespace cloze {
namespace {

// Sets the weight of one label from "label=weight".
absl::Status SetLabelWeight(const std::string& task, const std::string& label_weight,
    const std::vector<std::string>& labels, std::vector<float>* weights) {
  const auto parsed = ParseLabelWeight(label_weight);
  const auto label = parsed ? absl::c_find(labels, parsed->first) : labels.end();
  if (label == labels.end()) {
    return Error(Exit::kSpec, task, ".label_weights: \"", Quote(label_weight),
        "\": no such label: expected one of ", ListNames(labels));
  }
  weights->resize(labels.size(), 1);
  (*weights)[label - labels.begin()] = parsed->second;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> LabelledTask::LearnLabels(
    const DataSpec& train, const ModelConfig& folder, const std::atomic<bool>* stop) const {
  if (!settings_.labels.empty()) return settings_.labels;
  ASSIGN_OR_RETURN(std::vector<std::string> learned, LabelsInData(train, stop));
  const std::set<std::string> known(folder.labels.begin(), folder.labels.end());
  const bool keep = folder.head == head() && absl::c_all_of(learned, [&](const std::string& label) {
    return known.contains(label);
  });
  return keep ? folder.labels : learned;
}

absl::Status LabelledTask::WeighLabels(const ExampleStore& train, std::vector<std::string>* notes) {
  smoothing_ = settings_.smoothing;
  weights_ = settings_.class_weights;
  for (const std::string& weight : settings_.label_weights)
    RETURN_IF_ERROR(SetLabelWeight(name(), weight, labels_, &weights_));
  if (!weights_.empty() && absl::c_all_of(weights_, [](float w) { return w == 0; }))
    return Error(Exit::kSpec, name(), ".label_weights: all are 0: expected one above 0");
  return settings_.balance ? Balance(train, notes) : absl::OkStatus();
}

absl::Status LabelledTask::Balance(const ExampleStore& train, std::vector<std::string>* notes) {
  std::vector<int64_t> counts(labels_.size());
  int64_t total = 0;
  Example example;
  for (int64_t i = 0; i < train.size(); ++i) {
    RETURN_IF_ERROR(train.Read(i, &example));
    for (const int32_t label : example.labels) {
      ++counts[label];
      ++total;
    }
  }
  std::string line = "class weights:";
  for (size_t i = 0; i < counts.size(); ++i) {
    const double fair = double(labels_.size()) * counts[i];
    weights_.push_back(counts[i] > 0 ? static_cast<float>(double(total) / fair) : 1);
    if (i < 20) absl::StrAppend(&line, i > 0 ? ", " : " ", Quote(labels_[i]), " ", weights_.back());
  }
  notes->push_back(line + (counts.size() > 20 ? ", ..." : ""));
  return absl::OkStatus();
}

absl::Status LabelledTask::Bind(
    const ModelConfig& config, const Tokenizer* tokenizer, uint64_t seed) {
  labels_ = config.labels;
  return Task::Bind(config, tokenizer, seed);
}

LossSum LabelledTask::Loss(
    const Head&, const Pass& pass, Mat logits, int64_t first, float scale, Arena& arena) const {
  const int32_t* targets = pass.batch.targets.data() + first;
  const LabelWeights weights = {weights_, smoothing_};
  if (weights.plain()) return SoftmaxCrossEntropy(logits, targets, scale, arena);
  return WeightedCrossEntropy(logits, targets, weights, scale, arena);
}

double LabelledTask::LossWeight(const Batch& batch) const {
  if (weights_.empty()) return Task::LossWeight(batch);
  double sum = 0;
  for (const int32_t target : batch.targets) sum += weights_[target];
  return sum;
}

absl::StatusOr<double> LabelledTask::ChanceLoss(const ExampleStore& train) const {
  const auto weight = [&](size_t label) { return weights_.empty() ? 1.0 : weights_[label]; };
  std::vector<double> masses(labels_.size());
  double count = 0, weights = 0;
  RETURN_IF_ERROR(ForSomeExamples(train, [&](const Example& example) {
    for (const int32_t label : example.labels) {
      masses[label] += (1 - smoothing_) * weight(label);
      weights += weight(label);
      ++count;
    }
  }));
  // The loss of probabilities p is -sum(masses log p) / weights, least for p proportional to them.
  for (size_t l = 0; l < masses.size(); ++l)
    masses[l] += smoothing_ * weight(l) * count / static_cast<double>(masses.size());
  return Entropy(masses) * absl::c_accumulate(masses, 0.0) / weights;
}

}  // namespace cloze
