// The table of formats, and the readers of several files on top of those of single files.
#include "tasks/data/readers.h"

#include <glob.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/base/text.h"
#include "tasks/data/format.h"

namespace cloze {

// The formats, each from its own file.
extern const Format kTextFormat, kTsvFormat, kCsvFormat, kJsonlFormat, kConlluFormat, kConllFormat,
    kFastTextFormat, kFoldersFormat;

namespace {

constexpr const Format* kFormats[] = {&kTextFormat, &kTsvFormat, &kCsvFormat, &kJsonlFormat,
    &kConlluFormat, &kConllFormat, &kFastTextFormat, &kFoldersFormat};

// Returns the format of `path` from the spec, else from its extension; kSpec when neither tells.
absl::StatusOr<const Format*> FormatOf(const DataSpec& spec, const std::string& path) {
  const std::optional<DataSpec::Format> wanted =
      spec.format() == DataSpec::BY_EXTENSION ? FormatOfName(path) : spec.format();
  std::vector<std::string> extensions;
  for (const Format* format : kFormats) {
    if (wanted == format->format) return format;
    for (const char* extension : {format->extension, format->other_extension})
      if (extension != nullptr) extensions.push_back(extension);
  }
  const size_t dot = path.rfind('.');
  std::string hint =
      dot == path.npos ? "" : RemedyOfFormat(absl::AsciiStrToLower(path.substr(dot)));
  if (hint.empty()) hint = "set format in the spec";
  return Error(Exit::kSpec, QuoteInput(path), ": format: the name does not end in ",
      ListOr(extensions), "; ", hint);
}

// Appends the files that `path` stands for. A pipe must be named itself, because opening it waits
// for whoever writes it.
absl::Status Expand(
    const DataSpec& spec, const std::string& path, std::vector<std::string>* paths) {
  const size_t before = paths->size();
  const auto done = [&](absl::string_view nothing) -> absl::Status {
    for (size_t i = before; i < paths->size(); ++i) {
      if (IsStream((*paths)[i]))
        return Error(Exit::kNoInput, QuotePath((*paths)[i]), ": is a pipe, found by ",
            QuotePath(path), ": expected a file (move the pipe away, or name it itself)");
    }
    return paths->size() > before ? absl::OkStatus()
                                  : Error(Exit::kNoInput, QuotePath(path), nothing);
  };
  if (path != "-" && IsDirectory(path) && spec.format() == DataSpec::FOLDERS) {
    ASSIGN_OR_RETURN(const std::vector<std::string> files, ListClassFiles(path));
    paths->insert(paths->end(), files.begin(), files.end());
    return done(": no texts: expected a folder per class, with a file per text");
  }
  if (path != "-" && IsDirectory(path)) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
    for (const std::string& name : names) {
      const std::string file = JoinPath(path, name);
      if (name[0] != '.' && !IsDirectory(file) && FormatOf(spec, file).ok()) paths->push_back(file);
    }
    return done(
        ": a folder without data files: expected names such as train.csv (or set format; FOLDERS "
        "reads a folder per class with a file per text)");
  }
  if (path.find_first_of("*?[") == std::string::npos || PathExists(path)) {
    paths->push_back(path);
    return absl::OkStatus();
  }
  if (absl::StrContains(path, "**"))
    return Error(Exit::kNoInput, QuotePath(path),
        ": ** does not stand for folders of any depth: expected one * for each, as in */*.csv");
  glob_t found = {};
  std::vector<std::string> matches;
  const int failed = ::glob(path.c_str(), 0, nullptr, &found);
  for (size_t i = 0; failed == 0 && i < found.gl_pathc; ++i) {
    if (spec.format() == DataSpec::FOLDERS || !IsDirectory(found.gl_pathv[i]))
      matches.push_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  for (const std::string& match : matches) {
    if (!IsDirectory(match)) paths->push_back(match);
    if (IsDirectory(match)) RETURN_IF_ERROR(Expand(spec, match, paths));
  }
  return done(": no file matches this pattern");
}

// Reads the beginning of a file; more than `most` bytes only when its first record is longer. Adds
// the stored bytes that it takes to *read.
absl::StatusOr<std::string> Beginning(
    const DataFile& file, const DataSpec& data, int64_t most, int64_t* read) {
  ASSIGN_OR_RETURN(InputFile input, InputFile::Open(file.path));
  TextDecoder decoder(CharsetOf(data));
  std::string text, part;
  for (bool more = true;;) {
    const auto size = static_cast<int64_t>(text.size());
    if (more && size <= most) {
      part.clear();
      ASSIGN_OR_RETURN(more, input.Read(&part));
      decoder.Append(part, !more, &text);
      continue;
    }
    if (file.format == &kJsonlFormat && absl::StartsWith(text, "[")) {
      return Error(Exit::kData, QuotePath(file.path), ": a JSON array, of which a plan ",
          "cannot read a part: expected an object per line (convert it with jq -c '.[]')");
    }
    const bool all = size <= most || size > 2 * kRowBytes;  // no reader takes longer records
    const size_t whole = all ? size : file.format->whole(text.substr(0, most), data);
    if (whole > 0 || all) {
      if (size > 0) *read += static_cast<double>(input.position()) * whole / size;
      return text.substr(0, whole);
    }
    most *= 4;
  }
}

}  // namespace

std::optional<DataSpec::Format> FormatOfName(absl::string_view path) {
  const absl::string_view name = UnpackedName(path);
  for (const Format* format : kFormats) {
    for (const char* extension : {format->extension, format->other_extension}) {
      if (extension != nullptr && absl::EndsWithIgnoreCase(name, extension)) return format->format;
    }
  }
  return std::nullopt;
}

// The values of DataSpec.Encoding are those of Charset.
Charset CharsetOf(const DataSpec& spec) {
  return spec.format() == DataSpec::JSONL ? Charset::kUtf8 : static_cast<Charset>(spec.encoding());
}

absl::StatusOr<std::unique_ptr<FileReader>> OpenRecords(
    const std::string& path, const DataSpec& spec, const RecordOptions& options) {
  ASSIGN_OR_RETURN(const Format* format, FormatOf(spec, path));
  if ((format->holds & Format::kTexts) == 0)
    return Error(Exit::kSpec, QuotePath(path), ": format: holds no texts");
  RowRequest request = {spec, {{"text_field", spec.text_field()}}, Labels::kIgnored, true, options};
  if (!spec.text_pair_field().empty())
    request.fields.push_back({"text_pair_field", spec.text_pair_field()});
  const Charset charset = options.ids ? Charset::kUtf8 : CharsetOf(spec);
  ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path, kRowBytes, charset));
  return format->open(std::move(lines), std::move(request));
}

