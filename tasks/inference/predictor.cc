#include "tasks/inference/predictor.h"

#include <utility>

namespace cloze {
namespace {

// Empties all strings and lists, and makes the other values null.
void DropContent(OrderedJson* json) {
  if (json->is_string()) {
    *json = "";
  } else if (json->is_array()) {
    *json = OrderedJson::array();
  } else if (json->is_object()) {
    for (OrderedJson& member : *json) DropContent(&member);
  } else {
    *json = nullptr;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Create(Session& session, Options options) {
  std::unique_ptr<Predictor> predictor(new Predictor(session, std::move(options)));
  const TaskOfAdapter& main = predictor->Of(kDefaultAdapter);
  RETURN_IF_ERROR(main.status);
  const std::string has = absl::StrCat(QuotePath(session.folder()), " has ");
  if (main.task == nullptr || main.task->head() == HeadKind::kNone) {
    const bool discriminates = session.config(kDefaultAdapter).head == HeadKind::kReplacedTokens;
    return Error(Exit::kMismatch, has,
        discriminates
            ? "a head that finds replaced tokens and gives no answers: fine-tune the model"
            : "no head: use `cloze encode`, neighbors, analogy or attention, or fine-tune it");
  }
  const std::string& command = predictor->options_.command;
  if (!command.empty() && main.task->command() != command)
    return Error(Exit::kMismatch, has, "a head for ", main.task->name(), ": use `cloze ",
        main.task->command(), "`");
  return predictor;
}

Predictor::TaskOfAdapter& Predictor::Of(int adapter) {
  const auto [found, added] = tasks_.try_emplace(adapter);
  TaskOfAdapter& result = found->second;
  if (!added) return result;
  const ModelConfig& config = session_.config(adapter);
  auto task = RestoreTask(session_.folder(adapter), config, session_.config().max_tokens());
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

const OrderedJson& Predictor::EmptyAnswer(int adapter) {
  TaskOfAdapter& of = Of(adapter);
  if (!of.empty.is_null() || !of.status.ok()) return of.empty;
  of.empty = OrderedJson::object();
  Record text, masked, pair, ids;  // the answer to one of them, without its content
  text.text = pair.text = pair.text_pair = "a";
  masked.text = "<mask>";
  pair.kind = Record::Kind::kPair;
  ids.kind = Record::Kind::kIds;
  ids.ids = {0};
  for (const Record& record : {text, masked, pair, ids}) {
    CutCounts ignored;
    auto windows = of.task->Encode(record, session_.input(), &ignored);
    if (!windows.ok()) continue;
    std::vector<Query> queries;
    for (Example& window : *windows) queries.push_back({std::move(window), adapter});
    WindowJoiner joiner([&](const TextLogits& logits) { of.empty = of.decoder(record, logits); });
    const absl::Status status = session_.Logits(
        queries, [&](int64_t q, ConstMat logits) { joiner.Add(queries[q], logits); });
    if (status.ok()) joiner.Finish();
    break;
  }
  DropContent(&of.empty);
  return of.empty;
}

bool Predictor::HasEmptyAnswer(const Record& record, int adapter) {
  return options_.empty && IsEmpty(record) &&
         (record.kind == Record::Kind::kIds || Of(adapter).task->command() != "tag");
}

absl::Status Predictor::Encode(
    const Record& record, int adapter, bool empty, std::vector<Query>* queries) {
  const TaskOfAdapter& of = Of(adapter);
  RETURN_IF_ERROR(of.status);
  if (empty && HasEmptyAnswer(record, adapter)) {
    EmptyAnswer(adapter);  // while no other pass runs
  } else {
    ASSIGN_OR_RETURN(
        std::vector<Example> windows, of.task->Encode(record, session_.input(), &cut_));
    for (Example& window : windows) queries->push_back({std::move(window), adapter});
  }
  return absl::OkStatus();
}

OrderedJson Predictor::AnswerWithoutModel(const Record& record, int adapter) {
  if (!HasEmptyAnswer(record, adapter)) return Of(adapter).decoder(record, {});
  OrderedJson nothing = EmptyAnswer(adapter);
  if (!nothing.contains("text")) return nothing;
  OrderedJson members = InputMembers(record);
  nothing.erase("text");
  members.update(nothing);
  return members;
}

absl::Status Predictor::ForEachText(absl::Span<const Record> records, const RecordSource& source,
    bool empty,
    absl::FunctionRef<absl::Status(size_t, const TaskOfAdapter&, const TextLogits&)> on_text,
    absl::FunctionRef<absl::Status(size_t, const absl::StatusOr<int>&)> on_other) {
  const auto encode = [&](size_t i, int adapter, std::vector<Query>* queries) {
    return Encode(records[i], adapter, empty, queries);
  };
  const auto run = [&](absl::Span<const Query> queries, Emit emit) -> absl::Status {
    int64_t query = 0;  // of the windows in `joiner`
    WindowJoiner joiner([&](const TextLogits& text) {
      emit(query, [&](size_t i) { return on_text(i, Of(queries[query].adapter), text); });
    });
    RETURN_IF_ERROR(session_.Logits(queries, [&](int64_t q, ConstMat logits) {
      if (!queries[q].continues) joiner.Finish();
      query = q;
      joiner.Add(queries[q], logits);
    }));
    joiner.Finish();
    return absl::OkStatus();
  };
  return ForEachRecord(session_, records, source, encode, run, on_other);
}

absl::Status Predictor::Probabilities(absl::Span<const Record> records, const RecordSource& source,
    absl::FunctionRef<void(size_t, absl::StatusOr<std::vector<float>>)> f) {
  return ForEachText(
      records, source, /*empty=*/false,
      [&](size_t i, const TaskOfAdapter& of, const TextLogits& text) {
        f(i, of.task->Probabilities(text));
        return absl::OkStatus();
      },
      [&](size_t i, const absl::StatusOr<int>& adapter) {
        if (adapter.ok()) f(i, std::vector<float>());
        if (!adapter.ok()) f(i, adapter.status());
        return absl::OkStatus();
      });
}

absl::Status Predictor::AnswerOr(absl::Span<const Record> records,
    absl::FunctionRef<absl::Status(size_t, absl::StatusOr<OrderedJson>)> f) {
  return ForEachText(
      records, options_.source, options_.empty,
      [&](size_t i, const TaskOfAdapter& of, const TextLogits& text) {
        return f(i, of.decoder(records[i], text));
      },
      [&](size_t i, const absl::StatusOr<int>& adapter) {
        if (!adapter.ok()) return f(i, adapter.status());
        return f(i, AnswerWithoutModel(records[i], *adapter));
      });
}

absl::Status Predictor::Answer(absl::Span<const Record> records,
    absl::FunctionRef<absl::Status(const Record&, const OrderedJson&)> f) {
  return AnswerOr(records, [&](size_t i, absl::StatusOr<OrderedJson> answer) {
    if (answer.ok()) {
      empty_ += options_.empty && IsEmpty(records[i]);
      return f(records[i], *answer);
    }
    ++failed_;
    return f(records[i], {{"error", std::string(answer.status().message())}});
  });
}

}  // namespace cloze
