#include "tasks/run/samples.h"

#include <algorithm>
#include <cmath>

#include "core/base/file.h"
#include "core/ops/matmul.h"
#include "core/ops/rows.h"
#include "core/tensor/safetensors.h"
#include "tasks/packer.h"
#include "tasks/task.h"

namespace cloze {
namespace {

constexpr int32_t kLengths[] = {5, 12, 30, 64};
constexpr int64_t kColumns = 32, kMaxTokens = 4096;

struct Samples {
  std::vector<int32_t> lengths, ids;
};

// True if positions depend on `id`. Earlier versions counted it like any other token.
bool MovesPositions(int32_t id, const ModelConfig& config) {
  return config.positions.after_pad && id == config.pad_id;
}

Samples MakeSamples(const ModelConfig& config) {
  Samples samples;
  for (const int32_t length : kLengths) {
    samples.lengths.push_back(std::min(length, config.max_tokens()));
    for (int32_t i = 0; i < samples.lengths.back(); ++i) {
      const int64_t id = (int64_t{7919} * samples.ids.size() + 17) % config.vocab;
      const bool moves = MovesPositions(static_cast<int32_t>(id), config);
      samples.ids.push_back(static_cast<int32_t>((id + moves) % config.vocab));
    }
  }
  return samples;
}

// Returns for each sample whether its outputs are those of all versions.
std::vector<bool> Comparable(const Samples& samples, const ModelConfig& config) {
  std::vector<bool> comparable;
  auto id = samples.ids.begin();
  for (const int32_t length : samples.lengths) {
    comparable.push_back(
        std::none_of(id, id + length, [&](int32_t i) { return MovesPositions(i, config); }));
    id += length;
  }
  return comparable;
}

// [n, columns], row after row.
std::vector<float> Outputs(Model& model, DType compute, const Samples& samples) {
  const auto task =
      model.config().head == HeadKind::kNone ? nullptr : MakeTask(model.config().head);
  Batch batch;
  const int32_t* ids = samples.ids.data();
  for (const int32_t length : samples.lengths) {
    std::vector<int32_t> sequence(ids, ids + length);
    AddExample(task == nullptr ? WithRow(std::move(sequence), length / 2)
                               : task->Sample(std::move(sequence)),
        /*number=*/0, &batch);
    ids += length;
  }
  batch.Pad();
  model.arena().Reset();
  const Pass pass = model.NewPass(batch, compute);
  const Mat hidden = model.backbone().Infer(pass);
  Mat all = task == nullptr ? pass.arena.New(hidden.rows, hidden.cols, DType::kF32)
                            : model.head().Logits(pass, hidden);
  if (task == nullptr) Convert(hidden, all);
  const int64_t columns = std::min(kColumns, task == nullptr ? all.cols : model.head().labels());
  std::vector<float> outputs;
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    const float* row = all.f32(i);
    outputs.insert(outputs.end(), row, row + columns);
  }
  return outputs;
}

absl::StatusOr<Samples> ReadSamples(const SafetensorsReader& file, const ModelConfig& config) {
  const auto bad = [&](absl::string_view what) {
    return Error(Exit::kData, QuotePath(file.path()), ": ", what);
  };
  const TensorInfo *lengths = file.Find("lengths"), *ids = file.Find("ids");
  if (lengths == nullptr || ids == nullptr || lengths->elements() == 0 ||
      ids->elements() > kMaxTokens)
    return bad("no usable samples");
  Samples samples{std::vector<int32_t>(lengths->elements()), std::vector<int32_t>(ids->elements())};
  RETURN_IF_ERROR(file.ReadI32("lengths", absl::MakeSpan(samples.lengths)));
  RETURN_IF_ERROR(file.ReadI32("ids", absl::MakeSpan(samples.ids)));
  int64_t tokens = 0;
  for (const int32_t length : samples.lengths) {
    if (length < 1 || length > config.max_tokens()) return bad("a sample does not fit the model");
    tokens += length;
  }
  const bool known = std::all_of(samples.ids.begin(), samples.ids.end(),
      [&](int32_t id) { return id >= 0 && id < config.vocab; });
  if (tokens != samples.ids.size() || !known) return bad("lengths and ids do not fit");
  return samples;
}

}  // namespace

absl::Status WriteSamples(Model& model, DType compute, const std::string& folder) {
  const Samples samples = MakeSamples(model.config());
  const std::vector<float> outputs = Outputs(model, compute, samples);
  const int64_t n = samples.lengths.size();
  if (!AllFinite(outputs)) {
    return Error(Exit::kInternal,
        "the model's results are not finite numbers: nothing was written ",
        "(lower optimizer.learning_rate)");
  }
  return WriteSafetensors(JoinPath(folder, kSamplesName),
      {{.name = "lengths", .shape = {n}, .type = FileType::kI32, .data = samples.lengths.data()},
          {.name = "ids",
              .shape = {static_cast<int64_t>(samples.ids.size())},
              .type = FileType::kI32,
              .data = samples.ids.data()},
          {.name = "outputs",
              .shape = {n, static_cast<int64_t>(outputs.size()) / n},
              .type = FileType::kF32,
              .data = outputs.data()}},
      {{"compute", NameOf(compute)}, {"kernels", KernelsName()}, {"matmul", MatmulLibrary()}});
}

absl::StatusOr<double> CheckSamples(Model& model, const std::string& folder) {
  ASSIGN_OR_RETURN(
      const SafetensorsReader file, SafetensorsReader::Open(JoinPath(folder, kSamplesName)));
  ASSIGN_OR_RETURN(const Samples samples, ReadSamples(file, model.config()));
  const auto said = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  const bool bf16 = said("compute") == "bf16";
  const bool same = said("kernels") == KernelsName() && said("matmul") == MatmulLibrary();
  const std::vector<float> now = Outputs(model, bf16 ? DType::kBf16 : DType::kF32, samples);
  std::vector<float> stored(now.size());
  RETURN_IF_ERROR(file.ReadF32("outputs", absl::MakeSpan(stored)));
  const std::vector<bool> comparable = Comparable(samples, model.config());
  const size_t columns = now.size() / comparable.size();
  double largest = 0;
  for (size_t i = 0; i < now.size(); ++i) {
    if (!comparable[i / columns]) continue;
    const double difference = std::abs(double{now[i]} - stored[i]),
                 most = same ? 0 : (bf16 ? 0.1 : 1e-4) * (1 + std::abs(stored[i]));
    if (!(difference <= most)) {
      return Error(Exit::kMismatch, QuotePath(file.path()), ": output ", i, " is ", now[i],
          " now, ", stored[i], " was stored");
    }
    largest = std::max(largest, difference);
  }
  return largest;
}

}  // namespace cloze
