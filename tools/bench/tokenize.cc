// `cloze bench tokenize`: times learning a WordPiece vocabulary, and text to ids.
#include <algorithm>
#include <cmath>

#include "core/base/file.h"
#include "core/base/philox.h"
#include "core/base/threads.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/learning/vocab_trainer.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tools/bench/bench.h"
#include "tools/process.h"

namespace cloze::bench {
namespace {

constexpr int64_t kLines = 8192;  // in one call of the peers

// Returns lines of fifteen to sixty words of two to nine letters, with Zipf frequencies.
std::vector<std::string> MadeUpLines(int64_t bytes) {
  constexpr int kWords = 60000;
  const Philox philox(1, Purpose::kShuffle);
  std::vector<std::string> words(kWords), lines;
  for (int w = 0; w < kWords; ++w) {
    const Philox::Words a = philox(w, 0, 0), b = philox(w, 1, 0), c = philox(w, 2, 0);
    const int letters = 2 + Philox::Below(a[0], 3) + Philox::Below(a[1], 6) * std::min(1, w / 50);
    for (int i = 0; i < letters; ++i)
      words[w] += (i % 2 == w % 2 ? "aeiouaeo" : "tnshrdlc")[(i < 4 ? b[i] : c[i % 4] + i) % 8];
  }
  for (uint64_t line = 0; bytes > 0; ++line) {
    std::string text;
    const int count = 15 + Philox::Below(philox(line, 0, 1)[0], 46);
    for (int i = 0; i < count; ++i) {
      const double u = Philox::Uniform(philox(line, i, 2)[0]);
      absl::StrAppend(&text, i > 0 ? " " : "",
          words[static_cast<int>(std::pow(double{kWords}, u)) - 1], i + 1 == count ? "." : "");
    }
    bytes -= text.size() + 1;
    lines.push_back(std::move(text));
  }
  return lines;
}

// Returns the lines with text in the first `bytes` bytes of a file.
absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path, int64_t bytes) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path));
  std::vector<std::string> lines;
  for (std::string line; reader.position() < bytes;) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&line));
    if (!more) break;
    if (line.find_first_not_of(" \t\r\v\f") != std::string::npos) lines.push_back(line);
  }
  if (lines.empty()) return Error(Exit::kData, QuotePath(path), ": contains no text");
  return lines;
}

int64_t EncodeAll(const Tokenizer& tokenizer, const std::vector<std::string>& lines) {
  std::vector<int64_t> tokens((lines.size() + 255) / 256);
  ParallelChunks(lines.size(), 256, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> ids;
    for (int64_t i = begin; i < end; ++i) {
      ids.assign(1, tokenizer.special().cls);
      tokenizer.AppendIds(lines[i], &ids);
      ids.push_back(tokenizer.special().sep);
      tokens[begin / 256] += ids.size();
    }
  });
  int64_t sum = 0;
  for (const int64_t n : tokens) sum += n;
  return sum;
}

absl::Status WriteLine(
    const Options& o, Line line, const Timing& timing, double tokens, double bytes) {
  line.AddTiming(timing, tokens)
      .Add("mb", bytes / 1e6)
      .Add("mb_per_s", bytes / 1e3 / timing.Median());
  return line.AddText("text", o.text.empty() ? "made up" : "file")
      .Add("share_of_peak", std::nan(""))
      .Write();
}

absl::Status TimeTokenizer(const Options& o, const Tokenizer& tokenizer,
    const std::vector<std::string>& lines, size_t bytes) {
  const int all = Threads();
  const std::string config = absl::StrCat("v", tokenizer.vocab_size());
  for (const int threads : all > 1 ? std::vector<int>{1, all} : std::vector<int>{1}) {
    SetThreads(threads);
    int64_t tokens = 0;
    const Timing timing =
        TimeSteps([&](int) { tokens = EncodeAll(tokenizer, lines); }, std::max(5, o.steps), 1);
    RETURN_IF_ERROR(
        WriteLine(o, Line(o, "tokenize", "", config, kLines, 0), timing, tokens, bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Tokenize(const Options& o) {
  const auto bytes = static_cast<int64_t>(o.megabytes * 1e6);
  std::vector<std::string> lines;
  if (o.text.empty()) {
    lines = MadeUpLines(bytes);
  } else {
    ASSIGN_OR_RETURN(lines, ReadLines(o.text, bytes));
  }
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  if (!o.tokenizer.empty()) {
    ASSIGN_OR_RETURN(const auto tokenizer, LoadTokenizer(o.tokenizer, true));
    return TimeTokenizer(o, *tokenizer, lines, text.size());
  }
  ASSIGN_OR_RETURN(const ScratchFolder folder, ScratchFolder::Create());
  const std::string path = JoinPath(folder.path(), "text");
  RETURN_IF_ERROR(WriteNewFile(path, text));
  absl::StatusOr<VocabResult> result;
  for (const int vocab : o.vocab > 0 ? std::vector<int>{o.vocab} : std::vector<int>{8192, 30522}) {
    VocabOptions options;
    options.size = vocab;
    const Timing timing = TimeSteps(
        [&](int) { result = TrainVocab({path}, options, [](const char*, int64_t, int64_t) {}); },
        std::max(5, o.steps), 0);
    RETURN_IF_ERROR(result.status());
    RETURN_IF_ERROR(
        WriteLine(o, Line(o, "wordpiece_train", "", absl::StrCat("v", vocab), lines.size(), 0),
            timing, 0, text.size()));
  }
  ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Create({.tokens = result->data.tokens}));
  return TimeTokenizer(o, *tokenizer, lines, text.size());
}

}  // namespace cloze::bench
