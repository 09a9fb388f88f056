#include "core/vectors/subwords.h"

#include "absl/strings/str_cat.h"
#include "core/base/hash_map.h"

namespace cloze {

uint32_t FnvHash(absl::string_view bytes) {
  uint32_t hash = 2166136261;
  for (const char c : bytes)
    hash = (hash ^ static_cast<uint32_t>(static_cast<int8_t>(c))) * 16777619;
  return hash;
}

std::vector<int64_t> NgramBuckets(absl::string_view word, const SubwordOptions& options) {
  const std::string text = absl::StrCat("<", word, ">");
  std::vector<size_t> starts;  // of characters
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xC0) != 0x80) starts.push_back(i);
  }
  starts.push_back(text.size());
  const int characters = static_cast<int>(starts.size()) - 1;
  std::vector<int64_t> buckets;
  for (int i = 0; i < characters; ++i) {
    for (int n = options.min_n; n <= options.max_n && i + n <= characters; ++n) {
      if (n == 1 && (i == 0 || i + 1 == characters)) continue;  // "<" and ">"
      const auto ngram = absl::string_view(text).substr(starts[i], starts[i + n] - starts[i]);
      buckets.push_back(FnvHash(ngram) % options.buckets);
    }
  }
  return buckets;
}

SubwordRows::SubwordRows(const std::vector<std::string>& words, const SubwordOptions& options)
    : rows_(std::ssize(words)) {
  HashMap<int64_t, int32_t> row_of;
  for (size_t word = 0; word < words.size(); ++word) {
    list_.push_back(static_cast<int32_t>(word));
    for (const int64_t bucket : NgramBuckets(words[word], options)) {
      const auto [at, fresh] = row_of.emplace(bucket, static_cast<int32_t>(rows_));
      rows_ += fresh ? 1 : 0;
      list_.push_back(at->second);
    }
    starts_.push_back(std::ssize(list_));
  }
}

}  // namespace cloze
