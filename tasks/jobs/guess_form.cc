// Parts, format and form of data files, by their names and beginnings.
#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "tasks/data/file_form.h"
#include "tasks/data/format.h"
#include "tasks/jobs/data_guess.h"
#include "tasks/tags.h"

namespace cloze {
namespace {

constexpr size_t kBeginning = 1 << 17;

// True if one of the words in the file's name is one of `words`.
bool NameHas(const std::string& path, const std::vector<absl::string_view>& words) {
  const std::string name = absl::AsciiStrToLower(BaseName(path));
  for (const absl::string_view part : absl::StrSplit(name, absl::ByAnyChar("-_. 0123456789"))) {
    if (absl::c_linear_search(words, part)) return true;
  }
  return false;
}

// Returns the folders, or the files of texts, that a folder holds.
std::vector<std::string> Inside(const std::string& folder, bool folders) {
  std::vector<std::string> paths;
  for (const std::string& name : ListDirectory(folder).value_or(std::vector<std::string>())) {
    const std::string path = JoinPath(folder, name);
    const bool text = FormatOfName(name).value_or(DataSpec::TEXT) == DataSpec::TEXT;
    if (name[0] != '.' && IsDirectory(path) == folders && (folders || text)) paths.push_back(path);
  }
  return paths;
}

// True for a folder with a folder of texts per class, and few other files.
bool HasClassFolders(const std::string& path) {
  const int64_t classes = absl::c_count_if(
      Inside(path, true), [](const std::string& folder) { return !Inside(folder, false).empty(); });
  DataSpec data;
  data.add_files(path);
  const auto files = FilesOf(data);
  const auto others = files.ok() ? std::ssize(*files) : 0;
  return classes > others && std::ssize(Inside(path, false)) >= others;
}

// Sets the files of the parts.
absl::Status FindParts(const NewSpecOptions& options, DataGuess* guess) {
  DataSpec data;
  for (const std::string& file : options.files) data.add_files(file);
  const std::string& first = data.files(0);
  if (data.files_size() == 1 && IsDirectory(first)) {
    if (HasClassFolders(first)) {
      guess->data.add_files(first);
      guess->data.set_format(DataSpec::FOLDERS);
      return absl::OkStatus();
    }
    const bool empty = !FilesOf(data).ok();
    for (const std::string& folder : Inside(first, true)) {
      if (empty && HasClassFolders(folder))
        return Error(Exit::kNoInput, QuotePath(first), ": no files, but ", QuotePath(folder),
            " has a folder per class: expected that folder");
    }
  }
  for (const std::string& file : options.files) {
    const size_t dot = file.rfind('.');
    const bool known =
        FormatOfName(file) || (dot != file.npos && RemedyOfFormat(file.substr(dot)) != "");
    if (known || IsDirectory(file) || !PathExists(file)) continue;
    data.set_format(DataSpec::TEXT);  // FindFormat will tell
  }
  ASSIGN_OR_RETURN(const std::vector<DataFile> files, FilesOf(data));
  const bool parts = absl::c_any_of(files, [](const DataFile& file) {
    return !NameHas(file.path, {"dev", "valid", "validation", "val", "test", "eval"});
  });
  bool whole = true;
  for (const DataFile& file : files) {
    const bool dev = parts && NameHas(file.path, {"dev", "valid", "validation", "val"}),
               test = parts && NameHas(file.path, {"test", "eval"});
    if (dev) guess->validation.push_back(file.path);
    if (test) guess->left_out.push_back(file.path);
    if (!dev && !test) guess->data.add_files(file.path);
    whole = whole && !dev && !test;
  }
  if (whole) *guess->data.mutable_files() = data.files();
  if (data.has_format()) guess->data.set_format(data.format());
  return absl::OkStatus();
}

// Returns the first lines of a file, and the next one that is not UTF-8.
absl::StatusOr<std::string> Beginning(const std::string& path) {
  ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  std::string all, rest;
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(more, file.Read(&rest));
    const size_t end = more ? rest.rfind('\n') + 1 : rest.size();
    const absl::string_view lines = absl::string_view(rest).substr(0, end);
    if (all.size() < kBeginning) {
      absl::StrAppend(&all, lines);
    } else if (!IsUtf8(lines) && !absl::StrContains(all, '\0')) {
      for (const absl::string_view line : absl::StrSplit(lines, '\n'))
        if (!IsUtf8(line)) return absl::StrCat(all.substr(0, kBeginning), line, "\n");
    }
    rest.erase(0, end);
  }
  return all;
}

bool LooksLikeConllu(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "1\t")) return absl::c_count(line, '\t') == 9;
  }
  return false;
}

