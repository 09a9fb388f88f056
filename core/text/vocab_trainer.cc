// Counts words batch by batch, then learns merges from the counts.
#include "core/text/vocab_trainer.h"

#include <algorithm>
#include <utility>

#include "core/base/file.h"
#include "core/base/threads.h"
#include "core/text/merge_learner.h"
#include "core/text/word_counts.h"

namespace cloze {
namespace {

constexpr int64_t kBatchBytes = 16 << 20;
constexpr int64_t kMaxWordChars = 100;
constexpr int64_t kMaxRawWord = 4096;  // bytes; longer ones are not kept, whatever they normalise to
constexpr const char* kSpecialTokens[] = {"<pad>", "<unk>", "<class>", "<sep>", "<mask>"};

// Counts the words of text as they are written; the normal form is made once for each distinct word, at the end.
class WordCounter {
 public:
  explicit WordCounter(const VocabOptions& options) : normalizer_(options.normalizer), limit_(options.memory_limit) {}

  absl::Status AddFile(const std::string& path, absl::FunctionRef<void(int64_t)> progress);

  // The normalised words, sorted. Leaves nothing behind.
  std::vector<std::pair<std::string, int64_t>> Take();

  int64_t bytes() const { return bytes_; }
  int64_t dropped() const { return dropped_; }

 private:
  // Counts the words of batch_, which is whole lines.
  void CountBatch();
  void CountPart(absl::string_view part, WordCounts* counts, int64_t* dropped) const;

  Normalizer normalizer_;
  const int64_t limit_;
  std::string batch_;
  WordCounts counts_;
  std::vector<WordCounts> parts_;
  int64_t bytes_ = 0, dropped_ = 0;
};

absl::Status WordCounter::AddFile(const std::string& path, absl::FunctionRef<void(int64_t)> progress) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path, kBatchBytes));
  const int64_t before = bytes_;
  std::string line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&line));
    bytes_ = before + reader.position();
    if (more) batch_ += line, batch_ += '\n';
    if (batch_.size() >= kBatchBytes || !more) {
      CountBatch();
      progress(bytes_);
    }
    if (!more) return absl::OkStatus();
  }
}

void WordCounter::CountPart(absl::string_view part, WordCounts* counts, int64_t* dropped) const {
  normalizer_.ForEachWord(part, [&](size_t begin, size_t end) {
    if (end - begin > kMaxRawWord) {
      ++*dropped;
    } else {
      counts->Add(part.substr(begin, end - begin), 1);
    }
  });
}

void WordCounter::CountBatch() {
  // Sums do not depend on how the batch is divided; what is dropped depends on whole batches only.
  const size_t tasks = std::max(Threads(), 1);
  parts_.resize(tasks);
  std::vector<size_t> cuts = {0};
  for (size_t i = 1; i <= tasks; ++i) {
    const size_t newline = batch_.find('\n', std::max(cuts.back(), batch_.size() * i / tasks));
    cuts.push_back(newline == std::string::npos || i == tasks ? batch_.size() : newline + 1);
  }
  std::vector<int64_t> dropped(tasks, 0);
  ParallelFor(static_cast<int64_t>(tasks), [&](int64_t i) {
    parts_[i].Clear();
    CountPart(absl::string_view(batch_).substr(cuts[i], cuts[i + 1] - cuts[i]), &parts_[i], &dropped[i]);
  });
  for (size_t i = 0; i < tasks; ++i) counts_.AddAll(parts_[i]), dropped_ += dropped[i];
  batch_.clear();
  for (int64_t rare = 1; counts_.bytes() > limit_ && counts_.size() > 0; rare *= 2) dropped_ += counts_.DropRare(rare);
}

std::vector<std::pair<std::string, int64_t>> WordCounter::Take() {
  parts_.clear();
  WordCounts normal;
  std::string word;
  counts_.ForEach([&](absl::string_view raw, int64_t count) {
    if (normalizer_.NormalizeWord(raw, kMaxWordChars, &word)) {
      normal.Add(word, count);
    } else {
      dropped_ += count;
    }
  });
  counts_ = WordCounts();
  std::vector<std::pair<std::string, int64_t>> words;
  words.reserve(normal.size());
  normal.ForEach([&](absl::string_view w, int64_t count) { words.emplace_back(std::string(w), count); });
  std::sort(words.begin(), words.end());
  return words;
}

}  // namespace

absl::StatusOr<VocabResult> TrainVocab(const std::vector<std::string>& files, const VocabOptions& options,
                                       absl::FunctionRef<void(int64_t done, int64_t total)> progress) {
  if (options.size <= static_cast<int32_t>(std::size(kSpecialTokens))) {
    return Error(Exit::kSpec, absl::StrCat("vocabulary size ", options.size, ": more than ", std::size(kSpecialTokens), " expected"));
  }
  int64_t total = 0;
  for (const std::string& file : files) {
    if (file == "-") continue;
    ASSIGN_OR_RETURN(const int64_t size, FileSize(file));
    total += size;
  }
  WordCounter counter(options);
  for (const std::string& file : files) {
    RETURN_IF_ERROR(counter.AddFile(file, [&](int64_t done) { progress(done, std::max(done, total)); }));
  }
  const auto words = counter.Take();
  VocabResult result;
  result.bytes = counter.bytes(), result.dropped_words = counter.dropped();
  result.distinct_words = words.size();
  for (const auto& [word, count] : words) result.words += count;
  if (words.empty())
    return Error(Exit::kData, absl::StrCat(files.empty() ? "no files" : Quote(files[0]), ": no words to learn a vocabulary from"));
  result.tokens.assign(std::begin(kSpecialTokens), std::end(kSpecialTokens));
  LearnMerges(words, {options.size, options.min_count, options.max_alphabet}, &result.tokens);
  return result;
}

}  // namespace cloze
