#include "tools/texts.h"

#include <cstdio>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "proto/spec.h"
#include "tasks/data/readers.h"

namespace cloze {
namespace {

// Texts of rows or, for TaggedSentence, the words of sentences.
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
    if constexpr (std::is_same_v<Item, TextExample>) {
      line_ = item.line;
      *text = std::move(item.text);
    } else {
      line_ = item.lines[0];
      *text = absl::StrJoin(item.words, " ");
    }
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

// Several sources of one file, one after the other; the position is that of their mean.
class Columns : public TextSource {
 public:
  explicit Columns(std::vector<std::unique_ptr<TextSource>> sources)
      : sources_(std::move(sources)) {}

  absl::StatusOr<bool> Next(std::string* text) override {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, sources_[at_]->Next(text));
      if (more || at_ + 1 == sources_.size()) return more;
      ++at_;
    }
  }
  absl::string_view end() const override { return sources_[at_]->end(); }
  int64_t line() const override { return sources_[at_]->line(); }
  int64_t position() const override {
    int64_t sum = 0;
    for (const auto& source : sources_) sum += source->position();
    return sum / std::ssize(sources_);
  }

 private:
  std::vector<std::unique_ptr<TextSource>> sources_;
  size_t at_ = 0;
};

absl::StatusOr<std::unique_ptr<TextSource>> OpenColumns(
    DataSpec data, const std::vector<std::string>& fields) {
  std::vector<std::unique_ptr<TextSource>> sources;
  for (const std::string& field : fields) {
    data.set_text_field(field);
    ASSIGN_OR_RETURN(std::unique_ptr<TextSource> source, OpenRows<TextExample>(data));
    sources.push_back(std::move(source));
  }
  if (sources.size() == 1) return std::move(sources[0]);
  return std::make_unique<Columns>(std::move(sources));
}

}  // namespace

void AddFileOptions(
    Command& command, std::vector<std::string>* overrides, const std::string& default_text) {
  command.Add("--set", overrides,
      absl::StrCat("How files are written that do not tell it: delimiter=';' (between the columns "
                   "of csv and tsv), "
                   "encoding=WINDOWS1252 (or LATIN1, UTF16), header=false (columns have numbers as "
                   "names). Repeatable. Default: ",
          default_text, "."),
      {.type = "FIELD=VALUE", .repeatable = true});
}

absl::Status OverrideFileOptions(const std::vector<std::string>& overrides, DataSpec* data) {
  constexpr absl::string_view kFields[] = {"delimiter", "encoding", "header"};
  LoadedSpec loaded;
  *loaded.spec.mutable_validation() = *data;
  for (const std::string& assignment : overrides) {
    const std::string field = assignment.substr(0, assignment.find('='));
    if (!absl::c_linear_search(kFields, field))
      return UsageError(
          absl::StrCat("--set ", Quote(field), ": expected delimiter, encoding or header"));
    RETURN_IF_ERROR(ApplyOverride(&loaded, assignment, "--set", "validation."));
  }
  RETURN_IF_ERROR(VerifyValues(loaded));
  *data = loaded.spec.validation();
  return absl::OkStatus();
}

void AddTextOptions(Command& command, TextOptions* options) {
  command.Add("--text-field", &options->text_fields,
      "Columns or JSON members to learn from, in files named .csv, .tsv, .jsonl or .json. Default: "
      "text.",
      {.type = "NAME"});
  AddFileOptions(command, &options->reading, "UTF-8, commas or tabs, and a header");
}

absl::StatusOr<std::vector<std::string>> FilesOfTexts(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    DataSpec data;
    data.add_files(path);
    if (path == "-" || (PathExists(path) && !IsDirectory(path))) {
      files.push_back(path);
      continue;
    }
    if (!IsDirectory(path)) data.set_format(DataSpec::TEXT);  // a pattern matches any name
    auto found = FilesOf(data);
    if (!found.ok() && IsDirectory(path)) {
      data.set_format(DataSpec::FOLDERS);
      if (auto texts = FilesOf(data); texts.ok()) found = std::move(texts);
    }
    RETURN_IF_ERROR(found.status());
    for (const DataFile& file : *found) files.push_back(file.path);
  }
  return files;
}

absl::StatusOr<OpenTexts> TextsOfFiles(const TextOptions& options) {
  DataSpec all;
  RETURN_IF_ERROR(OverrideFileOptions(options.reading, &all));
  const bool table = !options.text_fields.empty() || all.has_delimiter() || all.has_header();
  const std::vector<std::string> fields =
      options.text_fields.empty() ? std::vector<std::string>{"text"} : options.text_fields;
  return
      [all, table, fields](const std::string& path) -> absl::StatusOr<std::unique_ptr<TextSource>> {
        const DataSpec::Format format = FormatOfName(path).value_or(DataSpec::TEXT);
        if (path == "-" && table)
          return Error(Exit::kUsage,
              "standard input: --text-field, delimiter and header are for files named .csv, .tsv, "
              ".jsonl or .json");
        if (path == "-" || format == DataSpec::TEXT) return OpenEncodedLines(path, CharsetOf(all));
        DataSpec data = all;
        data.add_files(path);
        const bool sentences = format == DataSpec::CONLL || format == DataSpec::CONLLU;
        return sentences ? OpenRows<TaggedSentence>(data) : OpenColumns(data, fields);
      };
}

}  // namespace cloze
