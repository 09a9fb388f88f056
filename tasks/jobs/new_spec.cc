#include "tasks/jobs/new_spec.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "encoder/folder/model_folder.h"
#include "tasks/data_duplicates.h"
#include "tasks/jobs/data_guess.h"

namespace cloze {
namespace {

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
}

// Returns `text` as lines of comment that begin with `start`.
std::string Comment(absl::string_view text, const std::string& start = "  # ") {
  std::string lines, line;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!line.empty() && start.size() + line.size() + word.size() > 98)
      absl::StrAppend(&lines, start, std::exchange(line, ""), "\n");
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  return line.empty() ? "" : absl::StrCat(lines, start, line, "\n");
}

// Returns a line "  name: value", and the comment before it.
std::string Setting(
    absl::string_view name, absl::string_view value, absl::string_view comment = "") {
  return absl::StrCat(Comment(comment), "  ", name, ": ", value, "\n");
}

// Returns a name for the run: that of the file or folder, without extensions.
std::string NameOfRun(const std::string& path) {
  std::string name = BaseName(path);
  name = name.substr(0, name.find('.', 1));
  for (char& c : name) c = absl::ascii_isalnum(c) || (c & 0x80) != 0 || c == '-' ? c : '_';
  return name.empty() || path == "." ? "model" : name;
}

// Returns "a (12), b (3), ..." for the most frequent labels.
std::string CountsOf(const std::map<std::string, int64_t>& labels) {
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [label, count] : labels) sorted.emplace_back(-count, label);
  absl::c_sort(sorted);
  std::vector<std::string> items;
  for (size_t i = 0; i < std::min<size_t>(sorted.size(), 8); ++i)
    items.push_back(absl::StrCat(Quote(sorted[i].second, 30), " (", -sorted[i].first, ")"));
  return absl::StrCat(absl::StrJoin(items, ", "),
      sorted.size() > items.size() ? absl::StrCat(" and ", sorted.size() - items.size(), " more")
                                   : "");
}

// Returns the model and the limit of its texts.
absl::StatusOr<std::string> ModelPart(
    const NewSpecOptions& options, bool pretrains, int64_t* max_tokens) {
  if (options.start_from.empty()) {
    return absl::StrCat(
        "model {\n"
        "  # A new encoder; its vocabulary is learned from the texts. Other sizes: MINI, SMALL, ",
        "BASE.\n",
        pretrains ? ""
                  : "  # A pretrained model learns more from few rows. Write its folder in place "
                    "of the encoder:\n  #   start_from: \"FOLDER\"\n",
        "  encoder { preset: ", pretrains ? "MINI" : "TINY", " max_positions: ", *max_tokens,
        " }\n}\n");
  }
  ASSIGN_OR_RETURN(const ModelConfig config, LoadConfig(options.start_from));
  *max_tokens = std::min<int64_t>(*max_tokens, config.max_tokens());
  return absl::StrCat("model { start_from: ", Quoted(options.start_from), " }\n");
}

// The lines that merge labels which differ only in case or white space.
std::string CleaningLines(const DataGuess& guess) {
  std::string text;
  std::vector<std::string> names;
  for (const auto& [label, count] : guess.labels) names.push_back(label);
  for (const std::string& line :
      LabelRepairs(names, [&](const std::string& label) { return guess.labels.at(label); })) {
    if (text.empty()) text = "  # Labels that differ only in case or white space become one:\n";
    absl::StrAppend(&text, "  ", line, "\n");
  }
  return text;
}

// Returns how many words the texts have that are longer than 95 % of all. Requires texts.
int64_t LongText(const DataGuess& guess) {
  std::vector<int64_t> words = guess.words;
  const auto at = words.begin() + std::ssize(words) * 95 / 100;
  std::nth_element(words.begin(), at, words.end());
  return *at;
}

std::string TaskPart(const DataGuess& guess, int64_t max_tokens) {
  std::string name = "sequence_classification", fields;
  std::string lengths;
  if (!guess.words.empty())
    lengths = absl::StrCat("95 % of the texts have at most ", LongText(guess),
        " words, the longest ", *absl::c_max_element(guess.words),
        guess.task == GuessedTask::kTags ? "; longer ones are split." : "; longer texts are cut.");
  switch (guess.task) {
    case GuessedTask::kLanguageModel: name = "masked_lm"; break;
    case GuessedTask::kTags: name = "token_tagging"; break;
    case GuessedTask::kAnswers:
      return absl::StrCat("question_answering { max_tokens: ", max_tokens, " }\n");
    case GuessedTask::kOneLabel:
      fields = "  # One label for each text: kind: SINGLE_LABEL, the default.\n";
      break;
    case GuessedTask::kSeveralLabels:
      fields =
          Setting("kind", "MULTI_LABEL", "Several labels for each text. One label: SINGLE_LABEL.");
      if (guess.separator != "," && !guess.separator.empty())
        fields += Setting("label_separator", Quoted(guess.separator));
      break;
    case GuessedTask::kNumber:
      fields = Setting("kind", "REGRESSION", "A number. To learn classes: SINGLE_LABEL.");
      break;
  }
  if (guess.task == GuessedTask::kOneLabel || guess.task == GuessedTask::kSeveralLabels)
    fields += CleaningLines(guess);
  return absl::StrCat(
      name, " {\n", Setting("max_tokens", absl::StrCat(max_tokens), lengths), fields, "}\n");
}

// Returns " Other columns: A (3 values), B (numbers)." for columns that could have the same role.
std::string Others(const DataGuess& guess, bool label) {
  std::vector<std::string> names;
  for (const Column& column : guess.columns) {
    const bool used = &column == guess.text || &column == guess.pair || &column == guess.label;
    const bool fits = label ? column.IsCategory() || column.IsQuantity() : column.IsText();
    if (!used && fits) names.push_back(column.Describe());
  }
  return names.empty() ? "" : absl::StrCat(" Other columns: ", absl::StrJoin(names, ", "), ".");
}

