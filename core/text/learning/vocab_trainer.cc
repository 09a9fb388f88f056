// Counts words batch by batch, then learns merges from the counts.
#include "core/text/learning/vocab_trainer.h"

#include <algorithm>
#include <utility>

#include "core/base/file.h"
#include "core/base/threads.h"
#include "core/text/learning/merge_learner.h"
#include "core/text/learning/word_counts.h"
#include "core/text/tokenizer/byte_bpe.h"

namespace cloze {
namespace {

constexpr int64_t kBatchBytes = 16 << 20;
constexpr int64_t kMaxWordChars = 100;
constexpr int64_t kMaxRawWord =
    4096;  // bytes; longer ones are not kept, whatever they normalise to
constexpr const char* kSpecialTokens[] = {"<pad>", "<unk>", "<class>", "<sep>", "<mask>"};
constexpr const char* kByteLevelTokens[] = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};

// Counts the words of text as they are written; the normal form is made once for each distinct
// word, at the end.
class WordCounter {
 public:
  explicit WordCounter(const VocabOptions& options)
      : normalizer_(options.normalizer), byte_level_(options.byte_level),
        limit_(options.memory_limit) {}

  absl::Status AddFile(const std::string& path, absl::FunctionRef<void(int64_t)> progress);

  // The normalised words, sorted. Leaves nothing behind.
  std::vector<std::pair<std::string, int64_t>> Take();

  int64_t bytes() const { return bytes_; }
  int64_t dropped() const { return dropped_; }

 private:
  // Counts the words of batch_, which is whole lines.
  void CountBatch();
  void CountPart(absl::string_view part, WordCounts* counts, int64_t* dropped) const;
  // The normal form of a word, or for a byte-level BPE the spelling of its bytes; false when it
  // does not count.
  bool Normalize(absl::string_view raw, std::string* word) const;

  Normalizer normalizer_;
  const bool byte_level_;
  const int64_t limit_;
  std::string batch_;
  WordCounts counts_;
  std::vector<WordCounts> parts_;
  int64_t bytes_ = 0, dropped_ = 0;
};

absl::Status WordCounter::AddFile(
    const std::string& path, absl::FunctionRef<void(int64_t)> progress) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path, kBatchBytes));
  const int64_t before = bytes_;
  std::string line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&line));
    bytes_ = before + reader.position();
    // What ends a line is a word of its own for a byte-level BPE.
    if (more) batch_ += line, batch_ += byte_level_ ? std::string(reader.line_end()) : "\n";
    if (batch_.size() >= kBatchBytes || !more) {
      CountBatch();
      progress(bytes_);
    }
    if (!more) return absl::OkStatus();
  }
}

void WordCounter::CountPart(absl::string_view part, WordCounts* counts, int64_t* dropped) const {
  const auto count = [&](absl::string_view word) {
    if (word.size() > kMaxRawWord) {
      ++*dropped;
    } else {
      counts->Add(word, 1);
    }
  };
  if (!byte_level_) {
    normalizer_.ForEachWord(
        part, [&](size_t begin, size_t end) { count(part.substr(begin, end - begin)); });
    return;
  }
  while (!part.empty()) {  // line by line, as Hugging Face reads files
    const absl::string_view line = part.substr(0, std::min(part.find('\n'), part.size() - 1) + 1);
    ForEachByteWord(
        line, [&](size_t begin, size_t end) { count(line.substr(begin, end - begin)); });
    part.remove_prefix(line.size());
  }
}

bool WordCounter::Normalize(absl::string_view raw, std::string* word) const {
  if (!byte_level_) return normalizer_.NormalizeWord(raw, kMaxWordChars, word);
  word->clear();
  AppendByteSpelling(raw, word);
  return true;
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
    CountPart(
        absl::string_view(batch_).substr(cuts[i], cuts[i + 1] - cuts[i]), &parts_[i], &dropped[i]);
  });
  for (size_t i = 0; i < tasks; ++i) counts_.AddAll(parts_[i]), dropped_ += dropped[i];
  batch_.clear();
  for (int64_t rare = 1; counts_.bytes() > limit_ && counts_.size() > 0; rare *= 2)
    dropped_ += counts_.DropRare(rare);
}

std::vector<std::pair<std::string, int64_t>> WordCounter::Take() {
  parts_.clear();
  WordCounts normal;
  std::string word;
  counts_.ForEach([&](absl::string_view raw, int64_t count) {
    if (Normalize(raw, &word)) {
      normal.Add(word, count);
    } else {
      dropped_ += count;
    }
  });
  counts_ = WordCounts();
  std::vector<std::pair<std::string, int64_t>> words;
  words.reserve(normal.size());
  normal.ForEach(
      [&](absl::string_view w, int64_t count) { words.emplace_back(std::string(w), count); });
  std::sort(words.begin(), words.end());
  return words;
}

}  // namespace

absl::StatusOr<VocabResult> TrainVocab(const std::vector<std::string>& files,
    const VocabOptions& options, absl::FunctionRef<void(int64_t done, int64_t total)> progress) {
  MergeOptions merges = {
      .size = options.size, .min_count = options.min_count, .max_alphabet = options.max_alphabet};
  if (options.byte_level) {
    merges.prefix.clear();
    for (int b = 0; b < 256; ++b) merges.alphabet.push_back(ByteCharacter(static_cast<uint8_t>(b)));
  }
  if (const size_t least = std::size(kSpecialTokens) + merges.alphabet.size();
      options.size <= static_cast<int32_t>(least)) {
    return Error(Exit::kSpec,
        absl::StrCat("vocabulary size ", options.size, ": more than ", least, " expected",
            options.byte_level ? ", the special tokens and all bytes" : ""));
  }
  int64_t total = 0;
  for (const std::string& file : files) {
    if (file == "-") continue;
    ASSIGN_OR_RETURN(const int64_t size, FileSize(file));
    total += size;
  }
  WordCounter counter(options);
  for (const std::string& file : files) {
    RETURN_IF_ERROR(
        counter.AddFile(file, [&](int64_t done) { progress(done, std::max(done, total)); }));
  }
  const auto words = counter.Take();
  VocabResult result;
  result.bytes = counter.bytes(), result.dropped_words = counter.dropped();
  result.distinct_words = words.size();
  for (const auto& [word, count] : words) result.words += count;
  if (words.empty())
    return Error(Exit::kData, absl::StrCat(files.empty() ? "no files" : QuotePath(files[0]),
                                  ": no words to learn a vocabulary from"));
  const auto& special = options.byte_level ? kByteLevelTokens : kSpecialTokens;
  result.tokens.assign(std::begin(special), std::end(special));
  LearnMerges(words, merges, &result.tokens, options.byte_level ? &result.merges : nullptr);
  return result;
}

}  // namespace cloze
