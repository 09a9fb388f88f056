// `cloze tokenize`: prints token ids and offsets of texts as JSON lines. Formats by hand, because a
// JSON tree takes twice the time of tokenizing.
#include <memory>
#include <string>

#include "core/base/threads.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tools/command.h"
#include "tools/input.h"
#include "tools/output.h"

namespace cloze {
namespace {

constexpr int64_t kBatch = 256;

struct Options {
  std::string model;
  bool lowercase = true;
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

// The tokens of ids and the text that they decode to.
std::string FormatIds(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  return absl::StrCat("\"ids\": ", Integers(ids), ", \"tokens\": ", Tokens(tokenizer, ids),
      ", \"text\": ", JsonString(tokenizer.Decode(ids)), "}");
}

// The tokens of `encoding`; `input` are the members that were encoded.
std::string Format(const Tokenizer& tokenizer, const std::string& input, const Encoding& encoding) {
  return absl::StrCat(input, ", \"ids\": ", Integers(encoding.ids),
      ", \"tokens\": ", Tokens(tokenizer, encoding.ids), ", \"offsets\": ", Spans(encoding.chars),
      ", \"byte_offsets\": ", Spans(encoding.bytes), ", \"word_ids\": ",
      List(encoding.words, [](int32_t i) { return i < 0 ? "null" : absl::StrCat(i); }));
}

std::string Process(const Tokenizer& tokenizer, const InputRecord& record) {
  const std::string begin = record.id.empty() ? "{" : absl::StrCat("{\"id\": ", record.id, ", ");
  const std::string text = absl::StrCat(begin, "\"text\": ", JsonString(record.text));
  switch (record.kind) {
    case InputRecord::Kind::kText:
      return Format(tokenizer, text, tokenizer.Encode(record.text)) + "}";
    case InputRecord::Kind::kPair: {
      const Encoding encoding = tokenizer.EncodePair(record.text, record.text_pair);
      return absl::StrCat(
          Format(tokenizer, absl::StrCat(text, ", \"text_pair\": ", JsonString(record.text_pair)),
              encoding),
          ", \"token_type_ids\": ", Integers(encoding.types), "}");
    }
    case InputRecord::Kind::kWords:
      return Format(tokenizer, absl::StrCat(begin, "\"words\": ", List(record.words, JsonString)),
                 tokenizer.EncodeWords(record.words)) +
             "}";
    case InputRecord::Kind::kIds: return begin + FormatIds(tokenizer, record.ids);
  }
  return "";
}

absl::Status Tokenize(Options options) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(options.model, options.lowercase));
  options.input.vocab_size = tokenizer->vocab_size();
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(options.input));
  LineWriter writer;
  std::vector<InputRecord> records;
  while (true) {
    RETURN_IF_ERROR(reader.Next(kBatch, &records));
    if (records.empty()) return writer.Flush();
    std::vector<std::string> lines(records.size());
    ParallelFor(records.size(), [&](int64_t i) { lines[i] = Process(*tokenizer, records[i]); });
    for (const std::string& line : lines) RETURN_IF_ERROR(writer.Write(line));
    RETURN_IF_ERROR(writer.Flush());
  }
}

}  // namespace

void AddTokenize(CLI::App& app, Run* run) {
  CLI::App* command = app.add_subcommand(
      "tokenize", "Print the tokens of texts, with ids and offsets, as JSON lines.");
  auto options = std::make_shared<Options>();
  command
      ->add_option(
          "--model", options->model, "Model folder, tokenizer folder, tokenizer.json or vocab.txt.")
      ->required();
  AddSwitch(command, "lowercase",
      "With a vocab.txt file as --model: lower-case texts and strip accents (default).",
      "With a vocab.txt file as --model: keep case and accents.",
      [=](bool on) { options->lowercase = on; });
  AddInputOptions(command, &options->input);
  command->footer(
      "Examples:\n"
      "  echo 'A first text.' | cloze tokenize --model vocab\n"
      "  echo '101 1037 102' | cloze tokenize --model models/bert --input-format ids");
  command->callback([=] { *run = [=] { return Tokenize(*options); }; });
}

}  // namespace cloze
