// `cloze tag`: a label for every word.
#include <cstdio>
#include <optional>
#include <set>

#include "absl/algorithm/container.h"
#include "tasks/data/readers.h"
#include "tasks/tags.h"
#include "tools/infer.h"
#include "tools/texts.h"

namespace cloze {
namespace {

constexpr int64_t kSentences = 256;

struct TagOptions {
  InferOptions infer;
  std::string column;
  std::optional<bool> viterbi;
};

// Sentences of a CoNLL file with their lines, and their words.
struct ConllBatch {
  std::vector<TaggedSentence> sentences;
  std::vector<Record> records;
};

// Reads the next sentence into *batch, waiting for it if necessary, and all others that have
// already arrived. Returns false at the end.
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
absl::Status TagConll(Predictor& predictor, const DataSpec& data, LineWriter& writer) {
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
    RETURN_IF_ERROR(writer.WriteText(out));
    RETURN_IF_ERROR(writer.Flush());
    if (!more.ok() || !*more) return more.status();
  }
}

// Returns how a CoNLL file of the given format is read. The columns are those of the run if it was
// trained on such files.
DataSpec ConllData(
    const TagOptions& options, const std::string& format, const std::vector<std::string>& labels) {
  static const std::set<std::string> kUpos = {"ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ",
      "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X", "_"};
  const InputOptions& input = options.infer.input;
  const bool conllu = format == "conllu";
  DataSpec data;
  bool trained = false;
  for (const std::string& file : input.data.files()) {
    const bool same = input.data.format() == DataSpec::BY_EXTENSION
                          ? FormatByExtension(file) == format
                          : input.data.format() == (conllu ? DataSpec::CONLLU : DataSpec::CONLL);
    if (same) data = input.data, trained = true;
  }
  data.set_encoding(input.data.encoding());
  data.clear_files();
  data.add_files(input.path);
  data.set_format(conllu ? DataSpec::CONLLU : DataSpec::CONLL);
  if (!options.column.empty()) data.set_tags_field(options.column);
  const auto is_upos = [](const std::string& label) { return kUpos.count(label) > 0; };
  if (conllu && !trained && options.column.empty() && !absl::c_all_of(labels, is_upos)) {
    std::fprintf(stderr,
        "cloze: the labels are not UPOS tags, but go to the column UPOS; --column chooses "
        "another\n");
  }
  return data;
}

// Separates the formats of input and output: in older versions --format was also that of the input.
absl::Status SetFormats(InferOptions* options) {
  InputOptions& input = options->input;
  std::string& format = options->format;
  if (format == "text" || format == "ids") {
    if (!input.format.empty() && input.format != format)
      return UsageError(
          "--format: text and ids are formats of the input, as --input-format is: "
          "expected one of both");
    input.format = std::exchange(format, "");
  }
  const std::string extension = FormatByExtension(input.path);
  const bool conll = format == "conll" || format == "conllu";
  if (input.format.empty())
    input.format = conll && extension == "text" ? format : extension.empty() ? format : extension;
  const bool from_conll = input.format == "conll" || input.format == "conllu";
  if (from_conll && conll) input.format = format;
  if (const std::string out = FormatByExtension(options->out);
      from_conll && (out == "csv" || out == "tsv"))
    return UsageError(
        "--out: CoNLL input is always written as CoNLL: expected a name without ." + out);
  if (from_conll && !(input.text_field + input.text_pair_field + input.id_field).empty())
    return UsageError("--text-field, --text-pair-field and --id-field: not for CoNLL files");
  if (conll == from_conll || (from_conll && format.empty())) return absl::OkStatus();
  return UsageError(from_conll ? "--format: CoNLL input is always written as CoNLL: drop --format"
                               : "--format: conll and conllu need a CoNLL file as input");
}

absl::Status Tag(TagOptions options) {
  RETURN_IF_ERROR(SetHtml(&options.infer));
  RETURN_IF_ERROR(SetFormats(&options.infer));
  InputOptions& input = options.infer.input;
  input.blank_lines = true;
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options.infer));
  ASSIGN_OR_RETURN(const auto predictor,
      NewPredictor(*session, options.infer, "tag", {.viterbi = options.viterbi}));
  if (session->has_adapters_beside())
    return UsageError("--adapter: `cloze tag` takes one adapter, without a name");
  if (options.viterbi.value_or(false) && !IsBio(session->config().labels)) {
    return UsageError(
        "--viterbi: the labels of this model are not BIO or IOBES, so there are no rules to keep");
  }
  const bool conll = input.format == "conll" || input.format == "conllu";
  if (!conll && !options.column.empty())
    return UsageError("--column: only for --format conll and conllu");
  if (!conll) return AnswerInput(*predictor, options.infer);
  if (options.infer.explain)
    return UsageError("--explain: not for CoNLL files: expected texts or JSON lines");
  if (options.infer.on_error == "line") return UsageError("--on-error line: not for CoNLL files");
  if (options.infer.format.empty())
    RETURN_IF_ERROR(CheckExtension(options.infer.out, {"conll", "conllu"}, ", or --format"));
  const DataSpec data = ConllData(options, input.format, session->config().labels);
  RETURN_IF_ERROR(WriteOutput(options.infer.out, options.infer.force,
      [&](LineWriter& writer) { return TagConll(*predictor, data, writer); }));
  ReportCut(predictor->cut());
  return absl::OkStatus();
}

}  // namespace

void AddTag(Command& app) {
  const auto declare = [](Command& command, TagOptions& options) {
    AddInferOptions(command, &options.infer, false);
    command.Add("input", &options.infer.input.path, "File to read; - is standard input.");
    command.Add("--input-format", &options.infer.input.format,
        "text: one text per line. jsonl: {\"text\": ...} or {\"tokens\": [...]} per line. csv, "
        "tsv: a table with a header. ids: token ids, each of which gets a label. conll, conllu: "
        "sentences. Default: by the extension (.csv .tsv .jsonl .json .conll .conllu); else as "
        "--format; else text.",
        {.choices = {"text", "csv", "tsv", "jsonl", "ids", "conll", "conllu"}});
    AddFileOptions(command, &options.infer.input.reading, kReadAsTrained);
    AddFieldOptions(command, &options.infer.input);
    AddOutputOptions(
        command, &options.infer, {"csv", "tsv", "jsonl", "html", "conll", "conllu", "text", "ids"});
    AddOnError(command, &options.infer);
    AddExplain(command, &options.infer);
    command.Add("--column", &options.column,
        "conll, conllu: column for the labels, a name or a number from 1. Default: the one that "
        "the model was trained on, else the last one (conll) or UPOS (conllu).");
    AddViterbi(command, &options.viterbi);
  };
  app.AddCommand<TagOptions>("tag", "Predict a label for every word of texts or CoNLL files.",
      "  echo 'Anna lives in Berlin.' | cloze tag --model runs/wikiann\n"
      "  cloze tag --model runs/ewt_upos in.conllu > out.conllu\n"
      "  cloze tag --model runs/wikiann --format csv --text-field body mails.csv > tagged.csv",
      declare, Tag);
}

}  // namespace cloze
