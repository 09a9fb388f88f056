#include "tasks/inference/evaluate.h"

#include <utility>

#include "tasks/inference/generator.h"
#include "tasks/inference/session.h"
#include "tasks/packer.h"

namespace cloze {
namespace {

// Numbers of held-out examples start here, so that their masks differ from those of training.
constexpr uint64_t kHeldOut = uint64_t{1} << 62;

struct RoundBatch {
  Batch batch;
  std::vector<Example> examples;
};

}  // namespace

absl::StatusOr<MetricResults> Evaluate(
    Model& model, const Task& task, const ExampleStore& store, const EvaluateOptions& options) {
  Ranks& ranks = *options.ranks;
  const auto evaluation = task.NewEvaluation(model, store.stats(), options.decode);
  evaluation->on_text = options.on_text;
  evaluation->generate = [&](absl::Span<const std::vector<int32_t>> sources, int64_t most) {
    Generator generator(model, model.config(), nullptr, options.compute,
        {.max_new_tokens = most, .stop_flag = options.stop});
    return generator.Generate(sources, 0, [](size_t, auto) {});
  };
  std::vector<RoundBatch> round;  // one batch for each rank
  // Evaluates the round, unless this rank could not read it.
  const auto run = [&](absl::Status status) -> absl::Status {
    absl::StatusOr<Evaluation::Output> mine = Evaluation::Output();
    if (const size_t rank = ranks.rank(); status.ok() && rank < round.size()) {
      Batch& batch = round[rank].batch;
      batch.Pad();
      model.arena().Reset();
      mine = evaluation->Run(model.NewPass(batch, options.compute), round[rank].examples);
      status = mine.status();
    }
    if (status.ok()) status = CheckStopped(options.stop, "evaluating");
    RETURN_IF_ERROR(ranks.Agree(status));
    const std::vector<std::string> outputs = ranks.Gather(mine->Serialize());
    for (size_t i = 0; i < round.size(); ++i) {
      Evaluation::Output output = Evaluation::Output::Parse(outputs[i]);
      if (options.needs_finite && !output.finite()) return NotFinite();
      evaluation->Add(std::move(output), round[i].examples);
    }
    round.clear();
    return absl::OkStatus();
  };
  int64_t texts = 0;  // of which the later windows `continues`
  for (int64_t i = 0; i < store.size(); ++i) {
    Example example;
    if (const absl::Status read = store.Read(i, &example); !read.ok()) return run(read);
    texts += !example.continues;
    if (options.max_examples > 0 && texts > options.max_examples) break;
    std::vector<Example> sequences = task.Sequences(std::move(example), /*done=*/1);
    for (Example& sequence : sequences) task.PrepareExample(kHeldOut + i, /*done=*/1, &sequence);
    for (size_t s = 0; s < sequences.size(); ++s) {
      const int64_t tokens = JoinedTokens(absl::MakeConstSpan(sequences).subspan(s));
      if (round.empty() ||
          (!sequences[s].joined && round.back().batch.tokens() + tokens > options.batch_tokens)) {
        if (static_cast<int>(round.size()) == ranks.size()) RETURN_IF_ERROR(run({}));
        round.emplace_back();
      }
      AddExample(sequences[s], kHeldOut + i, &round.back().batch);
      round.back().examples.push_back(std::move(sequences[s]));
    }
  }
  if (!round.empty()) RETURN_IF_ERROR(run({}));
  return evaluation->Results();
}

}  // namespace cloze
