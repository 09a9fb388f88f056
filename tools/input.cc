// Records out of lines; see input.h.
#include "tools/input.h"

#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tools/input_json.h"

namespace cloze {
namespace {

// A batch ends when its lines have this many bytes.
constexpr int64_t kBatchBytes = 8 << 20;

bool IsBlank(const std::string& line) {
  return line.find_first_not_of(" \t\r\v\f") == std::string::npos;
}

absl::Status ParseIds(const std::string& line, std::vector<int32_t>* ids) {
  for (const absl::string_view word :
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty())) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(word, &id) || id < 0)
      return Error(Exit::kData, "\"", Quote(word), "\" is not a token id");
    ids->push_back(id);
  }
  return absl::OkStatus();
}

absl::Status ParsePair(const std::string& line, InputRecord* record) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos)
    return Error(Exit::kData, "no tab: expected two texts with a tab between them");
  record->kind = InputRecord::Kind::kPair;
  record->text = line.substr(0, tab);
  record->text_pair = line.substr(tab + 1);
  return absl::OkStatus();
}

absl::Status Parse(std::string line, const InputOptions& options, InputRecord* record) {
  if (options.format == InputFormat::kJsonl ||
      (options.format == InputFormat::kIds && line[line.find_first_not_of(" \t")] == '{')) {
    RETURN_IF_ERROR(ParseInputJson(line, record));
    if (options.format == InputFormat::kIds && record->ids.empty())
      return Error(Exit::kData, "no token ids in \"ids\"");
    if (options.format == InputFormat::kIds) record->kind = InputRecord::Kind::kIds;
  } else if (options.format == InputFormat::kIds) {
    record->kind = InputRecord::Kind::kIds;
    RETURN_IF_ERROR(ParseIds(line, &record->ids));
  } else if (options.pairs) {
    RETURN_IF_ERROR(ParsePair(line, record));
  } else {
    record->text = std::move(line);
  }
  for (const int32_t id : record->ids) {
    if (options.vocab_size > 0 && id >= options.vocab_size) {
      return Error(Exit::kData, "token id ", id, " is not in the vocabulary, whose ids are 0 to ",
          options.vocab_size - 1);
    }
  }
  return absl::OkStatus();
}

}  // namespace

void AddInputOptions(CLI::App* command, InputOptions* options) {
  command
      ->add_option(
          "input", options->path, "File to read; - is standard input. Blank lines are skipped.")
      ->capture_default_str();
  AddInputFormat(command, options);
  command->add_flag(
      "--pairs", options->pairs, "Each line of text holds two texts, separated by a tab.");
}

void AddInputFormat(CLI::App* command, InputOptions* options) {
  const auto choose = [options](const std::string& name) {
    static const std::map<std::string, InputFormat> kFormats = {
        {"text", InputFormat::kText}, {"jsonl", InputFormat::kJsonl}, {"ids", InputFormat::kIds}};
    const auto found = kFormats.find(name);
    if (found == kFormats.end())
      throw CLI::ValidationError(
          "--input-format", "expected text, jsonl or ids, found " + Quote(name));
    options->format = found->second;
  };
  command
      ->add_option_function<std::string>("--input-format", choose,
          "text: one text per line (default). jsonl: one JSON object per line, with \"text\" and "
          "optionally \"text_pair\" and \"id\". ids: token ids separated by blanks.")
      ->type_name("FORMAT");
}

absl::StatusOr<InputReader> InputReader::Open(const InputOptions& options) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(options.path, kMaxLineBytes));
  return InputReader(std::move(reader), options);
}

absl::StatusOr<bool> InputReader::NextRecord(bool wait, InputRecord* record) {
  std::string line;
  do {
    if (!wait) {
      ASSIGN_OR_RETURN(const bool ready, reader_.Ready());
      if (!ready) return false;
    }
    ASSIGN_OR_RETURN(const bool more, reader_.Next(&line));
    if (!more) return false;
    if (reader_.continued()) {
      return Error(Exit::kData, QuotePath(reader_.path()), ":", reader_.line_number(),
          ": a line of more than ", kMaxLineBytes, " bytes");
    }
  } while (IsBlank(line));
  record->line = reader_.line_number();
  RETURN_IF_ERROR(Annotate(
      Parse(std::move(line), options_, record), QuotePath(reader_.path()), ":", record->line));
  return true;
}

absl::Status InputReader::Next(int64_t max_records, std::vector<InputRecord>* records) {
  records->clear();
  if (!late_.ok()) return late_;
  const int64_t begin = reader_.position();
  while (records->size() < max_records && reader_.position() - begin < kBatchBytes) {
    InputRecord record;
    const absl::StatusOr<bool> more = NextRecord(records->empty(), &record);
    if (!more.ok()) late_ = more.status();
    if (!more.ok() || !*more) break;
    records->push_back(std::move(record));
  }
  return records->empty() ? late_ : absl::OkStatus();
}

}  // namespace cloze