// True if the lines hold words, tags such as B-PER and O last.
bool LooksLikeConll(absl::string_view text) {
  int64_t lines = 0, tagged = 0;
  bool spans = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(absl::StripAsciiWhitespace(line), absl::ByAnyChar(" \t"), absl::SkipEmpty());
    const std::string tag(fields.back());
    const bool span = tag.size() > 1 && IsBioTag(tag);
    ++lines;
    tagged += fields.size() > 1 && (span || tag == "O");
    spans |= span;
  }
  return spans && 10 * tagged >= 9 * lines;
}

// True if `text` is a table whose first row has usual names.
bool IsNamedTable(absl::string_view text) {
  FormHints hints;
  hints.form.header = false;
  const FileForm form = FormOf(text, hints);
  return form.header && absl::StrContains(text.substr(0, text.find('\n')), form.delimiter);
}

// Sets format, encoding, delimiter and header.
void FindForm(const std::string& path, absl::string_view text, DataSpec* data) {
  const auto by_name = FormatOfName(path);
  DataSpec::Format format = by_name.value_or(DataSpec::TEXT);
  const absl::string_view start = absl::StripLeadingAsciiWhitespace(text);
  FormHints hints;
  hints.quoting = format != DataSpec::TSV;
  hints.form.delimiter = format == DataSpec::TSV ? '\t' : ',';
  FileForm form = FormOf(text, hints);
  hints.quoting = false, hints.form.delimiter = '\t';
  const FileForm tab_form = FormOf(text, hints);
  if (format == DataSpec::TEXT && (absl::StartsWith(start, "{") || absl::StartsWith(start, "["))) {
    format = DataSpec::JSONL;
  } else if (format == DataSpec::TEXT && LooksLikeConllu(text)) {
    format = DataSpec::CONLLU;
  } else if ((format == DataSpec::TEXT || format == DataSpec::TSV) && LooksLikeConll(text)) {
    format = DataSpec::CONLL;
  } else if (format == DataSpec::TEXT && absl::StartsWith(start, "__label__")) {
    format = DataSpec::FASTTEXT;
  } else if (format == DataSpec::TEXT) {
    const absl::string_view line = text.substr(0, text.find('\n'));
    const bool tabs = tab_form.delimiter == '\t';
    const absl::string_view rest = text.substr(std::min(line.size() + 1, text.size())),
                            second = rest.substr(0, rest.find('\n'));
    const bool table = !by_name && absl::StrContains(line, form.delimiter) &&
                       absl::StrContains(second, form.delimiter);
    if (table || IsNamedTable(text)) format = DataSpec::CSV;
    if (tabs && absl::StrContains(line, '\t')) format = DataSpec::TSV;
  }
  if (format != by_name.value_or(DataSpec::BY_EXTENSION)) data->set_format(format);
  if (format == DataSpec::TEXT && by_name == DataSpec::TEXT) data->clear_format();
  if (form.encoding != Charset::kUtf8 && format != DataSpec::JSONL)
    data->set_encoding(static_cast<DataSpec::Encoding>(form.encoding));
  if (format != DataSpec::CSV && format != DataSpec::TSV) return;
  const char usual = format == DataSpec::TSV ? '\t' : ',';
  if (format == DataSpec::TSV) form.delimiter = tab_form.delimiter, form.header = tab_form.header;
  if (form.delimiter != usual)
    data->set_delimiter(form.delimiter == '\t' ? "\\t" : std::string(1, form.delimiter));
  if (!form.header) data->set_header(false);
}

}  // namespace

absl::Status GuessForm(const NewSpecOptions& options, DataGuess* guess) {
  RETURN_IF_ERROR(FindParts(options, guess));
  ASSIGN_OR_RETURN(const std::vector<DataFile> files, FilesOf(guess->data));
  if (guess->data.format() == DataSpec::FOLDERS) return absl::OkStatus();
  guess->data.clear_format();
  ASSIGN_OR_RETURN(const std::string text, Beginning(files[0].path));
  FindForm(files[0].path, text, &guess->data);
  std::string line;  // refuses what is no text
  ASSIGN_OR_RETURN(LineReader lines,
      LineReader::Open(files[0].path, LineReader::kDefaultMaxLine, CharsetOf(guess->data)));
  RETURN_IF_ERROR(lines.Next(&line).status());
  const absl::string_view start = absl::string_view(text).substr(0, kBeginning);
  if (absl::StrContains(start, "\"paragraphs\"") && absl::StrContains(start, "\"qas\"")) {
    guess->data.clear_format();
    guess->task = GuessedTask::kAnswers;
  } else if (absl::StripAsciiWhitespace(line) == "{") {
    return Error(Exit::kData, QuoteInput(files[0].path),
        ": an object over several lines: expected an object on each line, or an array of objects "
        "(jq -c writes objects on one line, jq -c '.data[]' those of a list)");
  }
  return absl::OkStatus();
}

}  // namespace cloze
