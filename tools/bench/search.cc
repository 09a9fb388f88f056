// `cloze bench search`: exact search through a million vectors of 384 dimensions.
#include <algorithm>
#include <cmath>

#include "core/base/file.h"
#include "core/base/threads.h"
#include "core/ops/nearest.h"
#include "core/ops/rows.h"
#include "core/tensor/arena.h"
#include "tasks/inference/vector_index.h"
#include "tools/bench/bench.h"
#include "tools/process.h"

namespace cloze::bench {
namespace {

constexpr int64_t kVectors = 1'000'000, kDimensions = 384, kHits = 10;

// Fills `values` with numbers in [-0.5, 0.5), from a linear congruence that starts in each row.
void FillRandom(absl::Span<float> values) {
  ParallelChunks(std::ssize(values), 1 << 16, [&](int64_t begin, int64_t end) {
    uint32_t state = static_cast<uint32_t>(begin >> 16) * 2654435761u + 1;
    for (int64_t i = begin; i < end; ++i) {
      state = state * 1664525u + 1013904223u;
      values[i] = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
    }
  });
}

// Returns the vectors in `type`; s8 with scales.
VectorRows Narrow(absl::Span<const float> values, DType type, LargeMemory* memory,
    const std::vector<float>& scales) {
  if (type == DType::kF32) return {values.data(), kVectors, kDimensions, type};
  *memory = LargeMemory(std::ssize(values) * SizeOf(type));
  if (type == DType::kBf16) {
    Convert(View(values.data(), kVectors, kDimensions),
        {memory->get(), kVectors, kDimensions, kDimensions, type});
    return {memory->get(), kVectors, kDimensions, type};
  }
  const absl::Span<int8_t> bytes = memory->as<int8_t>();
  ParallelChunks(std::ssize(values), 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      bytes[i] = static_cast<int8_t>(std::lround(values[i] * 254));
  });
  return {memory->get(), kVectors, kDimensions, type, scales.data()};
}

std::string NameOfVectors(DType type) { return type == DType::kS8 ? "int8" : TypeName(type); }

// One query reads all vectors; many multiply them. Vectors of s8 are multiplied in f32.
absl::Status TimeQueries(const Options& options, const VectorRows& table, int64_t queries) {
  LargeMemory memory(queries * kDimensions * int64_t{sizeof(float)});
  FillRandom(memory.as<float>().first(queries * kDimensions));
  const ConstMat q = View(memory.as<const float>().data(), queries, kDimensions);
  const Timing timing = TimeSteps(
      [&](int) { NearestRows(table, q, kHits); }, options.steps, std::min(options.warmup, 1), 30);
  Line line(options, "search", NameOfVectors(table.type), absl::StrCat(kVectors, "x", kDimensions),
      queries, 0);
  line.AddTiming(timing, 0).Add(
      "queries_per_s", static_cast<double>(queries) / timing.Median() * 1e3);
  const double bytes = double{kVectors} * kDimensions * SizeOf(table.type),
               flop = 2.0 * kVectors * kDimensions * static_cast<double>(queries);
  if (queries <= kFewQueries) {
    const double rate = bytes / timing.Median() * 1e3;
    line.Add("gb_per_s", rate / 1e9).Add("share_of_bandwidth", rate / MemoryBandwidth());
  } else {
    line.AddFlop(flop, timing.Median(), table.type == DType::kBf16 ? DType::kBf16 : DType::kF32);
  }
  return line.Write();
}

// Times the loading of a .npy file that was just written.
absl::Status TimeLoading(const Options& options, absl::Span<const float> values) {
  ASSIGN_OR_RETURN(const ScratchFolder folder, ScratchFolder::Create());
  const std::string path = JoinPath(folder.path(), "vectors.npy");
  std::string header = absl::StrCat(absl::string_view("\x93NUMPY\x01\x00\x76\x00", 10),
      "{'descr': '<f4', 'fortran_order': False, 'shape': (", kVectors, ", ", kDimensions, "), }");
  header.resize(127, ' ');
  header += '\n';
  RETURN_IF_ERROR(CreateFile(path, [&](const Fd& fd) -> absl::Status {
    RETURN_IF_ERROR(WriteAll(fd, path, header.data(), std::ssize(header)));
    return WriteAll(fd, path, values.data(), std::ssize(values) * int64_t{sizeof(float)});
  }));
  absl::Status status;
  const Timing timing = TimeSteps(
      [&](int) { status.Update(VectorIndex::Open(path, Similarity::kCosine).status()); }, 3, 0, 10);
  RETURN_IF_ERROR(status);
  const double bytes = static_cast<double>(values.size()) * sizeof(float);
  Line line(options, "search load", "fp32", absl::StrCat(kVectors, "x", kDimensions), 0, 0);
  return line.AddTiming(timing, 0).Add("gb_per_s", bytes / timing.Median() / 1e6).Write();
}

}  // namespace

absl::Status Search(const Options& options) {
  LargeMemory memory(kVectors * kDimensions * int64_t{sizeof(float)});
  const absl::Span<float> values = memory.as<float>().first(kVectors * kDimensions);
  FillRandom(values);
  RETURN_IF_ERROR(TimeLoading(options, values));
  const std::vector<float> scales(kVectors, 1 / 254.0f);
  std::vector<DType> types = {DType::kF32, DType::kBf16, DType::kS8};
  if (options.compute == "int8") types = {DType::kS8};
  if (options.compute == "f32") types = {DType::kF32};
  if (options.compute == "bf16") types = {DType::kBf16};
  for (const DType type : types) {
    LargeMemory narrow;
    const VectorRows table = Narrow(values, type, &narrow, scales);
    for (const int64_t queries :
        options.batch > 0 ? std::vector<int64_t>{options.batch} : std::vector<int64_t>{1, 1000})
      RETURN_IF_ERROR(TimeQueries(options, table, queries));
  }
  return absl::OkStatus();
}

}  // namespace cloze::bench
