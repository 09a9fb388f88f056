#include "tasks/training/trainer.h"

#include <bit>
#include <cmath>
#include <future>

#include "absl/strings/str_format.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/ops/matmul.h"
#include "encoder/model.h"
#include "tasks/run/state.h"
#include "tasks/training/about.h"
#include "tasks/training/memory.h"
#include "tasks/training/plateau.h"

namespace cloze {

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    const LoadedSpec& loaded, const Options& options) {
  auto trainer = std::unique_ptr<Trainer>(new Trainer(loaded, options));
  ASSIGN_OR_RETURN(trainer->compute_, ConfigureCompute(loaded));
  RETURN_IF_ERROR(trainer->CheckRanks());
  const absl::Status status = trainer->Start();
  if (status.ok()) return trainer;
  if (trainer->folder_.has_value()) trainer->folder_->Undo(ExitOf(status));
  return status;
}

absl::Status Trainer::CheckRanks() {
  TaskSpec same = spec_;
  same.mutable_runtime()->clear_threads();
  same.mutable_runtime()->clear_memory_limit_mb();
  ranks().set_timeout(spec_.distributed().timeout_seconds());
  RETURN_IF_ERROR(ranks().CheckSame("the program", options_.program));
  RETURN_IF_ERROR(ranks().CheckSame("the spec", PrintEffective(same)));
  RETURN_IF_ERROR(ranks().CheckSame("the matmul library", MatmulLibrary()));
  RETURN_IF_ERROR(ranks().CheckSame("the kernels", KernelsName()));
  return ranks().CheckSame("runtime.compute", NameOf(compute_));
}

absl::Status Trainer::Start() {
  ASSIGN_OR_RETURN(folder_, RunFolder::Open(spec_, &ranks()));
  BuildOptions build = {
      .cache_dir = CacheFolder(spec_), .progress = nullptr, .stop = options_.stop};
  if (options_.preparing != nullptr) {
    build.progress = [this](int64_t done, int64_t total) {
      options_.preparing("tokenizing", done, total);
    };
  }
  std::string checkpoint;
  MadeStores made = options_.made;
  RETURN_IF_ERROR(ranks().OnFirst([&] { return PrepareRun(build, &made, &checkpoint); }));
  ranks().Broadcast(&made.train);
  ranks().Broadcast(&made.validation);
  RETURN_IF_ERROR(ranks().Together(
      [&] { return ranks().first() ? absl::OkStatus() : PrepareRun(build, &made, &checkpoint); }));
  RETURN_IF_ERROR(ranks().CheckSame("the training data", setup_.train->name()));
  if (setup_.validation.has_value())
    RETURN_IF_ERROR(ranks().CheckSame(
        "the validation data", setup_.EvaluatedData(spec_.evaluation().max_examples())));
  RETURN_IF_ERROR(ranks().CheckSame("the checkpoint", checkpoint));
  RETURN_IF_ERROR(CreateLearner());
  RETURN_IF_ERROR(PlanSteps());
  RETURN_IF_ERROR(CheckMetric());
  if (!checkpoint.empty()) {
    RETURN_IF_ERROR(Resume(checkpoint));
  } else if (!options_.fork.empty()) {
    RETURN_IF_ERROR(Fork());
  }
  return ranks().size() == 1 ? absl::OkStatus()
                             : ranks().CheckSame("the weights", learner_->HashWeights());
}

MadeStores Trainer::stores() const {
  return {setup_.train->name(), setup_.validation.has_value() ? setup_.validation->name() : ""};
}

