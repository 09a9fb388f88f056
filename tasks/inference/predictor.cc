#include "tasks/inference/predictor.h"

#include <algorithm>
#include <utility>

#include "tasks/batcher.h"
#include "tasks/generator.h"

namespace cloze {
namespace {

// Numbers of held-out examples start here, so that their masks differ from those of training.
constexpr uint64_t kHeldOut = uint64_t{1} << 62;

}  // namespace

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Create(Session& session, Options options) {
  std::unique_ptr<Predictor> predictor(new Predictor(session, std::move(options)));
  const TaskOfAdapter& main = predictor->Of(kDefaultAdapter);
  RETURN_IF_ERROR(main.status);
  const std::string has = absl::StrCat(QuotePath(session.folder()), " has ");
  if (main.task == nullptr)
    return Error(Exit::kMismatch, has,
        "no head: use `cloze encode`, neighbors, analogy or attention, or ", "fine-tune it");
  if (main.task->command() != predictor->options_.command)
    return Error(Exit::kMismatch, has, "a head for ", main.task->name(), ": use `cloze ",
        main.task->command(), "`");
  return predictor;
}

const Predictor::TaskOfAdapter& Predictor::Of(int adapter) {
  const auto [found, added] = tasks_.try_emplace(adapter);
  TaskOfAdapter& result = found->second;
  if (!added) return result;
  const ModelConfig& config = session_.config(adapter);
  auto task = RestoreTask(session_.folder(adapter), config, session_.max_tokens());
  result.status = task.status();
  if (!task.ok() || *task == nullptr) return result;
  result.task = *std::move(task);
  const auto tokenizer = session_.TokenizerOr();
  const absl::Status bound =
      result.task->Bind(config, tokenizer.ok() ? *tokenizer : nullptr, /*seed=*/0);
  if (!bound.ok()) result.status = Error(Exit::kMismatch, bound.message());
  result.decoder = result.task->NewDecoder(session_.model(), options_.decode);
  return result;
}

absl::Status Predictor::Encode(const Record& record, int* adapter, std::vector<Query>* queries) {
  RETURN_IF_ERROR(record.wrong);
  ASSIGN_OR_RETURN(*adapter, session_.AdapterNamed(record.adapter));
  const TaskOfAdapter& of = Of(*adapter);
  RETURN_IF_ERROR(of.status);
  ASSIGN_OR_RETURN(std::vector<Example> windows, of.task->Encode(record, session_.input(), &cut_));
  const bool one_type = session_.config().token_types < 2;  // whatever the tokenizer says of pairs
  for (Example& window : windows) {
    if (one_type && record.ids.empty()) window.second = static_cast<int32_t>(window.ids.size());
    queries->push_back({std::move(window), *adapter});
  }
  return absl::OkStatus();
}

absl::Status Predictor::Answer(absl::Span<const Record> records,
    absl::FunctionRef<absl::Status(const Record&, const OrderedJson&)> f) {
  std::vector<Query> queries;
  std::vector<size_t> ends;            // for each record, the queries up to its last one
  std::vector<int> adapters;           // for each record
  absl::Status wrong;                  // of a record; those before it are answered first
  std::vector<absl::Status> failures;  // for each record
  for (const Record& record : records) {
    wrong = Encode(record, &adapters.emplace_back(), &queries);
    if (!wrong.ok() && record.wrong.ok() && record.line > 0)
      wrong = Annotate(wrong, options_.source, ":", record.line);
    const bool go_on = options_.keep_going && ExitOf(wrong) == Exit::kData;
    if (!wrong.ok() && !go_on) break;
    failures.push_back(std::exchange(wrong, absl::OkStatus()));
    ends.push_back(queries.size());
  }
  size_t next = 0;  // record to be answered
  absl::Status status;
  const auto answer = [&](const TextLogits& text) {
    const absl::Status& failure = failures[next];
    failed_ += !failure.ok();
    if (status.ok() && !failure.ok())
      status = f(records[next], {{"error", std::string(failure.message())}});
    if (status.ok() && failure.ok())
      status = f(records[next], Of(adapters[next]).decoder(records[next], text));
    ++next;
  };
  // Records without a window need no pass.
  const auto answer_empty = [&](size_t queries_done) {
    while (next < ends.size() && ends[next] == queries_done &&
           (next == 0 ? 0 : ends[next - 1]) == queries_done)
      answer({});
  };
  WindowJoiner joiner(answer);
  RETURN_IF_ERROR(session_.Logits(queries, [&](int64_t q, ConstMat logits) {
    if (!queries[q].continues) {
      joiner.Finish();
      answer_empty(q);
    }
    joiner.Add(queries[q], logits);
  }));
  joiner.Finish();
  answer_empty(queries.size());
  RETURN_IF_ERROR(status);
  return wrong;
}

absl::StatusOr<MetricResults> Evaluate(
    Model& model, const Task& task, const ExampleStore& store, const EvaluateOptions& options) {
  const auto evaluation = task.NewEvaluation(model, store.stats(), options.decode);
  evaluation->on_text = options.on_text;
  const int64_t count =
      options.max_examples > 0 ? std::min(options.max_examples, store.size()) : store.size();
  Batch batch;
  std::vector<Example> examples;
  const auto run = [&] {
    if (examples.empty()) return;
    batch.Pad();
    model.arena().Reset();
    Batch replaced;
    LossSum generator;
    const Pass pass = model.NewPass(
        EvaluatedBatch(model, batch, options.compute, &replaced, &generator), options.compute);
    evaluation->AddBatch(pass, model.encoder().Infer(pass), examples);
    evaluation->AddGenerator(generator, batch.targets.size());
    batch.Clear();
    examples.clear();
  };
  for (int64_t i = 0; i < count; ++i) {
    if (options.stop != nullptr && *options.stop)
      return Error(Exit::kInterrupted, "stopped while evaluating");
    Example example;
    RETURN_IF_ERROR(store.Read(i, &example));
    task.Draw(kHeldOut + i, /*done=*/1, &example);
    if (batch.tokens() + static_cast<int64_t>(example.ids.size()) > options.batch_tokens) run();
    AddExample(example, kHeldOut + i, &batch);
    examples.push_back(std::move(example));
  }
  run();
  return evaluation->Results();
}

}  // namespace cloze
