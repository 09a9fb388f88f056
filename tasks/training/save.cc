// How a run writes its checkpoints and its best model.
#include "core/base/text.h"
#include "tasks/run/state.h"
#include "tasks/training/about.h"
#include "tasks/training/trainer.h"

namespace cloze {

absl::Status Trainer::KeepBest(const MetricResults& results, double value) {
  learner_->GatherWeights();
  const absl::Status saved = WriteBest(state_.step(), results);
  if (ExitOf(saved) == Exit::kIo && !pace_->over()) {
    unsaved_ = {state_.step(), value, results,
        ranks().first() ? learner_->Weights() : std::vector<float>()};
    progress_->Note(absl::StrCat("cannot save the best model: ", saved.message(),
        "; training continues, and it is tried again"));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(saved);
  unsaved_.reset();
  SetBest(results, state_.step(), value, &state_);
  state_.set_validation_fingerprint(setup_.EvaluatedData(spec_.evaluation().max_examples()));
  return absl::OkStatus();
}

absl::Status Trainer::SaveUnsaved() {
  if (!unsaved_.has_value()) return absl::OkStatus();
  absl::Status saved;
  {
    const auto weights = learner_->UseWeights(&unsaved_->weights);
    saved = WriteBest(unsaved_->step, unsaved_->results);
  }
  progress_->SkipTime();
  const std::string what = absl::StrCat("the best model, of step ", unsaved_->step);
  if (!saved.ok()) return Annotate(saved, what);
  progress_->Note(absl::StrCat("wrote ", what));
  SetBest(unsaved_->results, unsaved_->step, unsaved_->value, &state_);
  state_.set_validation_fingerprint(setup_.EvaluatedData(spec_.evaluation().max_examples()));
  unsaved_.reset();
  return absl::OkStatus();
}

absl::Status Trainer::WriteBest(int64_t step, const MetricResults& results) {
  const auto write = [&](const std::string& folder) {
    RETURN_IF_ERROR(learner_->WriteModel(folder, folder_->directory(), results));
    return WriteNewFile(JoinPath(folder, "metrics.json"),
        absl::StrCat("{\"step\":", step, ",\"metrics\":", results.ToJson(), "}\n"));
  };
  return ranks().OnFirst(
      [&] { return SaveModel(folder_->directory(), step, write, learner_->Bytes(false)); });
}

absl::Status Trainer::Save(bool last) {
  const int64_t step = state_.step();
  absl::Status status = SaveUnsaved();
  if (status.ok()) {
    if (folder_->saved_step() == step) return status;
    learner_->GatherWeights();
    status = folder_->Save(
        step, [this](const std::string& folder) { return WriteState(folder); },
        learner_->Bytes(true), [this] { learner_->state_file().FinishWrite(); });
    progress_->SkipTime();
  } else {
    folder_->CountFailedSave();
  }
  if (status.ok()) {
    progress_->MinorNote(absl::StrCat("saved ", folder_->Path(CheckpointName(step))));
    WatchSources();
    return status;
  }
  const bool hopeless = ExitOf(status) == Exit::kInternal;  // numbers that are not finite stay so
  if (last || hopeless || folder_->failed_saves() >= kMaxFailedSaves || pace_->over() || stopped_)
    return Annotate(status, "cannot save");
  const std::string next = save_every_ > 0 ? absl::StrCat("in ", Counted(save_every_, "step"))
                                           : "after a tenth of the run";
  progress_->Note(
      absl::StrCat("cannot save: ", status.message(), "; training continues, next try ", next));
  return absl::OkStatus();
}

absl::Status Trainer::WriteState(const std::string& folder) {
  // The folder will be renamed where it is, so relative paths in it stay valid.
  RETURN_IF_ERROR(learner_->WriteModel(folder, folder, {}));
  RETURN_IF_ERROR(learner_->state_file().Write(JoinPath(folder, kMomentsName)));
  state_.set_total_steps(pace_->total_steps());
  state_.set_seconds(pace_->Seconds());
  DescribeRun(spec_, *setup_.train, compute_, &state_);
  state_.set_validation_store(stores().validation);
  return WriteTrainerState(folder, state_);
}

absl::Status Trainer::SaveBefore(const absl::Status& error) {
  const absl::Status saved = BetweenAverages() ? absl::OkStatus() : Save(/*last=*/true);
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
    absl::Status sound = ranks().OnFirst([&] { return VerifyModel(folder_->directory(), step); });
    if (sound.ok() || ExitOf(sound) == Exit::kIo) return sound;
    if (step != state_.step()) {
      return Error(Exit::kMismatch, sound.message(), "\nthe best model, of step ", step,
          ", is damaged and no checkpoint holds it (train again in another output.directory)");
    }
  }
  const bool measured = setup_.validation.has_value() && !state_.has_best_value();
  if (measured && latest_.values.empty() &&
      ranks().OnFirst([&] { return VerifyModel(folder_->directory(), state_.step()); }).ok())
    return absl::OkStatus();  // an earlier process has written the model and its results
  if (measured && !latest_.values.empty()) {
    progress_->Note(absl::StrCat(state_.metric(),
        " was never a number: the result is the last model (evaluation.metric names another one)"));
  }
  const auto average = learner_->UseAverage();
  learner_->GatherWeights();
  return WriteBest(state_.step(), state_.has_best_value() ? BestOf(state_) : latest_);
}

}  // namespace cloze
