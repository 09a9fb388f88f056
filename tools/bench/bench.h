// The benchmarks of `cloze bench`, and their models and limits.
#ifndef CLOZE_TOOLS_BENCH_BENCH_H_
#define CLOZE_TOOLS_BENCH_BENCH_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "encoder/families/model_config.h"
#include "tools/bench/line.h"
#include "tools/bench/timing.h"

namespace cloze::bench {

struct Options {
  std::vector<std::string> works;
  std::string encoder = "mini", compute = "auto", data, task = "cls", lora = "none", text,
              tokenizer, peer = "cloze";
  int vocab = 0, batch = 0, seq = 0;  // 0: the default of the work
  int steps = 7, warmup = 2;
  double dropout = 0.1, megabytes = 32;
  bool json = false, profile = false;
};

// Each runs one benchmark and writes its result lines.
absl::Status Peak(const Options& options);
absl::Status Train(const Options& options);
absl::Status Finetune(const Options& options);
absl::Status Infer(const Options& options);
absl::Status Tokenize(const Options& options);
absl::Status Start(const Options& options);
absl::Status Search(const Options& options);

// Returns the config of options.encoder with a vocabulary of options.vocab or 30522 tokens; a
// decoder has the head of a causal language model in place of kMaskedLm. kUsage for an unknown
// name, and for a decoder with another head; errors of ParseConfig.
absl::StatusOr<ModelConfig> ConfigOf(const Options& options, HeadKind head);
// Returns the floating-point operations of a forward pass over sequences of `lengths` with `rows`
// targets.
double ForwardFlop(const ModelConfig& config, const std::vector<int64_t>& lengths, double rows);
inline constexpr int kFirstWord = 5;  // id of the first token that is not special
// Returns random ids of words.
std::vector<int32_t> RandomIds(const Philox& philox, uint64_t example, int64_t length, int vocab);
// Returns the types that --compute selects; for "auto" the type that training would use, or with
// `all` every type of this CPU. int8: the type of the other operations; kUsage without `all`.
absl::StatusOr<std::vector<DType>> TypesOf(const Options& options, bool all);

// Returns the FLOP per second that oneDNN reaches here with all threads, in f32 if this CPU does
// not multiply bf16; measured once.
double MatmulPeak(DType type);
// Returns the bytes per second that all threads read and write when they copy memory larger than
// the caches; measured once.
double MemoryBandwidth();

// With --profile, prints a table of the ops in `pass`, run `times` times, on stderr. The limit of
// an op is the time of its products at MatmulPeak or of its bytes at MemoryBandwidth, whichever is
// longer.
void ProfileOps(const Options& options, DType type, int times, absl::FunctionRef<void(int)> pass);

}  // namespace cloze::bench

#endif  // CLOZE_TOOLS_BENCH_BENCH_H_
