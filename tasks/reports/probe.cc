#include "tasks/reports/probe.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "core/base/system.h"
#include "tasks/batcher.h"
#include "tasks/training/optimizer.h"
#include "tasks/training/pass.h"

namespace cloze {
namespace {

constexpr int64_t kGrowth = 4;     // ratio of the sizes of consecutive passes
constexpr int64_t kShortest = 64;  // tokens of the first pass

double TimeOf(absl::FunctionRef<void()> work) {
  const double start = SteadySeconds();
  work();
  return SteadySeconds() - start;
}

// Returns the first batch of at most `tokens` tokens, with sequences of full length.
absl::StatusOr<Batch> FirstBatch(const TaskSpec& spec, const Setup& setup, int64_t tokens) {
  BatchSpec size;
  size.set_tokens(tokens);
  size.set_micro_tokens(tokens);
  ASSIGN_OR_RETURN(
      StepData step, Batcher(setup.train->store, *setup.task, size, spec.seed()).Next(0, 1));
  return std::move(step.micro.front());
}

}  // namespace

absl::StatusOr<Speed> MeasureSpeed(
    const TaskSpec& spec, const Setup& setup, DType compute, int64_t most_tokens, double seconds) {
  Model model(setup.config, true, spec.trainable());
  model.Initialize(spec.seed());
  Optimizer optimizer(&model.params(), spec.optimizer());
  const double start = SteadySeconds();
  Speed speed;
  double last = 0;  // seconds of a pass of this size
  for (int64_t tokens =
           std::min(std::max(int64_t{setup.task->max_tokens()}, kShortest), most_tokens);
       ; tokens = std::min(tokens * kGrowth, most_tokens)) {
    ASSIGN_OR_RETURN(const Batch batch, FirstBatch(spec, setup, tokens));
    const float scale = 1.0f / static_cast<float>(std::max<int64_t>(batch.rows.size(), 1));
    const auto pass = [&] {
      TrainingPass(
          model, *setup.task, batch, {compute, spec.seed(), scale, spec.runtime().recompute()});
    };
    pass();  // generates kernels and touches memory
    last = TimeOf(pass);
    if (speed.pass_tokens == 0) {
      speed.step_seconds = TimeOf([&] { optimizer.Step(1e-6, optimizer.GradNorm()); });
      speed.step_seconds += std::max(TimeOf(pass) - last, 0.0);  // the next pass packs the weights
    }
    const auto infer = [&] {
      model.arena().Reset();
      const Pass pass = model.NewPass(batch, compute);
      HeadLoss(*setup.task, model.head(), pass, model.encoder().Infer(pass), 0, {});
    };
    speed.tokens_per_second = batch.tokens() / last;
    speed.evaluation_tokens_per_second = batch.tokens() / TimeOf(infer);
    speed.pass_tokens = batch.tokens();
    speed.seconds = SteadySeconds() - start;
    const double growth = double(std::min(tokens * kGrowth, most_tokens)) / tokens;
    if (tokens >= most_tokens || speed.seconds + 2.5 * growth * last > seconds) return speed;
  }
}

}  // namespace cloze
