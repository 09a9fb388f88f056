#include "tasks/tags.h"

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
  for (const std::string& tag : tags)
    ids.push_back(std::find(labels.begin(), labels.end(), tag) - labels.begin());
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

TEST(Spans, ReadsIob1) {
  EXPECT_EQ(Lenient("I-A I-A B-A I-A O I-B"), (Spans{"0-2 A", "2-4 A", "5-6 B"}));
}

TEST(Spans, ReadsIobesAndBilou) {
  for (const bool strict : {false, true}) {
    EXPECT_EQ(Read("B-A I-A E-A S-A O S-B", strict), (Spans{"0-3 A", "3-4 A", "5-6 B"}));
    EXPECT_EQ(Read("B-A I-A L-A U-A O U-B", strict), (Spans{"0-3 A", "3-4 A", "5-6 B"}));
  }
  EXPECT_EQ(Lenient("E-A E-A B-A"), (Spans{"0-1 A", "1-2 A", "2-3 A"}));
  EXPECT_EQ(Strict("E-A E-A B-A"), Spans{});
  EXPECT_EQ(Lenient("I-A S-A O E-A"), (Spans{"0-1 A", "1-2 A", "3-4 A"}));
  EXPECT_EQ(Lenient("S-A I-A O E-A"), (Spans{"0-1 A", "1-2 A", "3-4 A"}));
  EXPECT_EQ(Strict("S-A I-A O E-A"), (Spans{"0-1 A"}));
  EXPECT_EQ(Strict("B-A I-A B-A E-A"), (Spans{"2-4 A"}));
}

// The legal neighbours of each tag, as the labels that may follow it; "^" before the first, "$"
// behind the last.
std::string Following(const std::vector<std::string>& labels, const std::string& from) {
  const SpanTags tags(labels);
  const auto id = [&](const std::string& label) {
    const auto found = std::find(labels.begin(), labels.end(), label);
    return found == labels.end() ? -1 : static_cast<int>(found - labels.begin());
  };
  std::string out;
  for (const std::string& to : labels) {
    if (tags.Follows(id(from), id(to))) absl::StrAppend(&out, out.empty() ? "" : " ", to);
  }
  return out + (tags.Follows(id(from), -1) ? " $" : "");
}

TEST(Follows, Bio) {
  const std::vector<std::string> labels = {"B-A", "I-A", "B-B", "I-B", "O"};
  EXPECT_EQ(Following(labels, "^"), "B-A B-B O $");
  EXPECT_EQ(Following(labels, "O"), "B-A B-B O $");
  EXPECT_EQ(Following(labels, "B-A"), "B-A I-A B-B O $");
  EXPECT_EQ(Following(labels, "I-B"), "B-A B-B I-B O $");
  EXPECT_EQ(Following({"B", "I", "O"}, "O"), "B O $");
}

TEST(Follows, IobesAndBilou) {
  const std::vector<std::string> labels = {"B-A", "E-A", "I-A", "S-A", "S-B", "O"};
  EXPECT_EQ(Following(labels, "^"), "B-A S-A S-B O $");
  EXPECT_EQ(Following(labels, "B-A"), "E-A I-A");
  EXPECT_EQ(Following(labels, "I-A"), "E-A I-A");
  EXPECT_EQ(Following(labels, "E-A"), "B-A S-A S-B O $");
  EXPECT_EQ(Following(labels, "S-B"), "B-A S-A S-B O $");
  EXPECT_EQ(Following({"B-A", "I-A", "L-A", "U-A", "O"}, "I-A"), "I-A L-A");
}

TEST(Follows, TypesWithoutBAreOpenedByI) {
  const std::vector<std::string> labels = {"B-A", "I-A", "I-B", "O"};
  EXPECT_EQ(Following(labels, "O"), "B-A I-B O $");
  EXPECT_EQ(Following(labels, "I-A"), "B-A I-A I-B O $");
}

// Whatever keeps the rules means the same to a lenient and to a strict reader.
TEST(Follows, LegalTagsReadTheSameBothWays) {
  for (const std::vector<std::string>& labels :
      {std::vector<std::string>{"B-A", "I-A", "B-B", "I-B", "O"},
          {"B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B", "O"}}) {
    const SpanTags tags(labels);
    uint32_t random = 1;
    for (int n = 0; n < 2000; ++n) {
      std::vector<int> ids;
      for (int last = -1;;) {
        random = random * 1664525 + 1013904223;
        const int next = (random >> 16) % labels.size();
        if (!tags.Follows(last, next)) continue;
        ids.push_back(last = next);
        if (ids.size() > 6 && tags.Follows(last, -1)) break;
      }
      ASSERT_EQ(tags.Lenient(ids), tags.Strict(ids));
    }
  }
}

TEST(SpanTags, UnseenLabelsDoNotMarkEnds) {
  const std::vector<std::string> labels = {"O", "B-X", "I-X", "S-Y"};
  const std::vector<int> tags = {1, 2, 0};
  EXPECT_EQ(SpanTags(labels, /*known=*/3).Strict(tags).size(), 1);
  EXPECT_EQ(SpanTags(labels).Strict(tags).size(), 0);
}

}  // namespace
}  // namespace cloze
