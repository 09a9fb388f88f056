#include "core/vectors/corpus.h"

#include <algorithm>
#include <numeric>

#include "core/base/charset.h"
#include "core/base/file.h"
#include "core/base/hash_map.h"
#include "core/text/tokenizer/pipeline.h"

namespace cloze {
namespace {

constexpr int64_t kMaxSentence = 1000;  // words
constexpr size_t kMaxWordBytes = 400;   // longer words are left out
constexpr absl::string_view kWhiteSpace("\0\t\n\v\f\r ", 7);

// Numbers distinct words in the order of their first occurrence.
class WordIndex {
 public:
  // Returns the number of `word`, a new one if it has none.
  int32_t Of(absl::string_view word) {
    const auto [at, is_new] = numbers_.try_emplace(word, static_cast<int32_t>(words.size()));
    if (is_new) words.emplace_back(word);
    return at->second;
  }

  std::vector<std::string> words;

 private:
  HashMap<std::string, int32_t> numbers_;
};

class CorpusReader {
 public:
  explicit CorpusReader(const CorpusOptions& options) : options_(options) {
    NormalizerOptions normal;
    normal.lowercase = normal.strip_accents = options.lowercase;
    SetBertText(normal, &pipeline_);
  }

  absl::Status AddTexts(TextSource& texts, const std::string& path,
      absl::FunctionRef<void(int64_t)> progress, absl::FunctionRef<bool()> stop) {
    std::string text;
    for (int64_t count = 0;; ++count) {
      ASSIGN_OR_RETURN(const bool more, texts.Next(&text));
      if (!more) break;
      if (corpus_.not_utf8.empty()) corpus_.not_utf8 = NotUtf8(path, texts.line(), text);
      AddSentence(text);
      if (count % 1000 != 0) continue;
      progress(stored_ + texts.position());
      if (stop()) return Error(Exit::kInterrupted, "stopped; nothing was written");
    }
    stored_ += texts.position();
    return absl::OkStatus();
  }

  // Merges words of equal normal form, sorts them and leaves out rare ones.
  Corpus Take() {
    WordIndex normal;
    std::vector<int32_t> number(raw_.words.size());  // of the normal form
    std::string word;
    for (size_t i = 0; i < number.size(); ++i) {
      word = options_.splits_at_space ? raw_.words[i] : "";
      if (!options_.splits_at_space)
        pipeline_.normalizer->Append(raw_.words[i], kMaxWordBytes, &word, nullptr);
      number[i] = normal.Of(word.size() > kMaxWordBytes ? "" : word);
    }
    std::vector<int64_t> counts(normal.words.size());
    for (const int32_t id : corpus_.text) ++counts[number[id]];
    std::vector<int32_t> order(counts.size()), rank(counts.size(), -1);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return counts[a] != counts[b] ? counts[a] > counts[b] : normal.words[a] < normal.words[b];
    });
    for (const int32_t id : order) {
      if (counts[id] < options_.min_count || normal.words[id].empty()) continue;
      rank[id] = static_cast<int32_t>(corpus_.words.size());
      corpus_.words.push_back(normal.words[id]);
      corpus_.counts.push_back(counts[id]);
    }
    for (int32_t& id : number) id = rank[id];
    Renumber(number);
    return std::move(corpus_);
  }

 private:
  void AddSentence(absl::string_view line) {
    int64_t words = 0;
    const auto add = [&](size_t begin, size_t end, bool) {
      corpus_.text.push_back(raw_.Of(line.substr(begin, end - begin)));
      if (++words % kMaxSentence == 0) EndSentence();
    };
    if (options_.splits_at_space) {
      for (size_t end = 0, begin;
           begin = line.find_first_not_of(kWhiteSpace, end), begin < line.size();) {
        end = std::min(line.find_first_of(kWhiteSpace, begin), line.size());
        add(begin, end, false);
      }
    } else {
      pipeline_.pre_tokenizer->Split(line, {.start = 1}, add);
    }
    EndSentence();
  }

  // Ends a sentence unless it is empty: empty lines must take no memory.
  void EndSentence() {
    const int64_t end = std::ssize(corpus_.text);
    if (end > (corpus_.ends.empty() ? 0 : corpus_.ends.back())) corpus_.ends.push_back(end);
  }

  // Replaces each id of the text by number[id], and removes those with -1 and empty sentences.
  void Renumber(const std::vector<int32_t>& number) {
    int64_t kept = 0, from = 0;
    size_t sentences = 0;
    for (const int64_t end : corpus_.ends) {
      const int64_t begin = kept;
      for (; from < end; ++from) {
        const int32_t id = number[corpus_.text[from]];
        if (id >= 0) corpus_.text[kept++] = id;
      }
      if (kept > begin) corpus_.ends[sentences++] = kept;
    }
    corpus_.text.resize(kept);
    corpus_.ends.resize(sentences);
  }

  const CorpusOptions options_;
  Pipeline pipeline_;
  WordIndex raw_;
  Corpus corpus_;
  int64_t stored_ = 0;  // bytes of the files before, as they are stored
};

}  // namespace

absl::StatusOr<Corpus> ReadCorpus(const std::vector<std::string>& files,
    const CorpusOptions& options, absl::FunctionRef<void(int64_t done, int64_t total)> progress,
    absl::FunctionRef<bool()> stop, const OpenTexts& open) {
  int64_t total = 0;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const int64_t size, InputSize(file));
    total += size;
  }
  CorpusReader reader(options);
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::unique_ptr<TextSource> texts, open(file));
    RETURN_IF_ERROR(reader.AddTexts(
        *texts, file, [&](int64_t done) { progress(done, std::max(done, total)); }, stop));
  }
  Corpus corpus = reader.Take();
  if (corpus.words.size() < 2) {
    return Error(Exit::kData, files.empty() ? "no files" : QuotePath(files[0]),
        ": too few words: expected two that occur at least ", options.min_count,
        " times (lower that number)");
  }
  return corpus;
}

}  // namespace cloze
