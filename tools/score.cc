// `cloze score`: how likely texts are under a masked language model, and which of two is likelier.
#include <map>

#include "absl/algorithm/container.h"
#include "core/base/text.h"
#include "tasks/inference/scorer.h"
#include "tools/infer.h"

namespace cloze {
namespace {

struct ScoreCommandOptions {
  InferOptions infer;
  std::vector<std::string> inputs = {"-"};
  bool pairs = false, tokens = false;
  std::string by;
};

// Answers a line for each text.
absl::Status ScoreLines(RecordScorer& scorer, const ScoreCommandOptions& options) {
  const InferOptions& infer = options.infer;
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(infer.input));
  const auto answer = [&](const std::vector<Record>& records, WriteAnswer write) {
    return scorer.Score(records, SourceOf(infer), options.tokens,
        [&](size_t i, const absl::StatusOr<OrderedJson>& score) {
          return score.ok() ? write(records[i], *score) : score.status();
        });
  };
  RETURN_IF_ERROR(WriteOutput(infer.out, infer.force, [&](LineWriter& writer) {
    return WriteAnswers(infer, RecordScorer::NoScore(options.tokens), reader, writer, answer)
        .status();
  }));
  ReportCut(scorer.cut());
  ReportEmpty(scorer.empty(), "without a score");
  return absl::OkStatus();
}

constexpr absl::string_view kPairMembers[] = {"pairs", "accuracy", "ties", "accuracy_with_ties"};

OrderedJson ToJson(const PairCount& count) {
  return {{"pairs", count.pairs}, {"accuracy", Decimal(static_cast<float>(count.Accuracy()))},
      {"ties", count.ties},
      {"accuracy_with_ties", Decimal(static_cast<float>(count.Accuracy(/*tie=*/1)))}};
}

// Prints the accuracy on all pairs; before it a line for each group.
absl::Status ScoreAllPairs(RecordScorer& scorer, const ScoreCommandOptions& options) {
  constexpr int64_t kAtOnce = 2048;
  const std::string& out = options.infer.out;
  if (!out.empty() && out != "-") RETURN_IF_ERROR(CheckOutput(out, options.infer.force));
  DataSpec data;  // written as the data of the run, with the fields of pairs
  const DataSpec& run = options.infer.input.data;
  data.set_delimiter(run.delimiter());
  data.set_encoding(run.encoding());
  data.set_header(run.header());
  ASSIGN_OR_RETURN(PairReader reader, PairReader::Open(options.inputs, options.by, data));
  Session& session = scorer.session();
  ScoreOptions score{.compute = session.compute()};
  ASSIGN_OR_RETURN(const int adapter, session.AdapterNamed(""));
  score.adapter = session.PassAdapter(adapter);
  CutCounts cut;
  PairCount all;
  std::map<std::string, PairCount> groups;
  while (true) {
    ASSIGN_OR_RETURN(
        const std::vector<TextPair> pairs, reader.Next(kAtOnce, session.input(), &cut));
    if (pairs.empty()) break;
    RETURN_IF_ERROR(ScorePairs(session.model(), scorer.mask(), pairs, score,
        [&](const TextPair& pair, double good, double bad) {
          all.Add(good, bad);
          if (!options.by.empty()) groups[pair.group].Add(good, bad);
        }));
  }
  ReportCut(cut);
  if (all.pairs == 0) return Error(Exit::kData, "no pairs in the input");
  return WriteOutput(out, options.infer.force, [&](LineWriter& writer) -> absl::Status {
    for (const auto& [name, count] : groups) {
      OrderedJson line = {{options.by, name}};
      line.update(ToJson(count));
      RETURN_IF_ERROR(writer.Write(ToJsonLine(line)));
    }
    return writer.Write(ToJsonLine(ToJson(all)));
  });
}

absl::Status Score(ScoreCommandOptions options) {
  if (options.pairs && options.tokens)
    return Error(Exit::kUsage, "--tokens is for texts, not for --pairs");
  if (!options.by.empty() && !options.pairs) return Error(Exit::kUsage, "--by needs --pairs");
  const InputOptions& input = options.infer.input;
  const bool describes = !input.format.empty() || !input.text_field.empty() ||
                         !input.text_pair_field.empty() || !input.id_field.empty();
  if (options.pairs && (describes || !options.infer.format.empty())) {
    return Error(Exit::kUsage, "--format, --input-format and names of fields are for texts: ",
        "--pairs reads the fields \"good\" and \"bad\" of files whose names tell their format");
  }
  if (absl::c_linear_search(kPairMembers, options.by))
    return Error(Exit::kUsage, "--by: the results have a member of that name");
  if (options.inputs.size() > 1) {
    if (!options.pairs) return Error(Exit::kUsage, "several input files need --pairs");
    if (absl::c_linear_search(options.inputs, "-"))
      return Error(Exit::kUsage, "- is standard input: expected no files beside it");
  }
  if (const std::string out = FormatByExtension(options.infer.out);
      options.pairs && (out == "csv" || out == "tsv"))
    return Error(Exit::kUsage, "--out: --pairs prints JSON lines: expected a name without .", out);
  options.infer.input.path = options.inputs[0];
  options.infer.input.records = 2048;
  options.infer.input.blank_lines = true;
  RETURN_IF_ERROR(CheckAnswersName(options.infer));
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options.infer));
  ASSIGN_OR_RETURN(RecordScorer scorer, RecordScorer::Create(session.get()));
  return options.pairs ? ScoreAllPairs(scorer, options) : ScoreLines(scorer, options);
}

}  // namespace

void AddScore(Command& app) {
  const auto declare = [](Command& command, ScoreCommandOptions& options) {
    AddInferOptions(command, &options.infer, false);
    command.Add("input", &options.inputs,
        "File to read; - is standard input. With --pairs also several files, patterns or folders.");
    AddInputFormat(command, &options.infer.input);
    AddFieldOptions(command, &options.infer.input);
    AddOutputOptions(command, &options.infer, {"csv", "tsv", "jsonl"});
    command.Add("--tokens", &options.tokens, "Also print the score of each token.");
    command.Add("--pairs", &options.pairs,
        "The input has pairs in the fields \"good\" and \"bad\": JSON lines, also from standard "
        "input, or files named .csv or .tsv. Prints the share of pairs whose good text has the "
        "higher score.");
    command.Add("--by", &options.by,
        "With --pairs: also print the share for each value of this field.", {.type = "FIELD"});
  };
  app.AddCommand<ScoreCommandOptions>("score",
      "Print the pseudo-log-likelihood of texts under a masked language model: the sum of "
      "log p(token | all other tokens).",
      "  echo 'The cat sleep.' | cloze score --model runs/pretrain_mini --tokens\n"
      "  cloze score --model runs/pretrain_mini --pairs --by phenomenon blimp/*.jsonl",
      declare, Score);
}

}  // namespace cloze
