#include "core/text/learning/vocab_trainer.h"

#include <algorithm>
#include <map>

#include "absl/algorithm/container.h"
#include "core/base/file.h"
#include "core/base/hash_map.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "core/text/learning/recipe.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

constexpr int64_t kBatchBytes = 16 << 20;
constexpr size_t kMaxRawWord = 4096;  // bytes; longer words are dropped or cut

// Counts letters that lose their marks, such as "ö", which becomes "o".
class StrippedLetters {
 public:
  // `is_mark`: that of the recipe.
  StrippedLetters(const NormalizerOptions& options, bool (*is_mark)(char32_t))
      : lowercase_(options.lowercase), is_mark_(options.strip_accents ? is_mark : nullptr) {}

  // Adds a word that occurred `count` times.
  void Add(absl::string_view word, int64_t count) {
    if (is_mark_ == nullptr) return;
    bool lost = false;
    std::string letter, kept, base;  // `base`: of the character before a mark of its own
    for (size_t at = 0; at < word.size(); at += CodePointAt(word, at).size) {
      const char32_t c = CodePointAt(word, at).value;
      const std::u32string lower = lowercase_ ? Lowercase(c) : std::u32string(1, c);
      letter = is_mark_(c) ? base : "";
      kept = letter;
      for (const char32_t l : lower) {
        AppendUtf8(l, &letter);
        for (const char32_t part : Decompose(l))
          if (!is_mark_(part)) AppendUtf8(part, &kept);
      }
      base = kept;
      if (c < 0x80 || kept == letter || !HasMark(lower)) continue;
      counts_[{letter, kept}] += count;
      lost = true;
    }
    if (lost) words_ += count;
  }
  void Report(VocabResult* result) const {
    result->stripped_words = words_;
    std::vector<std::pair<int64_t, std::pair<std::string, std::string>>> sorted;
    for (const auto& [letter, count] : counts_) sorted.emplace_back(-count, letter);
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [count, letter] : sorted) result->stripped.push_back(letter);
  }

 private:
  bool HasMark(const std::u32string& letters) const {
    return absl::c_any_of(
        letters, [&](char32_t c) { return absl::c_any_of(Decompose(c), is_mark_); });
  }

  const bool lowercase_;
  bool (*const is_mark_)(char32_t);
  std::map<std::pair<std::string, std::string>, int64_t> counts_;
  int64_t words_ = 0;
};

// Counts of words, with an estimate of the memory that they take.
struct WordCounts {
  HashMap<std::string, int64_t> words;
  int64_t text_bytes = 0;

  void Add(absl::string_view word, int64_t count) {
    const auto [at, is_new] = words.try_emplace(word, 0);
    at->second += count;
    if (is_new) text_bytes += word.size();
  }

  // Removes the words that occurred at most `count` times; returns how many that were, with
  // repetitions.
  int64_t DropRare(int64_t count) {
    WordCounts kept;
    int64_t dropped = 0;
    for (const auto& [word, n] : words) {
      if (n > count) {
        kept.Add(word, n);
      } else {
        dropped += n;
      }
    }
    *this = std::move(kept);
    return dropped;
  }

  int64_t bytes() const {
    return words.size() * 2 * sizeof(std::pair<std::string, int64_t>) + text_bytes;
  }
};

// Counts raw words; each distinct word is normalized once, at the end.
class WordCounter {
 public:
  // Adds the bytes read and the words dropped to *result.
  WordCounter(const Recipe& recipe, int64_t memory_limit, VocabResult* result)
      : recipe_(recipe), limit_(memory_limit), result_(*result) {}

