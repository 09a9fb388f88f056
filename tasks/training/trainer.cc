#include "tasks/training/trainer.h"

#include <cmath>
#include <future>

#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/threads.h"
#include "encoder/model_folder.h"
#include "tasks/evaluate.h"
#include "tasks/training/memory.h"
#include "tasks/training/schedule.h"

namespace cloze {
namespace {

constexpr int64_t kMaxSkippedInARow = 10;

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const LoadedSpec& loaded, const Options& options) {
  RETURN_IF_ERROR(VerifySpec(loaded));
  auto trainer = std::unique_ptr<Trainer>(new Trainer(loaded, options));
  SetThreads(loaded.spec.runtime().threads() > 0 ? loaded.spec.runtime().threads() : Threads());
  const auto compute = ComputeOf(loaded.spec.runtime().compute(), Use::kTraining);
  if (!compute.ok()) return AtField(loaded, "runtime.compute", compute.status());
  trainer->compute_ = *compute;
  RETURN_IF_ERROR(trainer->PrepareRunDirectory());
  RETURN_IF_ERROR(trainer->InitializeModel());
  trainer->PlanSteps();
  RETURN_IF_ERROR(trainer->CheckMetric());
  RETURN_IF_ERROR(trainer->Resume());
  return trainer;
}

absl::Status Trainer::PrepareRunDirectory() {
  const std::string& directory = spec_.output().directory();
  RETURN_IF_ERROR(MakeDirectories(directory));
  if (PathExists(Path("model.safetensors")) && !PathExists(Path("spec.textproto"))) {
    return Error(Exit::kCannotCreate,
                 absl::StrCat(Quote(directory), ": holds a model that is not of a run; choose another output.directory"));
  }
  ASSIGN_OR_RETURN(lock_, RunLock::Acquire(directory));
  const std::string& cache = spec_.output().cache_directory();
  BuildOptions build = {.cache_dir = cache.empty() ? Path("cache") : cache, .progress = nullptr, .stop = options_.stop};
  if (options_.preparing != nullptr) {
    build.progress = [this](int64_t done, int64_t total) { options_.preparing("tokenising", done, total); };
  }
  ASSIGN_OR_RETURN(setup_, Prepare(loaded_, build));
  return absl::OkStatus();
}

absl::Status Trainer::InitializeModel() {
  RETURN_IF_ERROR(CheckMemory(setup_.config, spec_.runtime().memory_limit_mb()));
  model_ = std::make_unique<Model>(setup_.config, true);
  if (spec_.model().start_from().empty()) {
    model_->Initialize(spec_.seed());
  } else {
    std::vector<std::string> fresh;
    RETURN_IF_ERROR(model_->Load(spec_.model().start_from(), spec_.seed(), &fresh));
    if (!fresh.empty()) setup_.notes.push_back(absl::StrCat("new in this model: ", absl::StrJoin(fresh, ", ")));
  }
  optimizer_ = std::make_unique<Optimizer>(&model_->params(), spec_.optimizer());
  feed_ = std::make_unique<Feed>(setup_.train->store, spec_.batch(), spec_.seed(), setup_.masker);
  return absl::OkStatus();
}

void Trainer::PlanSteps() {
  const double per_epoch = feed_->StepsPerEpoch();
  total_steps_ = TotalSteps(spec_.schedule(), per_epoch);
  evaluate_every_ = spec_.evaluation().every_steps();
  if (evaluate_every_ == 0)
    evaluate_every_ = spec_.has_masked_lm() ? std::max<int64_t>(total_steps_ / 10, 1) : std::max<int64_t>(std::ceil(per_epoch), 1);
  save_every_ = spec_.output().checkpoint_every_steps();
  if (save_every_ == 0) save_every_ = std::max<int64_t>((total_steps_ + 9) / 10, 1);
}

absl::StatusOr<Trainer::Summary> Trainer::Run() {
  progress_ = std::make_unique<Progress>(
      Progress::Options{.log_path = Path("log.jsonl"), .total_steps = total_steps_, .log_every_steps = spec_.output().log_every_steps()});
  for (const std::string& note : setup_.notes) progress_->Note(note);
  RETURN_IF_ERROR(WriteFileAtomically(Path("spec.textproto"), PrintEffective(spec_)));
  auto next = std::async(std::launch::async, [&] { return feed_->Next(next_example_); });
  while (step_ < total_steps_) {
    ASSIGN_OR_RETURN(const StepData data, next.get());
    next = std::async(std::launch::async, [this, from = data.next] { return feed_->Next(from); });
    RETURN_IF_ERROR(TrainStep(data));
    if (options_.after_step != nullptr) options_.after_step(step_);
    const bool last = step_ == total_steps_;
    if (!Stopped() && (last || step_ % evaluate_every_ == 0)) RETURN_IF_ERROR(EvaluateNow());
    if (last || Stopped() || step_ % save_every_ == 0) RETURN_IF_ERROR(Save());
    if (Stopped() && !last) {
      progress_->Finish();
      return Error(Exit::kInterrupted,
                   absl::StrCat("stopped after step ", step_, " of ", total_steps_, "; the same command goes on from there"));
    }
  }
  progress_->Finish();
  if (!setup_.validation.has_value()) RETURN_IF_ERROR(SaveBest());
  return Summary{step_, last_loss_, setup_.validation.has_value() ? metric_ : "", best_};
}

double Trainer::ForwardBackward(const StepData& data) {
  const float scale = data.targets > 0 ? 1.0f / data.targets : 0;
  double loss = 0;
  for (const Batch& batch : data.micro) {
    model_->arena().Reset();
    const Step step = model_->NewStep(batch, compute_, true, spec_.seed());
    const Encoder::Saved saved = model_->encoder().Forward(step);
    Mat dy = model_->arena().NewZero(saved.y.rows, saved.y.cols, compute_);
    loss += model_->head().Loss(step, saved.y, scale, dy).loss;
    if (scale != 0) model_->encoder().Backward(step, saved, dy);
  }
  return loss * scale;
}

absl::Status Trainer::TrainStep(const StepData& data) {
  const double loss = ForwardBackward(data), norm = optimizer_->GradNorm();
  const double rate = LearningRate(spec_.schedule(), spec_.optimizer().learning_rate(), step_, total_steps_);
  next_example_ = data.next;
  ++step_;
  if (std::isfinite(loss) && std::isfinite(norm)) {
    optimizer_->Step(rate, norm);
    last_loss_ = loss;
    skipped_in_a_row_ = 0;
  } else {
    optimizer_->Skip();
    ++skipped_;
    progress_->Note(absl::StrCat("step ", step_, ": the ", std::isfinite(loss) ? "gradient" : "loss", " is not finite; step skipped"));
    if (++skipped_in_a_row_ >= kMaxSkippedInARow || skipped_ > std::max<int64_t>(kMaxSkippedInARow, step_ / 100)) {
      return Error(Exit::kInternal, absl::StrCat("step ", step_, ": ", skipped_,
                                                 " steps had a loss or gradient that is not finite; the newest checkpoint is still sound. ",
                                                 "Lower optimizer.learning_rate or set optimizer.clip_norm"));
    }
  }
  progress_->Step({.step = step_,
                   .loss = loss,
                   .learning_rate = rate,
                   .grad_norm = norm,
                   .tokens = data.tokens,
                   .memory_bytes = model_->arena().peak()});
  return absl::OkStatus();
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
  if (!setup_.validation.has_value() || spec_.evaluation().metric().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const MetricResults results, EvaluateOn(1));
  return results.Value(spec_.evaluation().metric()).status();
}

absl::Status Trainer::EvaluateNow() {
  if (!setup_.validation.has_value()) return absl::OkStatus();
  auto results = EvaluateOn(spec_.evaluation().max_examples());
  if (!results.ok() && ExitOf(results.status()) == Exit::kInterrupted) return absl::OkStatus();  // the caller saves and stops
  RETURN_IF_ERROR(results.status());
  metric_ = spec_.evaluation().metric().empty() ? results->values.front().first : spec_.evaluation().metric();
  ASSIGN_OR_RETURN(const double value, results->Value(metric_));
  const bool best = !best_value_.has_value() || IsBetter(metric_, value, *best_value_);
  progress_->Evaluation(step_, *results, best);
  if (best) {
    best_value_ = value;
    best_ = *results;
    RETURN_IF_ERROR(SaveBest());
  }
  progress_->SkipTime();
  return absl::OkStatus();
}

absl::Status Trainer::SaveBest() {
  RETURN_IF_ERROR(setup_.tokenizer->Save(spec_.output().directory(), setup_.config.max_positions - setup_.config.position_offset));
  RETURN_IF_ERROR(SaveWeights(spec_.output().directory(), setup_.config, model_->params()));
  return WriteFileAtomically(Path("metrics.json"), absl::StrCat("{\"step\":", step_, ",\"metrics\":", best_.ToJson(), "}\n"));
}

}  // namespace cloze
