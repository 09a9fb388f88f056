#include "tasks/inference/evaluate.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "tasks/inference/generator.h"
#include "tasks/inference/session.h"
#include "tasks/packer.h"
#include "tasks/replaced_tokens.h"

namespace cloze {
namespace {

// Numbers of held-out examples start here, so that their masks differ from those of training.
constexpr uint64_t kHeldOut = uint64_t{1} << 62;

struct RoundBatch {
  Batch batch;
  std::vector<Example> examples;
};

// Returns the targets that the model generates for the sources of `examples`, as
// Evaluation::Output has them.
absl::StatusOr<std::vector<int32_t>> GenerateTargets(Model& model, const Task& task, DType compute,
    const std::atomic<bool>* stop, absl::Span<const Example> examples) {
  std::vector<std::vector<int32_t>> sources;
  for (const Example& example : examples)
    sources.emplace_back(example.ids.begin(), example.ids.begin() + example.second);
  Generator generator(model, model.config(), nullptr, compute,
      {.max_new_tokens = task.max_new_tokens(), .stop_flag = stop});
  ASSIGN_OR_RETURN(const auto targets, generator.Generate(sources, 0, [](size_t, auto) {}));
  std::vector<int32_t> generated;
  for (const std::vector<int32_t>& target : targets) {
    generated.push_back(static_cast<int32_t>(target.size()) - 1);  // without the start token
    generated.insert(generated.end(), target.begin() + 1, target.end());
  }
  return generated;
}

// Returns the outputs of all ranks, or on each of them the first error. `mine` is not used if
// `status` is an error.
absl::StatusOr<std::vector<Evaluation::Output>> Collect(
    Ranks& ranks, const absl::Status& status, Evaluation::Output mine) {
  const int me = ranks.rank(), size = ranks.size();
  std::vector<double> numbers(1 + 7 * size);
  double* own = &numbers[1 + 7 * me];
  own[0] = mine.sum.loss, own[1] = static_cast<double>(mine.sum.correct);
  own[2] = static_cast<double>(mine.targets), own[3] = static_cast<double>(mine.logits.size());
  own[4] = mine.generator.loss, own[5] = static_cast<double>(mine.generator.correct);
  own[6] = static_cast<double>(mine.generated.size());
  numbers[0] = !status.ok();
  ranks.Sum(absl::MakeSpan(numbers));
  std::vector<Evaluation::Output> outputs(size);
  std::vector<Ranks::Message> send[2], receive[2];
  for (int r = 0; r < size; ++r) {
    const double* theirs = &numbers[1 + 7 * r];
    outputs[r].sum = {theirs[0], static_cast<int64_t>(theirs[1])};
    outputs[r].targets = static_cast<int64_t>(theirs[2]);
    outputs[r].generator = {theirs[4], static_cast<int64_t>(theirs[5])};
    outputs[r].logits.resize(r == me ? 0 : static_cast<size_t>(theirs[3]));
    if (r == me) continue;
    outputs[r].generated.resize(static_cast<size_t>(theirs[6]));
    const auto message = [&](auto& values) {
      return Ranks::Message{r, reinterpret_cast<char*>(values.data()),
          static_cast<int64_t>(values.size() * sizeof(values[0]))};
    };
    send[0].push_back(message(mine.logits)), receive[0].push_back(message(outputs[r].logits));
    send[1].push_back(message(mine.generated)), receive[1].push_back(message(outputs[r].generated));
  }
  if (numbers[0] > 0) return ranks.Agree(status);
  for (int part = 0; part < 2; ++part) ranks.Exchange(send[part], receive[part]);
  outputs[me].logits = std::move(mine.logits);
  outputs[me].generated = std::move(mine.generated);
  return outputs;
}

}  // namespace

absl::StatusOr<MetricResults> Evaluate(
    Model& model, const Task& task, const ExampleStore& store, const EvaluateOptions& options) {
  const auto evaluation = task.NewEvaluation(model, store.stats(), options.decode);
  evaluation->on_text = options.on_text;
  const auto stopped = [&] { return options.stop != nullptr && *options.stop; };
  std::vector<RoundBatch> round;  // one batch for each rank
  // Evaluates the round, unless this rank could not read it.
  const auto run = [&](absl::Status own) -> absl::Status {
    Evaluation::Output mine;
    if (const size_t rank = options.ranks->rank(); own.ok() && rank < round.size()) {
      Batch& batch = round[rank].batch;
      batch.Pad();
      model.arena().Reset();
      Batch replaced;
      LossSum generator;
      const Pass pass = model.NewPass(
          EvaluatedBatch(model, batch, options.compute, &replaced, &generator), options.compute);
      mine = evaluation->Compute(pass, model.backbone().Infer(pass));
      mine.generator = generator;
      if (task.max_new_tokens() > 0) {
        auto generated =
            GenerateTargets(model, task, options.compute, options.stop, round[rank].examples);
        own = generated.status();
        if (own.ok()) mine.generated = *std::move(generated);
      }
    }
    if (own.ok() && stopped()) own = Error(Exit::kInterrupted, "stopped while evaluating");
    ASSIGN_OR_RETURN(
        std::vector<Evaluation::Output> outputs, Collect(*options.ranks, own, std::move(mine)));
    const auto finite = [](const Evaluation::Output& output) {
      return std::isfinite(output.sum.loss) && AllFinite(output.logits);
    };
    if (options.needs_finite && !absl::c_all_of(outputs, finite)) return NotFinite();
    for (size_t i = 0; i < round.size(); ++i) {
      const LossSum generator = outputs[i].generator;
      evaluation->Add(std::move(outputs[i]), round[i].examples);
      evaluation->AddGenerator(generator, round[i].batch.targets.size());
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
    task.PrepareExample(kHeldOut + i, /*done=*/1, &example);
    const int64_t tokens = example.ids.size();
    if (round.empty() || round.back().batch.tokens() + tokens > options.batch_tokens) {
      if (static_cast<int>(round.size()) == options.ranks->size()) RETURN_IF_ERROR(run({}));
      round.emplace_back();
    }
    AddExample(example, kHeldOut + i, &round.back().batch);
    round.back().examples.push_back(std::move(example));
  }
  if (!round.empty()) RETURN_IF_ERROR(run({}));
  return evaluation->Results();
}

}  // namespace cloze
