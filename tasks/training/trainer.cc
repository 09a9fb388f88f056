#include "tasks/training/trainer.h"

#include <future>
#include <utility>

#include "core/base/system.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/trainable.h"
#include "tasks/run/state.h"
#include "tasks/training/memory.h"
#include "tasks/training/schedule.h"

namespace cloze {

constexpr int kMaxFailedSaves = 3;

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    const LoadedSpec& loaded, const Options& options) {
  RETURN_IF_ERROR(VerifySpec(loaded));
  auto trainer = std::unique_ptr<Trainer>(new Trainer(loaded, options));
  SetThreads(loaded.spec.runtime().threads() > 0 ? loaded.spec.runtime().threads() : Threads());
  const auto compute = ComputeOf(loaded.spec.runtime().compute(), Use::kTraining);
  if (!compute.ok()) return AtField(loaded, "runtime.compute", compute.status());
  trainer->compute_ = *compute;
  const absl::Status status = trainer->Start();
  if (status.ok()) return trainer;
  if (trainer->folder_.has_value()) trainer->folder_->Undo(ExitOf(status));
  return status;
}

absl::Status Trainer::Start() {
  ASSIGN_OR_RETURN(folder_, RunFolder::Open(spec_));
  BuildOptions build = {
      .cache_dir = CacheFolder(spec_), .progress = nullptr, .stop = options_.stop};
  if (options_.preparing != nullptr) {
    build.progress = [this](int64_t done, int64_t total) {
      options_.preparing("tokenising", done, total);
    };
  }
  ASSIGN_OR_RETURN(setup_, Prepare(loaded_, build));
  ASSIGN_OR_RETURN(const std::optional<Found> found, FindRun());
  RETURN_IF_ERROR(CreateLearner());
  PlanSteps();
  RETURN_IF_ERROR(CheckMetric(found.has_value() ? &found->state : nullptr));
  if (found.has_value()) return Resume(*found);
  return options_.fork.empty() ? absl::OkStatus() : Fork();
}

absl::StatusOr<std::optional<Trainer::Found>> Trainer::FindRun() {
  ASSIGN_OR_RETURN(const auto checkpoint, folder_->Newest(&setup_.notes));
  if (!checkpoint.has_value()) return std::nullopt;
  const std::string& path = checkpoint->path;
  ASSIGN_OR_RETURN(TrainerState state, ReadTrainerState(path));
  ASSIGN_OR_RETURN(const LoadedSpec before, ParseSpec(state.spec(), JoinPath(path, kStateName)));
  if (!spec_.batch().has_micro_tokens())
    loaded_.spec.mutable_batch()->set_micro_tokens(before.spec.batch().micro_tokens());
  RETURN_IF_ERROR(CheckSameSpec(before.spec, spec_, folder_->directory()));
  RETURN_IF_ERROR(VerifySpec(loaded_));
  RETURN_IF_ERROR(CheckSameData(state, *setup_.train, path));
  return Found{path, std::move(state)};
}

absl::Status Trainer::CreateLearner() {
  RETURN_IF_ERROR(CheckTrainable(spec_.trainable(), setup_.config));
  const MemoryPlan plan(spec_, setup_.config, compute_, ShapeOfData(setup_.train->store.stats()));
  std::string note;
  ASSIGN_OR_RETURN(const int64_t tokens, ChooseMicroTokens(loaded_, plan, &note));
  if (!note.empty()) setup_.notes.push_back(note);
  loaded_.spec.mutable_batch()->set_micro_tokens(tokens);
  learner_ = std::make_unique<Learner>(spec_, setup_, compute_, plan.Need(tokens));
  return learner_->Initialize(&setup_.notes);
}

