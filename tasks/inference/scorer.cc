#include "tasks/inference/scorer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/ops/loss.h"
#include "tasks/packer.h"

namespace cloze {
namespace {

Record TextRecord(const std::string& text) {
  Record record;
  record.text = text;
  return record;
}

OrderedJson TokenScores(
    const Tokenizer& tokenizer, const Example& text, absl::Span<const double> logs) {
  OrderedJson list = OrderedJson::array();
  for (size_t k = 0; k < logs.size(); ++k) {
    list.push_back({{"token", tokenizer.token(text.ids[text.rows[k]])},
        {"score", Decimal(static_cast<float>(logs[k]))}});
  }
  return list;
}

}  // namespace

absl::Status ScoreTexts(Model& model, int32_t mask, absl::Span<const Query> texts,
    const ScoreOptions& options, absl::FunctionRef<void(int64_t, absl::Span<const double>)> f) {
  std::vector<std::vector<double>> logs;
  for (const Example& text : texts) logs.emplace_back(text.rows.size());
  std::vector<int64_t> order(texts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::pair(texts[a].adapter, texts[a].ids.size()) <
           std::pair(texts[b].adapter, texts[b].ids.size());
  });
  int adapter = 0;              // of the batch
  std::vector<double*> places;  // of the batch's rows, in `logs`
  Packer packer(options.batch_tokens, [&](const Batch& batch) -> absl::Status {
    RETURN_IF_ERROR(CheckStopped(options.stop, "scoring"));
    RETURN_IF_ERROR(model.ReadEmbeddings(batch.ids));
    model.arena().Reset();
    const Pass pass = model.NewPass(batch, options.compute, false, 0, adapter);
    bool finite = true;
    model.head().Loss(
        pass, model.backbone().Infer(pass), 0, {}, [&](Mat logits, int64_t first, float, Arena&) {
          std::vector<double> losses(logits.rows);
          RowLosses(logits, batch.targets.data() + first, absl::MakeSpan(losses));
          for (int64_t r = 0; r < logits.rows; ++r) *places[first + r] = -losses[r];
          finite &= absl::c_all_of(losses, [](double loss) { return std::isfinite(loss); });
          return LossSum();
        });
    if (!finite) return NotFinite();
    places.clear();
    return absl::OkStatus();
  });
  for (const int64_t i : order) {
    if (texts[i].adapter != adapter) RETURN_IF_ERROR(packer.Finish());
    adapter = texts[i].adapter;
    Example masked = texts[i];
    for (size_t k = 0; k < texts[i].rows.size(); ++k) {
      const int32_t row = texts[i].rows[k];
      masked.rows = {row}, masked.labels = {std::exchange(masked.ids[row], mask)};
      RETURN_IF_ERROR(packer.Add(masked, /*number=*/0));
      masked.ids[row] = masked.labels[0];
      places.push_back(&logs[i][k]);
    }
  }
  RETURN_IF_ERROR(packer.Finish());
  for (size_t i = 0; i < texts.size(); ++i) f(i, logs[i]);
  return absl::OkStatus();
}

absl::StatusOr<Example> EncodeForScore(
    const Record& record, const ModelInput& input, CutCounts* cut) {
  ASSIGN_OR_RETURN(Example example, EncodeRecord(record, input, cut));
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, input.tokenizer);
  for (size_t i = 0; i < example.ids.size(); ++i) {
    if (example.ids[i] != tokenizer->special().cls && example.ids[i] != tokenizer->special().sep)
      example.rows.push_back(static_cast<int32_t>(i));
  }
  return example;
}

absl::StatusOr<RecordScorer> RecordScorer::Create(Session* session) {
  RecordScorer scorer;
  scorer.session_ = session;
  ASSIGN_OR_RETURN(scorer.tokenizer_, session->TokenizerOr());
  const std::string has = absl::StrCat(QuotePath(session->folder()), " has ");
  if (session->config().head != HeadKind::kMaskedLm)
    return Error(Exit::kMismatch, has, "no head for masked_lm: expected a masked language model");
  if (scorer.mask() < 0) return Error(Exit::kMismatch, has, "a tokenizer without a mask token");
  return scorer;
}

