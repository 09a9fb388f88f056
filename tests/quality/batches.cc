// Writes what a pretraining run would begin with and be fed, for another
// program to train on: batches SPEC STEPS OUT
//   OUT/start/       model folder with the initial weights
//   OUT/steps.jsonl  a line a step: {"rate": learning rate, "sequences": [[id,
//   ...], ...], "rows": [row in the packed sequences, ...], "targets": [...]}
#include <cstdio>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "encoder/folder/model_folder.h"
#include "encoder/model.h"
#include "tasks/batcher.h"
#include "tasks/training/run_inputs.h"
#include "tasks/training/schedule.h"

namespace cloze {
namespace {

void Print(std::ofstream& out, const StepData& data, double rate) {
  std::vector<std::string> sequences;
  std::vector<int32_t> rows, targets;
  int32_t first = 0;
  for (const Batch& batch : data.micro) {
    for (int64_t s = 0; s < batch.sequences(); ++s) {
      const auto *begin = batch.ids.data() + batch.cu_seqlens[s],
                 *end = batch.ids.data() + batch.cu_seqlens[s + 1];
      sequences.push_back(absl::StrCat("[", absl::StrJoin(begin, end, ","), "]"));
    }
    for (const int32_t row : batch.rows) rows.push_back(first + row);
    targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
    first += static_cast<int32_t>(batch.tokens());
  }
  out << "{\"rate\": " << rate << ", \"sequences\": [" << absl::StrJoin(sequences, ",")
      << "], \"rows\": [" << absl::StrJoin(rows, ",") << "], \"targets\": ["
      << absl::StrJoin(targets, ",") << "]}\n";
}

absl::Status Write(const std::string& path, int64_t steps, const std::string& folder) {
  ASSIGN_OR_RETURN(const LoadedSpec loaded, LoadVerifiedSpec(path, {}));
  const TaskSpec& spec = loaded.spec;
  ASSIGN_OR_RETURN(const RunInputs inputs,
      LoadRunInputs(
          loaded, {.cache_dir = JoinPath(folder, "cache"), .progress = nullptr, .stop = nullptr}));
  Model model(inputs.config, false);
  model.Initialize(spec.seed());
  RETURN_IF_ERROR(SaveWeights(JoinPath(folder, "start"), inputs.config, model.params()));
  const Batcher batcher(inputs.train->store, *inputs.task, spec.batch(), spec.seed());
  std::ofstream out(JoinPath(folder, "steps.jsonl"));
  for (int64_t step = 0, next = 0; step < steps; ++step) {
    ASSIGN_OR_RETURN(const StepData data, batcher.Next(next, double(step) / steps));
    Print(out, data, LearningRate(spec.schedule(), spec.optimizer().learning_rate(), step, steps));
    next = data.next;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace cloze

int main(int argc, char** argv) {
  int64_t steps = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[2], &steps)) {
    std::fputs("usage: batches SPEC STEPS OUT\n", stderr);
    return 2;
  }
  const absl::Status status = cloze::Write(argv[1], steps, argv[3]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
