#include "tasks/training/memory.h"

#include <algorithm>

#include "core/base/system.h"
#include "core/base/threads.h"
#include "core/ops/matmul.h"
#include "core/ops/profile.h"
#include "tasks/compute_type.h"
#include "tasks/update/gradient_sum.h"
#include "tasks/update/optimizer.h"
#include "tasks/update/outer_optimizer.h"

namespace cloze {
namespace {

constexpr int64_t kMegabyte = 1000000, kFloat = sizeof(float);
constexpr int64_t kRows = 64;  // passes are padded to multiples of it
// Bytes, measured with oneDNN 2.6.
constexpr int64_t kProgram = 40 * kMegabyte;        // the program and its libraries
constexpr int64_t kKernels = 200000;                // kernels generated for a number of rows
constexpr int64_t kProductScratch = 2 * kMegabyte;  // of matrix products, for a thread
constexpr int64_t kVocabToken = 300;                // a token of the vocabulary, with its lookup
constexpr int64_t kBatchToken = 64;                 // a token of a prefetched batch

constexpr int64_t kDryRows = 1 << 20;  // most tokens of a batch that is built for a dry run

std::string InParts(const TrainingNeed& need) {
  return absl::StrCat("weights ", Megabytes(need.weights), ", gradients and moments ",
      Megabytes(need.optimizer), ", packed weights ", Megabytes(need.packed), ", activations ",
      Megabytes(need.activations), ", scratch ", Megabytes(need.scratch), ", other ",
      Megabytes(need.other));
}

// Returns "runtime.memory_limit_mb is 500" or "this machine has 500 MB free".
std::string LimitText(const TaskSpec& spec, int64_t limit) {
  return absl::StrCat(
      spec.runtime().memory_limit_mb() > 0 ? "runtime.memory_limit_mb is " : "this machine has ",
      limit / kMegabyte, spec.runtime().memory_limit_mb() > 0 ? "" : " MB free");
}

}  // namespace

std::string Megabytes(int64_t bytes) {
  return absl::StrCat((bytes + kMegabyte - 1) / kMegabyte, " MB");
}

MemoryPlan::MemoryPlan(const TaskSpec& spec, const ModelConfig& config, DType compute,
    const DataShape& data, int ranks)
    : spec_(spec), task_(MakeTask(spec)), compute_(compute), data_(data), ranks_(ranks),
      model_(std::make_unique<Model>(config, true, spec.trainable(), Model::Memory::kNone)) {
  parameters_ = CountParams(model_->params());
}

int64_t MaxStepTokens(const TaskSpec& spec, const Task& task) {
  const BatchSpec& batch = spec.batch();
  const int64_t longest = task.max_example_tokens();
  return std::max(longest, batch.examples() > 0 ? batch.examples() * longest : batch.tokens());
}

int64_t MemoryPlan::MaxPasses(int64_t micro_tokens) const {
  const int64_t tokens = MaxStepTokens(), longest = task_->max_example_tokens();
  if (tokens <= micro_tokens) return 1;
  // Each pass but the last holds more than micro_tokens - longest tokens, and two consecutive
  // passes hold more than micro_tokens.
  return 1 + std::min((tokens - 1) / std::max<int64_t>(micro_tokens - longest + 1, 1),
                 2 * tokens / micro_tokens);
}

TrainingNeed MemoryPlan::Need(int64_t micro_tokens) const {
  const int64_t longest = std::min(int64_t{task_->max_tokens()}, micro_tokens),
                rows = PaddedRows(std::min(micro_tokens, MaxStepTokens()));
  // Larger passes need proportionally more.
  const int64_t times = (std::max(rows, PaddedRows(micro_tokens)) + kDryRows - 1) / kDryRows;
  const auto batch = [&](int64_t n, bool training) {
    const int64_t targets = task_->TargetRows(n, training ? spec_.batch().examples() : 0, data_);
    return task_->DryBatch(n / times, longest, targets / times);
  };
  TrainingNeed need;
  need.one_pass = MaxStepTokens() <= micro_tokens && parameters_.trained == parameters_.all;
  const DryRun dry;
  model_->arena() = Arena::Counting();
  model_->matmul().SharePacked(need.one_pass);
  const Batch step = batch(rows, true);
  const bool recompute = spec_.runtime().recompute();
  Pass pass = model_->NewPass(step, compute_, true);
  pass.recompute = recompute;
  model_->backbone().Forward(pass);
  need.activations = model_->arena().used() * times;
  task_->Train(*model_, step, {.compute = compute_, .recompute = recompute});
  if (task_->spans_batches()) {
    const Batch whole = batch(std::min(PaddedRows(MaxStepTokens()), kDryRows), true);
    std::vector<std::vector<float>> outputs(1);
    task_->StepLoss(*model_, {&whole, 1}, absl::MakeSpan(outputs));
    // Outputs of all batches, and a copy while ranks exchange them.
    need.other += 2 * kFloat * std::ssize(whole.rows) * model_->config().hidden;
  }
  Matmul::Memory trains;
  if (EvaluationType() != compute_) trains = model_->matmul().TakeDryMemory();
  if (spec_.validation().files_size() > 0)
    task_->Infer(*model_, batch(PaddedRows(micro_tokens), false), EvaluationType());
  need.arena = model_->arena().peak() * times;
  // ModelTrainer drops packed weights of one type before it needs those of the other.
  const Matmul::Memory evaluates = model_->matmul().TakeDryMemory();
  need.packed = std::max(trains.packed, evaluates.packed);
  need.scratch = need.arena - need.activations + kProductScratch * Threads() +
                 std::max(trains.scratch, evaluates.scratch);
  need.weights = kFloat * static_cast<int64_t>(model_->params().values().size());
  const ParamStore& params = model_->params();
  const bool apart = spec_.distributed().local_steps() > 1;  // then each rank updates all
  const Optimizer::Memory optimizer =
      Optimizer::MemoryOf(params, spec_.optimizer(), apart ? 1 : ranks_, ProductType(compute_));
  need.optimizer = GradientBytes(params, MaxPasses(micro_tokens), ranks_) + optimizer.bytes +
                   (apart ? OuterOptimizer::Bytes(params, ranks_) : 0);
  need.optimizer_parts =
      absl::StrCat("gradients, ", optimizer.parts, apart ? ", last average and its momentum" : "");
  need.other += kProgram + kKernels * (rows / kRows) + kVocabToken * model_->config().vocab +
                2 * kBatchToken * MaxStepTokens();
  return need;
}

int64_t MemoryPlan::Largest(int64_t bytes) const {
  const int64_t longest = task_->max_example_tokens();
  const int64_t most =
      std::max(longest, std::min(MaxStepTokens(), BatchSpec::default_instance().micro_tokens()));
  const auto fits = [&](int64_t tokens) { return Need(tokens).total() <= bytes; };
  if (fits(most)) return most;
  int64_t power = kRows;
  while (power < most) power *= 2;
  for (; power >= kRows; power /= 2) {
    for (const int64_t tokens : {power, power * 3 / 4}) {
      if (tokens < most && tokens >= longest && tokens % kRows == 0 && fits(tokens)) return tokens;
    }
  }
  return longest < most && fits(longest) ? longest : 0;
}

int64_t MemoryLimit(const TaskSpec& spec) {
  const int64_t limit = spec.runtime().memory_limit_mb();
  return limit > 0 ? limit * kMegabyte : AvailableMemory();
}

absl::StatusOr<int64_t> ChooseMicroTokens(
    const LoadedSpec& loaded, const MemoryPlan& plan, std::string* note) {
  const TaskSpec& spec = loaded.spec;
  const int64_t limit = MemoryLimit(spec);
  const bool given = spec.batch().has_micro_tokens();
  if (given && plan.Need(spec.batch().micro_tokens()).total() <= limit)
    return spec.batch().micro_tokens();
  const int64_t largest = plan.Largest(limit),
                wish = given ? spec.batch().micro_tokens() : plan.Largest(kUnlimited);
  if (!given && largest == wish) return largest;
  const int64_t tokens = largest == 0 && !given ? MakeTask(spec)->max_example_tokens() : wish;
  const TrainingNeed need = plan.Need(tokens);
  const std::string has = LimitText(spec, limit);
  if (given || largest == 0) {
    const std::string hint =
        largest > 0 ? absl::StrCat(largest, " would fit",
                          spec.runtime().recompute() ? "" : ", or set runtime.recompute")
                    : absl::StrCat(
                          "nothing fits; try a smaller model.encoder, max_tokens or batch, or set ",
                          spec.runtime().recompute() ? "" : "runtime.recompute or ", "trainable");
    return AtField(loaded, "batch.micro_tokens",
        Error(Exit::kLimit, tokens, " tokens in a pass need ", Megabytes(need.total()),
            " of memory (", InParts(need), "), ", has, "; ", hint));
  }
  *note = absl::StrCat("batch.micro_tokens: ", largest, ", because ", wish, " would need ",
      Megabytes(need.total()), " of memory and ", has);
  return largest;
}

}  // namespace cloze