void Trainer::PlanSteps() {
  batcher_ =
      std::make_unique<Batcher>(setup_.train->store, *setup_.task, spec_.batch(), spec_.seed());
  const double per_epoch = batcher_->StepsPerEpoch();
  pace_ = std::make_unique<Pace>(
      spec_.schedule(), TotalSteps(spec_.schedule(), per_epoch), options_.clock);
  evaluate_every_ = EvaluationInterval(spec_, per_epoch, pace_->total_steps());
  save_every_ = SaveInterval(spec_, pace_->total_steps());
  best_.emplace(spec_.evaluation());
  if (pace_->timed())
    setup_.notes.push_back(
        "a run under schedule.time_budget_minutes depends on the clock: another run gives other "
        "bits");
}

absl::Status Trainer::CheckMetric(const TrainerState* state) {
  const std::string before =
      state != nullptr && state->has_best_value() ? state->metric() : std::string();
  const bool named = !spec_.evaluation().metric().empty();
  if (!setup_.validation.has_value() || (!named && before.empty())) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const MetricResults results, learner_->Evaluate(setup_.validation->store, 1, options_.stop));
  RETURN_IF_ERROR(best_->IsBetter(results).status());
  const std::string now = best_->MetricOf(results);
  if (before.empty() || before == now) return absl::OkStatus();
  return AtField(loaded_, "evaluation.metric",
      Error(Exit::kMismatch, "is ", now, ": expected ", before,
          ", by which this run has chosen its best model (undo the change, "
          "or start a new run from its weights: --fork)"));
}

absl::Status Trainer::Resume(const Found& found) {
  const auto& [path, state] = found;
  if (!options_.fork.empty())
    setup_.notes.push_back("the run directory has a run already: it is resumed, --fork is ignored");
  best_->FromState(state);
  pace_->Resume(state.seconds());
  folder_->set_saved_step(state.step());
  next_example_ = state.next_example();
  evaluation_due_ = state.evaluation_due() && setup_.validation.has_value();
  RETURN_IF_ERROR(RestoreBest(state));
  RETURN_IF_ERROR(learner_->Resume(path, state));
  forked_from_ = state.forked_from();
  setup_.notes.push_back(
      absl::StrCat("resumed at ", pace_->Describe(state.step()), " from ", path));
  if (std::string warning = CodeWarning(state, compute_); !warning.empty())
    setup_.notes.push_back(std::move(warning));
  return absl::OkStatus();
}

absl::Status Trainer::RestoreBest(const TrainerState& state) {
  if (!best_->found()) return absl::OkStatus();
  const absl::Status sound = VerifyModel(folder_->directory(), best_->step());
  if (sound.ok() || ExitOf(sound) == Exit::kIo) return sound;
  const std::string checkpoint = folder_->Path(CheckpointName(best_->step())),
                    lost = absl::StrCat("the best model, of step ", best_->step(),
                        ", is incomplete or overwritten");
  if (VerifyCheckpoint(checkpoint).ok()) {
    ASSIGN_OR_RETURN(const TrainerState then, ReadTrainerState(checkpoint));
    RETURN_IF_ERROR(learner_->Resume(checkpoint, then));
    const auto average = learner_->UseAverage();
    setup_.notes.push_back(absl::StrCat(lost, ": restored from ", checkpoint));
    return SaveBest(best_->results());
  }
  const bool finished =
      !evaluation_due_ && (pace_->Done(state.step()) >= 1 || best_->OutOfPatience());
  if (finished) return absl::OkStatus();  // FinishModel reports it
  setup_.notes.push_back(absl::StrCat(lost, ": the next evaluation saves another"));
  best_->Forget();
  return absl::OkStatus();
}

absl::Status Trainer::Fork() {
  ASSIGN_OR_RETURN(const auto found, FindCheckpoint(options_.fork, &setup_.notes));
  if (!found.has_value()) {
    return Error(Exit::kNoInput, "--fork: ", QuotePath(options_.fork),
        ": has no checkpoint (model.start_from takes model folders)");
  }
  ASSIGN_OR_RETURN(const auto tokenizer, LoadTokenizer(found->path, true));
  if (!tokenizer->SameIds(*setup_.tokenizer)) {
    return Error(Exit::kMismatch, "--fork: ", QuotePath(found->path),
        ": its vocabulary is not the vocabulary of this run");
  }
  RETURN_IF_ERROR(learner_->LoadWeights(found->path, &setup_.notes));
  forked_from_ = found->path;
  folder_->set_saved_step(-1);  // saves step 0: the other run may be deleted
  setup_.notes.push_back(absl::StrCat("a new run with the weights of ", found->path));
  return absl::OkStatus();
}

