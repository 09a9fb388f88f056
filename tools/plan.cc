#include "tools/plan.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/number.h"
#include "core/base/threads.h"
#include "tasks/reports/plan.h"
#include "tools/output.h"
#include "tools/temporary_folder.h"

namespace cloze {
namespace {

std::string Line(absl::string_view name, absl::string_view value, absl::string_view remark = "") {
  const std::string line = absl::StrFormat("%-18s %12s", name, value);
  return absl::StrCat(line, remark.empty() ? "" : "   ", remark, "\n");
}

std::string LineOfMemory(absl::string_view name, int64_t bytes, absl::string_view remark = "") {
  return Line(name, Megabytes(bytes), remark);
}

std::string MemoryTable(const TaskSpec& spec, const RunPlan& plan) {
  const TrainingNeed& need = plan.need;
  const bool limited = spec.runtime().memory_limit_mb() > 0;
  std::string text = Line("parameters", FormatCount(plan.parameters),
      absl::StrCat(plan.trained, " of ", plan.parameters, " are trained"));
  absl::StrAppend(&text, LineOfMemory("weights", need.weights, "f32"),
      LineOfMemory("optimizer", need.optimizer,
          spec.optimizer().ema_decay() > 0 ? "gradients, two moments, average"
                                           : "gradients, two moments"),
      LineOfMemory("packed weights", need.packed,
          absl::StrCat("at most; copies in ", plan.compute == DType::kF32 ? "f32" : "bf16")),
      LineOfMemory("activations", need.activations,
          spec.runtime().recompute() ? "blocks are recomputed in backward" : ""),
      LineOfMemory("scratch", need.scratch),
      LineOfMemory("other", need.other, "program, kernels, vocabulary, batches"),
      LineOfMemory("expected peak", need.total(),
          absl::StrCat(
              limited ? "runtime.memory_limit_mb: " : "free here: ", Megabytes(plan.limit))));
  return text + Line("micro_tokens", absl::StrCat(plan.micro_tokens), plan.note);
}

std::string DataLine(const char* name, const DataEstimate& data) {
  const std::string share =
      data.read < data.bytes
          ? absl::StrFormat("; estimated by %.1f of %.1f MB", data.read / 1e6, data.bytes / 1e6)
          : "";
  return Line(name, FormatCount(data.tokens),
      absl::StrCat("tokens in ", FormatCount(data.sequences), " sequences", share));
}

std::string TimeTable(const RunPlan& plan, int repeat) {
  const Speed& speed = plan.speed;
  std::string text = DataLine("training data", plan.train);
  if (plan.validation.tokens > 0) text += DataLine("validation data", plan.validation);
  text += Line("steps", FormatCount(plan.steps),
      absl::StrCat(
          FormatCount(plan.tokens), " tokens", plan.timed ? " within the time budget" : ""));
  text += Line("tokens/s", FormatCount(plan.tokens_per_second),
      absl::StrFormat("measured: steps of this model on these data, passes of %d tokens, %d "
                      "threads, %s, %.1f s",
          speed.pass_tokens, Threads(), plan.compute == DType::kF32 ? "f32" : "bf16",
          speed.seconds));
  std::vector<std::string> remarks;
  if (plan.evaluations > 0)
    remarks.push_back(absl::StrFormat("%s of it for %.0f evaluations",
        FormatDuration(plan.evaluation_seconds), plan.evaluations));
  if (repeat > 1) remarks.push_back(absl::StrCat("each of ", repeat, " runs"));
  return text + Line("time to finish",
                    FormatDuration(plan.train_seconds + (plan.timed ? 0 : plan.evaluation_seconds)),
                    absl::StrJoin(remarks, "; "));
}

}  // namespace

absl::Status PrintPlan(const LoadedSpec& loaded, const std::atomic<bool>* stop) {
  ASSIGN_OR_RETURN(const TemporaryFolder scratch, TemporaryFolder::Create());
  ASSIGN_OR_RETURN(const RunPlan plan, PlanRun(loaded, {.scratch = scratch.path(), .stop = stop}));
  RETURN_IF_ERROR(WriteStdout(MemoryTable(loaded.spec, plan) +
                              (plan.fits.ok() ? TimeTable(plan, loaded.spec.repeat()) : "")));
  return plan.fits;
}

}  // namespace cloze
