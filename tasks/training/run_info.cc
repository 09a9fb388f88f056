#include "tasks/training/run_info.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/system.h"
#include "core/base/threads.h"
#include "core/ops/matmul.h"
#include "tasks/data_summary.h"

namespace cloze {
namespace {

constexpr int64_t kMaxExamples = 100'000;

// "AMD EPYC 9654"; "" where the system does not say.
std::string CpuName() {
  const std::string text = ReadSystemFile("/proc/cpuinfo");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t colon = line.find(':');
    if (absl::StartsWith(line, "model name") && colon != line.npos)
      return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "";
}

absl::StatusOr<OrderedJson> Describe(
    const BuiltStore& built, const std::vector<std::string>& labels) {
  ASSIGN_OR_RETURN(
      const StoreContent content, ContentOf(built.store, labels.size(), kMaxExamples, nullptr));
  return SummaryOf(built.store.stats(), content, labels);
}

}  // namespace

absl::Status WriteRunInfo(
    const std::string& path, const RunInputs& inputs, const std::string& program) {
  if (PathExists(path)) return absl::OkStatus();
  OrderedJson about = {{"program", program},
      {"machine", {{"cpu", CpuName()}, {"threads", Threads()}, {"kernels", KernelsName()},
                      {"matmul", MatmulLibrary()}, {"compute", NameOf(inputs.compute)}}}};
  const std::vector<std::string> labels = CountedLabels(inputs.config);
  ASSIGN_OR_RETURN(about["data"]["train"], Describe(*inputs.train, labels));
  if (inputs.validation.has_value()) {
    ASSIGN_OR_RETURN(about["data"]["validation"], Describe(*inputs.validation, labels));
  }
  return WriteFileAtomically(path, ToJsonText(about));
}

}  // namespace cloze
