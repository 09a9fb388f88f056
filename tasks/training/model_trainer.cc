#include "tasks/training/model_trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/system.h"
#include "core/ops/matmul.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/model_folder.h"
#include "tasks/compute_type.h"
#include "tasks/inference/evaluate.h"
#include "tasks/run/checkpoint.h"
#include "tasks/run/samples.h"

namespace cloze {
namespace {

// The second moment of a larger gradient would overflow f32.
constexpr double kMaxNorm = 1e19;
constexpr int64_t kSkipWindow = 1000;  // steps

absl::Status CheckFinite(const ParamStore& params) {
  for (ParamId id = 0; id < params.size(); ++id) {
    const Param& param = params.param(id);
    const float* data = params.values().data() + param.offset;
    const float* odd =
        std::find_if(data, data + param.size(), [](float x) { return !std::isfinite(x); });
    if (odd == data + param.size()) continue;
    return Error(Exit::kInternal, "weight ", param.name, "[", odd - data, "] is ", *odd,
        ": nothing was written; earlier checkpoints are sound (lower optimizer.learning_rate)");
  }
  return absl::OkStatus();
}

// Returns the first micro-batch of each rank, and the end. The rank with the most tokens gets about
// as few as possible.
std::vector<int64_t> AssignMicroBatches(absl::Span<const Batch> micro, size_t ranks) {
  std::vector<int64_t> starts;
  const auto fits = [&](int64_t most) {
    starts = {0};
    int64_t tokens = 0;
    for (size_t i = 0; i < micro.size(); ++i) {
      tokens += micro[i].tokens();
      if (tokens <= most) continue;
      starts.push_back(i);
      tokens = micro[i].tokens();
    }
    return starts.size() <= ranks;
  };
  int64_t most = 0, all = 0;
  for (const Batch& batch : micro) most = std::max(most, batch.tokens()), all += batch.tokens();
  while (most < all && !fits(most)) most += CeilDiv(most, 64);
  fits(most);
  starts.resize(ranks + 1, micro.size());
  return starts;
}

}  // namespace

ModelTrainer::ModelTrainer(const RunInputs& inputs, const TrainingNeed& need, Ranks* ranks)
    : inputs_(inputs), ranks_(*ranks), work_(ranks->size()),
      model_(inputs.config, true, spec_.trainable()), sum_(&model_.params()) {
  model_.arena().Reserve(need.arena);
  model_.matmul().SharePacked(need.one_pass);
}

absl::Status ModelTrainer::Initialize(std::vector<std::string>* notes) {
  if (spec_.model().start_from().empty()) {
    model_.Initialize(spec_.seed());
    inputs_.start.CopyTo(model_.params().value(model_.backbone().word_embeddings()));
    model_.params().Changed();
  } else {
    RETURN_IF_ERROR(LoadWeights(spec_.model().start_from(), notes));
  }
  if (!TrainsAll(spec_.trainable())) {
    const ParamCount count = CountParams(model_.params());
    notes->push_back(absl::StrCat("training ", count.trained, " of ", count.all, " parameters"));
  }
  const DistributedSpec& distributed = spec_.distributed();
  const bool apart = distributed.local_steps() > 1;
  optimizer_ = std::make_unique<Optimizer>(&model_.params(), spec_.optimizer(),
      apart ? &OneRank() : &ranks_, ProductType(inputs_.compute));
  std::vector<StateArray> arrays = optimizer_->arrays();
  if (apart) {
    outer_ = std::make_unique<OuterOptimizer>(&model_.params(), arrays, distributed, &ranks_);
    arrays.push_back(outer_->momentum());
  }
  state_file_ = std::make_unique<StateFile>(model_.params(), std::move(arrays), &ranks_);
  return absl::OkStatus();
}

absl::Status ModelTrainer::LoadWeights(const std::string& folder, std::vector<std::string>* notes) {
  ASSIGN_OR_RETURN(const ModelConfig before, LoadConfig(folder));
  const ModelConfig& now = model_.config();
  ParamStore& params = model_.params();
  std::vector<std::string> fresh, replaced;  // weights of other labels say nothing about these
  for (ParamId id = 0; id < params.size(); ++id) {
    const Param& param = params.param(id);
    const bool of_labels = param.role == Role::kPooledOutput || param.role == Role::kHeadOutput ||
                           param.role == Role::kCrf;
    if (of_labels && (before.head != now.head || before.labels != now.labels)) {
      InitializeParam(id, spec_.seed(), now.initializer.range, &params);
      replaced.push_back(param.name);
    }
  }
  if (before.encoder == nullptr && now.encoder != nullptr) {
    const std::string& decoder = spec_.model().decoder_from();
    RETURN_IF_ERROR(LoadEncoderAndDecoder(
        folder, decoder.empty() ? folder : decoder, spec_.seed(), &model_, &fresh));
  } else {
    RETURN_IF_ERROR(model_.Load(folder, spec_.seed(), &fresh, replaced));
  }
  if (before.head == now.head && !replaced.empty())
    notes->push_back(
        "the labels differ from those of model.start_from: its output layer is not used");
  fresh.insert(fresh.end(), replaced.begin(), replaced.end());
  if (!fresh.empty())
    notes->push_back(absl::StrCat("new in this model: ", absl::StrJoin(fresh, ", ")));
  if (optimizer_ != nullptr) optimizer_->StartAverage();
  return absl::OkStatus();
}

double ModelTrainer::ForwardBackward(const StepData& data) {
  const size_t n = data.micro.size(), ranks = ranks_.size();
  const std::vector<int64_t> starts = AssignMicroBatches(data.micro, ranks);
  const int64_t first = starts[ranks_.rank()], end = starts[ranks_.rank() + 1];
  double weight = 0, all_weight = 0;  // of the gradients that are added, of all ranks
  int64_t tokens = 0;
  for (size_t i = 0; i < n; ++i) {
    const double of_batch = inputs_.task->LossWeight(data.micro[i]);
    all_weight += of_batch;
    if (outer_ != nullptr && (i < first || i >= end)) continue;
    weight += of_batch, tokens += data.micro[i].tokens();
  }
  const float scale = weight > 0 ? 1.0f / static_cast<float>(weight) : 0;
  const float token_scale = 1.0f / static_cast<float>(std::max<int64_t>(tokens, 1));
  std::vector<double> losses(n);  // of the micro-batches
  RankWork work;
  const bool apart = outer_ != nullptr;
  const SpanningLoss spanning = SpanBatches(data, first, end, &work);
  if (!spanning.gradients.empty() && (apart || ranks_.first()))
    losses[spanning.first] = spanning.loss * weight;
  const auto train = [&](int64_t i, const absl::FunctionRef<void(int)>* complete) {
    const double start = SteadySeconds();
    PassOptions options = {
        inputs_.compute, spec_.seed(), scale, spec_.runtime().recompute(), token_scale, complete};
    if (!spanning.gradients.empty())
      options.output_gradients = &spanning.gradients[i - spanning.first];
    losses[i] += inputs_.task->Train(model_, data.micro[i], options);
    work.tokens += static_cast<double>(data.micro[i].tokens());
    work.seconds += SteadySeconds() - start;
  };
  const bool together = ranks > 1 && !apart, overlaps = together && first < end;
  for (int64_t i = first; i < end - (overlaps ? 1 : 0); ++i)
    sum_.Add(i, [&] { train(i, nullptr); });
  if (overlaps) {
    const auto pass = [&](GradientSum::Complete complete) {
      const auto tell = [&](int layer) { complete(FirstGradientFrom(layer, model_.params())); };
      const absl::FunctionRef<void(int)> layers = tell;
      train(end - 1, &layers);
    };
    sum_.AddLast(end - 1, pass, ranks_, starts);
  } else {
    sum_.Finish(together ? ranks_ : OneRank(), starts);
  }
  ranks_.Sum(absl::MakeSpan(losses));
  work_ = ranks_.Gather(work);
  const double loss = absl::c_accumulate(losses, 0.0);
  return all_weight > 0 ? loss * (1.0f / static_cast<float>(all_weight)) : 0;
}

ModelTrainer::SpanningLoss ModelTrainer::SpanBatches(
    const StepData& data, int64_t first, int64_t end, RankWork* work) {
  const Task& task = *inputs_.task;
  const bool apart = outer_ != nullptr;
  const auto step = apart ? absl::MakeConstSpan(data.micro).subspan(first, end - first)
                          : absl::MakeConstSpan(data.micro);
  SpanningLoss spanning = {0, apart ? first : 0, {}};
  if (!task.spans_batches() || step.size() < 2) return spanning;
  const double start = SteadySeconds();
  Evaluation::Output mine;  // of all batches of this rank, and their sizes
  for (int64_t i = first; i < end; ++i) {
    const std::vector<float> outputs =
        task.Outputs(model_, data.micro[i], {inputs_.compute, spec_.seed()});
    mine.logits.insert(mine.logits.end(), outputs.begin(), outputs.end());
    mine.tokens.push_back(static_cast<int32_t>(outputs.size()));
  }
  work->seconds += SteadySeconds() - start;
  for (const std::string& bytes :
      apart ? std::vector<std::string>{mine.Serialize()} : ranks_.Gather(mine.Serialize())) {
    const Evaluation::Output output = Evaluation::Output::Parse(bytes);
    auto at = output.logits.begin();
    for (const int32_t size : output.tokens) {
      spanning.gradients.emplace_back(at, at + size);
      at += size;
    }
  }
  spanning.loss = task.StepLoss(model_, step, absl::MakeSpan(spanning.gradients));
  return spanning;
}

ModelTrainer::StepResult ModelTrainer::Update(double loss, double rate, TrainerState* state) {
  const double own_norm = optimizer_->GradNorm();
  double norm = own_norm;
  if (outer_ != nullptr) {
    if (state->step() % spec_.distributed().local_steps() == 0) outer_->Begin();
    norm = absl::c_accumulate(ranks_.Gather(own_norm), 0.0) / ranks_.size();
  }
  const int64_t step = state->step() + 1;
  state->set_step(step);
  if (std::isfinite(loss) && norm < kMaxNorm) {
    optimizer_->Step(rate, own_norm);
    state->set_skipped_in_a_row(0);
    state->set_last_loss(loss);
    return {norm, ""};
  }
  const absl::Span<float> gradients = this->gradients();
  absl::c_fill(gradients, 0.0f);
  CountSkipped(state);
  const char* wrong = !std::isfinite(loss)  ? "loss is not finite"
                      : std::isfinite(norm) ? "gradient is too large"
                                            : "gradient is not finite";
  return {norm, absl::StrCat("step ", step, ": the ", wrong, "; step skipped (",
                    state->skipped_steps(), " so far)")};
}

void CountSkipped(TrainerState* state) {
  auto* recent = state->mutable_recently_skipped();
  const bool again = !recent->empty() && *recent->rbegin() == state->step() - 1;
  state->set_skipped_steps(state->skipped_steps() + 1);
  state->set_skipped_in_a_row(again ? state->skipped_in_a_row() + 1 : 1);
  recent->Add(state->step());
  recent->erase(recent->begin(), absl::c_upper_bound(*recent, state->step() - kSkipWindow));
}

absl::Status CheckSkipped(const TrainerState& state) {
  if (state.skipped_in_a_row() < 10 && state.recently_skipped_size() <= kSkipWindow / 100)
    return absl::OkStatus();
  return Error(Exit::kInternal, "step ", state.step(),
      ": loss or gradient was not finite in the last ", state.skipped_in_a_row(), " steps and in ",
      state.recently_skipped_size(), " of the last ", kSkipWindow,
      "; the newest checkpoint is sound (lower optimizer.learning_rate or set "
      "optimizer.clip_norm)");
}

absl::Status CheckLearned(const TrainerState& state) {
  if (state.step() == 0 || state.skipped_steps() < state.step()) return absl::OkStatus();
  return Error(Exit::kInternal, "all ", Counted(state.step(), "step"),
      " were skipped, because the loss or gradient was not finite: nothing is learned (lower "
      "optimizer.learning_rate, or check the numbers in the data)");
}

absl::StatusOr<MetricResults> ModelTrainer::Evaluate(
    const ExampleStore& store, int64_t max_examples, const std::atomic<bool>* stop, bool probe) {
  const int64_t tokens = spec_.batch().micro_tokens();
  const DType compute = EvaluationType();
  // Ranks exchange weights rounded to the type of training. Only the packed weights of one type are
  // held at a time.
  if (compute != inputs_.compute) {
    GatherWeights();
    model_.matmul().DropPacked();
  }
  const absl::Cleanup drop = [&] {
    if (compute != inputs_.compute) model_.matmul().DropPacked();
  };
  ASSIGN_OR_RETURN(
      MetricResults results, cloze::Evaluate(model_, *inputs_.task, store,
                                 {.batch_tokens = tokens,
                                     .max_examples = max_examples,
                                     .compute = compute,
                                     .stop = stop,
                                     .decode = {.fit = true, .errors = spec_.evaluation().errors()},
                                     .ranks = &ranks_}));
  if (inputs_.pairs.empty()) return results;
  PairCount count;
  RETURN_IF_ERROR(ScorePairs(model_, inputs_.tokenizer->special().mask,
      probe ? absl::MakeSpan(inputs_.pairs).first(1) : inputs_.pairs,
      {.batch_tokens = tokens,
          .compute = compute,
          .stop = ranks_.size() == 1 ? stop : nullptr},  // all ranks compute all
      [&](const TextPair&, double good, double bad) { count.Add(good, bad); }));
  results.values.emplace_back("pair_accuracy", count.Accuracy());
  return results;
}

absl::Status ModelTrainer::WriteModel(
    const std::string& folder, const std::string& home, const MetricResults& results) {
  RETURN_IF_ERROR(CheckFinite(model_.params()));
  ModelConfig config = inputs_.config;
  inputs_.task->DescribeFitted(results, &config);
  if (spec_.trainable().has_lora()) {
    RETURN_IF_ERROR(SaveAdapter(folder, config, spec_.trainable().lora(),
        RelativePath(spec_.model().start_from(), home), model_.params()));
  } else {
    RETURN_IF_ERROR(SaveWeights(folder, config, model_.params()));
  }
  RETURN_IF_ERROR(SaveTokenizer(*inputs_.tokenizer, folder, inputs_.config.max_tokens()));
  return WriteSamples(model_, inputs_.compute, folder);
}

void ModelTrainer::SwapWeights(std::vector<float>* weights) {
  if (weights->empty()) return;
  const absl::Span<float> values = model_.params().values();
  std::swap_ranges(weights->begin(), weights->end(), values.begin());
  model_.params().Changed();
}

std::string ModelTrainer::HashWeights() const {
  Hasher hasher;
  const absl::Span<const float> values = model_.params().values();
  hasher.Add(values.data(), static_cast<int64_t>(values.size() * sizeof(float)));
  return hasher.Hex();
}

int64_t ModelTrainer::Bytes(bool moments) const {
  const int64_t trained = model_.params().grads().size();
  const int arrays = moments ? static_cast<int>(optimizer_->arrays().size()) : 0;
  const int64_t model = spec_.trainable().has_lora() ? trained : model_.params().values().size();
  // The files of an auxiliary model hold parameters that it shares again.
  const int64_t files = 1 + std::ssize(model_.auxiliary());
  return sizeof(float) * (files * model + arrays * trained) + (1 << 20);
}

absl::Status ModelTrainer::Resume(const std::string& checkpoint, const TrainerState& state) {
  if (spec_.trainable().has_lora()) {
    ASSIGN_OR_RETURN(const Adapter adapter, Adapter::Open(checkpoint, inputs_.config));
    RETURN_IF_ERROR(adapter.CheckBase(HashParams(model_.params(), inputs_.config)));
    RETURN_IF_ERROR(adapter.Load(0, &model_.params()));
  } else {
    std::vector<std::string> fresh;
    RETURN_IF_ERROR(model_.Load(checkpoint, spec_.seed(), &fresh));
    if (!fresh.empty())
      return Error(Exit::kMismatch, QuotePath(checkpoint), ": lacks ", fresh.front());
  }
  RETURN_IF_ERROR(state_file_->Read(JoinPath(checkpoint, kMomentsName)));
  optimizer_->set_steps(state.step() - state.skipped_steps());
  return absl::OkStatus();
}

}  // namespace cloze
