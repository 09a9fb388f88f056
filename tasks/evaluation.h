// The evaluation of a model on held-out examples.
#ifndef CLOZE_TASKS_EVALUATION_H_
#define CLOZE_TASKS_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "encoder/model.h"
#include "tasks/answers.h"
#include "tasks/metrics.h"

namespace cloze {

// Measures how good a model is on held-out examples.
class Evaluation {
 public:
  virtual ~Evaluation() = default;
  // The results of a batch, for Add. Each evaluation has those that it needs.
  struct Output {
    struct Loss {
      double loss = 0;  // sum over the targets
      int64_t correct = 0, targets = 0;
    };
    std::vector<Loss> losses = {};
    std::vector<float> logits = {};    // [rows with a target, labels]
    std::vector<int32_t> tokens = {};  // generated ones

    bool finite() const;
    // As bytes, for other ranks.
    std::string Serialize() const;
    static Output Parse(absl::string_view bytes);
  };
  // Runs the model on a batch: a pass without dropout, and the batch's sequences. Errors of
  // `generate`.
  virtual absl::StatusOr<Output> Run(
      const Pass& pass, absl::Span<const Example> examples) const = 0;
  // Adds the output of a batch, which may come from another rank; its sequences in order.
  virtual void Add(Output output, absl::Span<const Example> examples) = 0;
  virtual MetricResults Results() = 0;

  // May be empty. Tasks with texts call it with each whole text, in order.
  std::function<void(const TextLogits&)> on_text;
  // Generates a target of at most `max_new_tokens` tokens for each source. Set by the caller.
  std::function<absl::StatusOr<std::vector<std::vector<int32_t>>>(
      absl::Span<const std::vector<int32_t>> sources, int64_t max_new_tokens)>
      generate;
};

// An evaluation of whole texts: joins windows.
class TextEvaluation : public Evaluation {
 public:
  explicit TextEvaluation(const Model& model);
  absl::StatusOr<Output> Run(const Pass& pass, absl::Span<const Example> examples) const final;
  void Add(Output output, absl::Span<const Example> examples) final;
  MetricResults Results() final;

 protected:
  // Returns the loss of a batch; may overwrite `logits`. Sets the number of items that MeanLoss
  // counts.
  virtual LossSum Loss(const Pass&, Mat /*logits*/, int64_t* /*items*/) const { return {}; }
  // Returns the mean of Loss over the items of all batches.
  double MeanLoss() const { return loss_sum_ / static_cast<double>(items_); }
  virtual void AddText(const TextLogits& text) = 0;
  virtual MetricResults Count() = 0;
  const Model& model_;

 private:
  WindowJoiner joiner_;
  double loss_sum_ = 0;
  int64_t items_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_EVALUATION_H_
