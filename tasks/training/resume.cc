// How a run continues from a checkpoint: its own, or that of another run.
#include <utility>

#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/model_folder.h"
#include "tasks/run/state.h"
#include "tasks/training/memory.h"
#include "tasks/training/trainer.h"

namespace cloze {

absl::StatusOr<std::string> Trainer::FindRun() {
  if (ranks().first()) RemoveLeftovers(folder_->directory());
  ASSIGN_OR_RETURN(std::string path, FindCheckpoint(folder_->directory(), &setup_.notes));
  if (path.empty()) return CheckModelWithoutCheckpoints();
  ASSIGN_OR_RETURN(state_, ReadTrainerState(path));
  ASSIGN_OR_RETURN(const LoadedSpec before, ParseSpec(state_.spec(), JoinPath(path, kStateName)));
  if (!spec_.batch().has_micro_tokens())
    loaded_.spec.mutable_batch()->set_micro_tokens(before.spec.batch().micro_tokens());
  KeepShareRule(before.spec, &loaded_.spec);
  RETURN_IF_ERROR(CheckSameSpec(before.spec, spec_, folder_->directory()));
  RETURN_IF_ERROR(VerifySpec(loaded_));
  return path;
}

absl::Status Trainer::PrepareRun(BuildOptions build, MadeStores* made, std::string* checkpoint) {
  ASSIGN_OR_RETURN(*checkpoint, FindRun());
  build.reads_streams = ranks().first();
  if (!checkpoint->empty() && ranks().first()) {
    *made = {state_.data_fingerprint(),
        state_.has_validation_store() ? state_.validation_store() : kUnnamedStore};
  }
  std::vector<std::string> found = std::move(setup_.notes);
  ASSIGN_OR_RETURN(setup_, Prepare(loaded_, build, *made));
  setup_.notes.insert(setup_.notes.end(), found.begin(), found.end());
  *made = stores();
  return checkpoint->empty() ? absl::OkStatus() : CheckSameData(state_, *setup_.train, *checkpoint);
}

absl::StatusOr<std::string> Trainer::CheckModelWithoutCheckpoints() {
  const std::string &directory = folder_->directory(), spec = JoinPath(directory, kSpecName);
  if (!PathExists(JoinPath(directory, "config.json")) || !PathExists(spec)) return "";
  ASSIGN_OR_RETURN(const LoadedSpec before, LoadSpec(spec));
  TaskSpec now = spec_;
  if (!now.batch().has_micro_tokens())
    now.mutable_batch()->set_micro_tokens(before.spec.batch().micro_tokens());
  RETURN_IF_ERROR(CheckSameSpec(before.spec, now, directory));
  setup_.notes.push_back(absl::StrCat("warning: ", QuotePath(directory),
      " holds a model but no checkpoint: this run starts anew and will replace the model"));
  return "";
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
  const bool finished =
      !state_.evaluation_due() && (pace_->Done(state_.step()) >= 1 || OutOfPatience(spec_, state_));
  if (setup_.validation.has_value() && state_.has_validation_fingerprint() &&
      state_.validation_fingerprint() != setup_.EvaluatedData(spec_.evaluation().max_examples())) {
    setup_.notes.push_back(
        finished ? "warning: the run is finished, and its metrics are those of other validation "
                   "data (`cloze evaluate` measures the model on these)"
                 : "the validation data changed: the next evaluation chooses the best model anew");
    keeps_spec_ = finished;
    if (!finished) ForgetBest(&state_);
    if (!finished) return absl::OkStatus();
  }
  const int64_t step = state_.best_step();
  absl::Status sound = ranks().OnFirst([&] { return VerifyModel(folder_->directory(), step); });
  if (sound.ok() || ExitOf(sound) == Exit::kIo) return sound;
  const std::string checkpoint = folder_->Path(CheckpointName(step)),
                    lost = absl::StrCat(
                        "the best model, of step ", step, ", is incomplete or overwritten");
  if (ranks().OnFirst([&] { return VerifyCheckpoint(checkpoint); }).ok()) {
    ASSIGN_OR_RETURN(const TrainerState then, ReadTrainerState(checkpoint));
    RETURN_IF_ERROR(learner_->Resume(checkpoint, then));
    const auto average = learner_->UseAverage();
    setup_.notes.push_back(absl::StrCat(lost, ": restored from ", checkpoint));
    learner_->GatherWeights();
    return WriteBest(then.step(), BestOf(state_));
  }
  if (finished) return absl::OkStatus();  // FinishModel reports it
  setup_.notes.push_back(absl::StrCat(lost, ": the next evaluation saves another"));
  ForgetBest(&state_);
  return absl::OkStatus();
}

absl::Status Trainer::Fork() {
  if (spec_.trainable().has_lora()) {
    return SpecError(loaded_, "trainable.lora",
        "cannot be used with --fork, which replaces the weights of the base: expected "
        "model.start_from to name that run, without --fork");
  }
  ASSIGN_OR_RETURN(const std::string found, FindCheckpoint(options_.fork, &setup_.notes));
  if (found.empty()) {
    return Error(Exit::kNoInput, "--fork: ", QuotePath(options_.fork),
        ": has no checkpoint (model.start_from takes model folders)");
  }
  if (IsAdapter(found)) {
    return Error(Exit::kMismatch, "--fork: ", QuotePath(found),
        ": holds an adapter: expected a run without LoRA (`cloze merge` makes a model for ",
        "model.start_from)");
  }
  ASSIGN_OR_RETURN(const ModelConfig before, LoadConfig(found));
  if (before.source.empty() == setup_.config.source.empty()) {
    std::string other = CompareSizes(before, setup_.config);
    if (other.empty() && before.activation != setup_.config.activation)
      other = "another activation";
    if (!other.empty()) {
      return Error(Exit::kMismatch, "--fork: ", QuotePath(found),
          ": its model is not the model of this run: ", other);
    }
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

}  // namespace cloze
