// `cloze vocab`: learns a vocabulary from text and writes it as a tokenizer folder.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/text/vocab_trainer.h"
#include "tools/command.h"
#include "tools/output.h"

namespace cloze {
namespace {

constexpr int64_t kMaxVocabBytes = 1 << 30;

struct Options {
  std::vector<std::string> text;
  std::string out;
  VocabOptions vocab;
  int64_t max_length = 512;
  int strip_accents = -1;  // -1: as lowercase
  bool force = false;
};

std::string VocabText(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) absl::StrAppend(&text, token, "\n");
  return text;
}

// An existing vocabulary is only replaced by the same one: models depend on its ids.
absl::Status CheckUnchanged(const Options& options, const std::vector<std::string>& tokens) {
  const std::string path = JoinPath(options.out, "vocab.txt");
  if (options.force || !PathExists(path)) return absl::OkStatus();
  const absl::StatusOr<std::string> old = ReadFile(path, kMaxVocabBytes);
  if (old.ok() && *old == VocabText(tokens)) return absl::OkStatus();
  return Error(Exit::kCannotCreate,
               absl::StrCat(Quote(path), ": holds another vocabulary, on which models may depend; name another --out, or --force"));
}

void ShowProgress(int64_t done, int64_t total) {
  if (total > 0 && ::isatty(STDERR_FILENO)) std::fprintf(stderr, "\rreading %3d %%", static_cast<int>(100.0 * done / total));
}

absl::Status TrainAndSave(const Options& options) {
  ASSIGN_OR_RETURN(const VocabResult result, TrainVocab(options.text, options.vocab, ShowProgress));
  if (::isatty(STDERR_FILENO)) std::fprintf(stderr, "\r             \r");
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Create(result.tokens, options.vocab.normalizer));
  RETURN_IF_ERROR(MakeDirectories(options.out));
  RETURN_IF_ERROR(CheckUnchanged(options, result.tokens));
  RETURN_IF_ERROR(tokenizer->Save(options.out, options.max_length));
  std::string report = absl::StrCat(Quote(options.out), ": ", result.tokens.size(), " tokens from ", result.words, " words (",
                                    result.distinct_words, " different) in ", result.bytes, " bytes\n");
  if (result.dropped_words > 0) absl::StrAppend(&report, result.dropped_words, " rare words were not counted, to stay within memory\n");
  if (result.tokens.size() > options.vocab.size) absl::StrAppend(&report, "more than --size: every frequent character is a token\n");
  if (result.tokens.size() < options.vocab.size) absl::StrAppend(&report, "the text yields no more tokens than that\n");
  return WriteStdout(report);
}

absl::Status Vocab(Options options) {
  options.vocab.normalizer.strip_accents = options.strip_accents < 0 ? options.vocab.normalizer.lowercase : options.strip_accents > 0;
  if (options.out.empty()) return UsageError("--out: a folder expected");
  if (PathExists(options.out) && !IsDirectory(options.out))
    return Error(Exit::kCannotCreate, absl::StrCat(Quote(options.out), ": is not a folder"));
  return TrainAndSave(options);
}

}  // namespace

void AddVocab(CLI::App& app, Run* run) {
  CLI::App* command = app.add_subcommand("vocab", "Learn a WordPiece vocabulary from text.");
  auto options = std::make_shared<Options>();
  command->add_option("--text", options->text, "Text files.")->required();
  command->add_option("--out", options->out, "Folder to write; made if missing.")->required();
  command->add_option("--size", options->vocab.size, "Tokens, special ones included.")
      ->check(CLI::Range(16, 10000000))
      ->capture_default_str();
  command->add_option("--min-count", options->vocab.min_count, "Pairs rarer than this are not merged.")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 60))
      ->capture_default_str();
  command->add_option("--max-length", options->max_length, "Longest sequence that the tokenizer files state.")
      ->check(CLI::Range(int64_t{8}, int64_t{65536}))
      ->capture_default_str();
  AddSwitch(command, "lowercase", "Lower-case texts (default).", [=](bool on) { options->vocab.normalizer.lowercase = on; });
  AddSwitch(command, "strip-accents", "Strip accents (default: as --lowercase).", [=](bool on) { options->strip_accents = on; });
  command->add_flag("--force", options->force, "Replace another vocabulary.");
  command->callback([=] { *run = [=] { return Vocab(*options); }; });
}

}  // namespace cloze
