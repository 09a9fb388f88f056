// `cloze predict`: labels or a number for each text, as JSON lines.
#include <algorithm>

#include "tasks/scores.h"
#include "tools/infer.h"

namespace cloze {
namespace {

// ", "scores": {"label": score, ...}".
std::string Scores(const std::vector<std::string>& labels, const std::vector<float>& scores) {
  std::string text = ", \"scores\": {";
  for (size_t i = 0; i < labels.size(); ++i)
    absl::StrAppend(&text, i > 0 ? ", " : "", JsonString(labels[i]), ": ", JsonNumber(scores[i]));
  return text + "}";
}

// The line of a record whose logits, or their means over its windows, these are.
std::string Format(
    const InputRecord& record, const ModelConfig& config, std::vector<float> logits) {
  std::string line = OpenObject(record);
  switch (config.problem) {
    case Problem::kSingleLabel: {
      Softmax(logits.data(), logits.size());
      const size_t best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      absl::StrAppend(&line, "\"label\": ", JsonString(config.labels[best]),
          ", \"score\": ", JsonNumber(logits[best]), Scores(config.labels, logits));
      break;
    }
    case Problem::kMultiLabel: {
      const std::vector<bool> chosen = AtLeast(logits, config.reading.threshold);
      for (float& x : logits) x = Logistic(x);
      absl::StrAppend(&line, "\"labels\": [");
      for (size_t i = 0, n = 0; i < chosen.size(); ++i) {
        if (chosen[i]) absl::StrAppend(&line, n++ > 0 ? ", " : "", JsonString(config.labels[i]));
      }
      absl::StrAppend(&line, "]", Scores(config.labels, logits));
      break;
    }
    case Problem::kRegression:
      absl::StrAppend(&line, "\"label\": ", JsonString(config.labels[0]),
          ", \"score\": ", JsonNumber(logits[0]));
      break;
  }
  return line + "}";
}

absl::Status Predict(InferOptions options) {
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options, HeadKind::kSequenceClassification));
  options.input.pairs |= session->config().reading.pairs;
  CutTexts cut;
  RETURN_IF_ERROR(ForEachRecords(
      options.input, [&](const std::vector<InputRecord>& records, LineWriter* writer) {
        std::vector<Query> queries;
        std::vector<size_t> owner, windows;  // of each query its record, of each record its queries
        std::vector<const ModelConfig*> configs;  // of each record
        std::vector<std::vector<float>> means;
        absl::Status late;  // of a wrong record; those before it are answered first
        for (const InputRecord& record : records) {
          absl::StatusOr<std::vector<Query>> of_text =
              QueriesOfText(*session, record, options.input, &cut);
          late = of_text.status();
          if (!late.ok()) break;
          owner.insert(owner.end(), of_text->size(), windows.size());
          windows.push_back(of_text->size());
          configs.push_back(&session->config(of_text->front().adapter));
          means.emplace_back(configs.back()->labels.size());
          std::move(of_text->begin(), of_text->end(), std::back_inserter(queries));
        }
        RETURN_IF_ERROR(session->Logits(queries, [&](int64_t q, ConstMat logits) {
          for (int64_t c = 0; c < logits.cols; ++c) means[owner[q]][c] += logits.f32()[c];
        }));
        for (size_t r = 0; r < windows.size(); ++r) {
          for (float& x : means[r]) x /= windows[r];
          RETURN_IF_ERROR(writer->Write(Format(records[r], *configs[r], std::move(means[r]))));
        }
        return late;
      }));
  ReportCut(cut);
  return absl::OkStatus();
}

}  // namespace

void AddPredict(CLI::App& app, Run* run) {
  CLI::App* command = app.add_subcommand("predict",
      "Labels or a number for each text, or pair of texts. One label: label, score, scores; "
      "several: labels, scores; a number: score.");
  auto options = std::make_shared<InferOptions>();
  AddInferOptions(command, options.get());
  command->callback([=] { *run = [=] { return Predict(*options); }; });
}

}  // namespace cloze
