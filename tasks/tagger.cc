#include "tasks/tagger.h"

#include <algorithm>

namespace cloze {
namespace {

// The pieces of each word; a word's first may be <unk>. No word has more than `most`.
std::vector<std::vector<int32_t>> PiecesOf(const Tokenizer& tokenizer, const std::vector<std::string>& words, int64_t most) {
  std::vector<std::vector<int32_t>> pieces(words.size());
  const Encoding e = tokenizer.EncodeWords(words, false);
  for (size_t i = 0; i < e.ids.size(); ++i) {
    auto& word = pieces[e.words[i]];
    if (static_cast<int64_t>(word.size()) < most) word.push_back(e.ids[i]);
  }
  for (auto& word : pieces) {
    if (word.empty()) word.push_back(tokenizer.special().unk);
  }
  return pieces;
}

// Words [begin, end) of a sentence as one query; rows are the first pieces.
struct Window {
  int64_t sentence, begin, end;
};

class Windows {
 public:
  Windows(const Tokenizer& tokenizer, int64_t max_tokens) : tokenizer_(tokenizer), room_(max_tokens - 2) {}

  void AddSentence(int64_t sentence, const std::vector<std::string>& words) {
    const auto pieces = PiecesOf(tokenizer_, words, room_);
    const int64_t n = words.size();
    for (int64_t begin = 0, end = 0; end < n;) {
      int64_t tokens = 0;
      for (end = begin; end < n && tokens + static_cast<int64_t>(pieces[end].size()) <= room_; ++end) tokens += pieces[end].size();
      Emit({sentence, begin, end}, pieces);
      if (end == n) break;
      int64_t next = end;  // half a window back
      for (int64_t back = 0; next > begin + 1 && back + static_cast<int64_t>(pieces[next - 1].size()) <= room_ / 2; --next)
        back += pieces[next - 1].size();
      begin = next;
    }
  }

  const std::vector<Window>& windows() const { return windows_; }
  const std::vector<Query>& queries() const { return queries_; }

 private:
  void Emit(const Window& window, const std::vector<std::vector<int32_t>>& pieces) {
    Query query;
    query.ids.push_back(tokenizer_.special().cls);
    for (int64_t w = window.begin; w < window.end; ++w) {
      query.rows.push_back(static_cast<int32_t>(query.ids.size()));
      query.ids.insert(query.ids.end(), pieces[w].begin(), pieces[w].end());
    }
    query.ids.push_back(tokenizer_.special().sep);
    query.second = query.ids.size();
    windows_.push_back(window);
    queries_.push_back(std::move(query));
  }

  const Tokenizer& tokenizer_;
  int64_t room_;  // pieces of a window, special tokens aside
  std::vector<Window> windows_;
  std::vector<Query> queries_;
};

}  // namespace

absl::StatusOr<std::vector<std::vector<WordTag>>> TagWords(Session& session, absl::Span<const std::vector<std::string>> sentences) {
  RETURN_IF_ERROR(session.Require(HeadKind::kTokenTagging));
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, session.TokenizerOr());
  Windows windows(*tokenizer, session.max_tokens());
  std::vector<std::vector<WordTag>> tags(sentences.size());
  std::vector<std::vector<int64_t>> context(sentences.size());  // of each word, in the window that it was read off
  for (size_t s = 0; s < sentences.size(); ++s) {
    windows.AddSentence(s, sentences[s]);
    tags[s].resize(sentences[s].size());
    context[s].assign(sentences[s].size(), -1);
  }
  RETURN_IF_ERROR(session.Logits(windows.queries(), [&](int64_t q, ConstMat logits) {
    const Window& window = windows.windows()[q];
    std::vector<float> row(logits.cols);
    for (int64_t w = window.begin; w < window.end; ++w) {
      const int64_t mine = std::min(w - window.begin, window.end - 1 - w);
      if (mine <= context[window.sentence][w]) continue;
      context[window.sentence][w] = mine;
      std::copy_n(logits.f32(w - window.begin), logits.cols, row.data());
      Softmax(row.data(), logits.cols);
      const auto best = std::max_element(row.begin(), row.end());
      tags[window.sentence][w] = {static_cast<int>(best - row.begin()), *best};
    }
  }));
  return tags;
}

}  // namespace cloze
