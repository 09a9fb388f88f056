// `cloze bench train` and `cloze bench finetune`: optimizer steps on random tokens.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <numeric>

#include "encoder/model.h"
#include "tasks/training/memory.h"
#include "tasks/update/optimizer.h"
#include "tools/bench/bench.h"

namespace cloze::bench {
namespace {

constexpr int kMask = 4;
constexpr double kMaskShare = 0.15;

// Returns `count` sequences of `length` tokens, with 15 % of each masked.
Batch MaskedBatch(const Philox& philox, int step, int count, int length, int vocab) {
  Batch batch;
  const int masked = std::max(1, static_cast<int>(std::lround(kMaskShare * length)));
  for (int s = 0; s < count; ++s) {
    const uint64_t example = uint64_t(step) * count + s;
    std::vector<int32_t> ids = RandomIds(philox, example, length, vocab);
    for (int i = 0; i < masked; ++i) {
      const int at = i * length / masked;
      batch.rows.push_back(s * length + at);
      batch.targets.push_back(ids[at]);
      ids[at] = kMask;
    }
    batch.Add(ids, length, example);
  }
  batch.Pad();
  return batch;
}

// Returns `count` sequences of `length` tokens, each of which predicts the next.
Batch CausalBatch(const Philox& philox, int step, int count, int length, int vocab) {
  Batch batch;
  for (int s = 0; s < count; ++s) {
    const uint64_t example = uint64_t(step) * count + s;
    const std::vector<int32_t> ids = RandomIds(philox, example, length, vocab);
    for (int i = 1; i < length; ++i) batch.rows.push_back(s * length + i - 1);
    batch.targets.insert(batch.targets.end(), ids.begin() + 1, ids.end());
    batch.Add(ids, length, example);
  }
  batch.Pad();
  return batch;
}

// Returns lengths of texts: log-normal, clamped.
std::vector<int64_t> TextLengths(
    const Philox& philox, const std::string& data, int step, int count) {
  const bool imdb = data == "imdb";
  const double median = imdb ? 230 : 20, sigma = imdb ? 0.6 : 0.55, low = imdb ? 32 : 4,
               high = imdb ? 512 : 66;
  std::vector<int64_t> lengths;
  for (int s = 0; s < count; ++s) {
    const Philox::Words b = philox(uint64_t(step) * count + s, 0, 1);
    const double normal = std::sqrt(-2 * std::log(1 - Philox::Uniform(b[0]))) *
                          std::cos(2 * std::numbers::pi * Philox::Uniform(b[1]));  // Box & Muller
    lengths.push_back(std::lround(std::clamp(median * std::exp(sigma * normal), low, high)));
  }
  return lengths;
}

Batch TextBatch(const Philox& philox, int step, const std::vector<int64_t>& lengths, int vocab) {
  Batch batch;
  for (size_t s = 0; s < lengths.size(); ++s) {
    const uint64_t example = step * lengths.size() + s;
    batch.rows.push_back(static_cast<int32_t>(batch.tokens()));
    batch.targets.push_back(philox(example, 0, 2)[0] & 1);
    batch.Add(RandomIds(philox, example, lengths[s], vocab), lengths[s], example);
  }
  batch.Pad();
  return batch;
}

// A model in training.
struct Training {
  Training(const ModelConfig& config, DType compute, const TrainableSpec& trainable = {})
      : model(config, true, trainable), task(MakeTask(config.head)), compute(compute) {
    model.Initialize(1);
    model.matmul().SharePacked(!trainable.has_lora());
    optimizer = std::make_unique<Optimizer>(&model.params(), OptimizerSpec());
  }

  void Step(const Batch& batch) {
    task->Train(
        model, batch, {.compute = compute, .seed = 1, .scale = 1.0f / batch.targets.size()});
    optimizer->Step(1e-4, optimizer->GradNorm());
  }

