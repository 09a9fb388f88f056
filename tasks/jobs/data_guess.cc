#include "tasks/jobs/data_guess.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "tasks/data/file_form.h"
#include "tasks/data/format.h"
#include "tasks/data/readers.h"

namespace cloze {
namespace {

constexpr int64_t kMaxRows = 500'000;  // that are looked at
constexpr size_t kBeginning = 1 << 17;

// Usual names, the best first.
constexpr const char *kTextNames[] = {"text", "body", "sentence", "content", "message", "review",
    "comment", "description", "tweet", "document", "texte", "texto", "inhalt", "nachricht",
    "beschreibung", "utterance", "passage", "question"},
                     *kFirstOfPair[] = {"subject", "title", "betreff", "titel", "headline",
                         "premise", "question", "query", "text_a", "text1", "sentence1",
                         "sentence_a", "question1", "s1"},
                     *kLabelNames[] = {"label", "labels", "class", "category", "categories",
                         "klasse", "kategorie", "target", "sentiment", "intent", "topic", "topics",
                         "tags", "tag", "queue", "label_name", "score", "rating", "stars",
                         "bewertung", "note", "emotion", "genre", "similarity"};

std::string LowerName(const Column& column) {
  return absl::AsciiStrToLower(absl::StripAsciiWhitespace(column.name()));
}

// Returns the place of the column's name in `names`, or their number.
template <size_t n>
size_t RankOf(const Column& column, const char* const (&names)[n]) {
  return absl::c_find(names, LowerName(column)) - std::begin(names);
}

// True if one of the words in the file's name is one of `words`.
bool NameHas(const std::string& path, const std::vector<absl::string_view>& words) {
  const std::string name = absl::AsciiStrToLower(BaseName(path));
  for (const absl::string_view part : absl::StrSplit(name, absl::ByAnyChar("-_. 0123456789"))) {
    if (absl::c_linear_search(words, part)) return true;
  }
  return false;
}

bool IsClassFolder(const std::string& path) {
  const auto names = ListDirectory(path);
  return names.ok() && absl::c_any_of(*names, [&](const std::string& name) {
    const auto inside = ListDirectory(JoinPath(path, name));
    return name[0] != '.' && inside.ok() && absl::c_any_of(*inside, [&](const std::string& file) {
      return !IsDirectory(JoinPath(JoinPath(path, name), file));
    });
  });
}

// Sets the files of the parts.
absl::Status FindParts(const NewSpecOptions& options, DataGuess* guess) {
  DataSpec data;
  for (const std::string& file : options.files) data.add_files(file);
  const std::string& first = data.files(0);
  if (data.files_size() == 1 && IsDirectory(first) && !FilesOf(data).ok() && IsClassFolder(first)) {
    guess->data.add_files(first);
    guess->data.set_format(DataSpec::FOLDERS);
    return absl::OkStatus();
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
  } else if (format == DataSpec::TEXT && absl::StartsWith(start, "__label__")) {
    format = DataSpec::FASTTEXT;
  } else if (format == DataSpec::TEXT) {
    const absl::string_view line = text.substr(0, text.find('\n'));
    const bool tabs = tab_form.delimiter == '\t';
    const absl::string_view rest = text.substr(std::min(line.size() + 1, text.size())),
                            second = rest.substr(0, rest.find('\n'));
    const bool table = !by_name && absl::StrContains(line, form.delimiter) &&
                       absl::StrContains(second, form.delimiter);
    if (table) format = DataSpec::CSV;
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

// Reads the columns of a table or the members of JSON lines.
absl::Status ReadColumns(const DataFile& file, DataGuess* guess) {
  DataSpec spec = guess->data;
  spec.set_format(file.format->format);
  spec.set_text_field("1");
  ASSIGN_OR_RETURN(const auto reader, OpenRecords(file.path, spec, {.keep = true}));
  std::map<std::string, size_t> index;
  const auto column = [&](const std::string& name) -> Column& {
    const auto [found, added] = index.try_emplace(name, guess->columns.size());
    if (added) guess->columns.emplace_back(name);
    return guess->columns[found->second];
  };
  for (; guess->rows < kMaxRows; ++guess->rows) {
    Record record;
    ASSIGN_OR_RETURN(const bool more, reader->NextRecord(/*wait=*/true, &record));
    if (!more) break;
    const bool table = file.format->format != DataSpec::JSONL;
    if (!record.wrong.ok() && (table || record.cells.empty())) return record.wrong;
    if (!table) {
      const OrderedJson object = OrderedJson::parse(record.cells[0]);
      for (const auto& [name, value] : object.items()) column(name).Add(value);
      continue;
    }
    for (size_t i = 0; i < record.cells.size(); ++i) {
      if (i == guess->columns.size()) guess->columns.emplace_back(reader->columns()[i]);
      guess->columns[i].Add(record.cells[i]);
    }
  }
  return absl::OkStatus();
}

// Counts texts and labels of FOLDERS and FASTTEXT files.
absl::Status ReadLabelledTexts(DataGuess* guess) {
  ASSIGN_OR_RETURN(TextReader reader, TextReader::Open(guess->data, Labels::kSeveral));
  TextExample text;
  Column words("text");
  bool several = false;
  for (; guess->rows < kMaxRows; ++guess->rows) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&text));
    if (!more) break;
    words.Add(text.text);
    for (const std::string& label : LabelsOf(text, ",")) ++guess->labels[label];
    several = several || text.list->size() != 1;
  }
  guess->words = words.words();
  guess->task = several ? GuessedTask::kSeveralLabels : GuessedTask::kOneLabel;
  return absl::OkStatus();
}

absl::Status ReadTags(DataGuess* guess) {
  ASSIGN_OR_RETURN(TaggedReader reader, TaggedReader::Open(guess->data, Labels::kIgnored));
  TaggedSentence sentence;
  for (; guess->rows < kMaxRows; ++guess->rows) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&sentence));
    if (!more) break;
    guess->words.push_back(std::ssize(sentence.words));
  }
  guess->task = GuessedTask::kTags;
  return absl::OkStatus();
}

