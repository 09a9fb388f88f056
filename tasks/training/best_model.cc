#include "tasks/training/best_model.h"

#include <bit>
#include <cmath>

#include "core/base/file.h"
#include "tasks/run/checkpoint.h"
#include "tasks/run/trainer_state.h"

namespace cloze {

absl::Status BestModel::CheckMetric() {
  const RunInputs& inputs = *run_.inputs;
  const std::string before = run_.state.has_best_value() ? run_.state.metric() : "";
  const bool named = !run_.spec().evaluation().metric().empty();
  if (!inputs.validation.has_value() || (!named && before.empty())) return absl::OkStatus();
  ASSIGN_OR_RETURN(const MetricResults results,
      run_.model->Evaluate(inputs.validation->store, 1, run_.options.stop, /*probe=*/true));
  const std::string now = MetricOf(results);
  const absl::Status known = FindMetric(MetricsOf(*inputs.task, run_.spec()), now).status();
  if (!known.ok()) return AtField(inputs.loaded, "evaluation.metric", known);
  if (before.empty() || before == now) return absl::OkStatus();
  return AtField(inputs.loaded, "evaluation.metric",
      Error(Exit::kMismatch, "is ", now, ": expected ", Quote(before),
          ", by which this run has chosen its best model (undo the change, or start a new run from "
          "its weights)"));
}

absl::Status BestModel::Restore() {
  TrainerState& state = run_.state;
  if (!state.has_best_value()) return absl::OkStatus();
  const bool finished = run_.Finished(run_.clock->Done(state.step()));
  if (run_.inputs->validation.has_value() && state.has_validation_fingerprint() &&
      state.validation_fingerprint() != run_.inputs->EvaluatedData()) {
    run_.Note(finished
                  ? "warning: the run is finished, and its metrics are those of other validation "
                    "data (`cloze evaluate` measures the model on these)"
                  : "the validation data changed: the next evaluation chooses the best model anew");
    keeps_spec_ = finished;
    if (!finished) {
      ForgetBest(&state);
      return absl::OkStatus();
    }
  }
  const int64_t step = state.best_step();
  absl::Status sound = Verify(step);
  if (sound.ok() || ExitOf(sound) == Exit::kIo) return sound;
  const std::string checkpoint = run_.folder->Path(CheckpointName(step)),
                    lost = absl::StrCat(
                        "the best model, of step ", step, ", is incomplete or overwritten");
  if (run_.ranks().OnRoot([&] { return VerifyCheckpoint(checkpoint); }).ok()) {
    ASSIGN_OR_RETURN(const TrainerState then, ReadTrainerState(checkpoint));
    RETURN_IF_ERROR(run_.model->Resume(checkpoint, then));
    const auto average = run_.model->UseAverage();
    run_.Note(lost, ": restored from ", checkpoint);
    run_.model->GatherWeights();
    return Write(then.step(), BestOf(state));
  }
  if (finished) return absl::OkStatus();  // Finish reports it
  run_.Note(lost, ": the next evaluation saves another");
  ForgetBest(&state);
  return absl::OkStatus();
}

absl::Status BestModel::Add(const MetricResults& results) {
  TrainerState& state = run_.state;
  const std::string name = MetricOf(results);
  ASSIGN_OR_RETURN(
      const Metric metric, FindMetric(MetricsOf(*run_.inputs->task, run_.spec()), name));
  const ModelScore score = ScoreOf(results, name);
  const ModelScore best = unsaved_.has_value()
                              ? ModelScore{unsaved_->value, ScoreOf(unsaved_->results, "").loss}
                              : BestScore(state);
  const int order = CompareModels(metric, score, best);
  // A metric may have no value, for example when no word has several pieces.
  const bool better = std::isfinite(score.value) && order >= 0;
  run_.progress->Evaluation(state.step(), results, better);
  if (better) RETURN_IF_ERROR(Keep(results, score.value));
  latest_ = results;
  state.set_metric(name);
  state.set_evaluations_without_best(
      better && order > 0 ? 0 : state.evaluations_without_best() + 1);
  return absl::OkStatus();
}

absl::Status BestModel::Keep(const MetricResults& results, double value) {
  const int64_t step = run_.state.step();
  run_.model->GatherWeights();
  const absl::Status saved = Write(step, results);
  if (ExitOf(saved) == Exit::kIo && !run_.clock->over()) {
    unsaved_ = {
        step, value, results, run_.ranks().first() ? run_.model->Weights() : std::vector<float>()};
    run_.Note("cannot save the best model: ", saved.message(),
        "; training continues, and it is tried again");
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(saved);
  Record(step, results, value);
  return absl::OkStatus();
}

void BestModel::RetryUnsaved() {
  if (unsaved_.has_value() && std::has_single_bit(uint64_t(run_.state.step() - unsaved_->step)))
    SaveUnsaved().IgnoreError();
}

absl::Status BestModel::SaveUnsaved() {
  if (!unsaved_.has_value()) return absl::OkStatus();
  absl::Status saved;
  {
    const auto weights = run_.model->UseWeights(&unsaved_->weights);
    saved = Write(unsaved_->step, unsaved_->results);
  }
  run_.progress->SkipTime();
  const std::string what = absl::StrCat("the best model, of step ", unsaved_->step);
  if (!saved.ok()) return Annotate(saved, what);
  run_.Note("wrote ", what);
  Record(unsaved_->step, MetricResults(unsaved_->results), unsaved_->value);
  return absl::OkStatus();
}

void BestModel::Record(int64_t step, const MetricResults& results, double value) {
  SetBest(results, step, value, &run_.state);
  run_.state.set_validation_fingerprint(run_.inputs->EvaluatedData());
  unsaved_.reset();
}

absl::Status BestModel::Write(int64_t step, const MetricResults& results) {
  const std::string& directory = run_.folder->directory();
  const auto write = [&](const std::string& folder) {
    RETURN_IF_ERROR(run_.model->WriteModel(folder, directory, results));
    if (!results.answers.empty())
      RETURN_IF_ERROR(WriteNewFile(JoinPath(folder, kAnswersName), results.answers + "\n"));
    return WriteNewFile(JoinPath(folder, "metrics.json"),
        absl::StrCat("{\"step\":", step, ",\"metrics\":", results.ToJson(), "}\n"));
  };
  return run_.ranks().OnRoot(
      [&] { return SaveModel(directory, step, write, run_.model->Bytes(false)); });
}

absl::Status BestModel::Verify(int64_t step) {
  return run_.ranks().OnRoot([&] { return VerifyModel(run_.folder->directory(), step); });
}

std::string BestModel::MetricOf(const MetricResults& results) const {
  const std::string& named = run_.spec().evaluation().metric();
  return named.empty() ? results.values.front().first : named;
}

MetricResults BestModel::Results() const {
  return run_.state.has_best_value() ? BestOf(run_.state) : latest_;
}

absl::Status BestModel::Finish() {
  const TrainerState& state = run_.state;
  if (state.has_best_value()) {
    const int64_t step = state.best_step();
    absl::Status sound = Verify(step);
    if (sound.ok() || ExitOf(sound) == Exit::kIo) return sound;
    if (step != state.step()) {
      return Error(Exit::kMismatch, sound.message(), "\nthe best model, of step ", step,
          ", is damaged and no checkpoint holds it (train again in another output.directory)");
    }
  }
  const bool measured = run_.inputs->validation.has_value() && !state.has_best_value();
  if (measured && latest_.values.empty() && Verify(state.step()).ok())
    return absl::OkStatus();  // an earlier process has written the model and its
                              // results
  if (measured && !latest_.values.empty()) {
    run_.Note(state.metric(),
        " was never a number: the result is the last model (evaluation.metric names another one)");
  }
  const auto average = run_.model->UseAverage();
  run_.model->GatherWeights();
  return Write(state.step(), Results());
}

}  // namespace cloze