absl::Status Trainer::CreateLearner() {
  RETURN_IF_ERROR(CheckTrainable(spec_.trainable(), setup_.config));
  const MemoryPlan plan(
      spec_, setup_.config, compute_, ShapeOfData(setup_.train->store.stats()), ranks().size());
  std::string note;
  const auto choose = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t tokens, ChooseMicroTokens(loaded_, plan, &note));
    loaded_.spec.mutable_batch()->set_micro_tokens(tokens);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ranks().OnFirst(choose));
  double first = ranks().first() ? static_cast<double>(spec_.batch().micro_tokens()) : 0;
  ranks().Sum({&first, 1});
  const auto tokens = static_cast<int64_t>(first);
  loaded_.spec.mutable_batch()->set_micro_tokens(tokens);
  RETURN_IF_ERROR(ranks().Agree(ranks().first() ? absl::OkStatus() : choose()));
  if (!note.empty()) setup_.notes.push_back(note);
  if (ranks().size() > 1 && CeilDiv(plan.MostTokens(), tokens) < ranks().size()) {
    setup_.notes.push_back(absl::StrCat("batch.micro_tokens: a step of ", plan.MostTokens(),
        " tokens has fewer passes of ", tokens,
        " tokens than there are ranks; some ranks wait (set it to ",
        plan.MostTokens() / ranks().size(), " or less)"));
  }
  learner_ = std::make_unique<Learner>(spec_, setup_, compute_, plan.Need(tokens), &ranks());
  return learner_->Initialize(&setup_.notes);
}

absl::Status Trainer::PlanSteps() {
  batcher_ =
      std::make_unique<Batcher>(setup_.train->store, *setup_.task, spec_.batch(), spec_.seed());
  if (!state_.has_total_steps()) {  // a new run
    ASSIGN_OR_RETURN(const double steps, batcher_->StepsPerEpoch());
    state_.set_steps_per_epoch(steps);
  }
  const double per_epoch =
      state_.has_steps_per_epoch() ? state_.steps_per_epoch() : batcher_->FullStepsPerEpoch();
  pace_ = std::make_unique<Pace>(spec_.schedule(), TotalSteps(spec_.schedule(), per_epoch),
      [this] { return ranks().size() == 1 ? options_.clock() : seconds_; });
  const int64_t local_steps = spec_.distributed().local_steps();
  evaluate_every_ =
      RoundUp(EvaluationInterval(spec_, per_epoch, pace_->total_steps()), local_steps);
  save_every_ = RoundUp(SaveInterval(spec_, pace_->total_steps()), local_steps);
  if (per_epoch < 1) {
    setup_.notes.push_back(absl::StrFormat(
        "warning: a step reads the training data %.1f times (lower batch.%s for more steps)",
        1 / per_epoch, spec_.batch().examples() > 0 ? "examples" : "tokens"));
  }
  if (pace_->timed() && spec_.schedule().steps() > 0)
    setup_.notes.push_back(
        "warning: schedule.steps is ignored, because schedule.time_budget_minutes ends the run");
  for (std::string& warning : FieldsWithoutEffect(spec_))
    setup_.notes.push_back(std::move(warning));
  const int64_t warmup = spec_.schedule().warmup_steps();
  if (!pace_->timed() && warmup >= pace_->total_steps())
    setup_.notes.push_back(
        absl::StrCat("warning: schedule.warmup_steps is ", warmup, ", but the run has ",
            Counted(pace_->total_steps(), "step"), ": the learning rate rises until its end"));
  if (pace_->timed())
    setup_.notes.push_back(
        "with schedule.time_budget_minutes, repeated runs are not bit-identical");
  return absl::OkStatus();
}

absl::Status Trainer::CheckMetric() {
  const std::string before = state_.has_best_value() ? state_.metric() : "";
  const bool named = !spec_.evaluation().metric().empty();
  if (!setup_.validation.has_value() || (!named && before.empty())) return absl::OkStatus();
  ASSIGN_OR_RETURN(const MetricResults results,
      learner_->Evaluate(setup_.validation->store, 1, options_.stop, /*probe=*/true));
  const std::string now = MetricOf(results);
  const absl::Status known = FindMetric(MetricsOf(*setup_.task, spec_), now).status();
  if (!known.ok()) return AtField(loaded_, "evaluation.metric", known);
  if (before.empty() || before == now) return absl::OkStatus();
  return AtField(loaded_, "evaluation.metric",
      Error(Exit::kMismatch, "is ", now, ": expected ", Quote(before),
          ", by which this run has chosen its best model (undo the change, "
          "or start a new run from its weights: --fork)"));
}

