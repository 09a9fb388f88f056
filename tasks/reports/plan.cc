#include "tasks/reports/plan.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/base/threads.h"
#include "encoder/trainable.h"
#include "tasks/batcher.h"
#include "tasks/data/sample.h"
#include "tasks/run/run_folder.h"
#include "tasks/training/schedule.h"

namespace cloze {
namespace {

constexpr int64_t kSampleBytes = 2 << 20;

// Data as far as they are looked at.
struct Looked {
  Setup setup;
  DataSample train, validation;
};

// The token cache, when there is one of all data.
absl::StatusOr<Looked> LookAtCache(const LoadedSpec& loaded, const PlanOptions& options) {
  const std::string cache = CacheFolder(loaded.spec);
  if (!PathExists(cache)) return Error(Exit::kNoInput, "no token cache");
  Looked looked;
  looked.train.data = loaded.spec.train(), looked.validation.data = loaded.spec.validation();
  ASSIGN_OR_RETURN(looked.setup,
      Prepare(loaded,
          {.cache_dir = cache, .progress = nullptr, .stop = options.stop, .only_cached = true}));
  return looked;
}

// The messages of `status` with the names that the user knows.
absl::Status WithNamesOf(const DataSpec& real, const DataSpec& sample, const absl::Status& status) {
  std::string message(status.message());
  for (int i = 0; i < sample.files_size(); ++i)
    message = absl::StrReplaceAll(message, {{sample.files(i), real.files(i)}});
  return Error(ExitOf(status), message);
}

absl::StatusOr<Looked> LookAtSample(const LoadedSpec& loaded, const PlanOptions& options) {
  Looked looked;
  LoadedSpec part = loaded;
  for (auto& [name, sample, data] : {std::tuple("train", &looked.train, part.spec.mutable_train()),
           std::tuple("validation", &looked.validation, part.spec.mutable_validation())}) {
    const std::string folder = JoinPath(options.scratch, name);
    RETURN_IF_ERROR(MakeDirectories(folder));
    auto taken = SampleData(*data, folder, kSampleBytes);
    if (!taken.ok()) return AtField(loaded, name, taken.status());
    *sample = *std::move(taken);
    *data = sample->data;
  }
  auto setup = Prepare(part,
      {.cache_dir = JoinPath(options.scratch, "cache"), .progress = nullptr, .stop = options.stop});
  if (!setup.ok()) {
    const absl::Status status = WithNamesOf(loaded.spec.train(), looked.train.data, setup.status());
    return WithNamesOf(loaded.spec.validation(), looked.validation.data, status);
  }
  looked.setup = *std::move(setup);
  return looked;
}

DataEstimate Estimate(const DataSpec& spec, const DataSample& sample, const BuiltStore& built) {
  const double examples = double(built.store.size()) * sample.scale();
  const double share = spec.max_examples() > 0 ? std::min(1.0, spec.max_examples() / examples) : 1;
  return {
      examples * share, built.store.tokens() * sample.scale() * share, sample.bytes, sample.read};
}

// The micro-batch that a run in the spec's directory has, which it would go on with.
void TakeOver(LoadedSpec* loaded) {
  if (loaded->spec.batch().has_micro_tokens()) return;
  const auto run = LoadSpec(JoinPath(loaded->spec.output().directory(), "spec.textproto"));
  if (run.ok() && run->spec.batch().has_micro_tokens())
    loaded->spec.mutable_batch()->set_micro_tokens(run->spec.batch().micro_tokens());
}

double Evaluations(const TaskSpec& spec, double per_epoch, double steps) {
  if (spec.validation().files_size() == 0) return 0;
  return std::ceil(
      steps / EvaluationInterval(spec, per_epoch, std::max<int64_t>(std::llround(steps), 1)));
}

void PlanTime(const TaskSpec& spec, double per_epoch, RunPlan* plan) {
  const double epoch_tokens = plan->train.tokens, step_tokens = epoch_tokens / per_epoch;
  const double step_seconds =
      step_tokens / plan->speed.tokens_per_second + plan->speed.step_seconds;
  plan->tokens_per_second = step_tokens / step_seconds;
  double evaluated = plan->validation.tokens;
  if (const int64_t most = spec.evaluation().max_examples();
      most > 0 && most < plan->validation.sequences)
    evaluated *= most / plan->validation.sequences;
  const double evaluation_seconds = evaluated / plan->speed.evaluation_tokens_per_second;
  plan->timed = spec.schedule().time_budget_minutes() > 0;
  if (plan->timed) {
    plan->train_seconds = 60 * spec.schedule().time_budget_minutes();
    // Evaluations come every so many steps, or ten times a run.
    const double every = EvaluationInterval(spec, per_epoch, 0),
                 each = every > 0 && evaluated > 0 ? evaluation_seconds / every : 0;
    const double apart = every > 0 ? 0 : kTimesARun * evaluation_seconds;
    plan->steps = std::floor(std::max(plan->train_seconds - apart, 0.0) / (step_seconds + each));
  } else {
    plan->steps = TotalSteps(spec.schedule(), per_epoch);
    plan->train_seconds = plan->steps * step_seconds;
  }
  plan->evaluations = Evaluations(spec, per_epoch, plan->steps);
  plan->evaluation_seconds = plan->evaluations * evaluation_seconds;
  plan->tokens = plan->steps * step_tokens;
}

}  // namespace

absl::StatusOr<RunPlan> PlanRun(const LoadedSpec& given, const PlanOptions& options) {
  RETURN_IF_ERROR(VerifySpec(given));
  LoadedSpec loaded = given;
  const TaskSpec& spec = loaded.spec;
  SetThreads(spec.runtime().threads() > 0 ? spec.runtime().threads() : Threads());
  RunPlan plan;
  const auto compute = ComputeOf(spec.runtime().compute(), Use::kTraining);
  if (!compute.ok()) return AtField(loaded, "runtime.compute", compute.status());
  plan.compute = *compute;
  auto looked = LookAtCache(loaded, options);
  if (!looked.ok()) looked = LookAtSample(loaded, options);
  RETURN_IF_ERROR(looked.status());
  const Setup& setup = looked->setup;
  RETURN_IF_ERROR(CheckTrainable(spec.trainable(), setup.config));
  plan.train = Estimate(spec.train(), looked->train, *setup.train);
  if (setup.validation.has_value())
    plan.validation = Estimate(spec.validation(), looked->validation, *setup.validation);

  TakeOver(&loaded);
  RETURN_IF_ERROR(VerifySpec(loaded));
  const MemoryPlan memory(
      spec, setup.config, plan.compute, ShapeOfData(setup.train->store.stats()));
  plan.parameters = memory.parameters(), plan.trained = memory.trained();
  plan.limit = MemoryLimit(spec);
  const auto micro = ChooseMicroTokens(loaded, memory, &plan.note);
  plan.fits = micro.status();
  plan.micro_tokens =
      micro.ok()
          ? *micro
          : std::max<int64_t>(spec.batch().has_micro_tokens() ? spec.batch().micro_tokens() : 0,
                int64_t{setup.task->max_tokens()});
  plan.need = memory.Need(plan.micro_tokens);
  if (!plan.fits.ok()) return plan;

  const double scale = plan.train.sequences / setup.train->store.size();
  const double per_epoch =
      Batcher(setup.train->store, *setup.task, spec.batch(), spec.seed()).StepsPerEpoch() * scale;
  const double step_tokens = plan.train.tokens / per_epoch;
  const auto most = std::clamp<int64_t>(
      std::llround(step_tokens), int64_t{setup.task->max_tokens()}, plan.micro_tokens);
  ASSIGN_OR_RETURN(
      plan.speed, MeasureSpeed(spec, setup, plan.compute, most, options.probe_seconds));
  PlanTime(spec, per_epoch, &plan);
  return plan;
}

}  // namespace cloze
