// `cloze neighbors` and `cloze analogy`: find tokens with similar embeddings.
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/text/files/word_vectors.h"
#include "tools/infer.h"
#include "tools/text_table.h"

namespace cloze {
namespace {

struct NeighborsOptions {
  std::string model;
  std::vector<std::string> words;
  int top = 10;
  bool json = false;
};

// The token embeddings of a model, or word vectors from a file.
class Embeddings {
 public:
  static absl::StatusOr<Embeddings> Open(const std::string& path) {
    Embeddings e;
    if (IsWordVectors(path)) {
      ASSIGN_OR_RETURN(e.vectors_, ReadWordVectors(path));
      e.table_ = View(
          std::as_const(e.vectors_.values).data(), std::ssize(e.vectors_.words), e.vectors_.dim);
      return e;
    }
    ASSIGN_OR_RETURN(e.session_, Session::Open(path, DType::kF32));
    ASSIGN_OR_RETURN(e.tokenizer_, e.session_->TokenizerOr());
    ASSIGN_OR_RETURN(e.table_, e.session_->model().WordEmbeddings());
    return e;
  }

  // Returns the id of a word. kData if it is unknown or several tokens.
  absl::StatusOr<int32_t> IdOf(const std::string& word) const {
    if (tokenizer_ == nullptr) {
      const auto at = vectors_.index.find(word);
      if (at != vectors_.index.end()) return at->second;
      return Error(Exit::kData, "\"", Quote(word), "\" has no vector in the file",
          DidYouMean(word, vectors_.words));
    }
    const Encoding encoding = tokenizer_->Encode(absl::StrCat(" ", word), false);
    if (encoding.ids.size() == 1 && encoding.ids[0] != tokenizer_->special().unk)
      return encoding.ids[0];
    if (const int32_t id = tokenizer_->id(word); id >= 0) return id;
    std::string pieces;
    for (const int32_t id : encoding.ids)
      absl::StrAppend(&pieces, pieces.empty() ? " (it is " : " ", tokenizer_->token(id));
    std::vector<std::string> whole;
    for (int32_t id = 0; id < tokenizer_->vocab_size(); ++id) {
      if (!tokenizer_->is_special(id) && tokenizer_->token(id).compare(0, 2, "##") != 0)
        whole.push_back(tokenizer_->token(id));
    }
    return Error(Exit::kData, "\"", Quote(word), "\" is not one token of the vocabulary",
        Quote(pieces), pieces.empty() ? "" : ")", DidYouMean(word, whole));
  }

  const std::string& token(int32_t id) const {
    return tokenizer_ == nullptr ? vectors_.words[id] : tokenizer_->token(id);
  }
  absl::Span<const float> row(int32_t id) const {
    return {table_.f32(id), static_cast<size_t>(table_.cols)};
  }

  // Returns the `top` tokens with the highest cosine to `v`, except special tokens and `without`.
  OrderedJson Nearest(absl::Span<const float> v, absl::Span<const int32_t> without, int top) const {
    const int64_t ids = tokenizer_ == nullptr ? table_.rows : tokenizer_->vocab_size();
    std::vector<float> cosine(ids);
    std::vector<int32_t> order;
    const double length = Norm(v);
    for (int32_t id = 0; id < ids; ++id) {
      if ((tokenizer_ != nullptr && tokenizer_->is_special(id)) ||
          std::find(without.begin(), without.end(), id) != without.end())
        continue;
      const double lengths = length * Norm(row(id));
      cosine[id] = lengths > 0 ? static_cast<float>(Dot(v, row(id)) / lengths) : 0;
      order.push_back(id);
    }
    const size_t count = std::min<size_t>(top, order.size());
    std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int32_t a, int32_t b) {
      return cosine[a] != cosine[b] ? cosine[a] > cosine[b] : a < b;
    });
    OrderedJson nearest = OrderedJson::array();
    for (size_t i = 0; i < count; ++i) {
      const int32_t id = order[i];
      nearest.push_back({{"token", token(id)}, {"id", id}, {"score", Decimal(cosine[id])}});
    }
    return nearest;
  }

 private:
  static double Norm(absl::Span<const float> a) { return std::sqrt(Dot(a, a)); }

  std::unique_ptr<Session> session_;
  const Tokenizer* tokenizer_ = nullptr;  // null: the words are those of vectors_
  WordVectors vectors_;
  ConstMat table_;  // [vocab, embedding]
};

// Writes a table on a terminal, else a line of JSON.
absl::Status Print(const NeighborsOptions& options, const OrderedJson& answer) {
  if (options.json || ::isatty(1) != 1) return WriteStdout(ToJsonLine(answer) + "\n");
  return WriteTables(TokenTables(answer, StyleOf(1)));
}

absl::Status Neighbors(const NeighborsOptions& options) {
  ASSIGN_OR_RETURN(const Embeddings embeddings, Embeddings::Open(options.model));
  for (const std::string& word : options.words) {
    ASSIGN_OR_RETURN(const int32_t id, embeddings.IdOf(word));
    RETURN_IF_ERROR(Print(
        options, {{"word", word}, {"token", embeddings.token(id)},
                     {"neighbors", embeddings.Nearest(embeddings.row(id), {id}, options.top)}}));
  }
  return absl::OkStatus();
}

absl::Status Analogy(const NeighborsOptions& options) {
  ASSIGN_OR_RETURN(const Embeddings embeddings, Embeddings::Open(options.model));
  std::vector<int32_t> ids;
  for (const std::string& word : options.words) {
    ASSIGN_OR_RETURN(const int32_t id, embeddings.IdOf(word));
    ids.push_back(id);
  }
  std::vector<float> v;
  for (size_t i = 0; i < embeddings.row(ids[0]).size(); ++i)
    v.push_back(embeddings.row(ids[0])[i] - embeddings.row(ids[1])[i] + embeddings.row(ids[2])[i]);
  return Print(
      options, {{"words", options.words}, {"neighbors", embeddings.Nearest(v, ids, options.top)}});
}

void DeclareCommon(Command& command, NeighborsOptions& options) {
  command.Add("--model", &options.model,
      "Model folder, a run or a Hugging Face folder; or word vectors, FILE.vec.",
      {.required = true});
  command.Add("--top", &options.top, "Number of tokens to print.", {.min = 1, .max = 1000});
  command.Add("--json", &options.json, "Print JSON on a terminal too.");
}

}  // namespace

void AddNeighbors(Command& app) {
  const auto declare = [](Command& command, NeighborsOptions& options) {
    DeclareCommon(command, options);
    command.Add(
        "word", &options.words, "Words, each a token of the vocabulary.", {.required = true});
  };
  app.AddCommand<NeighborsOptions>("neighbors",
      "Print the tokens with the embeddings most similar to a word's.",
      "  cloze neighbors --model runs/pretrain_mini paris monday\n"
      "  cloze neighbors --model models/bert --top 20 green\n"
      "  cloze neighbors --model books.vec green",
      declare, Neighbors);
}

void AddAnalogy(Command& app) {
  const auto declare = [](Command& command, NeighborsOptions& options) {
    DeclareCommon(command, options);
    command.Add("word", &options.words, "Three words A B C, each a token of the vocabulary.",
        {.required = true, .count = 3});
  };
  app.AddCommand<NeighborsOptions>("analogy",
      "Complete an analogy: print the tokens nearest to A - B + C.",
      "  cloze analogy --model runs/pretrain_mini paris france italy\n"
      "  cloze analogy --model models/bert --top 3 king man woman",
      declare, Analogy);
}

}  // namespace cloze