absl::StatusOr<std::vector<DataFile>> FilesOf(const DataSpec& spec) {
  if (spec.files().empty()) return Error(Exit::kSpec, "files: none: expected at least one file");
  std::vector<std::string> paths;
  for (const std::string& path : spec.files()) RETURN_IF_ERROR(Expand(spec, path, &paths));
  std::vector<DataFile> files;
  for (const std::string& path : paths) {
    DataFile& file = files.emplace_back(DataFile{path});
    ASSIGN_OR_RETURN(file.format, FormatOf(spec, path));
    ASSIGN_OR_RETURN(file.size, InputSize(path));
  }
  return files;
}

bool HasStream(const DataSpec& data) { return absl::c_any_of(data.files(), IsStream); }

absl::Status RequireFiles(const DataSpec& data, absl::string_view why, absl::string_view hint) {
  for (const std::string& path : data.files()) {
    if (!IsStream(path)) continue;
    return Error(Exit::kSpec, "files: ", QuoteInput(path), " can be read only once, but ", why,
        ": expected a file (", hint, ")");
  }
  return absl::OkStatus();
}

absl::StatusOr<DataSample> SampleData(
    const DataSpec& data, const std::string& folder, int64_t most) {
  RETURN_IF_ERROR(RequireFiles(data, "the estimate reads a part first"));
  DataSample sample;
  sample.data = data;
  if (data.files().empty()) return sample;
  ASSIGN_OR_RETURN(const std::vector<DataFile> files, FilesOf(data));
  for (const DataFile& file : files) sample.bytes += file.size;
  if (sample.bytes <= 2 * most) {
    sample.read = sample.bytes;
    return sample;
  }
  sample.data.clear_files();
  int64_t bytes = 0;  // in the sample
  for (size_t i = 0; i < files.size() && bytes < most; ++i) {
    const std::string& path = files[i].path;
    ASSIGN_OR_RETURN(const std::string text, Beginning(files[i], data, most - bytes, &sample.read));
    const std::string copy = JoinPath(folder, absl::StrCat(i, "-", BaseName(path)));
    RETURN_IF_ERROR(WriteNewFile(copy, text));
    sample.data.add_files(copy);
    sample.originals.push_back(path);
    bytes += text.size();
  }
  return sample;
}

