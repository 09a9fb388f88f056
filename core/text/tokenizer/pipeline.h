// The stages of a tokenizer. Text between added tokens is cut into words, each word is normalised
// and split into subwords, and the special tokens are put around the result.
//
// Words are cut from the raw text, where their normal form would be cut. So the ids of a word can
// be cached by its raw bytes, and only words that are not cached are normalised.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_PIPELINE_H_
#define CLOZE_CORE_TEXT_TOKENIZER_PIPELINE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace cloze {

// Receives a word at bytes [begin, end) of a raw text. With `prefixed`, the pre-tokenizer's prefix
// is put in front of its normal form; such a word may have no bytes.
using WordSink = absl::FunctionRef<void(size_t begin, size_t end, bool prefixed)>;

// A token and the bytes of the normalised word that it covers.
struct Piece {
  int32_t id = 0;
  int32_t begin = 0, end = 0;
};

// Const methods of all stages are thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Appends the normal form of a raw word to *out. May stop when *out exceeds `max_bytes`. If
  // `source` is given, resizes it to out->size(), each new element being the index of the code
  // point in `raw` that the byte comes from.
  virtual void Append(absl::string_view raw, size_t max_bytes, std::string* out,
      std::vector<int32_t>* source) const = 0;
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Calls `sink` for each word of `text` in order. `given` says that the user has split the text
  // into words already.
  virtual void Split(absl::string_view text, bool given, WordSink sink) const = 0;
  virtual absl::string_view prefix() const { return ""; }
};

class SubwordModel {
 public:
  virtual ~SubwordModel() = default;
  // Sets *pieces to the subwords of a normalised word.
  virtual void Split(absl::string_view word, std::vector<Piece>* pieces) const = 0;
  // Normalised words with more bytes have the same pieces, whatever they are.
  virtual size_t max_word_bytes() const { return std::numeric_limits<size_t>::max(); }
  // True if `token` continues the word of the token before it.
  virtual bool ContinuesWord(absl::string_view token) const = 0;
  // Appends what `token` adds to a decoded text; not always valid UTF-8.
  virtual void AppendDecoded(absl::string_view token, std::string* text) const = 0;
  // Returns `token` as shown to people; not always valid UTF-8.
  virtual std::string Show(absl::string_view token) const { return std::string(token); }
};

// The tokens around and between texts, and the spans of tokens that hold blanks.
struct PostProcessor {
  struct Item {
    int32_t id = -1;   // a special token, or
    int text = -1;     // the first (0) or second (1) text
    int32_t type = 0;  // token type id
  };
  std::vector<Item> single, pair;
  bool trims_spans = false;        // spans leave out the blanks around a token, ...
  bool keeps_first_blank = false;  // ... but not a blank at the start of the text
};

struct Pipeline {
  std::unique_ptr<const Normalizer> normalizer;
  std::unique_ptr<const PreTokenizer> pre_tokenizer;  // may refer to the normaliser
  std::unique_ptr<const SubwordModel> model;
  PostProcessor post;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_PIPELINE_H_
