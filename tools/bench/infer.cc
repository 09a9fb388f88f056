// `cloze bench infer`: times the logits of a batch of sequences of equal length.
#include <algorithm>

#include "encoder/model.h"
#include "tools/bench/bench.h"

namespace cloze::bench {
namespace {

std::vector<int32_t> Rows(const ModelConfig& config, int count, int seq) {
  std::vector<int32_t> rows;
  const int each = config.head == HeadKind::kTokenTagging ? seq : 1;
  for (int s = 0; s < count; ++s) {
    for (int i = 0; i < each; ++i) rows.push_back(s * seq + i);
  }
  return rows;
}

absl::Status InferCase(const Options& o, Model& model, DType type, int count, int seq) {
  const ModelConfig& config = model.config();
  const Philox philox(1, Purpose::kMask);
  std::vector<std::vector<int32_t>> sequences(count);
  for (int s = 0; s < count; ++s) sequences[s] = RandomIds(philox, s, seq, config.vocab);
  const std::vector<int32_t> rows = Rows(config, count, seq);
  const auto run = [&](int) {
    Batch batch;
    for (const auto& ids : sequences) batch.Add(ids, seq, 0);
    batch.rows = rows;
    batch.Pad();
    model.arena().Reset();
    const Pass pass = model.NewPass(batch, type);
    const Mat hidden = model.backbone().Infer(pass);
    model.head().Logits(pass, hidden);
  };
  run(0);
  const double once = TimeSteps(run, 1, 0).Median();
  const int reps =
      once > 2000 ? 5 : std::max(o.steps, static_cast<int>(std::min(200.0, 2000 / once)));
  const Timing timing = TimeSteps(run, reps, o.warmup, 12);
  const std::string name = o.compute == "int8" ? "int8" : TypeName(type);
  Line line(o, "infer_" + o.task, name, o.encoder, count, seq);
  line.AddTiming(timing, double(count) * seq);
  RETURN_IF_ERROR(line.AddFlop(ForwardFlop(config, std::vector<int64_t>(count, seq), rows.size()),
                          timing.Median(), type)
                      .Write());
  ProfileOps(o, type, reps, run);
  return absl::OkStatus();
}

}  // namespace

absl::Status Infer(const Options& o) {
  ASSIGN_OR_RETURN(ModelConfig config,
      ConfigOf(o, o.task == "tag" ? HeadKind::kTokenTagging : HeadKind::kSequenceClassification));
  ASSIGN_OR_RETURN(const std::vector<DType> types, TypesOf(o, true));
  const std::vector<int> counts = o.batch > 0 ? std::vector<int>{o.batch} : std::vector<int>{1, 32};
  const std::vector<int> seqs =
      o.seq > 0 ? std::vector<int>{o.seq} : std::vector<int>{32, 128, 512};
  config.positions.count = std::max(config.positions.count, config.positions.offset + seqs.back());
  for (const DType type : types) {
    ResetPeakMemory();
    Model model(config, false);
    model.Initialize(1);
    if (o.compute == "int8") model.UseInt8();
    for (const int count : counts) {
      for (const int seq : seqs) RETURN_IF_ERROR(InferCase(o, model, type, count, seq));
    }
  }
  return absl::OkStatus();
}

}  // namespace cloze::bench
