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

// Reads the columns of a table or the members of JSON lines.
absl::Status ReadColumns(const DataFile& file, DataGuess* guess) {
  DataSpec spec = guess->data;
  spec.set_format(file.format->format);
  spec.set_text_field("1");
  ASSIGN_OR_RETURN(const auto reader, OpenRecords(file.path, spec, {.keep = true}));
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < guess->columns.size(); ++i) index.emplace(guess->columns[i].name(), i);
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
    for (size_t i = 0; i < record.cells.size(); ++i)
      column(reader->columns()[i]).Add(record.cells[i]);
  }
  for (Column& known : guess->columns)
    while (std::ssize(known.words()) < guess->rows) known.Add(std::string());
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
    const bool list = column.IsList() && (rank < n || !HasListsOfIntegers(column)),
               named = rank < n && column.values().size() > 1 && !column.IsText();
    const bool usable = column.IsCategory() || column.IsQuantity() || list || named ||
                        (!column.IsList() && !column.Separator().empty());
    if (!usable || column.IsDate() || &column == guess->text || &column == guess->pair) continue;
    if (column.IsId() && rank == n) continue;
    const size_t score = rank < n ? 2 + n - rank : column.IsQuantity() ? 1 : 2;
    if (score >= best) best = score, guess->label = &column;
  }
}

absl::Status SetTask(DataGuess* guess) {
  if (guess->label == nullptr) return absl::OkStatus();
  const Column& label = *guess->label;
  const auto fail = [&](const auto&... message) {
    return Error(Exit::kData, QuoteInput(guess->data.files(0)), ": column \"", Quote(label.name()),
        "\": ", message...);
  };
  if (HasPrintedLists(label))
    return fail("lists as Python prints them: expected labels with a separator between them (in ",
        "pandas: df[\"", Quote(label.name()), "\"].str.join(\"|\"))");
  guess->separator = label.Separator();
  guess->task = label.IsList() || !guess->separator.empty() ? GuessedTask::kSeveralLabels
                : label.IsQuantity()                        ? GuessedTask::kNumber
                                                            : GuessedTask::kOneLabel;
  const char point = guess->data.delimiter() == ";" ? '.' : ',';
  if (guess->task == GuessedTask::kNumber && MayHaveThousands(label, point))
    return fail("numbers such as ", point == '.' ? "1.200" : "1,200",
        " may have separators of thousands: expected numbers without them");
  const bool commas = guess->data.delimiter() == ";" &&
                      absl::c_any_of(guess->columns,
                          [](const Column& column) { return column.HasDecimalCommas(); });
  if (commas || (guess->task == GuessedTask::kNumber && label.HasDecimalCommas()))
    guess->data.set_decimal_comma(true);
  if (guess->task == GuessedTask::kOneLabel) guess->labels = label.values();
  if (guess->task == GuessedTask::kSeveralLabels) guess->labels = label.Parts(guess->separator);
  guess->unlabelled = guess->task == GuessedTask::kSeveralLabels ? 0 : label.empty();
  return absl::OkStatus();
}

// Reads the rows that were looked at as training will, for its errors. Rows without a label are in
// a comment.
absl::Status CheckReading(const DataGuess& guess) {
  const bool tags = guess.task == GuessedTask::kTags;
  if (guess.unlabelled > 0 || (guess.label == nullptr && !tags)) return absl::OkStatus();
  DataSpec data = guess.data;
  TextExample text;
  TaggedSentence sentence;
  const auto read = [](auto reader, auto* item) -> absl::Status {
    RETURN_IF_ERROR(reader.status());
    for (int64_t rows = 0; rows < kMaxRows; ++rows) {
      ASSIGN_OR_RETURN(const bool more, reader->Next(item));
      if (!more) break;
    }
    return absl::OkStatus();
  };
  data.set_words_field(guess.words_field);
  data.set_tags_field(guess.tags_field);
  if (tags) return read(TaggedReader::Open(data, Labels::kRequired), &sentence);
  data.set_text_field(guess.FieldOf(guess.text));
  data.set_text_pair_field(guess.FieldOf(guess.pair));
  data.set_label_field(guess.FieldOf(guess.label));
  const Labels labels = guess.task == GuessedTask::kNumber          ? Labels::kNumber
                        : guess.task == GuessedTask::kSeveralLabels ? Labels::kSeveral
                                                                    : Labels::kRequired;
  return read(TextReader::Open(data, labels), &text);
}

// True if rows are words with their tags.
bool HasWordPerRow(const std::vector<Column>& columns) {
  bool words = false, tags = false;
  for (const Column& column : columns) {
    const std::string name = LowerName(column);
    words |= (name == "word" || name == "token") && !column.IsList() &&
             absl::c_all_of(column.words(), [](int64_t n) { return n <= 1; });
    tags |= name == "tag" || name == "pos" || name == "ner" || name == "label";
  }
  return words && tags;
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
  if (options.text_field.empty() && HasWordPerRow(guess->columns))
    return Error(Exit::kData, QuoteInput(guess->data.files(0)),
        ": a word in each row: expected sentences; to tag words, CoNLL (a word, a tab and its tag ",
        "on a line, an empty line after each sentence)");
  if (guess->label != nullptr || guess->columns.size() > 1) {
    ChooseTexts(guess);
    ChooseLabel(guess);
  } else if (guess->columns.size() == 1) {
    guess->text = &guess->columns[0];
  }
  if (guess->text == nullptr) {
    std::vector<std::string> names;
    for (const Column& column : guess->columns) names.push_back(column.Describe());
    return Error(Exit::kData, QuoteInput(guess->data.files(0)), ": no column of texts: found ",
        names.empty() ? "no columns" : absl::StrJoin(names, ", "),
        " (text_field names the column to take)");
  }
  RETURN_IF_ERROR(SetTask(guess));
  guess->words = guess->text->words();
  for (size_t i = 0; guess->pair != nullptr && i < guess->words.size(); ++i) {
    if (i < guess->pair->words().size()) guess->words[i] += guess->pair->words()[i];
  }
  return absl::OkStatus();
}

}  // namespace

std::string DataGuess::FieldOf(const Column* column) const {
  if (column == nullptr) return "";
  return data.has_header() ? absl::StrCat(column - columns.data() + 1) : column->name();
}

absl::Status GuessData(const NewSpecOptions& options, DataGuess* guess) {
  RETURN_IF_ERROR(GuessForm(options, guess));
  if (guess->task == GuessedTask::kAnswers) return absl::OkStatus();
  if (guess->data.format() == DataSpec::FOLDERS) return ReadLabelledTexts(guess);
  ASSIGN_OR_RETURN(const std::vector<DataFile> files, FilesOf(guess->data));
  switch (files[0].format->format) {
    case DataSpec::FASTTEXT: return ReadLabelledTexts(guess);
    case DataSpec::CONLL:
    case DataSpec::CONLLU: return ReadTags(guess);
    case DataSpec::TEXT: return absl::OkStatus();
    default: break;
  }
  for (const DataFile& file : files) RETURN_IF_ERROR(ReadColumns(file, guess));
  if (guess->rows == 0) return Error(Exit::kData, QuoteInput(files[0].path), ": no rows");
  RETURN_IF_ERROR(ChooseColumns(options, guess));
  return CheckReading(*guess);
}

}  // namespace cloze
