// Tags of words: the span schemes BIO (IOB2), IOB1, IOBES and BILOU, and decoding.
#ifndef CLOZE_TASKS_TAGS_H_
#define CLOZE_TASKS_TAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "encoder/model.h"

namespace cloze {

// Words [begin, end) of a sentence, with a type: an index into SpanTags::types().
struct TagSpan {
  int64_t begin = 0, end = 0;
  int type = 0;
  bool operator==(const TagSpan&) const = default;
};

// True for a tag of a span scheme: "O", or one of B I E S (L U) followed by "-type" (or B I E S
// alone).
bool IsBioTag(const std::string& label);
// True if all labels are such tags, and B or I occurs.
bool IsBio(absl::Span<const std::string> labels);

// Extracts spans from tags, which are indices into the labels of the constructor. Const and
// thread-safe.
class SpanTags {
 public:
  // Requires IsBio(labels). The first `known` labels decide if ends are marked.
  explicit SpanTags(absl::Span<const std::string> labels, size_t known = SIZE_MAX);

  // Lenient, like the default of conlleval and seqeval: a span also starts at an I or E after O,
  // and where the type changes.
  std::vector<TagSpan> Lenient(absl::Span<const int> tags) const;
  // Strict: only spans that follow the rules of the scheme, B I*, or B I* E and S if the labels
  // have E or S. Drops all others.
  std::vector<TagSpan> Strict(absl::Span<const int> tags) const;
  // True if the scheme allows tag `to` after `from`; -1 is the boundary before the first and after
  // the last word. I and E may begin a span only of types without B. In types with E, a span that
  // begins with B or I must end with E.
  bool Follows(int from, int to) const;
  // Sorted names of the types; "_" for tags without one.
  const std::vector<std::string>& types() const { return types_; }

 private:
  struct Tag {
    char prefix = 'O';  // O B I E S; L counts as E, U as S
    int type = -1;
  };
  // True if no span goes on from `last` to `tag` when read leniently.
  static bool Breaks(Tag last, Tag tag);
  Tag At(int tag) const { return tag < 0 ? Tag() : tags_[tag]; }

  std::vector<Tag> tags_;
  std::vector<std::string> types_;
  std::vector<bool> opened_, ended_;  // for each type: has B, has E
  bool closed_ = false;               // ends are marked (IOBES)
};

// Tells IOB1 from IOB2 by the tags of some sentences. In IOB1, the tags of the original CoNLL-2003
// files, a span begins with I, and with B only directly after another span of its type.
class Iob1Finder {
 public:
  // Adds the tags of one sentence: O, B-x and I-x (or B and I alone); any other tag rules out IOB1.
  void Add(const std::vector<std::string>& tags);
  // True if spans begin with I and every B is valid in IOB1. `needs_b` also requires a B; without
  // any B, the scheme is ambiguous.
  bool Found(bool needs_b) const { return !other_ && opened_by_i_ && (b_ || !needs_b); }

 private:
  bool other_ = false, b_ = false, opened_by_i_ = false;  // other: something invalid in IOB1
};

// Converts the tags of a sentence from IOB1 to IOB2: the first I of each span becomes B.
void Iob1ToIob2(std::vector<std::string>* tags);

struct WordTag {
  int label = 0;  // index into config().labels
  float score = 0;
};

// Decodes the logits of a sentence's words. Const and thread-safe. Copies the CRF of the model at
// construction.
class TagDecoder {
 public:
  // With `viterbi`, labels of a span scheme keep its rules (SpanTags::Follows).
  explicit TagDecoder(const Model& model, bool viterbi = true);

  // logits [words, labels] f32 of one whole sentence. Returns the best sequence of labels. Returns
  // the best label of each word instead if there are neither rules nor a CRF, if `alone`, or if the
  // rules allow no sequence (BIES labels without O or S on one word). The score of a word is the
  // softmax probability of its label; in a sequence with a CRF, the marginal probability of the
  // label among the sequences that the rules allow.
  std::vector<WordTag> Decode(ConstMat logits, bool alone = false) const;

 private:
  bool crf_;
  std::vector<float> start_, between_, end_;  // empty: every word alone
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TAGS_H_