absl::StatusOr<Trainer::Summary> Trainer::Run() {
  const bool first = ranks().first();
  progress_ =
      std::make_unique<Progress>(Progress::Options{.log_path = first ? folder_->Path(kLogName) : "",
          .events_path = first && spec_.output().tensorboard() ? folder_->Path(kEventsName) : "",
          .step = state_.step(),
          .total_steps = pace_->total_steps(),
          .log_every_steps = spec_.output().log_every_steps(),
          .tokens = state_.tokens(),
          .seconds = state_.seconds(),
          .fd = first ? 2 : -1});
  for (const std::string& note : setup_.notes) progress_->Note(note);
  RETURN_IF_ERROR(ranks().OnFirst([&]() -> absl::Status {
    if (!keeps_spec_)
      RETURN_IF_ERROR(WriteFileAtomically(folder_->Path(kSpecName), PrintEffective(spec_)));
    return WriteAbout(folder_->Path("about.json"), setup_, compute_, options_.program);
  }));
  Synchronize();
  pace_->Start(state_.step());
  const auto fetch = [this](int64_t example, double done) {  // by another thread
    return std::async(
        std::launch::async, [this, example, done] { return batcher_->Next(example, done); });
  };
  auto next = fetch(state_.next_example(), pace_->done());
  while (true) {
    Synchronize();
    if (state_.evaluation_due() && !stopped_) {
      const absl::Status status = Evaluate();
      Synchronize();
      progress_->SkipTime();
      if (!status.ok() && ExitOf(status) != Exit::kInterrupted) return SaveBefore(status);
    }
    if (unsaved_.has_value() && std::has_single_bit(uint64_t(state_.step() - unsaved_->step)))
      SaveUnsaved().IgnoreError();  // after 1, 2, 4 ... steps
    const bool finished = Finished();
    if (finished) RETURN_IF_ERROR(CheckLearned(state_));
    if (finished || stopped_ || pace_->Due(save_every_)) RETURN_IF_ERROR(Save(finished));
    if (finished) break;
    if (stopped_ && folder_->saved_step() == state_.step()) {
      return Error(Exit::kInterrupted, "stopped after ", pace_->Describe(state_.step()),
          "; run the same command again to continue");
    }
    const double asked = SteadySeconds();
    const absl::StatusOr<StepData> data = next.get();
    const double waited = SteadySeconds() - asked;
    const absl::Status read = ranks().Agree(data.status());
    if (!read.ok()) return SaveBefore(read);
    next = fetch(data->next, pace_->Done(state_.step() + 1));
    RETURN_IF_ERROR(Step(*data, waited));
    const double before = pace_->done();
    pace_->Advance(state_.step());
    if (!BetweenAverages()) learner_->AverageRanks();
    RETURN_IF_ERROR(NoteIfNotLearning(before));
    state_.set_evaluation_due(
        setup_.validation.has_value() && (pace_->over() || pace_->Due(evaluate_every_)));
  }
  progress_->Finish();
  RETURN_IF_ERROR(FinishModel());
  return Summarize();
}

absl::StatusOr<Trainer::Summary> Trainer::Summarize() const {
  Summary summary;
  summary.steps = state_.step();
  summary.loss = state_.last_loss();
  summary.best = state_.has_best_value() ? BestOf(state_) : latest_;
  if (setup_.validation.has_value() && !state_.metric().empty()) {
    ASSIGN_OR_RETURN(summary.metric, FindMetric(MetricsOf(*setup_.task, spec_), state_.metric()));
  }
  return summary;
}

