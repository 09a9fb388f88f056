// `cloze vectors`: learns word vectors from text and writes them as a .vec file.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "core/tensor/mat.h"
#include "core/text/files/word_vectors.h"
#include "core/vectors/trainer.h"
#include "tasks/console/screen.h"
#include "tools/command.h"
#include "tools/process.h"
#include "tools/texts.h"

namespace cloze {
namespace {

struct VectorsOptions {
  std::vector<std::string> text;
  TextOptions reading;
  std::string out, method = "skipgram";
  CorpusOptions corpus;
  VectorOptions vectors;
  bool blanks = false, force = false;
  std::optional<bool> lowercase;
};

// A live line on a terminal, else a line every ten seconds.
class Report {
 public:
  Report() : screen_(2, ScreenStyleOf(2), false) {}
  void Reading(int64_t done, int64_t total) {
    if (total > 0 && screen_.is_terminal())
      Show(absl::StrFormat("reading %3.0f %%", 100.0 * done / total));
  }
  void Training(const VectorProgress& now) {
    if (start_ < 0) start_ = SteadySeconds();
    loss_ += (now.loss - loss_) * std::max(0.01, 1.0 / static_cast<double>(++batches_));
    if (now.words >= now.total) next_ = 0;  // the last line is always shown
    if (SteadySeconds() < next_) return;
    const double seconds = SteadySeconds() - start_, rate = now.words / std::max(seconds, 1e-3);
    Show(absl::StrFormat("%3.0f %%  %s words/s  loss %.3f  %s left", 100.0 * now.words / now.total,
        FormatCount(rate), loss_, FormatDuration((now.total - now.words) / rate)));
  }
  void Finish() { screen_.Finish(); }

 private:
  void Show(const std::string& line) {
    const double now = SteadySeconds();
    if (now < next_) return;
    next_ = now + (screen_.is_terminal() ? 0.1 : 10);
    if (screen_.is_terminal())
      screen_.DrawLive(line);
    else
      screen_.Print(line);
  }

