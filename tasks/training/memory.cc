#include "tasks/training/memory.h"

#include <algorithm>

#include "core/base/system.h"
#include "core/base/threads.h"
#include "core/ops/matmul.h"
#include "core/ops/profile.h"
#include "encoder/model.h"
#include "tasks/replaced_tokens.h"
#include "tasks/training/step.h"
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

// Returns a batch of `rows` tokens in sequences of at most `longest`, with `targets` targets. If
// the task `averages`, the rows are divided evenly among the targets.
Batch BatchOf(
    int64_t rows, int64_t longest, int64_t targets, const ModelConfig& config, bool averages) {
  Batch batch;
  const std::vector<int32_t> ids(longest);
  for (int64_t left = rows; left > 0; left -= std::min(longest, left))
    batch.Add(absl::MakeSpan(ids).first(std::min(longest, left)),
        config.encoder == nullptr ? longest : std::min(longest, left) / 2, 0);
  batch.Pad();
  for (int32_t r = 0; config.encoder != nullptr && r < rows; ++r)
    if (batch.types[r] == 1 && std::ssize(batch.rows) < targets) batch.rows.push_back(r);
  if (config.encoder != nullptr) targets = std::ssize(batch.rows);
  for (int64_t i = std::ssize(batch.rows); i < targets; ++i) {
    batch.rows.push_back(static_cast<int32_t>(i * rows / targets));
    if (averages) batch.piece_ends.push_back(static_cast<int32_t>((i + 1) * rows / targets));
  }
  if (averages) batch.pieces.resize(rows);
  batch.targets.resize(targets);
  return batch;
}

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

int64_t MostTokens(const TaskSpec& spec, const Task& task) {
  const BatchSpec& batch = spec.batch();
  const int64_t longest = task.max_tokens();
  return std::max(longest, batch.examples() > 0 ? batch.examples() * longest : batch.tokens());
}

int64_t MemoryPlan::MostPasses(int64_t micro_tokens) const {
  const int64_t tokens = MostTokens(), longest = task_->max_tokens();
  if (tokens <= micro_tokens) return 1;
  // Each pass but the last holds more than micro_tokens - longest tokens, and two consecutive
  // passes hold more than micro_tokens.
  return 1 + std::min((tokens - 1) / std::max<int64_t>(micro_tokens - longest + 1, 1),
                 2 * tokens / micro_tokens);
}

void MemoryPlan::RunEvaluation(const Batch& batch) const {
  model_->arena().Reset();
  Batch replaced;
  LossSum generator;
  const DType compute = EvaluationType();
  const Pass pass =
      model_->NewPass(EvaluatedBatch(*model_, batch, compute, &replaced, &generator), compute);
  const Mat hidden = model_->backbone().Infer(pass);
  // Tasks over the vocabulary compute the loss of some rows at a time.
  if (!TypeOf(task_->head()).tied) model_->head().Logits(pass, hidden);
  HeadLoss(*task_, model_->head(), pass, hidden, 0, {});
}

TrainingNeed MemoryPlan::Need(int64_t micro_tokens) const {
  const int64_t longest = std::min(int64_t{task_->max_tokens()}, micro_tokens),
                rows = PaddedRows(std::min(micro_tokens, MostTokens()));
  // Larger passes need proportionally more.
  const int64_t times = (std::max(rows, PaddedRows(micro_tokens)) + kDryRows - 1) / kDryRows;
  const auto batch = [&](int64_t n, bool training) {
    const int64_t targets = task_->TargetRows(n, training ? spec_.batch().examples() : 0, data_);
    return BatchOf(n / times, longest, targets / times, model_->config(), task_->averages());
  };
  TrainingNeed need;
  need.one_pass = MostTokens() <= micro_tokens && parameters_.trained == parameters_.all;
  const DryRun dry;
  model_->arena() = Arena::Counting();
  model_->matmul().SharePacked(need.one_pass);
  const Batch step = batch(rows, true);
  const bool recompute = spec_.runtime().recompute();
  Pass pass = model_->NewPass(step, compute_, true);
  pass.recompute = recompute;
  model_->backbone().Forward(pass);
  need.activations = model_->arena().used() * times;
  PassOfMicroBatch(*model_, *task_, step, {.compute = compute_, .recompute = recompute});
  Matmul::Memory trains;
  if (EvaluationType() != compute_) trains = model_->matmul().TakeDryMemory();
  if (spec_.validation().files_size() > 0) RunEvaluation(batch(PaddedRows(micro_tokens), false));
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
  need.optimizer = GradientBytes(params, MostPasses(micro_tokens), ranks_) + optimizer.bytes +
                   (apart ? OuterOptimizer::Bytes(params, ranks_) : 0);
  need.optimizer_parts =
      absl::StrCat("gradients, ", optimizer.parts, apart ? ", last average and its momentum" : "");
  need.other = kProgram + kKernels * (rows / kRows) + kVocabToken * model_->config().vocab +
               2 * kBatchToken * MostTokens();
  return need;
}

int64_t MemoryPlan::Largest(int64_t bytes) const {
  const int64_t longest = task_->max_tokens();
  const int64_t most =
      std::max(longest, std::min(MostTokens(), BatchSpec::default_instance().micro_tokens()));
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
  const int64_t tokens = largest == 0 && !given ? MakeTask(spec)->max_tokens() : wish;
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
