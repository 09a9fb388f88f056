// The start of a run: anew, from its own checkpoint, or with the weights of another run.
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/text.h"
#include "core/ops/matmul.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/model_folder.h"
#include "tasks/run/trainer_state.h"
#include "tasks/training/default_settings.h"
#include "tasks/training/learned_vocab.h"
#include "tasks/training/memory.h"
#include "tasks/training/training_run.h"

namespace cloze {
namespace {

// The choices of rank 0 for all ranks.
struct RootChoices {
  MadeStores made;
  int64_t micro_tokens = 0;
};

// kMismatch, naming the rank, if ranks differ in program, spec or instruction set.
absl::Status CheckRanks(const TaskSpec& spec, DType compute, const RunOptions& options) {
  Ranks& ranks = *options.ranks;
  TaskSpec same = spec;
  same.mutable_runtime()->clear_threads();
  same.mutable_runtime()->clear_memory_limit_mb();
  ranks.set_timeout(spec.distributed().timeout_seconds());
  RETURN_IF_ERROR(ranks.CheckSame("the program", options.program));
  RETURN_IF_ERROR(ranks.CheckSame("the spec", PrintEffective(same)));
  RETURN_IF_ERROR(ranks.CheckSame("the matmul library", MatmulLibrary()));
  RETURN_IF_ERROR(ranks.CheckSame("the kernels", KernelsName()));
  return ranks.CheckSame("runtime.compute", NameOf(compute));
}

// Checks the model of a directory that has no checkpoint.
absl::Status CheckModelWithoutCheckpoints(
    TaskSpec now, const std::string& directory, std::vector<std::string>* notes) {
  const std::string spec = JoinPath(directory, kSpecName);
  if (!PathExists(JoinPath(directory, "config.json")) || !PathExists(spec)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const LoadedSpec before, LoadSpec(spec));
  KeepChoices(before.spec, &now);
  RETURN_IF_ERROR(CheckSameSpec(before.spec, now, directory));
  notes->push_back(absl::StrCat("warning: ", QuotePath(directory),
      " holds a model but no checkpoint: this run starts anew and will replace the model"));
  return absl::OkStatus();
}

// Reads the state of the newest checkpoint into *state, takes over what its run has chosen, and
// returns its path; "" if there is none. kMismatch if it belongs to another spec.
absl::StatusOr<std::string> FindRun(const std::string& directory, LoadedSpec* loaded,
    TrainerState* state, std::vector<std::string>* notes) {
  ASSIGN_OR_RETURN(std::string path, FindCheckpoint(directory, notes));
  if (path.empty()) {
    RETURN_IF_ERROR(CheckModelWithoutCheckpoints(loaded->spec, directory, notes));
    return path;
  }
  ASSIGN_OR_RETURN(*state, ReadTrainerState(path));
  ASSIGN_OR_RETURN(const LoadedSpec before, ParseSpec(state->spec(), JoinPath(path, kStateName)));
  KeepChoices(before.spec, &loaded->spec);
  RETURN_IF_ERROR(CheckSameSpec(before.spec, loaded->spec, directory));
  RETURN_IF_ERROR(VerifySpec(*loaded));
  return path;
}

// Reports if the passes of a step are too few for the ranks.
void NoteIdleRanks(int64_t step_tokens, int64_t micro_tokens, TrainingRun* run) {
  const int ranks = run->ranks().size();
  if (ranks == 1 || CeilDiv(step_tokens, micro_tokens) >= ranks) return;
  run->Note("batch.micro_tokens: a step of ", step_tokens, " tokens has fewer passes of ",
      micro_tokens, " tokens than there are ranks; some ranks wait (set it to ",
      step_tokens / ranks, " or less)");
}

// Returns a function that shows the progress of a stage.
std::function<void(int64_t done, int64_t total)> Showing(const char* stage, TrainingRun* run) {
  return [stage, run](int64_t done, int64_t total) {
    if (run->options.preparing != nullptr) run->options.preparing(stage, done, total);
  };
}

// If the run learns its vocabulary, makes the spec name it; rank 0 writes it.
absl::Status UseLearnedVocab(const std::string& checkpoint, TaskSpec* spec, TrainingRun* run) {
  if (!LearnsVocabulary(*spec)) return absl::OkStatus();
  std::string report;
  const LearnOptions learning = {
      .progress = Showing("learning the vocabulary", run), .stop = run->options.stop};
  if (run->ranks().first()) RETURN_IF_ERROR(MakeVocabFolder(*spec, checkpoint, learning, &report));
  if (!report.empty()) run->Note(report);
  spec->mutable_model()->set_tokenizer(VocabFolder(*spec));
  return absl::OkStatus();
}

// Finds the run, loads its inputs, and allocates its model. Rank 0 sets *root, the others read it.
// kMismatch if the training data have changed. Returns the path of the checkpoint.
absl::StatusOr<std::string> LoadRun(
    LoadedSpec loaded, DType compute, RootChoices* root, TrainingRun* run) {
  std::vector<std::string> found;
  ASSIGN_OR_RETURN(const std::string checkpoint,
      FindRun(run->folder->directory(), &loaded, &run->state, &found));
  const bool first = run->ranks().first();
  const TrainerState& state = run->state;
  if (!checkpoint.empty() && first) {
    root->made = {state.data_fingerprint(),
        state.has_validation_store() ? state.validation_store() : kUnnamedStore};
  }
  const BuildOptions build = {.cache_dir = CacheFolder(loaded.spec),
      .progress = Showing("tokenizing", run),
      .stop = run->options.stop,
      .reads_streams = first};
  if (!first) loaded.spec.mutable_batch()->set_micro_tokens(root->micro_tokens);
  RETURN_IF_ERROR(UseLearnedVocab(checkpoint, &loaded.spec, run));
  ASSIGN_OR_RETURN(RunInputs inputs, LoadRunInputs(loaded, build, root->made, &run->notes));
  for (const std::string& note : found) run->Note(note);
  if (!checkpoint.empty()) RETURN_IF_ERROR(CheckSameData(state, *inputs.train, checkpoint));
  inputs.compute = compute;
  const auto settings = ChooseSettings(inputs.facts(), &inputs.loaded.spec);
  if (!settings.empty()) run->Note(DescribeSettings(settings));
  const MemoryPlan plan(inputs.loaded.spec, inputs.config, compute,
      ShapeOfData(inputs.train->store.stats()), run->ranks().size());
  std::string note;
  ASSIGN_OR_RETURN(const int64_t tokens, ChooseMicroTokens(inputs.loaded, plan, &note));
  inputs.loaded.spec.mutable_batch()->set_micro_tokens(tokens);
  if (!note.empty()) run->Note(note);
  NoteIdleRanks(plan.MaxStepTokens(), tokens, run);
  *root = {inputs.stores(), tokens};
  run->inputs = std::make_unique<const RunInputs>(std::move(inputs));
  run->model = std::make_unique<ModelTrainer>(*run->inputs, plan.Need(tokens), &run->ranks());
  return checkpoint;
}

// Notes what the user may not expect of the schedule.
void NoteSchedule(double steps_per_epoch, TrainingRun* run) {
  const TaskSpec& spec = run->spec();
  const RunClock& clock = *run->clock;
  if (steps_per_epoch < 1) {
    run->Note(absl::StrFormat(
        "warning: a step reads the training data %.1f times (lower batch.%s for more steps)",
        1 / steps_per_epoch, spec.batch().examples() > 0 ? "examples" : "tokens"));
  }
  if (clock.timed() && spec.schedule().steps() > 0)
    run->Note(
        "warning: schedule.steps is ignored, because schedule.time_budget_minutes ends the run");
  for (const std::string& warning : FieldsWithoutEffect(spec)) run->Note(warning);
  const int64_t warmup = spec.schedule().warmup_steps();
  if (!clock.timed() && warmup >= clock.total_steps())
    run->Note("warning: schedule.warmup_steps is ", warmup, ", but the run has ",
        Counted(clock.total_steps(), "step"), ": the learning rate rises until its end");
  if (clock.timed())
    run->Note("with schedule.time_budget_minutes, repeated runs are not bit-identical");
}

absl::Status PlanSteps(TrainingRun* run) {
  const TaskSpec& spec = run->spec();
  run->batcher = std::make_unique<Batcher>(
      run->inputs->train->store, *run->inputs->task, spec.batch(), spec.seed());
  if (!run->state.has_total_steps()) {  // a new run
    ASSIGN_OR_RETURN(const double steps, run->batcher->StepsPerEpoch());
    run->state.set_steps_per_epoch(steps);
  }
  const double per_epoch = run->state.has_steps_per_epoch() ? run->state.steps_per_epoch()
                                                            : run->batcher->FullStepsPerEpoch();
  const int64_t total = TotalSteps(spec.schedule(), per_epoch);
  run->clock = std::make_unique<RunClock>(spec.schedule(), total,
      [run] { return run->ranks().size() == 1 ? run->options.clock() : run->seconds; });
  const int64_t local_steps = spec.distributed().local_steps(), counted = run->clock->total_steps();
  run->evaluate_every = RoundUp(EvaluationInterval(spec, per_epoch, counted), local_steps);
  run->save_every = RoundUp(SaveInterval(spec, counted), local_steps);
  NoteSchedule(per_epoch, run);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> StartRun(const LoadedSpec& loaded, TrainingRun* run) {
  Ranks& ranks = run->ranks();
  ASSIGN_OR_RETURN(const DType compute, ConfigureCompute(loaded));
  RETURN_IF_ERROR(CheckRanks(loaded.spec, compute, run->options));
  ASSIGN_OR_RETURN(run->folder, RunFolder::Open(loaded.spec, &ranks));
  std::string checkpoint;
  RootChoices root = {.made = run->options.made};
  const auto load = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(checkpoint, LoadRun(loaded, compute, &root, run));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ranks.OnRoot([&] {
    RemoveLeftovers(run->folder->directory());
    return load();
  }));
  ranks.Broadcast(&root.made.train);
  ranks.Broadcast(&root.made.validation);
  ranks.Broadcast(&root.micro_tokens);
  RETURN_IF_ERROR(ranks.RunCollectively([&] { return ranks.first() ? absl::OkStatus() : load(); }));
  const RunInputs& inputs = *run->inputs;
  RETURN_IF_ERROR(ranks.CheckSame("the training data", inputs.train->name()));
  if (inputs.validation.has_value())
    RETURN_IF_ERROR(ranks.CheckSame("the validation data", inputs.EvaluatedData()));
  RETURN_IF_ERROR(ranks.CheckSame("the checkpoint", checkpoint));
  RETURN_IF_ERROR(run->model->Initialize(&run->notes));
  RETURN_IF_ERROR(PlanSteps(run));
  return checkpoint;
}

absl::Status ForkRun(TrainingRun* run) {
  if (run->spec().trainable().has_lora()) {
    return SpecError(run->inputs->loaded, "trainable.lora",
        "cannot be used with the weights of another run, which replace those of the base: expected "
        "model.start_from to name that run");
  }
  const std::string& fork = run->options.fork;
  ASSIGN_OR_RETURN(const std::string found, FindCheckpoint(fork, &run->notes));
  if (found.empty())
    return Error(Exit::kNoInput, QuotePath(fork),
        ": has no checkpoint (model.start_from takes model folders)");
  const auto mismatch = [&](const auto&... problem) {
    return Error(Exit::kMismatch, QuotePath(found), problem...);
  };
  if (IsAdapter(found))
    return mismatch(": holds an adapter: expected a run without LoRA (`cloze merge` makes a model ",
        "for model.start_from)");
  ASSIGN_OR_RETURN(const ModelConfig before, LoadConfig(found));
  const ModelConfig& now = run->inputs->config;
  if ((before.encoder == nullptr) == (now.encoder == nullptr)) {
    std::string other = CompareSizes(before, now);
    if (other.empty() && before.mlp.activation != now.mlp.activation) other = "another activation";
    if (!other.empty()) return mismatch(": its model is not the model of this run: ", other);
  }
  ASSIGN_OR_RETURN(const auto tokenizer, LoadTokenizer(found, true));
  if (!tokenizer->SameIds(*run->inputs->tokenizer))
    return mismatch(": its vocabulary is not the vocabulary of this run");
  RETURN_IF_ERROR(run->model->LoadWeights(found, &run->notes));
  run->state.set_forked_from(found);
  run->saved_step = -1;  // saves step 0: the other run may be deleted
  run->Note("a new run with the weights of ", found);
  return absl::OkStatus();
}

}  // namespace cloze
