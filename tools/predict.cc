// `cloze predict`: a label for each text, as JSON lines.
#include <algorithm>

#include "tools/infer.h"

namespace cloze {
namespace {

std::string Format(const InputRecord& record, const std::vector<std::string>& labels, const std::vector<float>& scores) {
  const size_t best = std::max_element(scores.begin(), scores.end()) - scores.begin();
  std::string line = absl::StrCat(OpenObject(record), "\"label\": ", JsonString(labels[best]), ", \"score\": ", JsonNumber(scores[best]),
                                  ", \"scores\": {");
  for (size_t i = 0; i < labels.size(); ++i) absl::StrAppend(&line, i > 0 ? ", " : "", JsonString(labels[i]), ": ", JsonNumber(scores[i]));
  return line + "}}";
}

absl::Status Predict(InferOptions options) {
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options, HeadKind::kSequenceClassification));
  int64_t cut = 0;
  RETURN_IF_ERROR(ForEachRecords(options.input, [&](const std::vector<InputRecord>& records, LineWriter* writer) {
    std::vector<Query> queries;
    for (const InputRecord& record : records) {
      ASSIGN_OR_RETURN(Query query, QueryOfRecord(*session, record, options.input, &cut));
      query.rows = {0};
      queries.push_back(std::move(query));
    }
    absl::Status written;
    RETURN_IF_ERROR(session->Logits(queries, [&](int64_t i, ConstMat logits) {
      std::vector<float> scores(logits.f32(), logits.f32() + logits.cols);
      Softmax(scores.data(), scores.size());
      if (written.ok()) written = writer->Write(Format(records[i], session->config(queries[i].adapter).labels, scores));
    }));
    return written;
  }));
  ReportCut(cut, session->max_tokens());
  return absl::OkStatus();
}

}  // namespace

void AddPredict(CLI::App& app, Run* run) {
  CLI::App* command = app.add_subcommand("predict", "Label texts with a classifier.");
  auto options = std::make_shared<InferOptions>();
  AddInferOptions(command, options.get());
  command->callback([=] { *run = [=] { return Predict(*options); }; });
}

}  // namespace cloze
