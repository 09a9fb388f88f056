#include "tasks/inference/tagger.h"

#include <algorithm>

namespace cloze {
namespace {

constexpr int64_t kMostLogits = int64_t{1} << 28;  // held at once: 1 GB

// A window of a sentence in its query.
struct Place {
  int64_t sentence, first_word;
};

}  // namespace

absl::StatusOr<std::vector<std::vector<WordTag>>> TagWords(Session& session,
    const TagDecoder& decoder, absl::Span<const std::vector<std::string>> sentences,
    WindowCounts* counts) {
  RETURN_IF_ERROR(session.Require(HeadKind::kTokenTagging));
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, session.TokenizerOr());
  const int64_t window = session.config().window, most = session.max_tokens();
  const int64_t max_tokens = window > 0 ? std::min(window, most) : most;
  CLOZE_CHECK(max_tokens >= 3);  // as every config has it: a word between two special tokens
  const int64_t labels = session.config().labels.size();
  std::vector<std::vector<WordTag>> tags;
  for (size_t begin = 0, end; begin < sentences.size(); begin = end) {
    std::vector<Place> places;
    std::vector<Query> queries;
    std::vector<int64_t> first = {0};  // word of each sentence
    for (end = begin; end < sentences.size(); ++end) {
      const int64_t words = sentences[end].size();
      if (end > begin && (first.back() + words) * labels > kMostLogits) break;
      first.push_back(first.back() + words);
      for (Window& w :
          CutIntoWindows(*tokenizer, sentences[end], max_tokens, counts, Overlap::kHalf)) {
        const int64_t length = w.ids.size();
        places.push_back({static_cast<int64_t>(end - begin), w.first_word});
        queries.push_back({std::move(w.ids), length, std::move(w.rows)});
      }
    }
    std::vector<float> logits(first.back() * labels);
    RETURN_IF_ERROR(session.Logits(queries, [&](int64_t q, ConstMat rows) {
      const int64_t word = first[places[q].sentence] + places[q].first_word;
      for (int64_t i = 0; i < rows.rows; ++i)
        std::copy_n(rows.f32(i), labels, logits.data() + (word + i) * labels);
    }));
    for (size_t s = 0; s + 1 < first.size(); ++s) {
      tags.push_back(
          decoder.Decode(View(static_cast<const float*>(logits.data()) + first[s] * labels,
              first[s + 1] - first[s], labels)));
    }
  }
  return tags;
}

}  // namespace cloze