void Trainer::Synchronize() {
  double now[] = {ranks().first() ? options_.clock() : 0,
      options_.stop != nullptr && *options_.stop ? 1.0 : 0.0};
  ranks().Sum(absl::MakeSpan(now));
  seconds_ = now[0], stopped_ = now[1] > 0 && !BetweenAverages();
}

bool Trainer::BetweenAverages() const {
  return state_.step() % spec_.distributed().local_steps() != 0 && !pace_->over();
}

absl::Status Trainer::Step(const StepData& data, double waited) {
  const double loss = learner_->ForwardBackward(data);
  if (options_.on_gradients != nullptr)
    options_.on_gradients(state_.step() + 1, learner_->gradients());
  const double rate = pace_->Rate(spec_.optimizer().learning_rate(), state_.step());
  const Learner::StepResult result = learner_->Update(loss, rate, &state_);
  state_.set_next_example(data.next);
  state_.set_tokens(state_.tokens() + data.tokens);
  const int64_t step = state_.step();
  progress_->Step({.step = step,
      .loss = loss,
      .learning_rate = rate,
      .grad_norm = result.grad_norm,
      .done = pace_->Done(step),
      .seconds_left = pace_->SecondsLeft(),
      .later_batches = batcher_->LaterBatches(pace_->Done(step)),
      .tokens = data.tokens,
      .data_wait = waited,
      .skipped = !result.skipped.empty(),
      .ranks = learner_->work()});
  if (!result.skipped.empty()) {
    progress_->Note(result.skipped);
    RETURN_IF_ERROR(CheckSkipped(state_));
  }
  if (options_.after_step != nullptr) options_.after_step(step);
  return absl::OkStatus();
}

absl::Status Trainer::NoteIfNotLearning(double before) {
  const double when = PlateauCheckAt(spec_.schedule(), pace_->total_steps());
  if (before >= when || pace_->done() < when) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double chance, setup_.task->ChanceLoss(setup_.train->store));
  const std::string note =
      PlateauNote(progress_->smoothed_loss(), chance, spec_, setup_.config.labels.size());
  if (!note.empty()) progress_->Note(note);
  return absl::OkStatus();
}

bool Trainer::Finished() const {
  return !state_.evaluation_due() && (pace_->over() || OutOfPatience(spec_, state_));
}

std::string Trainer::MetricOf(const MetricResults& results) const {
  const std::string& named = spec_.evaluation().metric();
  return named.empty() ? results.values.front().first : named;
}

absl::Status Trainer::Evaluate() {
  const auto average = learner_->UseAverage();
  ASSIGN_OR_RETURN(
      const MetricResults results, learner_->Evaluate(setup_.validation->store,
                                       spec_.evaluation().max_examples(), options_.stop));
  const std::string name = MetricOf(results);
  ASSIGN_OR_RETURN(const Metric metric, FindMetric(MetricsOf(*setup_.task, spec_), name));
  const ModelScore score = ScoreOf(results, name);
  const ModelScore best = unsaved_.has_value()
                              ? ModelScore{unsaved_->value, ScoreOf(unsaved_->results, "").loss}
                              : BestScore(state_);
  const int order = CompareModels(metric, score, best);
  // A metric may have no value, for example when no word has several pieces.
  const bool better = std::isfinite(score.value) && order >= 0;
  progress_->Evaluation(state_.step(), results, better);
  if (better) RETURN_IF_ERROR(KeepBest(results, score.value));
  latest_ = results;
  state_.set_metric(name);
  state_.set_evaluations_without_best(
      better && order > 0 ? 0 : state_.evaluations_without_best() + 1);
  state_.set_evaluation_due(false);
  WatchSources();
  if (OutOfPatience(spec_, state_) && !pace_->over()) {
    progress_->Note(absl::StrCat("no better ", name, " in ", state_.evaluations_without_best(),
        " evaluations: the run ends after step ", state_.step()));
  }
  return absl::OkStatus();
}

}  // namespace cloze
