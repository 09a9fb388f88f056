// `cloze bench`: how fast this machine trains.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/threads.h"
#include "encoder/model.h"
#include "tasks/training/optimizer.h"
#include "tasks/training/setup.h"
#include "tools/infer.h"

namespace cloze {
namespace {

struct Options {
  std::string encoder = "mini", compute = "auto";
  int vocab = 30522, batch = 64, seq = 128, steps = 7, warmup = 2;
  float dropout = 0.1f, mask_share = 0.15f;
  bool json = false;
};

// `batch` sequences of random ids, mask_share of each masked.
Batch RandomBatch(const Options& o, uint64_t step) {
  const Philox philox(1, Purpose::kMask);
  Batch batch;
  const int masked = std::max(1, static_cast<int>(std::lround(o.mask_share * o.seq)));
  for (int s = 0; s < o.batch; ++s) {
    const uint64_t example = step * o.batch + s;
    std::vector<int32_t> ids(o.seq);
    for (int i = 0; i < o.seq; ++i) ids[i] = 5 + Philox::Below(philox(example, i, 0)[0], o.vocab - 5);
    for (int i = 0; i < masked; ++i) {
      const int at = i * o.seq / masked;
      batch.rows.push_back(s * o.seq + at);
      batch.targets.push_back(ids[at]);
      ids[at] = 4;
    }
    batch.Add(ids, o.seq, example);
  }
  batch.Pad();
  return batch;
}

// Multiplications and additions that a training step needs: three times the forward matmuls, the head on masked rows only.
double UsefulFlop(const ModelConfig& c, const Options& o, int64_t masked) {
  const double tokens = double(o.batch) * o.seq, hidden = c.hidden;
  const double encoder =
      2 * tokens * c.layers * (4 * hidden * hidden + 2 * hidden * c.intermediate) + 4.0 * c.layers * tokens * o.seq * hidden;
  return 3 * (encoder + 2.0 * masked * (hidden * hidden + hidden * c.vocab));
}

double Milliseconds() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void TrainStep(Model& model, Optimizer& optimizer, const Batch& batch, DType compute) {
  model.arena().Reset();
  const Step step = model.NewStep(batch, compute, true, 1);
  const Encoder::Saved saved = model.encoder().Forward(step);
  Mat dy = model.arena().NewZero(saved.y.rows, saved.y.cols, compute);
  model.head().Loss(step, saved.y, 1.0f / batch.targets.size(), dy);
  model.encoder().Backward(step, saved, dy);
  optimizer.Step(1e-4, optimizer.GradNorm());
}

absl::Status BenchTrain(const Options& o) {
  EncoderSpec spec;
  EncoderSpec::Preset preset;
  std::string name = o.encoder;
  std::transform(name.begin(), name.end(), name.begin(), ::toupper);
  if (!EncoderSpec::Preset_Parse(name, &preset))
    return UsageError(absl::StrCat("--encoder ", Quote(o.encoder), ": tiny, mini, small, medium or base expected"));
  spec.set_preset(preset);
  spec.set_max_positions(std::max(512, o.seq));
  ASSIGN_OR_RETURN(ModelConfig config, ConfigFromSpec(spec));
  config.vocab = o.vocab;
  config.head = HeadKind::kMaskedLm;
  config.dropout = config.attention_dropout = o.dropout;
  ASSIGN_OR_RETURN(const DType compute, ComputeOf(ComputeNamed(o.compute), Use::kTraining));
  Model model(config, true);
  model.Initialize(1);
  Optimizer optimizer(&model.params(), OptimizerSpec());
  std::vector<double> times;
  int64_t masked = 0;
  for (int i = 0; i < o.warmup + o.steps; ++i) {
    const Batch batch = RandomBatch(o, i);
    masked = batch.rows.size();
    const double start = Milliseconds();
    TrainStep(model, optimizer, batch, compute);
    if (i >= o.warmup) times.push_back(Milliseconds() - start);
  }
  std::sort(times.begin(), times.end());
  const double median = (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  const double rate = double(o.batch) * o.seq / median * 1e3, gflops = UsefulFlop(config, o, masked) / median / 1e6;
  const std::string dtype = compute == DType::kF32 ? "fp32" : "bf16";
  if (o.json) {
    return WriteStdout(absl::StrCat(
        "{\"peer\": \"cloze\", \"work\": \"mlm_train\", \"dtype\": \"", dtype, "\", \"config\": \"", o.encoder, "/v", o.vocab,
        "\", \"batch\": ", o.batch, ", \"seq\": ", o.seq, ", \"tokens_per_s\": ", JsonNumber(rate),
        ", \"step_ms_median\": ", JsonNumber(median), ", \"min\": ", JsonNumber(times.front()), ", \"max\": ", JsonNumber(times.back()),
        ", \"reps\": ", o.steps, ", \"gflops_useful\": ", JsonNumber(gflops), ", \"dropout\": ", JsonNumber(o.dropout),
        ", \"peak_rss_mb\": ", JsonNumber(usage.ru_maxrss * 1024e-6), ", \"threads\": ", Threads(), "}\n"));
  }
  return WriteStdout(absl::StrCat(o.encoder, " ", o.batch, "x", o.seq, " ", dtype, ": ", static_cast<int64_t>(rate), " tokens/s, step ",
                                  JsonNumber(median), " ms, ", static_cast<int64_t>(gflops), " GFLOP/s of useful work\n"));
}

}  // namespace

void AddBench(CLI::App& app, Run* run) {
  CLI::App* bench = app.add_subcommand("bench", "Measure this machine.");
  CLI::App* train = bench->add_subcommand("train", "Masked-LM training steps on random tokens.");
  bench->require_subcommand(1);
  auto o = std::make_shared<Options>();
  train->add_option("--encoder", o->encoder, "tiny, mini, small, medium or base.");
  train->add_option("--vocab", o->vocab, "Tokens in the vocabulary.")->check(CLI::Range(100, 1000000));
  train->add_option("--batch", o->batch, "Sequences of a step.")->check(CLI::Range(1, 65536));
  train->add_option("--seq", o->seq, "Tokens of a sequence.")->check(CLI::Range(8, 65536));
  train->add_option("--compute", o->compute, "auto, f32 or bf16.")->check(CLI::IsMember({"auto", "f32", "bf16"}));
  train->add_option("--dropout", o->dropout, "Probability.")->check(CLI::Range(0.0, 0.9));
  train->add_option("--steps", o->steps, "Timed steps.")->check(CLI::Range(1, 10000));
  train->add_option("--warmup", o->warmup, "Steps before them.")->check(CLI::Range(0, 1000));
  train->add_flag("--json", o->json, "One JSON line.");
  train->callback([=] { *run = [=] { return BenchTrain(*o); }; });
}

}  // namespace cloze