absl::StatusOr<Trainer::Summary> Trainer::Run() {
  progress_ = std::make_unique<Progress>(Progress::Options{.log_path = folder_->Path("log.jsonl"),
      .total_steps = pace_->total_steps(),
      .log_every_steps = spec_.output().log_every_steps()});
  for (const std::string& note : setup_.notes) progress_->Note(note);
  RETURN_IF_ERROR(folder_->WriteSpec(spec_));
  pace_->Start(learner_->step());
  const auto fetch = [this](int64_t example, double done) {  // by another thread
    return std::async(
        std::launch::async, [this, example, done] { return batcher_->Next(example, done); });
  };
  auto next = fetch(next_example_, pace_->done());
  while (true) {
    if (evaluation_due_ && !Stopped()) RETURN_IF_ERROR(Evaluate());
    const bool finished = Finished();
    if (finished || Stopped() || pace_->Due(save_every_)) RETURN_IF_ERROR(Save());
    if (finished) break;
    if (Stopped() && folder_->saved_step() == learner_->step()) {
      return Error(Exit::kInterrupted, "stopped after ", pace_->Describe(learner_->step()),
          "; run the same command again to continue");
    }
    const double asked = SteadySeconds();
    const absl::StatusOr<StepData> data = next.get();
    const double waited = SteadySeconds() - asked;
    if (!data.ok()) return SaveBefore(data.status());
    next = fetch(data->next, pace_->Done(learner_->step() + 1));
    RETURN_IF_ERROR(Step(*data, waited));
    pace_->Advance(learner_->step());
    evaluation_due_ =
        setup_.validation.has_value() && (pace_->over() || pace_->Due(evaluate_every_));
  }
  progress_->Finish();
  RETURN_IF_ERROR(FinishModel());
  return Summary{learner_->step(), learner_->last_loss(),
      setup_.validation.has_value() ? best_->metric() : "", best_->results()};
}

absl::Status Trainer::Step(const StepData& data, double waited) {
  const double loss = learner_->ForwardBackward(data);
  if (options_.on_gradients != nullptr)
    options_.on_gradients(learner_->step() + 1, learner_->gradients());
  const double rate = pace_->Rate(spec_.optimizer().learning_rate(), learner_->step());
  const Learner::StepResult result = learner_->Update(loss, rate);
  next_example_ = data.next;
  const int64_t step = learner_->step();
  if (!result.skipped.empty()) {
    progress_->Note(result.skipped);
    RETURN_IF_ERROR(learner_->CheckSkipped());
  }
  progress_->Step({.step = step,
      .loss = loss,
      .learning_rate = rate,
      .grad_norm = result.grad_norm,
      .done = pace_->Done(step),
      .seconds_left = pace_->SecondsLeft(),
      .tokens = data.tokens,
      .data_wait = waited,
      .memory_bytes = learner_->peak_bytes(),
      .skipped = !result.skipped.empty()});
  if (options_.after_step != nullptr) options_.after_step(step);
  return absl::OkStatus();
}

bool Trainer::Finished() const {
  return !evaluation_due_ && (pace_->over() || best_->OutOfPatience());
}

absl::Status Trainer::Evaluate() {
  absl::Status status;
  {
    const auto average = learner_->UseAverage();
    status = EvaluateWeights();
  }
  progress_->SkipTime();
  return status.ok() ? status : SaveBefore(status);
}