  Screen screen_;
  double start_ = -1, next_ = 0, loss_ = 0;
  int64_t batches_ = 0;
};

absl::Status Write(
    const Corpus& corpus, const VectorTrainer& trainer, int dim, LineWriter& writer) {
  RETURN_IF_ERROR(writer.Write(absl::StrCat(corpus.words.size(), " ", dim)));
  std::vector<float> vector(dim);
  for (size_t word = 0; word < corpus.words.size(); ++word) {
    trainer.Vector(static_cast<int32_t>(word), vector.data());
    if (!AllFinite(vector))
      return Error(Exit::kInternal, "training diverged (lower --learning-rate)");
    RETURN_IF_ERROR(writer.WriteText(WordVectorLine(corpus.words[word], vector)));
  }
  return absl::OkStatus();
}

absl::Status Vectors(VectorsOptions options) {
  if (options.blanks && options.lowercase.has_value())
    return UsageError(
        "--blanks leaves words as they are: expected no --lowercase and no "
        "--no-lowercase");
  SubwordOptions& subwords = options.vectors.subwords;
  if (subwords.max_n > 0 && subwords.min_n > subwords.max_n)
    return UsageError(
        absl::StrCat("--min-n ", subwords.min_n, ": expected at most --max-n, ", subwords.max_n));
  const bool prints = options.out == "-";
  if (!prints) {
    RETURN_IF_ERROR(CheckExtension(options.out, {"vec", "txt"}));
    RETURN_IF_ERROR(CheckOutput(options.out, options.force));
    RETURN_IF_ERROR(CheckCanCreate(DirectoryOf(options.out)));
  }
  options.vectors.cbow = options.method == "cbow";
  options.corpus.splits_at_space = options.blanks;
  options.corpus.lowercase = options.lowercase.value_or(true);
  const std::atomic<bool>* stop = StopOnSignals();
  Report report;
  ASSIGN_OR_RETURN(const OpenTexts open, TextsOfFiles(options.reading));
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOfTexts(options.text));
  ASSIGN_OR_RETURN(const Corpus corpus,
      ReadCorpus(
          files, options.corpus, [&](int64_t done, int64_t total) { report.Reading(done, total); },
          [&] { return stop->load(); }, open));
  if (!corpus.not_utf8.empty())
    std::fprintf(stderr, "cloze: warning: %s\n", corpus.not_utf8.c_str());
  VectorTrainer trainer(corpus, options.vectors);
  const double start = SteadySeconds();
  VectorProgress last;
  const bool finished = trainer.Run([&](const VectorProgress& now) {
    report.Training(last = now);
    return !stop->load();
  });
  report.Finish();
  if (!finished) return Error(Exit::kInterrupted, "stopped; nothing was written");
  const double seconds = std::max(SteadySeconds() - start, 1e-3);
  RETURN_IF_ERROR(WriteOutput(options.out, options.force,
      [&](LineWriter& writer) { return Write(corpus, trainer, options.vectors.dim, writer); }));
  const std::string summary = absl::StrFormat(
      "%s: %d words of %d dimensions from %d words of text, %s "
      "words/s with %d threads\n",
      prints ? "standard output" : QuotePath(options.out), corpus.words.size(), options.vectors.dim,
      corpus.text.size(), FormatCount(static_cast<double>(last.words) / seconds), Threads());
  if (!prints) return WriteStdout(summary);
  std::fputs(summary.c_str(), stderr);
  return absl::OkStatus();
}

void DeclareTraining(Command& command, VectorOptions& vectors) {
  command.Add("--dim", &vectors.dim, "Dimensions of the vectors.", {.min = 1, .max = 65536});
  command.Add("--window", &vectors.window,
      "Maximum number of neighbours on each side; drawn at random for each word.",
      {.min = 1, .max = 100});
  command.Add("--epochs", &vectors.epochs, "Passes over the text.", {.min = 1, .max = 10000});
  command.Add(
      "--negatives", &vectors.negatives, "Negative samples per target.", {.min = 1, .max = 64});
  command.Add("--learning-rate", &vectors.learning_rate,
      "Initial learning rate; it falls linearly to 0.", {.min = 1e-6, .max = 10});
  command.Add("--subsample", &vectors.subsample,
      "Frequency above which words are left out at random; 0 keeps all.", {.min = 0, .max = 1});
  command.Add(
      "--min-n", &vectors.subwords.min_n, "Minimum length of n-grams.", {.min = 1, .max = 64});
  command.Add("--max-n", &vectors.subwords.max_n,
      "Maximum length of n-grams; 0: whole words only (word2vec).", {.min = 0, .max = 64});
  command.Add("--buckets", &vectors.subwords.buckets, "Number of hash buckets for n-grams.",
      {.min = 1, .max = 1e9});
  command.Add("--seed", &vectors.seed, "Seed of the random numbers.", {.min = 0, .max = 1e15});
}

}  // namespace

void AddVectors(Command& app) {
  const auto declare = [](Command& command, VectorsOptions& options) {
    command.Add("--text", &options.text,
        "Text files in UTF-8, of which a line is a sentence, or .csv, .tsv and .jsonl files; also "
        "compressed (.gz, .xz, .zst), patterns and folders.",
        {.required = true, .type = "FILE"});
    AddTextOptions(command, &options.reading);
    command.Add("--out", &options.out,
        "File to write, for example books.vec; - is standard output.",
        {.required = true, .type = "FILE"});
    command.Add("--method", &options.method,
        "skipgram: predict each neighbour of a word from it. cbow: predict a word from its "
        "neighbours.",
        {.choices = {"skipgram", "cbow"}});
    command.Add("--blanks", &options.blanks,
        "Split the text at white space only, as fastText does. Default: as BERT does, with "
        "punctuation as separate words.");
    command.AddSwitch("lowercase", &options.lowercase,
        "Lower-case texts and strip accents (default).", "Keep case and accents.");
    command.Add("--min-count", &options.corpus.min_count,
        "Minimum count of a word; rarer words are left out.", {.min = 1, .max = 1e9});
    DeclareTraining(command, options.vectors);
    command.Add("--force", &options.force, "Replace --out.");
  };
  app.AddCommand<VectorsOptions>("vectors",
      "Learn word vectors from text, as word2vec and fastText do, and write a .vec file.",
      "  cloze vectors --text books.txt --out books.vec\n"
      "  cloze vectors --text books.txt --method cbow --max-n 0 --dim 256 --out books.vec",
      declare, Vectors);
}

}  // namespace cloze
