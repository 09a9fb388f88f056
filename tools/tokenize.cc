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

// The answer to a record. A long one is written piece by piece, because it takes many times the
// memory of its text.
class Answer {
 public:
  // Writes to `writer` when much has been collected; null: keeps all.
  explicit Answer(LineWriter* writer) : writer_(writer) {}

  template <typename... Parts>
  void Add(const Parts&... parts) {
    absl::StrAppend(&text_, parts...);
    if (writer_ == nullptr || text_.size() < kPiece) return;
    if (written_.ok()) written_ = writer_->WriteText(text_);
    text_.clear();
  }
  template <typename T, typename Format>
  void List(absl::string_view name, const std::vector<T>& items, Format format) {
    Add(name);
    absl::string_view before = "[";
    for (const T& item : items) {
      Add(before, format(item));
      before = ", ";
    }
    Add(items.empty() ? "[]" : "]");
  }
  void Integers(absl::string_view name, const std::vector<int32_t>& items) {
    List(name, items, [](int32_t item) { return item; });
  }
  void Spans(absl::string_view name, const std::vector<Span>& spans) {
    List(name, spans,
        [](const Span& span) { return absl::StrCat("[", span.begin, ", ", span.end, "]"); });
  }
  void Tokens(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
    List(", \"tokens\": ", ids, [&](int32_t id) { return JsonString(tokenizer.token(id)); });
  }
  // Adds the tokens of an encoding, without the closing brace.
  void Tokens(const Tokenizer& tokenizer, const Encoding& encoding) {
    Integers(", \"ids\": ", encoding.ids);
    Tokens(tokenizer, encoding.ids);
    Spans(", \"offsets\": ", encoding.chars);
    Spans(", \"byte_offsets\": ", encoding.bytes);
    List(", \"word_ids\": ", encoding.words,
        [](int32_t i) { return i < 0 ? "null" : absl::StrCat(i); });
  }
  absl::StatusOr<std::string> Finish() {
    RETURN_IF_ERROR(written_);
    return std::move(text_);
  }

 private:
  static constexpr size_t kPiece = 1 << 16;
  LineWriter* const writer_;
  std::string text_;
  absl::Status written_;
};

// Returns the answer or, with `writer`, what has not been written of it.
absl::StatusOr<std::string> Process(
    const Tokenizer& tokenizer, const Record& record, LineWriter* writer) {
  Answer answer(writer);
  answer.Add(record.id.empty() ? "{" : absl::StrCat("{\"id\": ", record.id, ", "));
  if (record.kind == Record::Kind::kIds) {
    answer.Integers("\"ids\": ", record.ids);
    answer.Tokens(tokenizer, record.ids);
    answer.Add(", \"text\": ", JsonString(tokenizer.Decode(record.ids)), "}\n");
    return answer.Finish();
  }
  const bool pair = record.kind == Record::Kind::kPair;
  if (record.kind == Record::Kind::kWords) {
    answer.List("\"words\": ", record.words, JsonString);
  } else {
    answer.Add("\"text\": ", JsonString(record.text));
    if (pair) answer.Add(", \"text_pair\": ", JsonString(record.text_pair));
  }
  const Encoding encoding = EncodeWhole(tokenizer, record);
  answer.Tokens(tokenizer, encoding);
  if (pair) answer.Integers(", \"token_type_ids\": ", encoding.types);
  answer.Add("}\n");
  return answer.Finish();
}

// True if the answer is best written while it is made.
bool IsLong(const Record& record) {
  constexpr size_t kLongText = 1 << 20;
  size_t bytes = record.text.size() + record.text_pair.size() + 4 * record.ids.size();
  for (const std::string& word : record.words) bytes += word.size();
  return bytes > kLongText;
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
    ParallelFor(records.size(), [&](int64_t i) {
      if (!IsLong(records[i])) lines[i] = *Process(*tokenizer, records[i], nullptr);
    });
    for (size_t i = 0; i < records.size(); ++i) {
      if (IsLong(records[i])) {
        ASSIGN_OR_RETURN(lines[i], Process(*tokenizer, records[i], &writer));
      }
      RETURN_IF_ERROR(writer.WriteText(lines[i]));
    }
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