  Model model;
  std::unique_ptr<Task> task;
  std::unique_ptr<Optimizer> optimizer;
  DType compute;
};

TrainableSpec TrainableOf(const Options& o) {
  TrainableSpec spec;
  if (o.lora == "none") return spec;
  LoraSpec* lora = spec.mutable_lora();
  for (int t = LoraSpec::Target_MIN; o.lora == "all" && t <= LoraSpec::Target_MAX; ++t)
    lora->add_targets(static_cast<LoraSpec::Target>(t));
  return spec;
}

absl::StatusOr<ModelConfig> TrainingConfig(const Options& o, HeadKind head, int count, int seq) {
  ASSIGN_OR_RETURN(ModelConfig config, ConfigOf(o, head));
  config.dropout = config.attention.dropout = o.dropout;
  config.positions.count = std::max(config.positions.count, config.positions.offset + seq);
  LoadedSpec loaded;
  loaded.path = "bench";
  loaded.spec.mutable_masked_lm()->set_max_tokens(seq);
  loaded.spec.mutable_batch()->set_tokens(int64_t{count} * seq);
  loaded.spec.mutable_batch()->set_micro_tokens(int64_t{count} * seq);
  ASSIGN_OR_RETURN(const std::vector<DType> types, TypesOf(o, false));
  std::string note;
  RETURN_IF_ERROR(
      ChooseMicroTokens(loaded, MemoryPlan(loaded.spec, config, types[0], {}), &note).status());
  return config;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / values.size();
}

}  // namespace

absl::Status Train(const Options& o) {
  const int count = o.batch > 0 ? o.batch : 64, seq = o.seq > 0 ? o.seq : 128;
  ASSIGN_OR_RETURN(const ModelConfig config, TrainingConfig(o, HeadKind::kMaskedLm, count, seq));
  ASSIGN_OR_RETURN(const std::vector<DType> types, TypesOf(o, false));
  Training training(config, types[0]);
  const Philox philox(1, Purpose::kMask);
  const bool causal = config.attention.causal;
  const auto batch = [&](int i) {
    return (causal ? CausalBatch : MaskedBatch)(philox, i, count, seq, config.vocab);
  };
  const std::vector<Batch> batches = {batch(0), batch(1), batch(2), batch(3)};
  const auto step = [&](int i) { training.Step(batches[i % 4]); };
  const Timing timing = TimeSteps(step, o.steps, o.warmup);
  Line line(o, causal ? "clm_train" : "mlm_train", TypeName(types[0]),
      absl::StrCat(o.encoder, "/v", config.vocab), count, seq);
  line.AddTiming(timing, double(count) * seq).Add("dropout", o.dropout);
  const double flop =
      3 * ForwardFlop(config, std::vector<int64_t>(count, seq), batches[0].rows.size());
  RETURN_IF_ERROR(line.AddFlop(flop, timing.Median(), types[0]).Write());
  ProfileOps(o, types[0], o.steps, step);
  return absl::OkStatus();
}

absl::Status Finetune(const Options& o) {
  const std::string data = o.data.empty() ? "sst2" : o.data;
  const int count = o.batch > 0 ? o.batch : data == "imdb" ? 8 : 32;
  ASSIGN_OR_RETURN(
      const ModelConfig config, TrainingConfig(o, HeadKind::kSequenceClassification, count, 512));
  ASSIGN_OR_RETURN(const std::vector<DType> types, TypesOf(o, false));
  Training training(config, types[0], TrainableOf(o));
  const Philox philox(1234, Purpose::kMask);
  const auto lengths = [&](int i) { return TextLengths(philox, data, i, count); };
  const auto step = [&](int i) { training.Step(TextBatch(philox, i, lengths(i), config.vocab)); };
  const Timing timing = TimeSteps(step, std::max(o.steps, 10), o.warmup);
  double tokens = 0, flop = 0;
  std::vector<double> longest;
  for (const int i : timing.steps) {
    const std::vector<int64_t> n = lengths(i);
    tokens += std::accumulate(n.begin(), n.end(), int64_t{0});
    flop += 3 * ForwardFlop(config, n, count);
    longest.push_back(*std::max_element(n.begin(), n.end()));
  }
  const std::string part = o.lora == "none" ? "" : absl::StrCat("/lora-", o.lora);
  Line line(o, "finetune_cls", TypeName(types[0]), absl::StrCat(o.encoder, "/", data, part), count,
      std::lround(Mean(longest)));
  line.AddTiming(timing, tokens / timing.Sum() * timing.Median())
      .Add("examples_per_s", count * timing.ms.size() / timing.Sum() * 1e3);
  line.Add("pad_share", 0).Add("dropout", o.dropout);
  RETURN_IF_ERROR(line.AddFlop(flop, timing.Sum(), types[0]).Write());
  ProfileOps(o, types[0], std::max(o.steps, 10), step);
  return absl::OkStatus();
}

}  // namespace cloze::bench