// Returns the column that the user named. kSpec if there is none.
absl::StatusOr<const Column*> Named(const DataGuess& guess, const std::string& name) {
  std::vector<std::string> names;
  for (const Column& column : guess.columns) {
    if (column.name() == name) return &column;
    names.push_back(column.name());
  }
  return Error(Exit::kSpec, "no column \"", Quote(name), "\"; there are ", ListNames(names));
}

// Chooses the texts: those with usual names, else the longest.
void ChooseTexts(DataGuess* guess) {
  const auto better = [](const Column& a, const Column* b) {
    if (b == nullptr) return true;
    const size_t rank = RankOf(a, kTextNames), other = RankOf(*b, kTextNames);
    return rank != other ? rank < other : a.MeanBytes() > b->MeanBytes();
  };
  if (guess->text == nullptr) {
    for (const Column& column : guess->columns) {
      const bool usable =
          column.IsText() || (RankOf(column, kTextNames) == 0 && !column.IsNumber());
      if (usable && &column != guess->label && better(column, guess->text)) guess->text = &column;
    }
    for (const Column& column : guess->columns) {  // short texts
      if (guess->text != nullptr && guess->text->IsText()) break;
      const bool words = !column.IsNumber() && !column.IsDate() && !column.IsCategory() &&
                         !column.IsList() && column.MeanBytes() > 0;
      if (words && &column != guess->label && better(column, guess->text)) guess->text = &column;
    }
  }
  if (guess->text == nullptr || guess->pair != nullptr) return;
  // "subject" and the text, or sentence1 and sentence2.
  const std::string name = LowerName(*guess->text);
  for (const Column& column : guess->columns) {
    if (&column == guess->text || &column == guess->label || column.IsNumber()) continue;
    const std::string other = LowerName(column);
    const bool twins = name.size() == other.size() && name.size() > 1 && name != other &&
                       name.substr(0, name.size() - 1) == other.substr(0, other.size() - 1) &&
                       absl::StrContains("12abAB", name.back());
    const bool leads = RankOf(column, kFirstOfPair) < std::size(kFirstOfPair),
               follows = RankOf(*guess->text, kFirstOfPair) < std::size(kFirstOfPair);
    // Columns without names: two texts of about one length.
    const double lengths = column.MeanBytes() / guess->text->MeanBytes();
    const bool alike = guess->data.has_header() && column.IsText() && lengths > 0.5 && lengths < 2;
    if (!alike && !twins && !(leads && !column.IsCategory()) && !(follows && column.IsText()))
      continue;
    guess->pair = &column;
    if (((twins || alike) && other < name) || (!twins && leads))
      std::swap(guess->text, guess->pair);
    return;
  }
}

