#include "tasks/spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace cloze {
namespace {

using Spans = std::vector<std::string>;

// Tags between blanks, as "begin-end type" of each span.
Spans Read(const std::string& text, bool strict, std::vector<std::string> labels = {}) {
  std::istringstream in(text);
  std::vector<std::string> tags;
  for (std::string tag; in >> tag;) tags.push_back(tag);
  if (labels.empty()) labels = tags;
  std::vector<int> ids;
  for (const std::string& tag : tags) ids.push_back(std::find(labels.begin(), labels.end(), tag) - labels.begin());
  const SpanTags reader(labels);
  Spans out;
  for (const TagSpan& s : strict ? reader.Strict(ids) : reader.Lenient(ids)) {
    out.push_back(absl::StrCat(s.begin, "-", s.end, " ", reader.types()[s.type]));
  }
  return out;
}

Spans Lenient(const std::string& text) { return Read(text, false); }
Spans Strict(const std::string& text) { return Read(text, true); }

TEST(IsBio, TellsSpanTagsFromOthers) {
  EXPECT_TRUE(IsBio({"B-PER", "I-PER", "O"}));
  EXPECT_TRUE(IsBio({"I-PER", "O"}));
  EXPECT_TRUE(IsBio({"B", "I", "O"}));
  EXPECT_TRUE(IsBio({"B-X", "I-X", "E-X", "S-X", "O"}));
  EXPECT_TRUE(IsBio({"B-X", "I-X", "L-X", "U-X", "O"}));
  EXPECT_TRUE(IsBio({"B-multi-part type", "O"}));
  EXPECT_FALSE(IsBio({"NOUN", "VERB", "O"}));
  EXPECT_FALSE(IsBio({"O"}));
  EXPECT_FALSE(IsBio({}));
  EXPECT_FALSE(IsBio({""}));
  EXPECT_FALSE(IsBio({"B-", "O"}));
  EXPECT_FALSE(IsBio({"B_PER", "O"}));
  EXPECT_FALSE(IsBio({"O", "COMMA", "PERIOD"}));
  EXPECT_FALSE(IsBio({"B-PER", "U", "O"}));
}

TEST(Spans, ReadsCleanBio) {
  for (const bool strict : {false, true}) {
    EXPECT_EQ(Read("B-PER I-PER O B-LOC", strict), (Spans{"0-2 PER", "3-4 LOC"}));
    EXPECT_EQ(Read("B-A B-A I-A", strict), (Spans{"0-1 A", "1-3 A"}));
    EXPECT_EQ(Read("O B-A I-A", strict), (Spans{"1-3 A"}));
    EXPECT_EQ(Read("B I O B", strict), (Spans{"0-2 _", "3-4 _"}));
    EXPECT_EQ(Read("", strict, {"B-A", "O"}), Spans{});
    EXPECT_EQ(Read("O O", strict, {"B-A", "O"}), Spans{});
  }
}

// The ways in which tags break BIO: conlleval's tables against IOB2's rules.
TEST(Spans, LenientMendsWhatStrictDrops) {
  EXPECT_EQ(Lenient("O I-A I-A O"), (Spans{"1-3 A"}));
  EXPECT_EQ(Strict("O I-A I-A O"), Spans{});
  EXPECT_EQ(Lenient("B-A I-B I-B"), (Spans{"0-1 A", "1-3 B"}));
  EXPECT_EQ(Strict("B-A I-B I-B"), (Spans{"0-1 A"}));
  EXPECT_EQ(Lenient("I-A I-B"), (Spans{"0-1 A", "1-2 B"}));
  EXPECT_EQ(Lenient("I I"), (Spans{"0-2 _"}));
  EXPECT_EQ(Strict("I I"), Spans{});
}

TEST(Spans, ReadsIob1) { EXPECT_EQ(Lenient("I-A I-A B-A I-A O I-B"), (Spans{"0-2 A", "2-4 A", "5-6 B"})); }

TEST(Spans, ReadsIobesAndBilou) {
  for (const bool strict : {false, true}) {
    EXPECT_EQ(Read("B-A I-A E-A S-A O S-B", strict), (Spans{"0-3 A", "3-4 A", "5-6 B"}));
    EXPECT_EQ(Read("B-A I-A L-A U-A O U-B", strict), (Spans{"0-3 A", "3-4 A", "5-6 B"}));
  }
  EXPECT_EQ(Lenient("E-A E-A B-A"), (Spans{"0-1 A", "1-2 A", "2-3 A"}));
  EXPECT_EQ(Strict("E-A E-A B-A"), Spans{});
  EXPECT_EQ(Lenient("S-A I-A O E-A"), (Spans{"0-1 A", "1-2 A", "3-4 A"}));
  EXPECT_EQ(Strict("S-A I-A O E-A"), (Spans{"0-1 A"}));
  EXPECT_EQ(Strict("B-A I-A B-A E-A"), (Spans{"2-4 A"}));
}

}  // namespace
}  // namespace cloze
