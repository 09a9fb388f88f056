// A lower bound that is nearly all of what a large model needs; see memory.h.
#include "tasks/training/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <limits>

namespace cloze {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
constexpr int64_t kMegabyte = 1000000;

// The number that `pattern` finds in some line of a file of the system, times `unit`.
int64_t Lookup(const char* path, const char* pattern, int64_t unit) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return kUnknown;
  char line[256];
  long long value = -1;
  while (value < 0 && std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::sscanf(line, pattern, &value) != 1) value = -1;
  }
  std::fclose(file);
  return value < 0 || value > kUnknown / unit ? kUnknown : value * unit;
}

int64_t AvailableBytes() {
  rlimit limit = {};
  const bool limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(kUnknown);
  return std::min({Lookup("/proc/meminfo", "MemAvailable: %lld", 1024), Lookup("/sys/fs/cgroup/memory.max", "%lld", 1),
                   limited ? static_cast<int64_t>(limit.rlim_cur) : kUnknown});
}

}  // namespace

int64_t TrainingBytes(const ModelConfig& config, const TrainableSpec& trainable) {
  const int64_t hidden = config.hidden, intermediate = config.intermediate;
  const int64_t embeddings = (int64_t{config.vocab} + config.max_positions + config.token_types) * hidden;
  const int64_t block = 4 * hidden * hidden + 2 * hidden * intermediate + intermediate + 9 * hidden;
  const int64_t all = embeddings + config.layers * block;
  int64_t trained = all;
  if (trainable.head_only()) trained = 0;
  if (trainable.has_last_layers()) trained = trainable.last_layers() * block;
  if (trainable.has_lora()) {
    const LoraSpec& lora = trainable.lora();
    trained = int64_t{config.layers} * (lora.targets().empty() ? 2 : lora.targets_size()) * lora.rank() * 2 * hidden +
              (lora.embeddings() ? embeddings : 0);
  }
  return (all + 3 * trained) * static_cast<int64_t>(sizeof(float));  // weights; gradients and two moments
}

absl::Status CheckMemory(const ModelConfig& config, int64_t limit_mb, const TrainableSpec& trainable) {
  const int64_t need = TrainingBytes(config, trainable), limit = limit_mb > 0 ? limit_mb * kMegabyte : AvailableBytes();
  if (need <= limit) return absl::OkStatus();
  return Error(Exit::kLimit, absl::StrCat("weights, gradients and moments of the model need ", need / kMegabyte + 1, " MB, ",
                                          limit_mb > 0 ? "runtime.memory_limit_mb is " : "this machine has ", limit / kMegabyte,
                                          limit_mb > 0 ? "" : " free", "; a smaller model.encoder needs less"));
}

}  // namespace cloze
