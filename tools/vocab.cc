// `cloze vocab`: learns a vocabulary from text and writes it as a tokenizer folder.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/learning/vocab_trainer.h"
#include "tools/command.h"
#include "tools/output.h"

namespace cloze {
namespace {

struct Options {
  std::vector<std::string> text;
  std::string out;
  VocabOptions vocab;
  int64_t max_length = 512;
  int lowercase = -1, strip_accents = -1;  // -1: not said; lowercase, and accents as lowercase
  bool force = false;
};

// An existing vocabulary is only replaced by the same one: models depend on its ids.
absl::Status CheckUnchanged(const Options& options, const Tokenizer& tokenizer) {
  for (const char* name : {"vocab.txt", "vocab.json"}) {
    const std::string path = JoinPath(options.out, name);
    if (options.force || !PathExists(path)) continue;
    const auto old = LoadTokenizer(options.out, true);
    if (old.ok() && tokenizer.SameIds(**old)) continue;
    return Error(Exit::kCannotCreate, absl::StrCat(QuotePath(path),
                                          ": holds another vocabulary, on which models may depend; "
                                          "name another --out, or --force"));
  }
  return absl::OkStatus();
}

void ShowProgress(int64_t done, int64_t total) {
  if (total > 0 && ::isatty(STDERR_FILENO))
    std::fprintf(stderr, "\rreading %3d %%", static_cast<int>(100.0 * done / total));
}

absl::Status TrainAndSave(const Options& options) {
  ASSIGN_OR_RETURN(const VocabResult result, TrainVocab(options.text, options.vocab, ShowProgress));
  if (::isatty(STDERR_FILENO)) std::fprintf(stderr, "\r             \r");
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
      options.vocab.byte_level ? Tokenizer::CreateBpe(result.tokens, result.merges)
                               : Tokenizer::Create(result.tokens, options.vocab.normalizer));
  RETURN_IF_ERROR(MakeDirectories(options.out));
  RETURN_IF_ERROR(CheckUnchanged(options, *tokenizer));
  RETURN_IF_ERROR(SaveTokenizer(*tokenizer, options.out, options.max_length));
  std::string report = absl::StrCat(QuotePath(options.out), ": ", result.tokens.size(),
      " tokens from ", result.words, " words (", result.distinct_words, " different) in ",
      result.bytes, " bytes\n");
  if (result.dropped_words > 0)
    absl::StrAppend(
        &report, result.dropped_words, " rare words were not counted, to stay within memory\n");
  if (result.tokens.size() > options.vocab.size)
    absl::StrAppend(&report, "more than --size: every frequent character is a token\n");
  if (result.tokens.size() < options.vocab.size)
    absl::StrAppend(&report, "the text yields no more tokens than that\n");
  return WriteStdout(report);
}

absl::Status Vocab(Options options) {
  if (options.vocab.byte_level && (options.lowercase >= 0 || options.strip_accents >= 0)) {
    return UsageError(
        "--kind bpe keeps texts as they are; --lowercase and --strip-accents are for wordpiece");
  }
  options.vocab.normalizer.lowercase = options.lowercase != 0;
  options.vocab.normalizer.strip_accents =
      options.strip_accents < 0 ? options.vocab.normalizer.lowercase : options.strip_accents > 0;
  if (options.out.empty()) return UsageError("--out: a folder expected");
  if (PathExists(options.out) && !IsDirectory(options.out))
    return Error(Exit::kCannotCreate, absl::StrCat(QuotePath(options.out), ": is not a folder"));
  return TrainAndSave(options);
}

}  // namespace

void AddVocab(CLI::App& app, Run* run) {
  CLI::App* command =
      app.add_subcommand("vocab", "Learn a vocabulary from text, WordPiece or byte-level BPE.");
  auto options = std::make_shared<Options>();
  command->add_option("--text", options->text, "Text files.")->required();
  command->add_option("--out", options->out, "Folder to write; made if missing.")->required();
  command
      ->add_option_function<std::string>(
          "--kind", [=](const std::string& kind) { options->vocab.byte_level = kind == "bpe"; },
          "wordpiece (as BERT, default) or bpe (byte-level, as RoBERTa: no text is ever unknown).")
      ->check(CLI::IsMember({"wordpiece", "bpe"}));
  command->add_option("--size", options->vocab.size, "Tokens, special ones included.")
      ->check(CLI::Range(16, 10000000))
      ->capture_default_str();
  command
      ->add_option("--min-count", options->vocab.min_count, "Pairs rarer than this are not merged.")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 60))
      ->capture_default_str();
  command
      ->add_option(
          "--max-length", options->max_length, "Longest sequence that the tokenizer files state.")
      ->check(CLI::Range(int64_t{8}, int64_t{65536}))
      ->capture_default_str();
  AddSwitch(command, "lowercase", "Lower-case texts (default).",
      [=](bool on) { options->lowercase = on; });
  AddSwitch(command, "strip-accents", "Strip accents (default: as --lowercase).",
      [=](bool on) { options->strip_accents = on; });
  command->add_flag("--force", options->force, "Replace another vocabulary.");
  command->callback([=] { *run = [=] { return Vocab(*options); }; });
}

}  // namespace cloze
