#include "tasks/training/trainer.h"

#include <unistd.h>

#include <cmath>
#include <future>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/threads.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/model_folder.h"
#include "encoder/trainable.h"
#include "tasks/inference/evaluate.h"
#include "tasks/run/checkpoint.h"
#include "tasks/training/memory.h"
#include "tasks/training/pass.h"
#include "tasks/training/schedule.h"

namespace cloze {
namespace {

// The square of a larger gradient is no f32, and would be kept in the second moment.
constexpr double kMostNorm = 1e19;

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    const LoadedSpec& loaded, const Options& options) {
  RETURN_IF_ERROR(VerifySpec(loaded));
  auto trainer = std::unique_ptr<Trainer>(new Trainer(loaded, options));
  SetThreads(loaded.spec.runtime().threads() > 0 ? loaded.spec.runtime().threads() : Threads());
  const auto compute = ComputeOf(loaded.spec.runtime().compute(), Use::kTraining);
  if (!compute.ok()) return AtField(loaded, "runtime.compute", compute.status());
  trainer->compute_ = *compute;
  if (const absl::Status status = trainer->Start(); !status.ok()) {
    trainer->Undo(ExitOf(status));
    return status;
  }
  return trainer;
}

absl::Status Trainer::Start() {
  RETURN_IF_ERROR(PrepareRunDirectory());
  RETURN_IF_ERROR(FindRun());
  RETURN_IF_ERROR(CheckTrainable(spec_.trainable(), setup_.config));
  RETURN_IF_ERROR(ChooseMicroBatch());
  RETURN_IF_ERROR(InitializeModel());
  PlanSteps();
  RETURN_IF_ERROR(CheckMetric());
  return Resume();
}

void Trainer::Undo(Exit why) {
  if (!lock_.has_value()) return;
  const std::string cache = CacheFolder(spec_);
  const auto stores = ListDirectory(cache);
  if (cache_is_new_ && stores.ok()) {
    for (const std::string& store : *stores) {
      if (why != Exit::kInterrupted) RemoveStore(JoinPath(cache, store)).IgnoreError();
    }
    ::rmdir(cache.c_str());
  }
  lock_->Undo();
}

absl::Status Trainer::PrepareRunDirectory() {
  const std::string& directory = spec_.output().directory();
  if (PathExists(Path("model.safetensors")) && !PathExists(Path(kSpecName))) {
    return Error(Exit::kCannotCreate,
        absl::StrCat(QuotePath(directory),
            ": holds a model that is not of a run; choose another output.directory"));
  }
  if (PathExists(Path(SeedFolder(spec_.seed())))) {
    return Error(Exit::kCannotCreate, absl::StrCat(QuotePath(directory),
                                          ": holds runs of a spec with `repeat`; choose another "
                                          "output.directory, or repeat them"));
  }
  ASSIGN_OR_RETURN(lock_, RunLock::Acquire(directory));
  cache_is_new_ = !PathExists(CacheFolder(spec_));
  BuildOptions build = {
      .cache_dir = CacheFolder(spec_), .progress = nullptr, .stop = options_.stop};
  if (options_.preparing != nullptr) {
    build.progress = [this](int64_t done, int64_t total) {
      options_.preparing("tokenising", done, total);
    };
  }
  ASSIGN_OR_RETURN(setup_, Prepare(loaded_, build));
  return absl::OkStatus();
}

absl::Status Trainer::ChooseMicroBatch() {
  const MemoryPlan plan(spec_, setup_.config, compute_, ShapeOf(setup_.train->store.stats()));
  std::string note;
  ASSIGN_OR_RETURN(const int64_t tokens, ChooseMicroTokens(loaded_, plan, &note));
  if (!note.empty()) setup_.notes.push_back(note);
  loaded_.spec.mutable_batch()->set_micro_tokens(tokens);
  need_ = plan.Need(tokens);
  return absl::OkStatus();
}

absl::Status Trainer::InitializeModel() {
  model_ = std::make_unique<Model>(setup_.config, true, spec_.trainable());
  model_->arena().Reserve(need_.arena);
  model_->matmul().SharePacked(need_.one_pass);
  if (spec_.model().start_from().empty()) {
    model_->Initialize(spec_.seed());
  } else {
    std::vector<std::string> fresh;
    RETURN_IF_ERROR(model_->Load(spec_.model().start_from(), spec_.seed(), &fresh));
    if (!fresh.empty())
      setup_.notes.push_back(absl::StrCat("new in this model: ", absl::StrJoin(fresh, ", ")));
  }
  if (spec_.trainable().part_case() != TrainableSpec::PART_NOT_SET) {
    const ParamCount count = CountParams(model_->params());
    setup_.notes.push_back(
        absl::StrCat("training ", count.trained, " of ", count.all, " parameters"));
  }
  const auto layer = [this](const std::string& param) { return LayerOf(param, setup_.config); };
  optimizer_ = std::make_unique<Optimizer>(
      &model_->params(), spec_.optimizer(), layer, setup_.config.layers);
  batcher_ =
      std::make_unique<Batcher>(setup_.train->store, spec_.batch(), spec_.seed(), setup_.masker);
  return absl::OkStatus();
}

void Trainer::PlanSteps() {
  const double per_epoch = batcher_->StepsPerEpoch();
  pace_ = std::make_unique<Pace>(
      spec_.schedule(), TotalSteps(spec_.schedule(), per_epoch), options_.clock);
  const int64_t steps = pace_->total_steps();
  evaluate_every_ = EvaluationInterval(spec_, per_epoch, steps);
  save_every_ = spec_.output().checkpoint_every_steps();
  if (save_every_ == 0 && steps > 0)
    save_every_ = std::max<int64_t>((steps + kTimesARun - 1) / kTimesARun, 1);
  if (pace_->timed())
    setup_.notes.push_back(
        "a run under schedule.time_budget_minutes depends on the clock: another run gives other "
        "bits");
}

bool Trainer::Due(int64_t every) const {
  return every > 0 ? step_ % every == 0
                   : std::floor(kTimesARun * done_before_) < std::floor(kTimesARun * done_);
}

absl::StatusOr<Trainer::Summary> Trainer::Run() {
  progress_ = std::make_unique<Progress>(Progress::Options{.log_path = Path("log.jsonl"),
      .total_steps = pace_->total_steps(),
      .log_every_steps = spec_.output().log_every_steps()});
  for (const std::string& note : setup_.notes) progress_->Note(note);
  RETURN_IF_ERROR(WriteFileAtomically(Path(kSpecName), PrintEffective(spec_)));
  pace_->Start(seconds_);
  done_before_ = done_ = pace_->Done(step_);
  const auto fetch = [this](int64_t from, double at) {
    return std::async(std::launch::async, [this, from, at] { return batcher_->Next(from, at); });
  };
  auto next = fetch(next_example_, done_);
  while (true) {
    if (evaluation_due_ && !Stopped()) RETURN_IF_ERROR(EvaluateNow());
    const bool last = Finished();
    if (last || Stopped() || Due(save_every_)) RETURN_IF_ERROR(Save());
    if (last) break;
    if (Stopped() && saved_step_ == step_) {
      progress_->Finish();
      return Error(Exit::kInterrupted, absl::StrCat("stopped after ", pace_->Describe(step_),
                                           "; the same command goes on from there"));
    }
    const double asked = SteadySeconds();
    const absl::StatusOr<StepData> data = next.get();
    const double waited = SteadySeconds() - asked;
    if (!data.ok()) return SaveBefore(data.status());
    next = fetch(data->next, pace_->Done(step_ + 1));
    RETURN_IF_ERROR(TrainStep(*data, waited));
    if (options_.after_step != nullptr) options_.after_step(step_);
    done_before_ = std::exchange(done_, pace_->Done(step_));
    evaluation_due_ = setup_.validation.has_value() && (done_ >= 1 || Due(evaluate_every_));
  }
  progress_->Finish();
  RETURN_IF_ERROR(FinishModel());
  return Summary{step_, last_loss_, setup_.validation.has_value() ? metric_ : "", best_};
}

absl::Status Trainer::FinishModel() {
  if (best_value_.has_value()) {
    const absl::Status sound = VerifyModel(spec_.output().directory());
    if (sound.ok()) return sound;
    if (best_step_ != step_) {
      return Error(Exit::kMismatch,
          absl::StrCat(sound.message(), "\nthe best model, of step ", best_step_,
              ", is damaged, and no checkpoint holds it; train again in another output.directory"));
    }
  }
  optimizer_->SwapAverage();
  return SaveBest();
}

double Trainer::ForwardBackward(const StepData& data) {
  const LabelWeights weights = {setup_.class_weights, setup_.label_smoothing};
  double weight = 0, loss = 0;
  for (const Batch& batch : data.micro) weight += LossWeight(setup_.config, batch, weights);
  const float scale = weight > 0 ? 1.0f / static_cast<float>(weight) : 0;
  for (const Batch& batch : data.micro) {
    loss += TrainingPass(
        *model_, batch, {compute_, spec_.seed(), scale, spec_.runtime().recompute(), weights});
  }
  return loss * scale;
}

absl::Status Trainer::TrainStep(const StepData& data, double waited) {
  const double loss = ForwardBackward(data);
  if (options_.on_gradients != nullptr) options_.on_gradients(step_ + 1, model_->params().grads());
  const double norm = optimizer_->GradNorm(),
               rate = pace_->Rate(spec_.optimizer().learning_rate(), step_);
  const bool finite = std::isfinite(loss) && norm < kMostNorm;
  next_example_ = data.next;
  ++step_;
  if (finite) {
    optimizer_->Step(rate, norm);
    last_loss_ = loss;
  } else {
    RETURN_IF_ERROR(SkipStep(std::isfinite(loss) ? "gradient" : "loss"));
  }
  progress_->Step({.step = step_,
      .loss = loss,
      .learning_rate = rate,
      .grad_norm = norm,
      .done = pace_->Done(step_),
      .seconds_left = pace_->SecondsLeft(),
      .tokens = data.tokens,
      .data_wait = waited,
      .memory_bytes = model_->arena().peak(),
      .skipped = !finite});
  return absl::OkStatus();
}

absl::Status Trainer::SkipStep(absl::string_view what) {
  optimizer_->Skip();
  ++skipped_;
  recently_skipped_.Add(step_);
  progress_->Note(absl::StrCat(
      "step ", step_, ": the ", what, " is not finite; step skipped (", skipped_, " so far)"));
  if (!recently_skipped_.TooMany()) return absl::OkStatus();
  return Error(
      Exit::kInternal, absl::StrCat("step ", step_, ": the ", what, " was not finite in the last ",
                           recently_skipped_.InARow(), " steps and in ",
                           recently_skipped_.InWindow(), " of the last ", SkippedSteps::kWindow,
                           "; the newest checkpoint is sound. Lower optimizer.learning_rate or set "
                           "optimizer.clip_norm"));
}

absl::StatusOr<MetricResults> Trainer::EvaluateOn(int64_t max_examples) {
  return Evaluate(*model_, setup_.validation->store,
      {.batch_tokens = spec_.batch().micro_tokens(),
          .max_examples = max_examples,
          .compute = compute_,
          .masker = setup_.masker.has_value() ? &*setup_.masker : nullptr,
          .stop = options_.stop});
}

absl::Status Trainer::CheckMetric() {
  if (!setup_.validation.has_value() || spec_.evaluation().metric().empty())
    return absl::OkStatus();
  ASSIGN_OR_RETURN(const MetricResults results, EvaluateOn(1));
  return results.Value(spec_.evaluation().metric()).status();
}

bool Trainer::Finished() const {
  const int32_t patience = spec_.evaluation().patience();
  return !evaluation_due_ &&
         (done_ >= 1 || (patience > 0 && evaluations_without_best_ >= patience));
}

absl::Status Trainer::EvaluateNow() {
  optimizer_->SwapAverage();
  const absl::Status status = EvaluateWeights();
  optimizer_->SwapAverage();
  progress_->SkipTime();
  return status.ok() ? status : SaveBefore(status);  // with the evaluation still due
}

absl::Status Trainer::EvaluateWeights() {
  auto results = EvaluateOn(spec_.evaluation().max_examples());
  if (!results.ok() && ExitOf(results.status()) == Exit::kInterrupted)
    return absl::OkStatus();  // still due; the caller saves and stops
  RETURN_IF_ERROR(results.status());
  metric_ = spec_.evaluation().metric().empty() ? results->values.front().first
                                                : spec_.evaluation().metric();
  ASSIGN_OR_RETURN(const double value, results->Value(metric_));
  const bool best =
      std::isfinite(value) && (!best_value_.has_value() || IsBetter(metric_, value, *best_value_));
  progress_->Evaluation(step_, *results, best);
  if (best) {
    std::swap(best_, *results);
    const int64_t before = std::exchange(best_step_, step_);
    if (const absl::Status status = SaveBest(); !status.ok()) {
      std::swap(best_, *results);
      best_step_ = before;
      return status;
    }
    best_value_ = value;
  }
  evaluations_without_best_ = best ? 0 : evaluations_without_best_ + 1;
  evaluation_due_ = false;
  WatchSources();
  if (Finished() && done_ < 1) {
    progress_->Note(absl::StrCat("no better ", metric_, " in ", evaluations_without_best_,
        " evaluations: the run ends after step ", step_));
  }
  return absl::OkStatus();
}

absl::Status Trainer::SaveBefore(const absl::Status& error) {
  const absl::Status saved = Save();
  return saved.ok() ? error
                    : Error(ExitOf(error), absl::StrCat(error.message(), "\n", saved.message()));
}

}  // namespace cloze