// Chooses the label: a column with a usual name, else the last of classes, else of numbers.
void ChooseLabel(DataGuess* guess) {
  size_t best = 0;
  for (const Column& column : guess->columns) {
    if (guess->label != nullptr && best == 0) break;  // the user named it
    const size_t rank = RankOf(column, kLabelNames), n = std::size(kLabelNames);
    const bool usable = column.IsCategory() || column.IsQuantity() || column.IsList() ||
                        !column.Separator().empty() || (rank < n && column.values().size() > 1);
    if (!usable || column.IsDate() || &column == guess->text || &column == guess->pair) continue;
    if (column.IsId() && rank == n) continue;
    const size_t score = rank < n ? 2 + n - rank : column.IsQuantity() ? 1 : 2;
    if (score >= best) best = score, guess->label = &column;
  }
}

void SetTask(DataGuess* guess) {
  if (guess->label == nullptr) return;
  const Column& label = *guess->label;
  guess->separator = label.Separator();
  guess->task = label.IsList() || !guess->separator.empty() ? GuessedTask::kSeveralLabels
                : label.IsQuantity()                        ? GuessedTask::kNumber
                                                            : GuessedTask::kOneLabel;
  const bool commas = guess->data.delimiter() == ";" &&
                      absl::c_any_of(guess->columns,
                          [](const Column& column) { return column.HasDecimalCommas(); });
  if (commas || (guess->task == GuessedTask::kNumber && label.HasDecimalCommas()))
    guess->data.set_decimal_comma(true);
  if (guess->task == GuessedTask::kOneLabel) guess->labels = label.values();
  if (guess->task == GuessedTask::kSeveralLabels) guess->labels = label.Parts(guess->separator);
  guess->unlabelled = guess->task == GuessedTask::kSeveralLabels ? 0 : label.empty();
}

// Chooses columns and task of tables and JSON lines.
absl::Status ChooseColumns(const NewSpecOptions& options, DataGuess* guess) {
  for (const auto& [name, column] :
      {std::pair(&options.text_field, &guess->text), std::pair(&options.pair_field, &guess->pair),
          std::pair(&options.label_field, &guess->label)}) {
    if (name->empty()) continue;
    ASSIGN_OR_RETURN(*column, Named(*guess, *name));
  }
  for (const Column& column : guess->columns) {
    if (!column.IsList()) continue;
    const std::string name = LowerName(column);
    if (name == "tokens" || name == "words") guess->words_field = column.name();
    if (absl::EndsWith(name, "tags")) guess->tags_field = column.name();
  }
  if (!guess->words_field.empty() && !guess->tags_field.empty()) {
    guess->task = GuessedTask::kTags;
    guess->words = Named(*guess, guess->words_field).value()->words();
    return absl::OkStatus();
  }
  if (guess->label != nullptr || guess->columns.size() > 1) {
    ChooseTexts(guess);
    ChooseLabel(guess);
  } else {
    guess->text = &guess->columns[0];
  }
  if (guess->text == nullptr) {
    std::vector<std::string> names;
    for (const Column& column : guess->columns) names.push_back(column.Describe());
    return Error(Exit::kData, QuoteInput(guess->data.files(0)), ": no column of texts: found ",
        absl::StrJoin(names, ", "));
  }
  SetTask(guess);
  guess->words = guess->text->words();
  for (size_t i = 0; guess->pair != nullptr && i < guess->words.size(); ++i) {
    if (i < guess->pair->words().size()) guess->words[i] += guess->pair->words()[i];
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status GuessData(const NewSpecOptions& options, DataGuess* guess) {
  RETURN_IF_ERROR(FindParts(options, guess));
  ASSIGN_OR_RETURN(std::vector<DataFile> files, FilesOf(guess->data));
  if (guess->data.format() == DataSpec::FOLDERS) return ReadLabelledTexts(guess);
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
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(files, FilesOf(guess->data));
  switch (files[0].format->format) {
    case DataSpec::FASTTEXT: return ReadLabelledTexts(guess);
    case DataSpec::CONLL:
    case DataSpec::CONLLU: return ReadTags(guess);
    case DataSpec::TEXT: return absl::OkStatus();
    default: break;
  }
  for (const DataFile& file : files) RETURN_IF_ERROR(ReadColumns(file, guess));
  if (guess->rows == 0) return Error(Exit::kData, QuoteInput(files[0].path), ": no rows");
  return ChooseColumns(options, guess);
}

}  // namespace cloze
