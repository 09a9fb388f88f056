#include "tasks/training/checkpoints.h"

#include "core/base/text.h"
#include "tasks/run/checkpoint.h"
#include "tasks/run/trainer_state.h"
#include "tasks/training/memory.h"

namespace cloze {

absl::Status Checkpoints::Resume(const std::string& path) {
  if (const std::string& fork = run_.options.fork; !fork.empty())
    run_.Note(
        "the run directory has a run already: it is resumed, and ", QuotePath(fork), " is ignored");
  TrainerState& state = run_.state;
  run_.clock->Resume(state.seconds());
  run_.saved_step = state.step();
  if (!run_.inputs->validation.has_value()) state.set_evaluation_due(false);
  RETURN_IF_ERROR(best_.Restore());
  RETURN_IF_ERROR(run_.model->Resume(path, state));
  run_.Note("resumed at ", run_.clock->Describe(state.step()), " from ", path);
  const bool one_pass =
      MaxStepTokens(run_.spec(), *run_.inputs->task) <= run_.spec().batch().micro_tokens();
  if (const std::string warning = CodeWarning(state, run_.inputs->compute, one_pass);
      !warning.empty())
    run_.Note(warning);
  return absl::OkStatus();
}

absl::Status Checkpoints::Save(bool last) {
  const int64_t step = run_.state.step();
  absl::Status status = best_.SaveUnsaved();
  if (status.ok()) {
    if (run_.saved_step == step) return status;
    status = Write();
    run_.progress->SkipTime();
  }
  failures_ = status.ok() ? 0 : failures_ + 1;
  if (status.ok()) {
    run_.saved_step = step;
    run_.progress->MinorNote(absl::StrCat("saved ", run_.folder->Path(CheckpointName(step))));
    return status;
  }
  const bool hopeless = ExitOf(status) == Exit::kInternal;  // numbers that are not finite stay so
  if (last || hopeless || failures_ >= kMaxFailures || run_.clock->over())
    return Annotate(status, "cannot save");
  const std::string next = run_.save_every > 0
                               ? absl::StrCat("in ", Counted(run_.save_every, "step"))
                               : "after a tenth of the run";
  run_.Note("cannot save: ", status.message(), "; training continues, next try ", next);
  return absl::OkStatus();
}

absl::Status Checkpoints::Write() {
  run_.model->GatherWeights();
  return run_.ranks().RunCollectively([&] {
    absl::Status saved;
    if (run_.ranks().first()) {
      saved = SaveCheckpoint(
          run_.folder->directory(), run_.state.step(),
          [&](const std::string& folder) { return WriteFiles(folder); },
          run_.spec().output().keep_checkpoints(), run_.model->Bytes(true));
    }
    run_.model->state_file().FinishWrite();
    return saved;
  });
}

absl::Status Checkpoints::WriteFiles(const std::string& folder) {
  // The folder will be renamed where it is, so relative paths in it stay valid.
  RETURN_IF_ERROR(run_.model->WriteModel(folder, folder, {}));
  RETURN_IF_ERROR(run_.model->state_file().Write(JoinPath(folder, kMomentsName)));
  TrainerState& state = run_.state;
  state.set_total_steps(run_.clock->total_steps());
  state.set_seconds(run_.clock->Seconds());
  DescribeRun(run_.spec(), *run_.inputs->train, run_.inputs->compute, &state);
  state.set_validation_store(run_.inputs->stores().validation);
  return WriteTrainerState(folder, state);
}

absl::Status Checkpoints::SaveBefore(const absl::Status& error) {
  const absl::Status saved = run_.BetweenAverages() ? absl::OkStatus() : Save(/*last=*/true);
  return saved.ok() ? error : Error(ExitOf(error), error.message(), "\n", saved.message());
}

}  // namespace cloze
