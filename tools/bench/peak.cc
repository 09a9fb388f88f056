// `cloze bench peak`, and the limits that other works are compared with.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include "core/base/threads.h"
#include "core/ops/matmul.h"
#include "core/ops/profile.h"
#include "tools/bench/bench.h"
#include "tools/bench/peak_product.h"

namespace cloze::bench {
namespace {

// Products of encoders with hidden 768 and 256, and a square one.
constexpr int64_t kShapes[][3] = {{4096, 4096, 4096}, {1024, 768, 768}, {1024, 3072, 768},
    {1024, 768, 3072}, {1024, 30522, 768}, {8192, 256, 256}, {8192, 1024, 256}};

double Flop(const int64_t* shape) { return 2.0 * shape[0] * shape[1] * shape[2]; }

Timing TimeProduct(const int64_t* shape, DType type, int reps) {
  PeakProduct product(shape[0], shape[1], shape[2], type);
  return TimeSteps([&](int) { product.Run(); }, reps, 3, 6);
}

absl::Status TimeProducts(const Options& options, DType type) {
  for (const auto& shape : kShapes) {
    const Timing timing = TimeProduct(shape, type, Flop(shape) > 1e10 ? 9 : 40);
    const double best = *std::min_element(timing.ms.begin(), timing.ms.end());
    Line line(options, "matmul", TypeName(type),
        absl::StrCat(shape[0], "x", shape[1], "x", shape[2]), shape[0], 0);
    line.AddTiming(timing, 0)
        .Add("gflops", Flop(shape) / timing.Median() / 1e6)
        .Add("gflops_best", Flop(shape) / best / 1e6);
    RETURN_IF_ERROR(
        line.Add("share_of_peak", Flop(shape) / timing.Median() * 1e3 / MatmulPeak(type)).Write());
  }
  return absl::OkStatus();
}

}  // namespace

double MatmulPeak(DType type) {
  type = ProductType(type);
  static std::map<std::pair<DType, int>, double> peaks;  // by type and threads
  double& best = peaks[{type, Threads()}];
  if (best > 0) return best;
  for (const auto& shape :
      {std::array<int64_t, 3>{2048, 2048, 2048}, {1024, 3072, 768}, {8192, 1024, 256}})
    best = std::max(best, Flop(shape.data()) / TimeProduct(shape.data(), type, 5).Median() * 1e3);
  return best;
}

double MemoryBandwidth() {
  static double bandwidth = 0;
  if (bandwidth > 0) return bandwidth;
  constexpr int64_t kBytes = 256 << 20, kPiece = 1 << 20;
  const std::unique_ptr<char[]> from(new char[kBytes]()), to(new char[kBytes]());
  const auto copy = [&](int) {
    ParallelChunks(kBytes, kPiece, [&](int64_t begin, int64_t end) {
      std::memcpy(to.get() + begin, from.get() + begin, end - begin);
    });
  };
  return bandwidth = 2.0 * kBytes / TimeSteps(copy, 7, 1, 2).Median() * 1e3;
}

void ProfileOps(const Options& options, DType type, int times, absl::FunctionRef<void(int)> pass) {
  if (!options.profile) return;
  const double peak = MatmulPeak(type), bandwidth = MemoryBandwidth();
  Profile profile;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) pass(i);
  const double total = std::chrono::duration<double, std::milli>(
                   std::chrono::steady_clock::now() - start)
                           .count(),
               count = times;
  std::vector<std::pair<std::string, Profile::Entry>> ops(
      profile.entries().begin(), profile.entries().end());
  std::sort(ops.begin(), ops.end(),
      [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::fprintf(stderr, "limits: %.0f GFLOP/s in products (%s, %d threads), %.1f GB/s copied\n",
      peak / 1e9, TypeName(ProductType(type)).c_str(), Threads(), bandwidth / 1e9);
  std::fprintf(stderr, "%-22s %7s %10s %7s %10s %10s %10s %10s\n", "op", "calls", "ms", "share",
      "GFLOP", "MB", "GFLOP/s", "of limit");
  double rest = total;
  for (const auto& [name, entry] : ops) {
    const double ms = entry.seconds * 1e3,
                 limit = 1e3 * std::max(entry.cost.flop / peak, entry.cost.bytes / bandwidth);
    rest -= ms;
    std::fprintf(stderr, "%-22s %7.0f %10.3f %6.1f%% %10.2f %10.1f %10.0f %9.0f%%\n", name.c_str(),
        entry.calls / count, ms / count, 100 * ms / total, entry.cost.flop / 1e9 / count,
        entry.cost.bytes / 1e6 / count, entry.cost.flop / ms / 1e6, 100 * limit / ms);
  }
  std::fprintf(
      stderr, "%-22s %7s %10.3f %6.1f%%\n", "between ops", "", rest / count, 100 * rest / total);
  std::fprintf(stderr, "%-22s %7s %10.3f\n", "a step", "", total / count);
}

absl::Status Peak(const Options& options) {
  if (options.compute == "int8")
    return Error(Exit::kUsage, "--compute int8: only for infer and start");
  ASSIGN_OR_RETURN(const std::vector<DType> types, TypesOf(options, true));
  const int threads = Threads();
  for (const DType type : types) {
    RETURN_IF_ERROR(TimeProducts(options, type));
    if (threads == 1) continue;
    SetThreads(1);
    const absl::Status status = TimeProducts(options, type);
    SetThreads(threads);
    RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

}  // namespace cloze::bench