DataReader::DataReader(
    DataSpec spec, std::vector<DataFile> files, Labels labels, bool keep_lines, LabelRule rule)
    : spec_(std::move(spec)), files_(std::move(files)), labels_(labels), rule_(std::move(rule)),
      split_(spec_), keep_lines_(keep_lines) {
  spec_.clear_files();
}
DataReader::DataReader(DataReader&&) noexcept = default;
DataReader::~DataReader() = default;

std::string DataReader::Where(int64_t line) const {
  if (index_ == files_.size()) return "end of data";
  return absl::StrCat(QuoteInput(files_[index_].path), ":", line);
}

int64_t DataReader::position() const {
  return done_ + (reader_ != nullptr ? reader_->stored_position() : 0);
}

int64_t DataReader::total_bytes() const {
  int64_t total = 0;
  for (const DataFile& file : files_) total += file.size;
  return total;
}

std::vector<std::string> DataReader::columns() const {
  return reader_ == nullptr ? columns_ : reader_->columns();
}

std::string DataReader::TakeNote() {
  const std::string now = reader_ != nullptr ? reader_->TakeNote() : "";
  const std::string before = std::exchange(note_, "");
  return absl::StrCat(before, before.empty() || now.empty() ? "" : "; ", now);
}

DataSpec AllExamples(DataSpec data) {
  data.clear_share();
  data.clear_leave_out();
  data.clear_max_examples();
  return data;
}

absl::StatusOr<bool> DataReader::Ready() { return reader_ == nullptr ? true : reader_->Ready(); }

absl::StatusOr<std::unique_ptr<FileReader>> DataReader::OpenFile(Content content) const {
  DataFile file = files_[index_];
  const bool texts = content == Content::kTexts, labelled = texts && HasLabels(labels_);
  if (labelled && file.format == &kTextFormat) file.format = &kFastTextFormat;
  const uint32_t needed = content == Content::kSentences ? Format::kSentences
                          : labelled                     ? Format::kLabelledTexts
                                                         : Format::kTexts;
  if ((file.format->holds & needed) == 0) {
    std::vector<std::string> names;
    for (const Format* format : kFormats) {
      if (format->holds & needed) names.push_back(DataSpec::Format_Name(format->format));
    }
    return Error(Exit::kSpec, QuotePath(file.path), ": format: is ",
        DataSpec::Format_Name(file.format->format), ": expected ", ListOr(names));
  }
  const bool pairs = texts && !spec_.text_pair_field().empty();
  if (pairs && (file.format == &kTextFormat || file.format == &kFastTextFormat)) {
    return Error(Exit::kSpec, "text_pair_field: ", QuoteInput(file.path),
        " holds one text per line: expected TSV, CSV or JSONL");
  }
  RowRequest request = {spec_, {{"text_field", spec_.text_field()}},
      labels_ == Labels::kNumber ? Labels::kRequired : labels_, keep_lines_};
  request.spec.set_format(file.format->format);
  const bool groups = texts && labels_ == Labels::kGroups;
  if (pairs) request.fields.push_back({"text_pair_field", spec_.text_pair_field(), groups});
  for (const std::string& name : spec_.negative_field())
    if (groups) request.fields.push_back({"negative_field", name, true});
  if (labelled)
    request.fields.push_back({"label_field", spec_.label_field(), labels_ == Labels::kSeveral});
  ASSIGN_OR_RETURN(LineReader lines,
      LineReader::Open(file.path, file.format->line_bytes, CharsetOf(request.spec)));
  return file.format->open(std::move(lines), std::move(request));
}

absl::StatusOr<bool> DataReader::FromFiles(
    Content content, absl::FunctionRef<absl::StatusOr<bool>(FileReader&)> next) {
  for (; index_ < files_.size(); ++index_) {
    if (reader_ == nullptr) {
      ASSIGN_OR_RETURN(reader_, OpenFile(content));
    }
    ASSIGN_OR_RETURN(const bool more, next(*reader_));
    if (more) return true;
    columns_ = reader_->columns();
    note_ = TakeNote();
    reader_ = nullptr;
    done_ += files_[index_].size;
  }
  return false;
}

