// Unicode normal forms, code point by code point, as the offsets of Hugging Face's tokenizers need.
#include <algorithm>

#include "core/base/text.h"
#include "core/text/tokenizer/text_step.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

// A code point, and what it changes: see TextEdit::Put.
struct Change {
  char32_t value;
  int change;
  int combining;  // its canonical combining class
};

class NormalFormStep final : public TextStep {
 public:
  explicit NormalFormStep(NormalForm form)
      : compat_(form == NormalForm::kNfkc || form == NormalForm::kNfkd),
        composes_(form == NormalForm::kNfc || form == NormalForm::kNfkc),
        stable_(form == NormalForm::kNfc ? 0x300 : 0x80) {}

  void Apply(NormalText* text) const override;

 private:
  // Appends the decomposition of a code point.
  void Decompose(char32_t c, std::vector<Change>* all) const;

  const bool compat_, composes_;
  const char32_t stable_;  // code points below stay as they are, unless a later one follows
};

void NormalFormStep::Decompose(char32_t c, std::vector<Change>* all) const {
  const std::u32string parts = cloze::Decompose(c, compat_);
  for (const char32_t& part : parts)
    all->push_back({part, &part != parts.data(), CombiningClass(part)});
}

// Sorts the marks after each starter by their classes.
void OrderMarks(std::vector<Change>* all) {
  const auto starts = [](const Change& c) { return c.combining == 0; };
  for (auto begin = all->begin(); begin != all->end();) {
    const auto end = std::find_if(begin, all->end(), starts);
    std::stable_sort(
        begin, end, [](const Change& a, const Change& b) { return a.combining < b.combining; });
    begin = std::find_if_not(end, all->end(), starts);
  }
}

// The canonical composition algorithm (UAX 15, D117).
void ComposeAll(std::vector<Change>* all) {
  size_t size = 0, starter = std::string::npos;
  int last = -1;  // combining class of the code point before, if one is after the starter
  for (const Change& c : std::vector<Change>(*all)) {
    const bool blocked = last >= c.combining;
    const char32_t joined =
        starter == std::string::npos || blocked ? 0 : Compose((*all)[starter].value, c.value);
    if (joined != 0) {
      (*all)[starter].value = joined;
      (*all)[starter].change += c.change - 1;
      continue;
    }
    last = c.combining == 0 ? -1 : c.combining;
    if (c.combining == 0) starter = size;
    (*all)[size++] = c;
  }
  all->resize(size);
}

void NormalFormStep::Apply(NormalText* text) const {
  const std::string& old = text->text;
  TextEdit edit(text);
  std::vector<Change> all;
  for (size_t at = 0, before = 0; at < old.size();) {  // `before`: the code point before `at`
    CodePoint c = CodePointAt(old, at);
    if (c.value < stable_) {
      before = at;
      at += c.size;
      continue;
    }
    all.clear();
    edit.KeepTo(before);
    while (before < at) {
      Decompose(CodePointAt(old, before).value, &all);
      before += CodePointAt(old, before).size;
    }
    for (; at < old.size() && (c = CodePointAt(old, at)).value >= stable_; at += c.size)
      Decompose(c.value, &all);
    OrderMarks(&all);
    if (composes_) ComposeAll(&all);
    for (const Change& change : all) edit.Put(change.value, change.change);
    before = at;
  }
}

}  // namespace

std::shared_ptr<const TextStep> MakeNormalForm(NormalForm form) {
  return std::make_shared<NormalFormStep>(form);
}

}  // namespace cloze
