// `cloze fill-mask`: the likeliest words for each <mask>, as JSON lines.
#include <algorithm>
#include <numeric>

#include "tasks/scores.h"
#include "tools/infer.h"

namespace cloze {
namespace {

struct Options {
  InferOptions infer;
  std::vector<std::string> texts;
  int top = 5;
};

// "<mask>" and "[MASK]" both mean the model's own mask token.
std::string WithOwnMask(const std::string& text, const Tokenizer& tokenizer) {
  if (tokenizer.special().mask < 0) return text;
  const std::string& own = tokenizer.token(tokenizer.special().mask);
  std::string out = text;
  for (const std::string other : {"<mask>", "[MASK]"}) {
    if (other == own) continue;
    for (size_t at = 0; (at = out.find(other, at)) != std::string::npos; at += own.size())
      out.replace(at, other.size(), own);
  }
  return out;
}

// The `top` best fillings of one mask as a JSON list.
std::string Fillings(const Tokenizer& tokenizer, const float* logits, int64_t vocab, int top) {
  std::vector<float> scores(logits, logits + vocab);
  Softmax(scores.data(), vocab);
  std::vector<int32_t> order(tokenizer.vocab_size());
  std::iota(order.begin(), order.end(), 0);
  const int64_t count = std::min<int64_t>(top, order.size());
  std::partial_sort(order.begin(), order.begin() + count, order.end(),
      [&](int32_t a, int32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  std::string out = "[";
  for (int64_t i = 0; i < count; ++i) {
    absl::StrAppend(&out, i > 0 ? ", " : "",
        "{\"token\": ", JsonString(tokenizer.TokenText(order[i])), ", \"id\": ", order[i],
        ", \"score\": ", JsonNumber(scores[order[i]]), "}");
  }
  return out + "]";
}

absl::Status Fill(Session& session, const Tokenizer& tokenizer,
    const std::vector<InputRecord>& records, const Options& options, CutTexts* cut,
    LineWriter* writer) {
  std::vector<Query> queries;
  for (InputRecord record : records) {
    record.text = WithOwnMask(record.text, tokenizer);
    const int64_t cut_before = cut->texts;
    ASSIGN_OR_RETURN(Query query, QueryOfRecord(session, record, options.infer.input, cut));
    for (size_t i = 0; i < query.ids.size(); ++i) {
      if (query.ids[i] == tokenizer.special().mask) query.rows.push_back(static_cast<int32_t>(i));
    }
    if (query.rows.empty()) {
      const std::string where =
          record.line > 0 ? absl::StrCat("standard input:", record.line, ": ") : "";
      return Error(Exit::kData,
          absl::StrCat(where, "no ", tokenizer.token(tokenizer.special().mask), " in \"",
              Quote(record.text), "\"",
              cut->texts > cut_before ? " after cutting it to the model's length" : ""));
    }
    queries.push_back(std::move(query));
  }
  absl::Status written;
  RETURN_IF_ERROR(session.Logits(queries, [&](int64_t i, ConstMat logits) {
    std::string line = absl::StrCat(
        OpenObject(records[i]), "\"text\": ", JsonString(records[i].text), ", \"masks\": [");
    for (int64_t r = 0; r < logits.rows; ++r)
      absl::StrAppend(
          &line, r > 0 ? ", " : "", Fillings(tokenizer, logits.f32(r), logits.cols, options.top));
    if (written.ok()) written = writer->Write(line + "]}");
  }));
  return written;
}

absl::Status FillMask(Options options) {
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options.infer, HeadKind::kMaskedLm));
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, session->TokenizerOr());
  if (tokenizer->special().mask < 0)
    return Error(Exit::kMismatch, "the vocabulary has no <mask> token");
  CutTexts cut;
  const auto fill = [&](const std::vector<InputRecord>& records, LineWriter* writer) {
    return Fill(*session, *tokenizer, records, options, &cut, writer);
  };
  if (options.texts.empty()) {
    RETURN_IF_ERROR(ForEachRecords(options.infer.input, fill));
    ReportCut(cut);
    return absl::OkStatus();
  }
  std::vector<InputRecord> records;
  for (const std::string& text : options.texts) records.emplace_back().text = text;
  LineWriter writer;
  RETURN_IF_ERROR(fill(records, &writer));
  ReportCut(cut);
  return writer.Flush();
}

}  // namespace

void AddFillMask(CLI::App& app, Run* run) {
  CLI::App* command =
      app.add_subcommand("fill-mask", "The likeliest tokens for each <mask> of a text.");
  auto options = std::make_shared<Options>();
  AddInferOptions(command, &options->infer, false);
  command->add_option(
      "text", options->texts, "Texts with <mask>. None: one a line from standard input.");
  AddInputFormat(command, &options->infer.input);
  command->add_option("--top", options->top, "Fillings to print for each mask.")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->callback([=] { *run = [=] { return FillMask(*options); }; });
}

}  // namespace cloze