absl::StatusOr<bool> DataReader::Read(DocumentPiece* piece) {
  while (true) {
    ASSIGN_OR_RETURN(const bool more, FromFiles(Content::kDocuments, [&](FileReader& reader) {
      return reader.NextPiece(piece);
    }));
    // The hash of its first piece decides if a document is read.
    if (piece->first) reads_ = !more || split_.Reads({piece->text});
    if (!more || reads_) return more;
  }
}

absl::Status DataReader::LearnSplit() {
  const bool by_rank = spec_.share_rule() == 1;
  if (std::exchange(split_known_, true) || !split_.splits() || !HasLabels(labels_) ||
      (labels_ == Labels::kNumber && !by_rank))
    return absl::OkStatus();
  DataReader reader(AllExamples(spec_), files_, labels_, false, rule_);
  TextExample text;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.ReadRow(&text));
    if (!more) break;
    std::vector<std::string> labels = {text.label};
    if (by_rank && text.list.has_value()) {
      labels = {absl::StrJoin(*text.list, std::string(1, '\0'))};
    } else if (!by_rank && labels_ == Labels::kSeveral) {
      labels = LabelsOf(text, rule_.separator);
    }
    for (const std::string& label : labels) split_.Add({text.text, text.text_pair}, label);
  }
  split_.Choose();
  return absl::OkStatus();
}

absl::StatusOr<bool> DataReader::Read(TextExample* example) {
  if (HasMost()) return false;
  RETURN_IF_ERROR(LearnSplit());
  do {
    ASSIGN_OR_RETURN(const bool more, ReadRow(example));
    if (!more) return false;
  } while (!split_.Reads({example->text, example->text_pair}));
  ++count_;
  return true;
}

absl::StatusOr<bool> DataReader::ReadRow(TextExample* example) {
  Row row;
  absl::StatusOr<bool> more =
      FromFiles(Content::kTexts, [&](FileReader& reader) { return reader.NextRow(&row); });
  *example = {};
  example->line = row.line;  // also of a wrong row
  example->cells = std::move(row.cells);
  if (!more.ok() || !*more) return more;
  example->list = std::move(row.list);
  for (size_t i = 1; labels_ == Labels::kGroups && i < row.values.size(); ++i) {
    std::vector<std::string>& to = i == 1 ? example->pairs : example->negatives;
    const bool json = !row.items.empty();
    const auto texts = absl::MakeConstSpan(json ? row.items[i] : row.values);
    const auto added = json ? texts : texts.subspan(i, 1);
    to.insert(to.end(), added.begin(), added.end());
  }
  if (HasLabels(labels_)) {
    example->label = std::move(row.values.back());
    row.values.pop_back();
  }
  example->text = std::move(row.values[0]);
  if (row.values.size() > 1) example->text_pair = std::move(row.values[1]);
  RETURN_IF_ERROR(CleanLabels(example));
  if (HasLabels(labels_) && labels_ != Labels::kSeveral && example->label.empty())
    return Error(Exit::kData, Where(row.line), ": label_field: an empty label",
        labels_ == Labels::kNumber ? " (remove the row)"
                                   : " (remove the row, or name such texts: label_map: \"=none\")");
  return true;
}

absl::Status DataReader::CleanLabels(TextExample* example) const {
  if (labels_ == Labels::kSeveral && rule_.changes()) {
    example->list = rule_.Clean(LabelsOf(*example, rule_.separator));
  } else if (labels_ == Labels::kRequired) {
    example->label = rule_.Clean(example->label);
  } else if (labels_ == Labels::kNumber && spec_.decimal_comma() &&
             files_[index_].format != &kJsonlFormat) {
    if (absl::StrContains(example->label, '.'))
      return Error(Exit::kData, Where(example->line), ": label_field: \"", Quote(example->label),
          "\" has a point: expected a comma, as decimal_comma says");
    example->label = WithDecimalPoint(example->label);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> DataReader::Read(TaggedSentence* sentence) {
  if (HasMost()) return false;
  while (true) {
    *sentence = {};
    ASSIGN_OR_RETURN(const bool more, FromFiles(Content::kSentences, [&](FileReader& reader) {
      return reader.NextSentence(sentence);
    }));
    const std::vector<absl::string_view> words(sentence->words.begin(), sentence->words.end());
    if (more && !split_.Reads(words)) continue;
    count_ += more && !words.empty();
    return more;
  }
}

}  // namespace cloze
