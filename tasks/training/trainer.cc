#include "tasks/training/trainer.h"

#include <cmath>
#include <future>
#include <utility>

#include "core/base/system.h"
#include "core/base/text.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/model.h"
#include "tasks/run/state.h"
#include "tasks/training/about.h"
#include "tasks/training/memory.h"
#include "tasks/training/plateau.h"

namespace cloze {

namespace {

constexpr int kMaxFailedSaves = 3;

MetricResults BestOf(const TrainerState& state) {
  MetricResults best;
  for (const auto& metric : state.best()) best.values.emplace_back(metric.name(), metric.value());
  for (const auto& table : state.best_table()) best.tables.emplace_back(table.name(), table.json());
  return best;
}

// Forgets the best results, so that the next finite ones are the best; patience goes on.
void ForgetBest(TrainerState* state) {
  state->clear_best_value();
  state->set_best_step(0);
  state->clear_best();
  state->clear_best_table();
}

void SetBest(double value, const MetricResults& results, TrainerState* state) {
  ForgetBest(state);
  state->set_best_value(value);
  state->set_best_step(state->step());
  for (const auto& [name, number] : results.values) {
    TrainerState::Metric* metric = state->add_best();
    metric->set_name(name);
    metric->set_value(number);
  }
  for (const auto& [name, json] : results.tables) {
    TrainerState::Table* table = state->add_best_table();
    table->set_name(name);
    table->set_json(json);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    const LoadedSpec& loaded, const Options& options) {
  auto trainer = std::unique_ptr<Trainer>(new Trainer(loaded, options));
  ASSIGN_OR_RETURN(trainer->compute_, ConfigureCompute(loaded));
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
  ASSIGN_OR_RETURN(const std::string checkpoint, FindRun());
  RETURN_IF_ERROR(CreateLearner());
  PlanSteps();
  RETURN_IF_ERROR(CheckMetric());
  if (!checkpoint.empty()) return Resume(checkpoint);
  return options_.fork.empty() ? absl::OkStatus() : Fork();
}

absl::StatusOr<std::string> Trainer::FindRun() {
  RemoveLeftovers(folder_->directory());
  ASSIGN_OR_RETURN(std::string path, FindCheckpoint(folder_->directory(), &setup_.notes));
  if (path.empty()) return path;
  ASSIGN_OR_RETURN(state_, ReadTrainerState(path));
  ASSIGN_OR_RETURN(const LoadedSpec before, ParseSpec(state_.spec(), JoinPath(path, kStateName)));
  if (!spec_.batch().has_micro_tokens())
    loaded_.spec.mutable_batch()->set_micro_tokens(before.spec.batch().micro_tokens());
  RETURN_IF_ERROR(CheckSameSpec(before.spec, spec_, folder_->directory()));
  RETURN_IF_ERROR(VerifySpec(loaded_));
  RETURN_IF_ERROR(CheckSameData(state_, *setup_.train, path));
  return path;
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
  if (pace_->timed())
    setup_.notes.push_back(
        "with schedule.time_budget_minutes, repeated runs are not bit-identical");
}

absl::Status Trainer::CheckMetric() {
  const std::string before = state_.has_best_value() ? state_.metric() : "";
  const bool named = !spec_.evaluation().metric().empty();
  if (!setup_.validation.has_value() || (!named && before.empty())) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const MetricResults results, learner_->Evaluate(setup_.validation->store, 1, options_.stop));
  const std::string now = MetricOf(results);
  const absl::Status known = results.Value(now).status();
  if (!known.ok()) return AtField(loaded_, "evaluation.metric", known);
  if (before.empty() || before == now) return absl::OkStatus();
  return AtField(loaded_, "evaluation.metric",
      Error(Exit::kMismatch, "is ", now, ": expected ", before,
          ", by which this run has chosen its best model (undo the change, "
          "or start a new run from its weights: --fork)"));
}

absl::Status Trainer::Resume(const std::string& checkpoint) {
  if (!options_.fork.empty())
    setup_.notes.push_back("the run directory has a run already: it is resumed, --fork is ignored");
  pace_->Resume(state_.seconds());
  folder_->set_saved_step(state_.step());
  if (!setup_.validation.has_value()) state_.set_evaluation_due(false);
  RETURN_IF_ERROR(RestoreBest());
  RETURN_IF_ERROR(learner_->Resume(checkpoint, state_));
  setup_.notes.push_back(
      absl::StrCat("resumed at ", pace_->Describe(state_.step()), " from ", checkpoint));
  const bool one_pass = MostTokens(spec_, *setup_.task) <= spec_.batch().micro_tokens();
  if (std::string warning = CodeWarning(state_, compute_, one_pass); !warning.empty())
    setup_.notes.push_back(std::move(warning));
  return absl::OkStatus();
}

absl::Status Trainer::RestoreBest() {
  if (!state_.has_best_value()) return absl::OkStatus();
  const int64_t step = state_.best_step();
  const absl::Status sound = VerifyModel(folder_->directory(), step);
  if (sound.ok() || ExitOf(sound) == Exit::kIo) return sound;
  const std::string checkpoint = folder_->Path(CheckpointName(step)),
                    lost = absl::StrCat(
                        "the best model, of step ", step, ", is incomplete or overwritten");
  if (VerifyCheckpoint(checkpoint).ok()) {
    ASSIGN_OR_RETURN(const TrainerState then, ReadTrainerState(checkpoint));
    RETURN_IF_ERROR(learner_->Resume(checkpoint, then));
    const auto average = learner_->UseAverage();
    setup_.notes.push_back(absl::StrCat(lost, ": restored from ", checkpoint));
    return SaveBest(then.step(), BestOf(state_));
  }
  const bool finished =
      !state_.evaluation_due() && (pace_->Done(state_.step()) >= 1 || OutOfPatience());
  if (finished) return absl::OkStatus();  // FinishModel reports it
  setup_.notes.push_back(absl::StrCat(lost, ": the next evaluation saves another"));
  ForgetBest(&state_);
  return absl::OkStatus();
}

absl::Status Trainer::Fork() {
  ASSIGN_OR_RETURN(const std::string found, FindCheckpoint(options_.fork, &setup_.notes));
  if (found.empty()) {
    return Error(Exit::kNoInput, "--fork: ", QuotePath(options_.fork),
        ": has no checkpoint (model.start_from takes model folders)");
  }
  ASSIGN_OR_RETURN(const auto tokenizer, LoadTokenizer(found, true));
  if (!tokenizer->SameIds(*setup_.tokenizer)) {
    return Error(Exit::kMismatch, "--fork: ", QuotePath(found),
        ": its vocabulary is not the vocabulary of this run");
  }
  RETURN_IF_ERROR(learner_->LoadWeights(found, &setup_.notes));
  state_.set_forked_from(found);
  folder_->set_saved_step(-1);  // saves step 0: the other run may be deleted
  setup_.notes.push_back(absl::StrCat("a new run with the weights of ", found));
  return absl::OkStatus();
}

absl::StatusOr<Trainer::Summary> Trainer::Run() {
  progress_ = std::make_unique<Progress>(Progress::Options{.log_path = folder_->Path("log.jsonl"),
      .events_path = spec_.output().tensorboard() ? folder_->Path(kEventsName) : "",
      .step = state_.step(),
      .total_steps = pace_->total_steps(),
      .log_every_steps = spec_.output().log_every_steps(),
      .tokens = state_.tokens(),
      .seconds = state_.seconds()});
  for (const std::string& note : setup_.notes) progress_->Note(note);
  RETURN_IF_ERROR(WriteFileAtomically(folder_->Path(kSpecName), PrintEffective(spec_)));
  RETURN_IF_ERROR(WriteAbout(folder_->Path("about.json"), setup_, compute_, options_.program));
  pace_->Start(state_.step());
  const auto fetch = [this](int64_t example, double done) {  // by another thread
    return std::async(
        std::launch::async, [this, example, done] { return batcher_->Next(example, done); });
  };
  auto next = fetch(state_.next_example(), pace_->done());
  while (true) {
    if (state_.evaluation_due() && !Stopped()) {
      const absl::Status status = Evaluate();
      progress_->SkipTime();
      if (!status.ok() && ExitOf(status) != Exit::kInterrupted) return SaveBefore(status);
    }
    const bool finished = Finished();
    if (finished || Stopped() || pace_->Due(save_every_)) RETURN_IF_ERROR(Save());
    if (finished) break;
    if (Stopped() && folder_->saved_step() == state_.step()) {
      return Error(Exit::kInterrupted, "stopped after ", pace_->Describe(state_.step()),
          "; run the same command again to continue");
    }
    const double asked = SteadySeconds();
    const absl::StatusOr<StepData> data = next.get();
    const double waited = SteadySeconds() - asked;
    if (!data.ok()) return SaveBefore(data.status());
    next = fetch(data->next, pace_->Done(state_.step() + 1));
    RETURN_IF_ERROR(Step(*data, waited));
    const double before = pace_->done();
    pace_->Advance(state_.step());
    RETURN_IF_ERROR(NoteIfNotLearning(before));
    state_.set_evaluation_due(
        setup_.validation.has_value() && (pace_->over() || pace_->Due(evaluate_every_)));
  }
  progress_->Finish();
  RETURN_IF_ERROR(FinishModel());
  return Summary{state_.step(), state_.last_loss(),
      setup_.validation.has_value() ? state_.metric() : "", BestOf(state_)};
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
  if (!result.skipped.empty()) {
    progress_->Note(result.skipped);
    RETURN_IF_ERROR(CheckSkipped(state_));
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

absl::Status Trainer::NoteIfNotLearning(double before) {
  const double when = PlateauCheckAt(spec_.schedule(), pace_->total_steps());
  if (before >= when || pace_->done() < when) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double chance, setup_.task->ChanceLoss(setup_.train->store));
  const std::string note =
      PlateauNote(progress_->smoothed_loss(), chance, setup_.task->pretrains());
  if (!note.empty()) progress_->Note(note);
  return absl::OkStatus();
}

bool Trainer::OutOfPatience() const {
  const int64_t patience = spec_.evaluation().patience();
  return patience > 0 && state_.evaluations_without_best() >= patience;
}

bool Trainer::Finished() const {
  return !state_.evaluation_due() && (pace_->over() || OutOfPatience());
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
  const std::string metric = MetricOf(results);
  ASSIGN_OR_RETURN(const double value, results.Value(metric));
  const bool better = std::isfinite(value) &&
                      (!state_.has_best_value() || IsBetter(metric, value, state_.best_value()));
  progress_->Evaluation(state_.step(), results, better);
  if (better) {
    RETURN_IF_ERROR(SaveBest(state_.step(), results));
    SetBest(value, results, &state_);
  }
  state_.set_metric(metric);
  state_.set_evaluations_without_best(better ? 0 : state_.evaluations_without_best() + 1);
  state_.set_evaluation_due(false);
  WatchSources();
  if (OutOfPatience() && !pace_->over()) {
    progress_->Note(absl::StrCat("no better ", metric, " in ", state_.evaluations_without_best(),
        " evaluations: the run ends after step ", state_.step()));
  }
  return absl::OkStatus();
}

absl::Status Trainer::SaveBest(int64_t step, const MetricResults& results) {
  const auto write = [&](const std::string& folder) {
    RETURN_IF_ERROR(learner_->WriteModel(folder, folder_->directory(), results));
    return WriteNewFile(JoinPath(folder, "metrics.json"),
        absl::StrCat("{\"step\":", step, ",\"metrics\":", results.ToJson(), "}\n"));
  };
  return SaveModel(folder_->directory(), step, write, learner_->Bytes(false));
}

absl::Status Trainer::Save() {
  const int64_t step = state_.step();
  if (folder_->saved_step() == step) return absl::OkStatus();
  const absl::Status status = folder_->Save(
      step, [this](const std::string& folder) { return WriteState(folder); },
      learner_->Bytes(true));
  progress_->SkipTime();
  if (status.ok()) {
    progress_->MinorNote(absl::StrCat("saved ", folder_->Path(CheckpointName(step))));
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
  RETURN_IF_ERROR(learner_->WriteModel(folder, folder, {}));  // its name changes, not its place
  RETURN_IF_ERROR(learner_->WriteMoments(folder));
  state_.set_total_steps(pace_->total_steps());
  state_.set_seconds(pace_->Seconds());
  DescribeRun(spec_, *setup_.train, compute_, &state_);
  return WriteTrainerState(folder, state_);
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
  if (state_.has_best_value()) {
    const int64_t step = state_.best_step();
    const absl::Status sound = VerifyModel(folder_->directory(), step);
    if (sound.ok() || ExitOf(sound) == Exit::kIo) return sound;
    if (step != state_.step()) {
      return Error(Exit::kMismatch, sound.message(), "\nthe best model, of step ", step,
          ", is damaged and no checkpoint holds it (train again in another output.directory)");
    }
  }
  const auto average = learner_->UseAverage();
  return SaveBest(state_.step(), BestOf(state_));
}

}  // namespace cloze
