#include "tasks/jobs/plan.h"

#include <algorithm>
#include <cmath>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/base/system.h"
#include "core/ops/matmul.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/model.h"
#include "tasks/batcher.h"
#include "tasks/compute_type.h"
#include "tasks/data/readers.h"
#include "tasks/run/run_folder.h"
#include "tasks/training/learned_vocab.h"
#include "tasks/training/run_inputs.h"
#include "tasks/training/schedule.h"
#include "tasks/update/optimizer.h"

namespace cloze {
namespace {

constexpr int64_t kSampleBytes = 2 << 20, kWholeFile = int64_t{1} << 50;

// The data that the plan is based on.
struct PlanData {
  RunInputs inputs;
  DataSample train, validation;
};

// Opens the token cache; an error unless it holds all data.
absl::StatusOr<PlanData> OpenCache(const LoadedSpec& loaded, const PlanOptions& options) {
  const std::string cache = CacheFolder(loaded.spec);
  if (!PathExists(cache)) return Error(Exit::kNoInput, "no token cache");
  PlanData data;
  ASSIGN_OR_RETURN(data.inputs,
      LoadRunInputs(loaded, {.cache_dir = cache, .stop = options.stop, .only_cached = true}));
  return data;
}

// Replaces the names of sample files in the message by those of the spec.
absl::Status RestoreNames(const DataSample& sample, const absl::Status& status) {
  std::string message(status.message());
  for (size_t i = 0; i < sample.originals.size(); ++i)
    message = absl::StrReplaceAll(message, {{sample.data.files(i), sample.originals[i]}});
  return Error(ExitOf(status), message);
}

// Tokenizes the beginning of each data file.
absl::StatusOr<PlanData> BuildSample(const LoadedSpec& loaded, const PlanOptions& options) {
  PlanData result;
  LoadedSpec part = loaded;
  for (auto& [name, sample, data] : {std::tuple("train", &result.train, part.spec.mutable_train()),
           std::tuple("validation", &result.validation, part.spec.mutable_validation())}) {
    const std::string folder = JoinPath(options.scratch, name);
    RETURN_IF_ERROR(MakeDirectories(folder));
    // A file of questions may be one line; copies of FOLDERS would lose their class.
    const bool whole = loaded.spec.has_question_answering() || data->format() == DataSpec::FOLDERS;
    auto taken = SampleData(*data, folder, whole ? kWholeFile : kSampleBytes);
    if (!taken.ok()) return AtField(loaded, name, taken.status());
    *sample = *std::move(taken);
    *data = sample->data;
  }
  auto inputs =
      LoadRunInputs(part, {.cache_dir = JoinPath(options.scratch, "cache"), .stop = options.stop});
  if (!inputs.ok()) {
    const absl::Status status = RestoreNames(result.train, inputs.status());
    return RestoreNames(result.validation, status);
  }
  result.inputs = *std::move(inputs);
  return result;
}

DataEstimate Estimate(
    const TaskSpec& spec, const DataSpec& data, const DataSample& sample, const BuiltStore& built) {
  const double scale = sample.scale();
  const int64_t read =
      MakeTask(spec)->pretrains() ? built.store.size() : built.store.stats().documents;
  // The store of the sample is limited already.
  const double share =
      data.max_examples() > 0 ? std::min(1.0, data.max_examples() / (read * scale)) : 1;
  return {built.store.size() * scale * share, built.store.tokens() * scale * share,
      read * scale * share, sample.bytes, sample.read};
}

// Measured with tests/distributed/run.sh: the share of a link's rate that data get, and the share
// of a pass that hides the exchange of gradients.
constexpr double kGoodput = 0.9, kHidden = 0.3;

// Returns the seconds per step that a rank waits for the network: for gradients, as far as a pass
// of `pass_seconds` does not hide them, and weights or, with local_steps, for weights and moments.
double NetworkSeconds(
    const TaskSpec& spec, const PlanOptions& options, double pass_seconds, const RunPlan& plan) {
  if (options.network <= 0) return 0;
  const double byte = 8.0 * (options.ranks - 1) / options.ranks / (kGoodput * options.network);
  const double all = byte * sizeof(float) * plan.parameters.trained;  // seconds for all in f32
  const int64_t local = spec.distributed().local_steps();
  if (local > 1) return 6 * all / local;
  double weights = all;
  if (spec.optimizer().muon_rate() > 0) {
    weights += byte * sizeof(float) * plan.parameters.operands;  // their directions, in f32 as well
  } else if (ProductType(plan.compute) == DType::kBf16) {
    weights -= byte * (sizeof(float) - sizeof(Bf16)) * plan.parameters.operands;
  }
  return weights + std::max(all - kHidden * pass_seconds, 0.0);
}

// A step takes as long as the rank with the most passes.
void PlanStep(const TaskSpec& spec, const PlanOptions& options, double step_tokens, RunPlan* plan) {
  const Speed& speed = plan->speed;
  const double passes = std::ceil(step_tokens / plan->memory.micro_tokens - 0.01),
               most = std::ceil(passes / options.ranks) / std::max(passes, 1.0);
  const bool apart = spec.distributed().local_steps() > 1;
  plan->network_seconds = NetworkSeconds(
      spec, options, step_tokens / std::max(passes, 1.0) / speed.tokens_per_second, *plan);
  plan->step_seconds = step_tokens * most / speed.tokens_per_second +
                       speed.update_seconds / (apart ? 1 : options.ranks) + speed.packing_seconds +
                       plan->network_seconds;
  plan->tokens_per_second = step_tokens / plan->step_seconds;
}

// Returns the tokens of the passes that score `pairs`: each text as often as it has tokens to mask.
double TokensOfScores(absl::Span<const TextPair> pairs) {
  double tokens = 0;
  for (const TextPair& pair : pairs)
    for (const Example* text : {&pair.good, &pair.bad})
      tokens += static_cast<double>(text->rows.size() * text->ids.size());
  return tokens;
}

// `pair_tokens`: TokensOfScores of the pairs, which every rank computes.
void PlanTime(
    const TaskSpec& spec, int ranks, double per_epoch, double pair_tokens, RunPlan* plan) {
  const double step_tokens = plan->train.tokens / per_epoch, step_seconds = plan->step_seconds;
  double evaluated = plan->validation.tokens;
  if (const int64_t most = spec.evaluation().max_examples();
      most > 0 && most < plan->validation.examples)
    evaluated *= most / plan->validation.examples;
  const double evaluation_seconds =
      (evaluated / ranks + pair_tokens) / plan->speed.evaluation_tokens_per_second;
  plan->timed = spec.schedule().time_budget_minutes() > 0;
  const int64_t total = plan->timed ? 0 : TotalSteps(spec.schedule(), per_epoch);
  // Evaluations come every `every` steps or, if that is 0, kTimesARun times.
  const double every = EvaluationInterval(spec, per_epoch, total);
  if (plan->timed) {
    plan->train_seconds = 60 * spec.schedule().time_budget_minutes();
    const double each = every > 0 && evaluated > 0 ? evaluation_seconds / every : 0;
    const double apart = every > 0 ? 0 : kTimesARun * evaluation_seconds;
    plan->steps = std::floor(std::max(plan->train_seconds - apart, 0.0) / (step_seconds + each));
  } else {
    plan->steps = total;
    plan->train_seconds = plan->steps * step_seconds;
  }
  if (spec.validation().files_size() > 0) {
    plan->evaluations =
        every > 0 ? std::ceil(plan->steps / every) : std::min<double>(kTimesARun, plan->steps);
  }
  plan->evaluation_seconds = plan->evaluations * evaluation_seconds;
  plan->tokens = plan->steps * step_tokens;
}

constexpr int64_t kGrowth = 4;     // ratio of the sizes of consecutive passes
constexpr int64_t kShortest = 64;  // tokens of the first pass

double TimeOf(absl::FunctionRef<void()> work) {
  const double start = SteadySeconds();
  work();
  return SteadySeconds() - start;
}

// Returns the first batch of at most `tokens` tokens, with sequences of full length.
absl::StatusOr<Batch> FirstBatch(const TaskSpec& spec, const RunInputs& inputs, int64_t tokens) {
  BatchSpec size;
  size.set_tokens(tokens);
  size.set_micro_tokens(tokens);
  ASSIGN_OR_RETURN(
      StepData step, Batcher(inputs.train->store, *inputs.task, size, spec.seed()).Next(0, 1));
  return std::move(step.micro.front());
}

// Trains a model of `inputs` with fresh weights on its training data. Passes grow up to
// `most_tokens` as long as the next one is likely to end within `seconds` in total; at least one
// size is timed.
absl::StatusOr<Speed> MeasureSpeed(const TaskSpec& spec, const RunInputs& inputs, DType compute,
    int64_t most_tokens, double seconds) {
  Model model(inputs.config, true, spec.trainable());
  model.Initialize(spec.seed());
  Optimizer optimizer(&model.params(), spec.optimizer(), &OneRank(), compute);
  const double start = SteadySeconds();
  Speed speed;
  double last = 0;  // seconds of a pass of this size
  for (int64_t tokens =
           std::min(std::max(inputs.task->max_example_tokens(), kShortest), most_tokens);
       ; tokens = std::min(tokens * kGrowth, most_tokens)) {
    ASSIGN_OR_RETURN(const Batch batch, FirstBatch(spec, inputs, tokens));
    const float scale = 1.0f / static_cast<float>(std::max<int64_t>(batch.rows.size(), 1));
    const auto pass = [&] {
      inputs.task->Train(model, batch, {compute, spec.seed(), scale, spec.runtime().recompute()});
    };
    pass();  // generates kernels and touches memory
    last = TimeOf(pass);
    if (speed.pass_tokens == 0) {
      const auto update = [&] { optimizer.Step(1e-6, optimizer.GradNorm()); };
      update();  // touches the memory of the moments
      speed.update_seconds = TimeOf(update);
      speed.packing_seconds = std::max(TimeOf(pass) - last, 0.0);  // in the next pass
    }
    const auto infer = [&] { inputs.task->Infer(model, batch, EvaluationType()); };
    if (EvaluationType() != compute) infer();  // generates kernels
    speed.tokens_per_second = batch.tokens() / last;
    speed.evaluation_tokens_per_second = batch.tokens() / TimeOf(infer);
    speed.pass_tokens = batch.tokens();
    speed.seconds = SteadySeconds() - start;
    const double growth = double(std::min(tokens * kGrowth, most_tokens)) / tokens;
    if (tokens >= most_tokens || speed.seconds + 2.5 * growth * last > seconds) return speed;
  }
}

// Makes *spec name the vocabulary that the run has learned or would learn.
absl::Status PlanVocab(const PlanOptions& options, TaskSpec* spec) {
  std::string folder = VocabFolder(*spec);
  if (!PathExists(folder)) {
    folder = JoinPath(options.scratch, "vocab");
    ASSIGN_OR_RETURN(const auto tokenizer, LearnTokenizer(*spec, {.stop = options.stop}));
    RETURN_IF_ERROR(MakeDirectories(folder));
    RETURN_IF_ERROR(SaveTokenizer(*tokenizer, folder, spec->model().encoder().max_positions()));
  }
  spec->mutable_model()->set_tokenizer(folder);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunPlan> PlanRun(const LoadedSpec& given, const PlanOptions& options) {
  LoadedSpec loaded = given;
  const TaskSpec& spec = loaded.spec;
  RunPlan plan;
  KeepRulesOf(spec.output().directory(), &loaded.spec);
  // A run in the directory, which would be resumed, keeps what it has chosen.
  if (const auto run = LoadSpec(JoinPath(spec.output().directory(), kSpecName)); run.ok())
    KeepChoices(run->spec, &loaded.spec);
  if (LearnsVocabulary(spec)) {
    RETURN_IF_ERROR(PlanVocab(options, &loaded.spec));
  }
  ASSIGN_OR_RETURN(plan.compute, ConfigureCompute(loaded));
  auto data = OpenCache(loaded, options);
  if (!data.ok()) data = BuildSample(loaded, options);
  RETURN_IF_ERROR(data.status());
  const RunInputs& inputs = data->inputs;
  RETURN_IF_ERROR(CheckTrainable(spec.trainable(), inputs.config));
  plan.train = Estimate(spec, spec.train(), data->train, *inputs.train);
  if (inputs.validation.has_value())
    plan.validation = Estimate(spec, spec.validation(), data->validation, *inputs.validation);

  RunFacts facts = inputs.facts();
  facts.rows = plan.train.sequences, facts.tokens = plan.train.tokens;
  plan.settings = ChooseSettings(facts, &loaded.spec);
  RETURN_IF_ERROR(VerifySpec(loaded));
  const MemoryPlan memory(
      spec, inputs.config, plan.compute, ShapeOfData(inputs.train->store.stats()), options.ranks);
  plan.parameters = memory.parameters();
  plan.memory.limit = MemoryLimit(spec);
  const auto micro = ChooseMicroTokens(loaded, memory, &plan.memory.note);
  plan.memory.fits = micro.status();
  plan.memory.micro_tokens =
      micro.ok()
          ? *micro
          : std::max<int64_t>(spec.batch().has_micro_tokens() ? spec.batch().micro_tokens() : 0,
                inputs.task->max_example_tokens());
  plan.memory.need = memory.Need(plan.memory.micro_tokens);
  if (!plan.memory.fits.ok()) return plan;

  const double scale = plan.train.sequences / inputs.train->store.size();
  const Batcher batcher(inputs.train->store, *inputs.task, spec.batch(), spec.seed());
  ASSIGN_OR_RETURN(double per_epoch, batcher.StepsPerEpoch());
  per_epoch *= scale;
  const double step_tokens = plan.train.tokens / per_epoch;
  const auto most = std::clamp<int64_t>(
      std::llround(step_tokens), inputs.task->max_example_tokens(), plan.memory.micro_tokens);
  ASSIGN_OR_RETURN(
      plan.speed, MeasureSpeed(spec, inputs, plan.compute, most, options.probe_seconds));
  PlanStep(spec, options, step_tokens, &plan);
  PlanTime(spec, options.ranks, per_epoch, TokensOfScores(inputs.pairs), &plan);
  return plan;
}

}  // namespace cloze
