// `cloze vocab`: learns a vocabulary from text and writes it as a tokenizer folder.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/learning/vocab_trainer.h"
#include "tools/command.h"
#include "tools/process.h"
#include "tools/texts.h"

namespace cloze {
namespace {

struct VocabCommandOptions {
  std::vector<std::string> text;
  TextOptions reading;
  std::string out, kind = "wordpiece";
  VocabOptions vocab;
  int64_t max_length = 512;
  std::optional<bool> lowercase, strip_accents;
  bool force = false;
};

// Refuses to replace a different vocabulary, because models depend on its ids.
absl::Status CheckUnchanged(const VocabCommandOptions& options, const Tokenizer& tokenizer) {
  for (const char* name : {"vocab.txt", "vocab.json", "tokenizer.json"}) {
    const std::string path = JoinPath(options.out, name);
    if (options.force || !PathExists(path)) continue;
    const auto old = LoadTokenizer(options.out, true);
    if (old.ok() && tokenizer.SameIds(**old)) continue;
    return Error(Exit::kCannotCreate, QuotePath(path),
        ": is a different vocabulary, on which models may depend "
        "(choose another --out, or use --force)");
  }
  return absl::OkStatus();
}

// Says which letters the normalizer changes: "accents stripped: ö→o, é→e (12 % of words)".
std::string DescribeStripped(const VocabResult& result) {
  constexpr size_t kMaxLetters = 5;
  if (result.stripped.empty()) return "";
  std::string letters;
  for (size_t i = 0; i < std::min(kMaxLetters, result.stripped.size()); ++i) {
    const auto& [letter, kept] = result.stripped[i];
    absl::StrAppend(&letters, i > 0 ? ", " : "", Quote(letter), "→", Quote(kept));
  }
  if (result.stripped.size() > kMaxLetters)
    absl::StrAppend(&letters, " and ", result.stripped.size() - kMaxLetters, " more");
  const double percent = 100.0 * result.stripped_words / std::max<int64_t>(result.words, 1);
  return absl::StrFormat("accents stripped: %s (%.*f %% of words); --no-strip-accents keeps them\n",
      letters, percent < 1 ? 2 : 0, percent);
}

// Removes the vocabulary files of an older tokenizer of another kind, which contradict the new one.
absl::Status RemoveOldFiles(const VocabCommandOptions& options, const Tokenizer& tokenizer) {
  for (const char* name : OtherVocabFiles(tokenizer)) {
    const std::string path = JoinPath(options.out, name);
    if (PathExists(path) && std::remove(path.c_str()) != 0)
      return Error(Exit::kCannotCreate, QuotePath(path), ": cannot remove the old file");
  }
  return absl::OkStatus();
}

void ShowProgress(const char* stage, int64_t done, int64_t total) {
  if (total > 0 && ::isatty(STDERR_FILENO))
    std::fprintf(stderr, "\r%-8s %3d %%", stage, static_cast<int>(100.0 * done / total));
}

absl::Status TrainAndSave(const VocabCommandOptions& options) {
  RETURN_IF_ERROR(CheckCanCreate(options.out));
  ASSIGN_OR_RETURN(const OpenTexts open, TextsOfFiles(options.reading));
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOfTexts(options.text));
  ASSIGN_OR_RETURN(const VocabResult result, TrainVocab(files, options.vocab, ShowProgress, open));
  if (::isatty(STDERR_FILENO)) std::fprintf(stderr, "\r              \r");
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Create(result.data));
  RETURN_IF_ERROR(MakeDirectories(options.out));
  RETURN_IF_ERROR(CheckUnchanged(options, *tokenizer));
  RETURN_IF_ERROR(SaveTokenizer(*tokenizer, options.out, options.max_length));
  RETURN_IF_ERROR(RemoveOldFiles(options, *tokenizer));
  std::string report = absl::StrCat(QuotePath(options.out), ": ", result.data.tokens.size(),
      " tokens from ", result.words, " words (", result.distinct_words, " distinct) in ",
      result.bytes, " bytes\n");
  if (!result.not_utf8.empty())
    std::fprintf(stderr, "cloze: warning: %s\n", result.not_utf8.c_str());
  if (result.dropped_words > 0)
    absl::StrAppend(&report, result.dropped_words,
        " words were left out: too long, or too rare for the limit on memory\n");
  report += DescribeStripped(result);
  if (result.data.tokens.size() > options.vocab.size)
    absl::StrAppend(&report, "more than --size, because every frequent character is a token\n");
  if (result.data.tokens.size() < options.vocab.size)
    absl::StrAppend(&report, "fewer than --size, because the text yields no more tokens\n");
  return WriteStdout(report);
}

