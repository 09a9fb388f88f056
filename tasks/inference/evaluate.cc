#include "tasks/inference/evaluate.h"

#include <algorithm>

#include "tasks/batcher.h"

namespace cloze {
namespace {

// Numbers of held-out examples start here, so that their masks differ from those of training.
constexpr uint64_t kHeldOut = uint64_t{1} << 62;

}  // namespace

absl::StatusOr<MetricResults> Evaluate(
    Model& model, const Task& task, const ExampleStore& store, const EvaluateOptions& options) {
  const auto evaluation = task.NewEvaluation(model, store.stats(), options.decode);
  const int64_t count =
      options.max_examples > 0 ? std::min(options.max_examples, store.size()) : store.size();
  Batch batch;
  std::vector<Example> examples;
  const auto run = [&] {
    if (examples.empty()) return;
    batch.Pad();
    model.arena().Reset();
    const Pass pass = model.NewPass(batch, options.compute);
    evaluation->AddBatch(pass, model.encoder().Infer(pass), examples);
    batch.Clear();
    examples.clear();
  };
  for (int64_t i = 0; i < count; ++i) {
    if (options.stop != nullptr && *options.stop)
      return Error(Exit::kInterrupted, "stopped while evaluating");
    Example example;
    RETURN_IF_ERROR(store.Read(i, &example));
    task.Draw(kHeldOut + i, &example);
    if (batch.tokens() + static_cast<int64_t>(example.ids.size()) > options.batch_tokens) run();
    AddExample(example, kHeldOut + i, &batch);
    examples.push_back(std::move(example));
  }
  run();
  return evaluation->Results();
}

}  // namespace cloze