absl::Status Trainer::EvaluateWeights() {
  auto results = learner_->Evaluate(
      setup_.validation->store, spec_.evaluation().max_examples(), options_.stop);
  if (ExitOf(results.status()) == Exit::kInterrupted) return absl::OkStatus();
  RETURN_IF_ERROR(results.status());
  ASSIGN_OR_RETURN(const bool better, best_->IsBetter(*results));
  progress_->Evaluation(learner_->step(), *results, better);
  if (better) RETURN_IF_ERROR(SaveBest(*results));
  best_->Add(learner_->step(), better, *std::move(results));
  evaluation_due_ = false;
  WatchSources();
  if (best_->OutOfPatience() && !pace_->over()) {
    progress_->Note(
        absl::StrCat("no better ", best_->metric(), " in ", best_->evaluations_without_best(),
            " evaluations: the run ends after step ", learner_->step()));
  }
  return absl::OkStatus();
}

absl::Status Trainer::SaveBest(const MetricResults& results) {
  const int64_t step = learner_->step();
  const auto write = [&](const std::string& folder) {
    RETURN_IF_ERROR(learner_->WriteModel(folder));
    return WriteNewFile(JoinPath(folder, "metrics.json"),
        absl::StrCat("{\"step\":", step, ",\"metrics\":", results.ToJson(), "}\n"));
  };
  return folder_->SaveBest(step, write, learner_->model_bytes());
}

absl::Status Trainer::Save() {
  const int64_t step = learner_->step();
  if (folder_->saved_step() == step) return absl::OkStatus();
  const absl::Status status = folder_->Save(
      step, [this](const std::string& folder) { return WriteState(folder); },
      learner_->model_bytes() + learner_->moment_bytes());
  progress_->SkipTime();
  if (status.ok()) {
    progress_->Note(absl::StrCat("saved ", folder_->Path(CheckpointName(step))));
    WatchSources();
    return status;
  }
  const bool hopeless = ExitOf(status) == Exit::kInternal;  // numbers that are not finite stay so
  if (hopeless || folder_->failed_saves() >= kMaxFailedSaves || pace_->over() || Stopped())
    return Annotate(status, "cannot save");
  const std::string next = save_every_ > 0 ? absl::StrCat("in ", Counted(save_every_, "step"))
                                           : "after a tenth of the run";
  progress_->Note(
      absl::StrCat("cannot save: ", status.message(), "; training continues, next try ", next));
  return absl::OkStatus();
}

absl::Status Trainer::WriteState(const std::string& folder) {
  RETURN_IF_ERROR(learner_->WriteModel(folder));
  RETURN_IF_ERROR(learner_->WriteMoments(folder));
  TrainerState state;
  learner_->ToState(&state);
  best_->ToState(&state);
  state.set_total_steps(pace_->total_steps());
  state.set_seconds(pace_->Seconds());
  state.set_next_example(next_example_);
  state.set_evaluation_due(evaluation_due_);
  if (!forked_from_.empty()) state.set_forked_from(forked_from_);
  DescribeRun(spec_, *setup_.train, compute_, &state);
  return WriteTrainerState(folder, state);
}

absl::Status Trainer::SaveBefore(const absl::Status& error) {
  const absl::Status saved = Save();
  return saved.ok() ? error : Error(ExitOf(error), error.message(), "\n", saved.message());
}

void Trainer::WatchSources() {
  for (const auto* built : {&setup_.train, &setup_.validation}) {
    if (sources_changed_ || !built->has_value()) continue;
    const absl::Status status = CheckSources((*built)->sources);
    if (status.ok()) continue;
    sources_changed_ = true;
    progress_->Note(absl::StrCat("warning: ", status.message(),
        "; this run continues with the data that it read at its start"));
  }
}

absl::Status Trainer::FinishModel() {
  if (best_->found()) {
    const absl::Status sound = VerifyModel(folder_->directory(), best_->step());
    if (sound.ok() || ExitOf(sound) == Exit::kIo) return sound;
    if (best_->step() != learner_->step()) {
      return Error(Exit::kMismatch, sound.message(), "\nthe best model, of step ", best_->step(),
          ", is damaged and no checkpoint holds it (train again in another output.directory)");
    }
  }
  const auto average = learner_->UseAverage();
  return SaveBest(best_->results());
}

}  // namespace cloze
