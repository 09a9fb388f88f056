// `cloze tokenize`: prints token ids and offsets of texts as JSON lines. Formats by hand, because a
// JSON tree takes twice the time of tokenizing.
#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/base/threads.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/tokenizer/tokenizer.h"
#include "encoder/folder/model_folder.h"
#include "tools/infer.h"

namespace cloze {
namespace {

struct TokenizeOptions {
  std::string model;
  std::optional<bool> lowercase;
  InputOptions input;
};

template <typename T, typename Format>
std::string List(const std::vector<T>& items, Format format) {
  std::string out = "[";
  for (const T& item : items) absl::StrAppend(&out, out.size() > 1 ? ", " : "", format(item));
  return out + "]";
}

std::string Integers(const std::vector<int32_t>& items) {
  return List(items, [](int32_t item) { return absl::StrCat(item); });
}

std::string Spans(const std::vector<Span>& spans) {
  return List(
      spans, [](const Span& span) { return absl::StrCat("[", span.begin, ", ", span.end, "]"); });
}

std::string Tokens(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  return List(ids, [&](int32_t id) { return JsonString(tokenizer.token(id)); });
}

// Returns the tokens of an encoding, without the closing brace.
std::string Format(const Tokenizer& tokenizer, const Encoding& encoding) {
  return absl::StrCat(", \"ids\": ", Integers(encoding.ids),
      ", \"tokens\": ", Tokens(tokenizer, encoding.ids), ", \"offsets\": ", Spans(encoding.chars),
      ", \"byte_offsets\": ", Spans(encoding.bytes), ", \"word_ids\": ",
      List(encoding.words, [](int32_t i) { return i < 0 ? "null" : absl::StrCat(i); }));
}

std::string Process(const Tokenizer& tokenizer, const Record& record) {
  const std::string begin = record.id.empty() ? "{" : absl::StrCat("{\"id\": ", record.id, ", ");
  const std::string text = absl::StrCat(begin, "\"text\": ", JsonString(record.text));
  switch (record.kind) {
    case Record::Kind::kText:
      return absl::StrCat(text, Format(tokenizer, tokenizer.Encode(record.text)), "}");
    case Record::Kind::kPair: {
      const Encoding encoding = tokenizer.EncodePair(record.text, record.text_pair);
      return absl::StrCat(text, ", \"text_pair\": ", JsonString(record.text_pair),
          Format(tokenizer, encoding), ", \"token_type_ids\": ", Integers(encoding.types), "}");
    }
    case Record::Kind::kWords:
      return absl::StrCat(begin, "\"words\": ", List(record.words, JsonString),
          Format(tokenizer, tokenizer.EncodeWords(record.words)), "}");
    case Record::Kind::kIds:
      return absl::StrCat(begin, "\"ids\": ", Integers(record.ids),
          ", \"tokens\": ", Tokens(tokenizer, record.ids),
          ", \"text\": ", JsonString(tokenizer.Decode(record.ids)), "}");
  }
  return "";
}

absl::Status Tokenize(TokenizeOptions options) {
  if (options.lowercase.has_value() &&
      (IsDirectory(options.model) || absl::EndsWith(options.model, ".json")))
    return UsageError("--lowercase, --no-lowercase: only with a vocab.txt as --model");
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
      LoadTokenizer(options.model, options.lowercase.value_or(true)));
  options.input.vocab_size = tokenizer->vocab_size();
  const auto config = LoadConfig(options.model);
  RETURN_IF_ERROR(
      SetInputData(options.model, config.ok() ? *config : ModelConfig(), &options.input));
  RETURN_IF_ERROR(CheckPairs(options.input));
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(options.input));
  LineWriter writer;
  return ForEachBatch(reader, writer, [&](const std::vector<Record>& records) -> absl::Status {
    std::vector<std::string> lines(records.size());
    ParallelFor(records.size(), [&](int64_t i) { lines[i] = Process(*tokenizer, records[i]); });
    for (const std::string& line : lines) RETURN_IF_ERROR(writer.Write(line));
    return absl::OkStatus();
  });
}

}  // namespace

void AddTokenize(Command& app) {
  const auto declare = [](Command& command, TokenizeOptions& options) {
    command.Add("--model", &options.model,
        "Model folder, tokenizer folder, tokenizer.json or vocab.txt.", {.required = true});
    command.AddSwitch("lowercase", &options.lowercase,
        "With a vocab.txt file as --model: lower-case texts and strip accents (default).",
        "With a vocab.txt file as --model: keep case and accents.");
    AddInputOptions(command, &options.input);
  };
  app.AddCommand<TokenizeOptions>("tokenize",
      "Print the tokens of texts, with ids and offsets, as JSON lines.",
      "  echo 'A first text.' | cloze tokenize --model vocab\n"
      "  echo '101 1037 102' | cloze tokenize --model models/bert --input-format ids",
      declare, Tokenize);
}

}  // namespace cloze
