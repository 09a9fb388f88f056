// `cloze tag`: a label for every word.
#include <optional>

#include "tasks/data/readers.h"
#include "tasks/tags.h"
#include "tools/infer.h"

namespace cloze {
namespace {

constexpr int64_t kSentences = 256;

struct Options {
  InferOptions infer;
  std::string column;
  std::optional<bool> viterbi;
};

// Sentences of a CoNLL file with their lines, and their words.
struct ConllBatch {
  std::vector<TaggedSentence> sentences;
  std::vector<Record> records;
};

// Puts into *batch the next sentence, waiting for it if need be, and those that are there without
// waiting. False at the end.
absl::StatusOr<bool> ReadBatch(TaggedReader& reader, ConllBatch* batch) {
  while (batch->sentences.size() < kSentences) {
    if (!batch->sentences.empty()) {
      ASSIGN_OR_RETURN(const bool ready, reader.Ready());
      if (!ready) return true;
    }
    TaggedSentence sentence;
    ASSIGN_OR_RETURN(const bool more, reader.Next(&sentence));
    if (!more) return false;
    Record& record = batch->records.emplace_back();
    record.kind = Record::Kind::kWords;
    record.words = sentence.words;
    batch->sentences.push_back(std::move(sentence));
  }
  return true;
}

// CoNLL and CoNLL-U: the same file with one column replaced.
absl::Status TagConll(Predictor& predictor, const Options& options) {
  DataSpec data;
  data.add_files(options.infer.input.path);
  data.set_format(options.infer.input.format == "conllu" ? DataSpec::CONLLU : DataSpec::CONLL);
  if (!options.column.empty()) data.set_tags_field(options.column);
  ASSIGN_OR_RETURN(TaggedReader reader, TaggedReader::Open(data, Labels::kIgnored, true));
  while (true) {
    ConllBatch batch;
    const absl::StatusOr<bool> more = ReadBatch(reader, &batch);
    std::string out;  // with an error, that of the sentences before it
    size_t s = 0;
    RETURN_IF_ERROR(predictor.Answer(
        batch.records, [&](const Record&, const OrderedJson& answer) -> absl::Status {
          out += ReplaceTags(batch.sentences[s++], answer["tags"].get<std::vector<std::string>>());
          return absl::OkStatus();
        }));
    RETURN_IF_ERROR(WriteStdout(out));
    if (!more.ok() || !*more) return more.status();
  }
}

absl::Status Tag(Options options) {
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options.infer));
  InputOptions& input = options.infer.input;
  ASSIGN_OR_RETURN(const auto predictor,
      Predictor::Create(*session,
          {.command = "tag", .source = SourceOf(input), .decode = {.viterbi = options.viterbi}}));
  if (session->has_named())
    return UsageError("--adapter: `cloze tag` takes one adapter, without a name");
  if (options.viterbi.value_or(false) && !IsBio(session->config().labels)) {
    return UsageError(
        "--viterbi: the labels of this model are not BIO or IOBES, so there are no rules to keep");
  }
  const bool conll = input.format == "conll" || input.format == "conllu";
  if (!conll && !options.column.empty())
    return UsageError("--column: only for --format conll and conllu");
  if (!conll) return AnswerInput(*predictor, input);
  RETURN_IF_ERROR(TagConll(*predictor, options));
  ReportCut(predictor->cut());
  return absl::OkStatus();
}

}  // namespace

void AddTag(Command& app) {
  const auto declare = [](Command& command, Options& options) {
    AddInferOptions(command, &options.infer, false);
    command.Add("input", &options.infer.input.path, "File to read; - is standard input.");
    command.Add("--format,--input-format", &options.infer.input.format,
        "text: one text per line. jsonl: {\"text\": ...} or {\"tokens\": [...]} per line. ids: "
        "token ids, each of which gets a label. conll, conllu: the file with the labels in a "
        "column.",
        {.choices = {"text", "jsonl", "ids", "conll", "conllu"}});
    command.Add("--column", &options.column,
        "conll, conllu: column for the labels, a name or a number from 1. Default: the last column "
        "(conll) or UPOS (conllu).");
    AddViterbi(command, &options.viterbi);
  };
  app.AddCommand<Options>("tag", "Predict a label for every word of texts or CoNLL files.",
      "  echo 'Anna lives in Berlin.' | cloze tag --model runs/wikiann\n"
      "  cloze tag --model runs/ewt_upos --format conllu in.conllu > out.conllu",
      declare, Tag);
}

}  // namespace cloze