  absl::Status AddTexts(
      TextSource& texts, const std::string& path, absl::FunctionRef<void(int64_t)> progress) {
    std::string text;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, texts.Next(&text));
      if (more && result_.not_utf8.empty()) result_.not_utf8 = NotUtf8(path, texts.line(), text);
      if (more) {
        // In byte-level BPE the line end is a word.
        absl::StrAppend(&batch_, text, texts.end());
        result_.bytes += text.size() + texts.end().size();
      }
      if (batch_.size() >= kBatchBytes || !more) {
        CountBatch();
        progress(stored_ + texts.position());
      }
      if (more) continue;
      stored_ += texts.position();
      return absl::OkStatus();
    }
  }

  // Returns the normalized words, sorted, and forgets all counts. Adds the raw ones to *stripped.
  CountedWords Take(StrippedLetters* stripped) {
    parts_.clear();
    WordCounts normal;
    std::string word;
    for (const auto& [raw, count] : counts_.words) {
      stripped->Add(raw, count);
      word.clear();
      if (recipe_.normalize(raw, &word)) {
        normal.Add(word, count);
      } else {
        result_.dropped_words += count;
      }
    }
    counts_ = {};
    CountedWords words(normal.words.begin(), normal.words.end());
    std::sort(words.begin(), words.end());
    return words;
  }

 private:
  // Words do not cross lines, as Hugging Face reads files.
  void CountLines(absl::string_view lines, WordCounts* counts, int64_t* dropped) const {
    while (!lines.empty()) {
      const absl::string_view line =
          lines.substr(0, std::min(lines.find('\n'), lines.size() - 1) + 1);
      recipe_.text.pre_tokenizer->Split(line, {}, [&](size_t begin, size_t end, bool) {
        absl::string_view word = line.substr(begin, end - begin);
        // Cuts words of any length: a text without white space is one word.
        while (word.size() > kMaxRawWord && recipe_.text.pre_tokenizer->cuts_only_spaces()) {
          const size_t part = Utf8Floor(word, kMaxRawWord);
          counts->Add(word.substr(0, part), 1);
          word.remove_prefix(part);
        }
        if (word.size() > kMaxRawWord) {
          ++*dropped;
        } else {
          counts->Add(word, 1);
        }
      });
      lines.remove_prefix(line.size());
    }
  }

  // Counts the words of batch_, which is whole lines, and clears it. Sums do not depend on how the
  // batch is divided; what is dropped depends on whole batches only.
  void CountBatch() {
    const size_t tasks = std::max(Threads(), 1);
    parts_.resize(tasks);
    std::vector<size_t> cuts = {0};
    for (size_t i = 1; i <= tasks; ++i) {
      const size_t newline = batch_.find('\n', std::max(cuts.back(), batch_.size() * i / tasks));
      cuts.push_back(newline == std::string::npos || i == tasks ? batch_.size() : newline + 1);
    }
    std::vector<int64_t> dropped(tasks, 0);
    ParallelFor(static_cast<int64_t>(tasks), [&](int64_t i) {
      parts_[i] = {};
      const absl::string_view lines(batch_.data() + cuts[i], cuts[i + 1] - cuts[i]);
      CountLines(lines, &parts_[i], &dropped[i]);
    });
    for (size_t i = 0; i < tasks; ++i) {
      for (const auto& [word, count] : parts_[i].words) counts_.Add(word, count);
      result_.dropped_words += dropped[i];
    }
    batch_.clear();
    for (int64_t rare = 1; counts_.bytes() > limit_ && !counts_.words.empty(); rare *= 2)
      result_.dropped_words += counts_.DropRare(rare);
  }

  const Recipe& recipe_;
  const int64_t limit_;
  int64_t stored_ = 0;  // bytes of the files before, as they are stored
  std::string batch_;
  WordCounts counts_;
  std::vector<WordCounts> parts_;
  VocabResult& result_;
};

}  // namespace

absl::StatusOr<VocabResult> TrainVocab(const std::vector<std::string>& files,
    const VocabOptions& options, VocabProgress progress, const OpenTexts& open) {
  ASSIGN_OR_RETURN(const Recipe recipe, options.kind->recipe(options));
  const size_t least = recipe.data.tokens.size() + recipe.bytes;
  if (options.size <= static_cast<int32_t>(least)) {
    return Error(Exit::kSpec, "vocabulary size ", options.size, ": expected more than ", least,
        recipe.bytes > 0 ? ", the special tokens and all bytes" : "");
  }
  int64_t total = 0;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const int64_t size, InputSize(file));
    total += size;
  }
  VocabResult result;
  WordCounter counter(recipe, options.memory_limit, &result);
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::unique_ptr<TextSource> texts, open(file));
    RETURN_IF_ERROR(counter.AddTexts(
        *texts, file, [&](int64_t done) { progress("reading", done, std::max(done, total)); }));
  }
  StrippedLetters stripped(options.normalizer, recipe.is_mark);
  const CountedWords words = counter.Take(&stripped);
  stripped.Report(&result);
  if (words.empty()) {
    return Error(Exit::kData, files.empty() ? "no files" : QuotePath(files[0]),
        ": no words to learn a vocabulary from",
        result.not_utf8.empty() ? "" : absl::StrCat(" (", result.not_utf8, ")"));
  }
  result.distinct_words = words.size();
  for (const auto& [word, count] : words) result.words += count;
  ASSIGN_OR_RETURN(result.data, recipe.learn(words, options, recipe.data, progress));
  return result;
}

}  // namespace cloze