OrderedJson RecordScorer::NoScore(bool tokens) {
  OrderedJson nothing = {{"score", nullptr}, {"token_count", 0}};
  if (tokens) nothing["token_scores"] = OrderedJson::array();
  return nothing;
}

absl::Status RecordScorer::Score(absl::Span<const Record> records, const RecordSource& source,
    bool tokens, absl::FunctionRef<absl::Status(size_t, absl::StatusOr<OrderedJson>)> f) {
  const auto encode = [&](size_t i, int adapter, std::vector<Query>* texts) -> absl::Status {
    if (IsEmpty(records[i])) return absl::OkStatus();
    ASSIGN_OR_RETURN(Example text, EncodeForScore(records[i], session_->input(), &cut_));
    texts->push_back({std::move(text), session_->PassAdapter(adapter)});
    return absl::OkStatus();
  };
  const auto answer = [&](size_t i, const OrderedJson& score) {
    OrderedJson line = InputMembers(records[i]);
    line.update(score);
    return f(i, std::move(line));
  };
  const auto run = [&](absl::Span<const Query> texts, Emit emit) {
    const auto one = [&](int64_t text, absl::Span<const double> logs) {
      OrderedJson score = {{"score", Decimal(static_cast<float>(absl::c_accumulate(logs, 0.0)))},
          {"token_count", logs.size()}};
      if (tokens) score["token_scores"] = TokenScores(*tokenizer_, texts[text], logs);
      emit(text, [&](size_t i) { return answer(i, score); });
    };
    const ScoreOptions options{.compute = session_->compute()};
    return ScoreTexts(session_->model(), mask(), texts, options, one);
  };
  const auto answer_other = [&](size_t i, const absl::StatusOr<int>& adapter) {
    if (!adapter.ok()) return f(i, adapter.status());
    ++empty_;
    return answer(i, NoScore(tokens));
  };
  return ForEachRecord(*session_, records, source, encode, run, answer_other);
}

absl::StatusOr<PairReader> PairReader::Open(
    absl::Span<const std::string> files, const std::string& group, DataSpec data) {
  data.mutable_files()->Assign(files.begin(), files.end());
  data.set_text_field("good");
  data.set_text_pair_field("bad");
  data.set_label_field(group);
  const auto has_format = [](const std::string& file) {
    return FormatOfName(file).has_value() || IsDirectory(file);
  };
  if (!absl::c_all_of(files, has_format)) data.set_format(DataSpec::JSONL);
  ASSIGN_OR_RETURN(TextReader reader,
      TextReader::Open(data, group.empty() ? Labels::kIgnored : Labels::kRequired));
  return PairReader(std::move(reader));
}

absl::StatusOr<std::vector<TextPair>> PairReader::Next(
    int64_t most, const ModelInput& input, CutCounts* cut) {
  std::vector<TextPair> pairs;
  TextExample example;
  while (static_cast<int64_t>(pairs.size()) < most) {
    ASSIGN_OR_RETURN(const bool more, reader_.Next(&example));
    if (!more) break;
    TextPair& pair = pairs.emplace_back();
    ASSIGN_OR_RETURN(pair.good, EncodeForScore(TextRecord(example.text), input, cut));
    ASSIGN_OR_RETURN(pair.bad, EncodeForScore(TextRecord(example.text_pair), input, cut));
    pair.texts = {std::move(example.text), std::move(example.text_pair)};
    pair.group = std::move(example.label);
    pair.line = example.line;
  }
  return pairs;
}

absl::Status ScorePairs(Model& model, int32_t mask, absl::Span<const TextPair> pairs,
    const ScoreOptions& options, absl::FunctionRef<void(const TextPair&, double, double)> f) {
  std::vector<Query> texts;
  for (const TextPair& pair : pairs) {
    texts.push_back({pair.good, options.adapter});
    texts.push_back({pair.bad, options.adapter});
  }
  double good = 0;
  return ScoreTexts(model, mask, texts, options, [&](int64_t i, absl::Span<const double> logs) {
    const double score = std::accumulate(logs.begin(), logs.end(), 0.0);
    if (i % 2 == 0) {
      good = score;
    } else {
      f(pairs[i / 2], good, score);
    }
  });
}

}  // namespace cloze
