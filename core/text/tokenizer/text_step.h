// Steps that normalize a whole text before it is cut into words, with offsets into the raw text.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_TEXT_STEP_H_
#define CLOZE_CORE_TEXT_TOKENIZER_TEXT_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace cloze {

// Half-open range.
struct Span {
  int64_t begin = 0, end = 0;
};

// A text that is being normalized.
struct NormalText {
  std::string text;          // valid UTF-8
  bool tracked = false;      // if true, `source` is kept
  std::vector<Span> source;  // the bytes of the raw text that each byte of `text` comes from

  // Starts with a raw text; invalid UTF-8 becomes U+FFFD.
  void Set(absl::string_view raw, bool tracked);

  // Scratch memory.
  std::string next_text;
  std::vector<Span> next_source;
};

// Rewrites a text from left to right. Sources follow Hugging Face's NormalizedString: replacements
// take that of the first code point replaced, insertions that of the previous one.
class TextEdit {
 public:
  explicit TextEdit(NormalText* text) : text_(*text) {}
  ~TextEdit() { Finish(); }
  TextEdit(const TextEdit&) = delete;

  // Keeps the old text up to byte `position`, which does not decrease from call to call.
  void KeepTo(size_t position);
  // Drops the next `bytes` bytes.
  void Drop(size_t bytes);
  // Replaces the next `bytes` bytes by `with`, code point by code point.
  void Replace(size_t bytes, absl::string_view with);
  // Replaces the next `bytes` bytes by `with`, all of which has the source of the last code point.
  void ReplaceWhole(size_t bytes, absl::string_view with);
  // Writes `c`. change > 0: inserts it and consumes nothing. change <= 0: replaces the next
  // 1 - change code points of the old text.
  void Put(char32_t c, int change);

 private:
  void Begin();
  void Finish();
  // Appends `bytes` with the source of old byte `from`.
  void Append(absl::string_view bytes, size_t from);
  size_t SizeAt(size_t at) const;

  NormalText& text_;
  bool changed_ = false;
  size_t at_ = 0;  // bytes of the old text that are done
};

// Replaces each code point by what `append` appends for it.
void ReplaceEach(NormalText* text, absl::FunctionRef<void(char32_t, std::string*)> append);

// A component of a normalizer. Const methods are thread-safe.
class TextStep {
 public:
  virtual ~TextStep() = default;
  virtual void Apply(NormalText* text) const = 0;
};
using TextSteps = std::vector<std::shared_ptr<const TextStep>>;

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

std::shared_ptr<const TextStep> MakeLowercase();
std::shared_ptr<const TextStep> MakeDrop(bool (*drops)(char32_t));  // drops these code points
std::shared_ptr<const TextStep> MakeStrip(bool left, bool right);   // drops white space at the ends
std::shared_ptr<const TextStep> MakeNormalForm(NormalForm form);
// Replaces each `pattern`, which is not empty.
std::shared_ptr<const TextStep> MakeReplace(std::string pattern, std::string content);
// Replaces each run of at least two spaces or, with `spaces`, each run of at least two code points
// of white space and each single \n, \r and \t: the regexes " {2,}" and "\s{2,}|[\n\r\t]".
std::shared_ptr<const TextStep> MakeReplaceRuns(bool spaces, std::string content);
// SentencePiece's table of replacements: a little-endian u32 n, a Darts double array of n bytes and
// a pool of NUL-terminated strings. Returns kData if it is damaged. As in spm_precompiled, a
// grapheme cluster below 6 bytes is replaced as a whole by what its shortest prefix maps to, and
// otherwise code point by code point. Entries of the array that point outside match nothing.
absl::StatusOr<std::shared_ptr<const TextStep>> MakeCharsmap(std::string table);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_TEXT_STEP_H_