absl::Status Vocab(VocabCommandOptions options) {
  RETURN_IF_ERROR(CheckFolderName(options.out));
  options.vocab.kind = *absl::c_find_if(
      kVocabKinds, [&](const VocabKind* kind) { return options.kind == kind->name; });
  const std::optional<bool> lowercase = options.vocab.kind->lowercase;
  if (!lowercase && (options.lowercase || options.strip_accents)) {
    return UsageError(absl::StrCat("--lowercase and --strip-accents cannot be used with --kind ",
        options.kind, ", which does not change texts"));
  }
  options.vocab.normalizer.lowercase = options.lowercase.value_or(lowercase.value_or(true));
  options.vocab.normalizer.strip_accents =
      options.strip_accents.value_or(options.vocab.normalizer.lowercase);
  if (options.out.empty()) return UsageError("--out: expected a folder");
  if (PathExists(JoinPath(options.out, "config.json")))
    return Error(Exit::kCannotCreate, QuotePath(options.out),
        ": holds a model, which has a vocabulary (choose another --out)");
  return TrainAndSave(options);
}

}  // namespace

void AddVocab(Command& app) {
  const auto declare = [](Command& command, VocabCommandOptions& options) {
    command.Add("--text", &options.text,
        "Text files in UTF-8, or .csv, .tsv and .jsonl files; also compressed (.gz, .xz, .zst), "
        "patterns and folders.",
        {.required = true, .type = "FILE"});
    AddTextOptions(command, &options.reading);
    command.Add("--out", &options.out, "Folder to write; created if missing.",
        {.required = true, .type = "FOLDER"});
    std::vector<std::string> kinds, help;
    for (const VocabKind* kind : kVocabKinds) {
      kinds.push_back(kind->name);
      help.push_back(absl::StrCat(kind->name, ": ", kind->help, "."));
    }
    command.Add("--kind", &options.kind, absl::StrJoin(help, " "), {.choices = kinds});
    command.Add("--size", &options.vocab.size,
        "Size of the vocabulary in tokens, special tokens included.", {.min = 16, .max = 10000000});
    command.Add("--min-count", &options.vocab.min_count,
        "Minimum count of a pair that is merged, or of a piece (unigram).", {.min = 1, .max = 1e9});
    command.Add("--max-length", &options.max_length,
        "Longest sequence in tokens, for other programs that read the tokenizer.",
        {.min = 8, .max = 65536});
    command.AddSwitch("lowercase", &options.lowercase,
        "Lower-case texts (wordpiece: default; bpe keeps case).", "Keep case (unigram: default).");
    command.AddSwitch("strip-accents", &options.strip_accents,
        "Strip accents (default with --lowercase; bpe keeps them).", "Keep accents.");
    command.Add("--force", &options.force, "Replace a different vocabulary in --out.");
  };
  app.AddCommand<VocabCommandOptions>("vocab",
      "Learn a vocabulary from text, and write it as a tokenizer folder.",
      "  cloze vocab --text corpus.txt --size 8192 --out vocab\n"
      "  cloze vocab --text tickets.csv --text-field Subject Body --out vocab\n"
      "  cloze vocab --text corpus.txt --kind bpe --out vocab\n"
      "  cloze vocab --text corpus.txt --kind unigram --size 16384 --out vocab",
      declare, Vocab);
}

}  // namespace cloze