std::string LabelComment(const DataGuess& guess) {
  const std::string rows = guess.unlabelled > 0
                               ? absl::StrCat(" ", Counted(guess.unlabelled, "row"),
                                     " without a label must be removed, or named by label_map.")
                               : "";
  const std::string labels =
      guess.labels.empty()
          ? "A number."
          : absl::StrCat(Counted(guess.labels.size(), "label"), ": ", CountsOf(guess.labels), ".");
  return absl::StrCat(labels, rows, Others(guess, true));
}

// Returns the columns and the form of the files, the same for train and validation.
std::string FormLines(const DataGuess& guess) {
  const DataSpec& data = guess.data;
  std::string text;
  if (data.has_format()) text += Setting("format", DataSpec::Format_Name(data.format()));
  if (data.has_delimiter()) text += Setting("delimiter", Quoted(data.delimiter()));
  if (data.has_encoding()) text += Setting("encoding", DataSpec::Encoding_Name(data.encoding()));
  if (data.has_header())
    text += Setting("header", "false", "The first row is data: columns have numbers.");
  if (data.decimal_comma()) text += Setting("decimal_comma", "true", "Numbers such as 3,2.");
  if (guess.task == GuessedTask::kTags) {
    if (guess.words_field != "" && guess.words_field != "tokens")
      text += Setting("words_field", Quoted(guess.words_field));
    if (guess.tags_field != "" && guess.tags_field != "tags")
      text += Setting("tags_field", Quoted(guess.tags_field));
    return text;
  }
  const auto name = [&](const Column* column) { return Quoted(guess.FieldOf(column)); };
  if (guess.text != nullptr)
    text += Setting("text_field", name(guess.text),
        guess.pair == nullptr && !Others(guess, false).empty()
            ? absl::StrCat(
                  "Only this text is read; text_pair_field reads a second.", Others(guess, false))
            : "");
  if (guess.pair != nullptr)
    text += Setting("text_pair_field", name(guess.pair),
        "Both texts are read, as a pair. Remove this line to read only the first.");
  if (guess.label != nullptr)
    text += Setting("label_field", name(guess.label), LabelComment(guess));
  return text;
}

std::string FileLines(absl::Span<const std::string> files, const std::string& save_as) {
  std::string text;
  for (const std::string& file : files)
    text += Setting("files", Quoted(save_as.empty() ? file : save_as),
        save_as.empty() ? "" : "Save standard input under this name: training reads it twice.");
  return text;
}

std::string DataPart(const NewSpecOptions& options, const DataGuess& guess) {
  const std::vector<std::string> files(guess.data.files().begin(), guess.data.files().end());
  const std::string form = FormLines(guess);
  std::string labels;
  if (guess.columns.empty() && !guess.labels.empty()) labels = Comment(LabelComment(guess));
  std::string text =
      absl::StrCat("train {\n", FileLines(files, options.save_as), labels, form, "}\n");
  if (!guess.validation.empty())
    return absl::StrCat(text, "validation {\n", FileLines(guess.validation, ""), form, "}\n");
  const bool pretrains = guess.task == GuessedTask::kLanguageModel;
  const double share = pretrains || guess.rows > 100'000 ? 0.05 : guess.rows < 1000 ? 0.2 : 0.1;
  return absl::StrFormat(
      "%s# This share of the %s is not trained on, and measures the model.\n"
      "validation { share: %g }\n",
      text, pretrains ? "texts" : "rows", share);
}

// Returns the smallest usual limit for nearly all texts. Texts have about 1.4 tokens per word.
int64_t LimitOf(const DataGuess& guess) {
  if (guess.task == GuessedTask::kAnswers) return 384;
  if (guess.words.empty()) return 128;
  const double tokens = 1.4 * static_cast<double>(LongText(guess)) + 3;
  for (const int64_t limit : {64, 128, 256}) {
    if (tokens <= limit) return limit;
  }
  return 512;
}

}  // namespace

absl::StatusOr<NewSpec> GuessSpec(const NewSpecOptions& options) {
  DataGuess guess;
  RETURN_IF_ERROR(GuessData(options, &guess));
  NewSpec spec;
  spec.pretrains = guess.task == GuessedTask::kLanguageModel;
  spec.command = guess.task == GuessedTask::kTags ? "tag" : "predict";
  spec.directory =
      JoinPath("runs", NameOfRun(options.save_as.empty() ? options.files[0] : options.save_as));
  int64_t max_tokens = LimitOf(guess);
  ASSIGN_OR_RETURN(const std::string model, ModelPart(options, spec.pretrains, &max_tokens));
  std::vector<std::string> names;
  for (const Column& column : guess.columns) names.push_back(column.Describe());
  if (guess.rows > 0)
    spec.text +=
        Comment(absl::StrCat(guess.rows, guess.task == GuessedTask::kTags ? " sentences" : " rows",
                    names.empty() ? "" : "; columns: ", absl::StrJoin(names, ", ")),
            "# ");
  if (spec.pretrains && !names.empty())
    spec.text += "# No column looks like a label, so the spec pretrains on the texts.\n";
  if (!guess.left_out.empty())
    absl::StrAppend(
        &spec.text, "# Left out, for a test at the end: ", ListNames(guess.left_out), "\n");
  absl::StrAppend(&spec.text, model, TaskPart(guess, max_tokens), DataPart(options, guess),
      "output { directory: ", Quoted(spec.directory), " }\n");
  return spec;
}

}  // namespace cloze
