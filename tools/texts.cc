#include "tools/texts.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_join.h"
#include "tasks/data/readers.h"
#include "tools/file_options.h"

namespace cloze {
namespace {

std::string TextOf(TextExample& row) { return std::move(row.text); }
std::string TextOf(TaggedSentence& sentence) { return absl::StrJoin(sentence.words, " "); }

int64_t LineOf(const TextExample& row) { return row.line; }
int64_t LineOf(const TaggedSentence& sentence) {
  return sentence.lines.empty() ? 0 : sentence.lines[0];
}

template <typename Item>
class Rows : public TextSource {
 public:
  explicit Rows(ReaderOf<Item> reader) : reader_(std::move(reader)) {}

  absl::StatusOr<bool> Next(std::string* text) override {
    Item item;
    ASSIGN_OR_RETURN(const bool more, reader_.Next(&item));
    if (const std::string note = reader_.TakeNote(); !note.empty())
      std::fprintf(stderr, "cloze: warning: %s\n", note.c_str());
    if (!more) return false;
    line_ = LineOf(item);
    *text = TextOf(item);
    return true;
  }
  absl::string_view end() const override { return "\n"; }
  int64_t line() const override { return line_; }
  int64_t position() const override { return reader_.position(); }

 private:
  ReaderOf<Item> reader_;
  int64_t line_ = 0;
};

template <typename Item>
absl::StatusOr<std::unique_ptr<TextSource>> OpenRows(const DataSpec& data) {
  ASSIGN_OR_RETURN(ReaderOf<Item> reader, ReaderOf<Item>::Open(data));
  return std::make_unique<Rows<Item>>(std::move(reader));
}

}  // namespace

void AddTextOptions(Command& command, TextOptions* options) {
  command.Add("--text-field", &options->text_field,
      "Column or JSON member to learn from, in files named .csv, .tsv, .jsonl or .json.",
      {.type = "NAME"});
  AddFileOptions(command, &options->reading, "UTF-8, commas or tabs, and a header");
}

absl::StatusOr<OpenTexts> TextsOfFiles(const TextOptions& options) {
  DataSpec all;
  all.set_text_field(options.text_field);
  RETURN_IF_ERROR(OverrideFileOptions(options.reading, &all));
  const bool table = options.text_field != "text" || all.has_delimiter() || all.has_header();
  return [all, table](const std::string& path) -> absl::StatusOr<std::unique_ptr<TextSource>> {
    const DataSpec::Format format = FormatOfName(path).value_or(DataSpec::TEXT);
    if (path == "-" && table)
      return Error(Exit::kUsage,
          "standard input: --text-field, delimiter and header are for files named .csv, .tsv, "
          ".jsonl or .json");
    if (path == "-" || format == DataSpec::TEXT) return OpenEncodedLines(path, CharsetOf(all));
    DataSpec data = all;
    data.add_files(path);
    const bool sentences = format == DataSpec::CONLL || format == DataSpec::CONLLU;
    return sentences ? OpenRows<TaggedSentence>(data) : OpenRows<TextExample>(data);
  };
}

}  // namespace cloze
