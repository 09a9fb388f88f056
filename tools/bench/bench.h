// What the works of `cloze bench` share: options, timing, result lines. Lines have the names, the
// units and the counting of work that the benchmark scripts of other programs use, so that both
// stand in one table.
#ifndef CLOZE_TOOLS_BENCH_BENCH_H_
#define CLOZE_TOOLS_BENCH_BENCH_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "core/tensor/mat.h"
#include "encoder/modules/config.h"

namespace cloze {

struct BenchOptions {
  std::vector<std::string> works;
  std::string encoder = "mini", compute = "auto", data, task = "cls", lora = "none", text,
              peer = "cloze";
  int vocab = 0, batch = 0, seq = 0;  // 0: as the work has it
  int steps = 7, warmup = 2;
  double dropout = 0.1, megabytes = 32;
  bool json = false, profile = false;
};

// Milliseconds of the timed steps. Steps during which other processes took more than 6 % of the
// machine are set aside and made again, up to three times as many; when fewer than five are left,
// all count and `clean` is false.
struct Timing {
  std::vector<double> ms;  // of the steps that count
  std::vector<int> steps;  // their numbers
  double foreign_cpu = 0;
  bool clean = true;
  double Median() const;
  double Sum() const;
};
// step(i) for i = 0 ..., `warmup` times untimed, then at least `reps` times, or fewer but five when
// that takes more than `budget` seconds.
Timing TimeSteps(absl::FunctionRef<void(int)> step, int reps, int warmup, double budget = 20);

// A result: one JSON object, or a readable line.
class BenchLine {
 public:
  BenchLine(const BenchOptions& options, const std::string& work, const std::string& dtype,
      const std::string& config, int64_t batch, int64_t seq);
  // Appends a field; numbers that are not finite become null.
  BenchLine& Add(const std::string& name, double value);
  BenchLine& AddText(const std::string& name, const std::string& value);
  // Replaces the value of a field.
  BenchLine& Set(const std::string& name, double value);
  // The times, tokens_per_s from `tokens` a step, and peak_rss_mb of this process since
  // ForgetPeak().
  BenchLine& AddTiming(const Timing& timing, double tokens);
  // gflops and their share of what oneDNN reaches here with all threads; `flop` a step.
  BenchLine& AddFlop(double flop, double ms, DType type);
  absl::Status Write() const;

 private:
  std::string Readable() const;
  const BenchOptions& options_;
  std::vector<std::pair<std::string, std::string>> fields_;  // names and JSON values
};

// The process's peak memory counts anew from here.
void ForgetPeak();

// "fp32" or "bf16".
std::string NameOf(DType type);

// What oneDNN reaches here with all threads in FLOP a second, measured once.
double MatmulPeak(DType type);
// Bytes a second that all threads copy, read and written ones both counted, in memory that no cache
// holds; measured once.
double MemoryBandwidth();

// Shape of options.encoder, with a vocabulary of options.vocab or 30522. kUsage for an unknown
// name.
absl::StatusOr<ModelConfig> BenchConfig(const BenchOptions& options, HeadKind head);
// Multiplications and additions that a forward pass needs over sequences of `lengths`, with `rows`
// targets.
double ForwardFlop(const ModelConfig& config, const std::vector<int64_t>& lengths, double rows);
// Types to measure: the one that --compute says; for "auto" what training would choose, or with
// `all` every one that this CPU has.
absl::StatusOr<std::vector<DType>> BenchTypes(const BenchOptions& options, bool all);

// With --profile: a table of the ops in `pass`, run `times` times, on stderr. The limit of an op is
// the time that its products take at MatmulPeak or its bytes at MemoryBandwidth, whichever is
// longer.
void ProfileOps(
    const BenchOptions& options, DType type, int times, absl::FunctionRef<void(int)> pass);

absl::Status BenchPeak(const BenchOptions& options);
absl::Status BenchTrain(const BenchOptions& options);
absl::Status BenchFinetune(const BenchOptions& options);
absl::Status BenchInfer(const BenchOptions& options);
absl::Status BenchTokenize(const BenchOptions& options);
absl::Status BenchStart(const BenchOptions& options);

}  // namespace cloze

#endif  // CLOZE_TOOLS_BENCH_BENCH_H_
