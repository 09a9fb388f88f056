#include "tests/tasks/stores.h"

#include <chrono>
#include <numeric>
#include <thread>

#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/threads.h"
#include "core/text/files/tokenizer_files.h"
#include "tasks/labels.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class BuildTest : public FilesTest {
 protected:
  BuildTest() : tokenizer_(SmallTokenizer()) { options_.cache_dir = Path("cache"); }
  ~BuildTest() override { SetThreads(0); }

  std::string Tokens(const std::vector<int32_t>& ids) const {
    std::string out;
    for (const int32_t id : ids)
      absl::StrAppend(&out, out.empty() ? "" : " ", tokenizer_->token(id));
    return out;
  }
  // "tokens | row:label ... | second[ +]" of all examples.
  std::vector<std::string> Dump(const absl::StatusOr<BuiltStore>& built) const {
    EXPECT_TRUE(built.ok()) << built.status();
    std::vector<std::string> out;
    for (int64_t i = 0; built.ok() && i < built->store.size(); ++i) {
      Example e;
      EXPECT_TRUE(built->store.Read(i, &e).ok());
      std::string text = Tokens(e.ids);
      for (size_t k = 0; k < e.rows.size(); ++k)
        absl::StrAppend(&text, k == 0 ? " | " : " ", e.rows[k], ":", e.labels[k]);
      if (e.second != e.ids.size()) absl::StrAppend(&text, " | second ", e.second);
      out.push_back(text + (e.continues ? " | continues" : ""));
    }
    return out;
  }
  std::string Folder(const BuiltStore& built) const { return built.store.folder(); }

  std::unique_ptr<Tokenizer> tokenizer_;
  BuildOptions options_;
};

MaskedLmSpec Mlm(int max_tokens) {
  MaskedLmSpec spec;
  spec.set_max_tokens(max_tokens);
  return spec;
}

TEST_F(BuildTest, MaskedLm) {
  const DataSpec data = Data("a.txt", "the cat\nsat.\n\n\x01\n\non the mat, the cats sat\n");
  const auto built = BuildMaskedLm(data, Mlm(8), *tokenizer_, options_);
  EXPECT_THAT(Dump(built), ElementsAre("<class> the cat sat . <sep>", "<class> on the mat , <sep>",
                               "<class> the cat ##s sat <sep>"));
  const DataStats& stats = built->store.stats();
  EXPECT_EQ(stats.documents, 3);
  EXPECT_EQ(stats.empty_documents, 1);
  EXPECT_EQ(stats.examples, 3);
  EXPECT_EQ(stats.text_tokens, 12);
  EXPECT_EQ(stats.tokens, 18);
  EXPECT_EQ(stats.bytes, 12 + 24);
  EXPECT_EQ(stats.unknown_tokens, 0);
  MaskedLmSpec bare = Mlm(8);
  bare.set_append_sep(false);
  EXPECT_THAT(Dump(BuildMaskedLm(data, bare, *tokenizer_, options_)),
      ElementsAre("<class> the cat sat .", "<class> on the mat ,", "<class> the cat ##s sat"));
}

TEST_F(BuildTest, SequencesLoseNothingAndAreFull) {
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "the cat sat on a mat, "[i % 22];
  const auto built = BuildMaskedLm(Data("a.txt", text), Mlm(128), *tokenizer_, options_);
  ASSERT_TRUE(built.ok()) << built.status();
  std::vector<int32_t> expected, joined;
  tokenizer_->AppendIds(text, &expected);
  int64_t shorter = 0;
  for (int64_t i = 0; i < built->store.size(); ++i) {
    Example e;
    ASSERT_TRUE(built->store.Read(i, &e).ok());
    EXPECT_LE(e.ids.size(), 128);
    EXPECT_GE(e.ids.size(), 64);
    shorter += e.ids.size() < 128;
    joined.insert(joined.end(), e.ids.begin() + 1, e.ids.end() - 1);
  }
  EXPECT_LE(shorter, 2);
  EXPECT_TRUE(joined == expected);
  EXPECT_EQ(built->store.stats().bytes, text.size());
}

TEST_F(BuildTest, MaxExamplesOfMaskedLmAreSequences) {
  std::string text = "the cat";
  for (int i = 0; i < 999; ++i) text += " the cat";
  DataSpec data = Data("a.txt", "sat\n\n" + text);
  data.set_max_examples(101);
  const auto built = BuildMaskedLm(data, Mlm(12), *tokenizer_, options_);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->store.size(), 101);
  EXPECT_NEAR(built->store.stats().bytes, 3 + 1000 * 4, 3);
}

TEST_F(BuildTest, Classification) {
  const DataSpec data = Data(
      "a.tsv", "text\tlabel\nthe cat\tpos\n\tneg\nthe cats sat on the mat .\tpos\nq\xFFq\tneg" +
                   std::string(1000, '\n'));
  SequenceClassificationSpec task;
  task.set_max_tokens(8);
  const auto built = BuildClassification(data, task, {"neg", "pos"}, *tokenizer_, options_);
  EXPECT_THAT(Dump(built),
      ElementsAre("<class> the cat <sep> | 0:1", "<class> <sep> | 0:0",
          "<class> the cat ##s sat on the <sep> | 0:1", testing::EndsWith("<sep> | 0:0")));
  const DataStats& stats = built->store.stats();
  EXPECT_EQ(stats.documents, 4);
  EXPECT_EQ(stats.empty_documents, 1);
  EXPECT_EQ(stats.truncated, 1);
  EXPECT_EQ(stats.cut_tokens, 2);
  EXPECT_EQ(stats.invalid_bytes, 1);
  EXPECT_EQ(stats.bytes, 7 + 25 + 3);
}

TEST_F(BuildTest, SeveralLabelsAndNumbersAreValues) {
  SequenceClassificationSpec task;
  task.set_kind(SequenceClassificationSpec::MULTI_LABEL);
  const auto values = [](const absl::StatusOr<BuiltStore>& built) {
    EXPECT_TRUE(built.ok()) << built.status();
    std::vector<std::vector<float>> all;
    Example e;
    for (int64_t i = 0; built.ok() && i < built->store.size(); ++i) {
      EXPECT_TRUE(built->store.Read(i, &e).ok());
      EXPECT_THAT(e.rows, ElementsAre(0));
      EXPECT_THAT(e.labels, IsEmpty());
      all.push_back(e.values);
    }
    return all;
  };
  const DataSpec data = Data("a.tsv", "text\tlabel\ncat\tb\nmat\t\n\tc,a,b\nsat\tc, c\n");
  EXPECT_THAT(values(BuildClassification(data, task, {"a", "b", "c"}, *tokenizer_, options_)),
      ElementsAre(
          ElementsAre(0, 1, 0), ElementsAre(0, 0, 0), ElementsAre(1, 1, 1), ElementsAre(0, 0, 1)));
  EXPECT_TRUE(BuildClassification(data, task, {"a", "b", "c"}, *tokenizer_, options_)->reused);
  ExpectError(BuildClassification(data, task, {"a", "c"}, *tokenizer_, options_).status(),
      Exit::kData, "a.tsv:2: label_field: unknown label \"b\": expected \"a\", \"c\"");
  task.set_kind(SequenceClassificationSpec::REGRESSION);
  EXPECT_THAT(
      values(BuildClassification(
          Data("b.jsonl",
              "{\"text\": \"cat\", \"label\": 2.5}\n{\"text\": \"mat\", \"label\": \"-3e-2\"}\n"),
          task, {"LABEL_0"}, *tokenizer_, options_)),
      ElementsAre(ElementsAre(2.5f), ElementsAre(-0.03f)));
  for (const char* wrong : {"good", "nan", "1e400", "1,5", "0x10", "0x1p3", "inf", "-infinity",
           "1_000", "3 kg", "1e", "."}) {
    ExpectError(
        BuildClassification(Data("c.tsv", absl::StrCat("text\tlabel\ncat\t1\nmat\t", wrong, "\n")),
            task, {"LABEL_0"}, *tokenizer_, options_)
            .status(),
        Exit::kData, absl::StrCat("c.tsv:3: label_field: \"", wrong, "\" is not a finite number"));
  }
}

TEST_F(BuildTest, LongTextsKeepWhatTheSpecSays) {
  const DataSpec data = Data("a.tsv", "text\tlabel\na b c d e f g h i j k l m\t0\na b\t1\n");
  SequenceClassificationSpec task;
  task.set_max_tokens(10);
  const auto dump = [&](SequenceClassificationSpec::LongTexts how) {
    task.set_long_texts(how);
    const auto built = BuildClassification(data, task, {"0", "1"}, *tokenizer_, options_);
    EXPECT_EQ(built->store.stats().truncated, 1);
    EXPECT_EQ(built->store.stats().cut_tokens, how == SequenceClassificationSpec::WINDOWS ? 0 : 5);
    EXPECT_EQ(built->store.stats().documents, 2);
    return Dump(built);
  };
  const std::string whole = "<class> a b <sep> | 0:1";
  EXPECT_THAT(dump(SequenceClassificationSpec::HEAD),
      ElementsAre("<class> a b c d e f g h <sep> | 0:0", whole));
  EXPECT_THAT(dump(SequenceClassificationSpec::TAIL),
      ElementsAre("<class> f g h i j k l m <sep> | 0:0", whole));
  EXPECT_THAT(dump(SequenceClassificationSpec::HEAD_TAIL),
      ElementsAre("<class> a b h i j k l m <sep> | 0:0", whole));
  EXPECT_THAT(dump(SequenceClassificationSpec::WINDOWS),
      ElementsAre("<class> a b c d e f g h <sep> | 0:0",
          "<class> f g h i j k l m <sep> | 0:0 | continues", whole));
}

TEST_F(BuildTest, LongPairsLoseTokensOfTheLongerText) {
  DataSpec data = Data(
      "a.tsv", "text\tpair\tlabel\na b c d e f g h i\tx y\t0\na b c d e f g\tp q r s t u v\t1\n");
  data.set_text_pair_field("pair");
  SequenceClassificationSpec task;
  task.set_max_tokens(11);
  const auto dump = [&](SequenceClassificationSpec::LongTexts how) {
    task.set_long_texts(how);
    return Dump(BuildClassification(data, task, {"0", "1"}, *tokenizer_, options_));
  };
  EXPECT_THAT(dump(SequenceClassificationSpec::HEAD),
      ElementsAre("<class> a b c d e f <sep> x y <sep> | 0:0 | second 8",
          "<class> a b c d <sep> p q r s <sep> | 0:1 | second 6"));
  EXPECT_THAT(dump(SequenceClassificationSpec::TAIL),
      ElementsAre("<class> d e f g h i <sep> x y <sep> | 0:0 | second 8",
          "<class> d e f g <sep> s t u v <sep> | 0:1 | second 6"));
  EXPECT_THAT(dump(SequenceClassificationSpec::HEAD_TAIL),
      ElementsAre("<class> a e f g h i <sep> x y <sep> | 0:0 | second 8",
          "<class> a e f g <sep> p t u v <sep> | 0:1 | second 6"));
  data.set_text_pair_field("other");
  ExpectError(BuildClassification(data, task, {"0", "1"}, *tokenizer_, options_).status(),
      Exit::kData,
      "a.tsv:1: text_pair_field: no column \"other\"; there are \"text\", \"pair\", \"label\"");
}

TEST_F(BuildTest, TruncationIsTheTokenizers) {
  std::string rows = "text\tother\tlabel\n";
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < i; ++k) rows += "cats ";
    rows += "\t";
    for (int k = 0; k < (i * 7) % 40; ++k) rows += "mat ";
    rows += i % 2 == 0 ? "\t0\n" : "\t1\n";
  }
  DataSpec data = Data("a.tsv", rows);
  SequenceClassificationSpec task;
  task.set_max_tokens(24);
  const auto check = [&](bool pair) {
    const auto built = BuildClassification(data, task, {"0", "1"}, *tokenizer_, options_);
    ASSERT_TRUE(built.ok()) << built.status();
    int64_t cut = 0, row = 0;
    for (absl::string_view line : absl::StrSplit(rows, '\n', absl::SkipEmpty())) {
      const std::vector<std::string> columns = absl::StrSplit(line, '\t');
      if (row++ == 0) continue;
      Encoding expected =
          pair ? tokenizer_->EncodePair(columns[0], columns[1]) : tokenizer_->Encode(columns[0]);
      cut += Truncate(&expected, 24);
      Example e;
      ASSERT_TRUE(built->store.Read(row - 2, &e).ok());
      EXPECT_EQ(e.ids, expected.ids);
      for (size_t k = 0; k < e.ids.size(); ++k) EXPECT_EQ(k >= e.second, expected.types[k] == 1);
    }
    EXPECT_EQ(built->store.stats().cut_tokens, cut);
    EXPECT_GT(cut, 0);
  };
  check(false);
  data.set_text_pair_field("other");
  check(true);
}

TEST_F(BuildTest, UnknownLabelsAndNoExamples) {
  SequenceClassificationSpec task;
  ExpectError(BuildClassification(Data("a.tsv", "text\tlabel\na\tx\nb\tz\n"), task, {"x", "y"},
                  *tokenizer_, options_)
                  .status(),
      Exit::kData, "a.tsv:3: label_field: unknown label \"z\": expected \"x\", \"y\"");
  TokenTaggingSpec tagging;
  ExpectError(
      BuildTagging(Data("a.conll", "a O\nb Q\n"), tagging, {"O", "X"}, *tokenizer_, options_)
          .status(),
      Exit::kData, "a.conll:2: tags_field: unknown label \"Q\": expected \"O\", \"X\"");
  for (const std::string text : {"", "\n\n \n", "\x01\n"}) {
    ExpectError(BuildMaskedLm(Data("a.txt", text), Mlm(8), *tokenizer_, options_).status(),
        Exit::kData, "a.txt: 0 usable examples");
  }
  const auto bare = Tokenizer::Create({.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"}});
  if (bare.ok()) {
    ExpectError(BuildMaskedLm(Data("a.txt", "a"), Mlm(8), **bare, options_).status(),
        Exit::kMismatch, "tokenizer: no token <mask> or [MASK]");
  }
  EXPECT_THAT(*ListDirectory(Path("cache")), IsEmpty());
}

TEST_F(BuildTest, Tagging) {
  const DataSpec data = Data("a.conll", "the\tA\ncats\tB\n\x01\tC\nsat\tA\n\non\tB\n");
  const auto built = BuildTagging(data, TokenTaggingSpec(), {"A", "B", "C"}, *tokenizer_, options_);
  EXPECT_THAT(Dump(built), ElementsAre("<class> the cat ##s <unk> sat <sep> | 1:0 2:1 4:2 5:0",
                               "<class> on <sep> | 1:1"));
  EXPECT_EQ(built->store.stats().words, 5);
  EXPECT_EQ(built->store.stats().empty_words, 1);
  EXPECT_EQ(built->store.stats().documents, 2);
}

TEST_F(BuildTest, LongSentencesBecomeWindows) {
  const DataSpec data =
      Data("a.conll", "the\tA\ncats\tB\ncats\tA\ncats\tB\nmat\tA\nabcdefghijkl\tB\nsat\tA\n");
  TokenTaggingSpec task;
  task.set_max_tokens(8);
  const auto built = BuildTagging(data, task, {"A", "B"}, *tokenizer_, options_);
  EXPECT_THAT(Dump(built), ElementsAre("<class> the cat ##s cat ##s <sep> | 1:0 2:1 4:0",
                               "<class> cat ##s mat <sep> | 1:1 3:0 | continues",
                               "<class> a ##b ##c ##d ##e ##f <sep> | 1:1 | continues",
                               "<class> sat <sep> | 1:0 | continues"));
  EXPECT_EQ(built->store.stats().truncated, 1);
  EXPECT_EQ(built->store.stats().cut_tokens, 6);
}

TEST_F(BuildTest, NoWordIsLost) {
  std::vector<std::string> words;
  for (int i = 0; i < 3000; ++i)
    words.push_back(i % 17 == 0 ? "\x02" : std::string(1 + i % 13, 'a' + i % 26));
  std::vector<int32_t> numbers(words.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  for (const int max_tokens : {3, 8, 9, 64}) {
    const EncodedText text =
        CutIntoWindows(*tokenizer_, words, numbers, max_tokens, Overlap::kNone);
    int64_t next = 0;
    for (const Example& window : text.windows) {
      EXPECT_LE(window.ids.size(), max_tokens);
      EXPECT_EQ(window.continues, next > 0);
      ASSERT_FALSE(window.rows.empty());
      ASSERT_EQ(window.rows.size(), window.labels.size());
      EXPECT_EQ(window.labels.front(), next);
      for (const int32_t row : window.rows) {
        const std::string& token = tokenizer_->token(window.ids[row]);
        EXPECT_TRUE(token == "<unk>" || token[0] == words[next][0])
            << token << " for " << words[next];
        ++next;
      }
    }
    EXPECT_EQ(next, words.size());
    EXPECT_EQ(text.stats.empty_words, 177);
  }
  EXPECT_TRUE(CutIntoWindows(*tokenizer_, {}, {}, 8, Overlap::kNone).windows.empty());
}

TEST_F(BuildTest, OverlappingWindowsSeeEveryWordWithContext) {
  std::vector<std::string> words;
  for (int i = 0; i < 500; ++i) words.push_back(std::string(1 + i * i % 5, 'b'));
  std::vector<int32_t> numbers(words.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  for (const int max_tokens : {3, 4, 8, 21, 4000}) {
    const DataStats once =
        CutIntoWindows(*tokenizer_, words, numbers, max_tokens, Overlap::kNone).stats;
    const auto [windows, stats] =
        CutIntoWindows(*tokenizer_, words, numbers, max_tokens, Overlap::kHalf);
    EXPECT_EQ(stats.truncated, once.truncated);
    EXPECT_EQ(stats.unknown_tokens, once.unknown_tokens);
    int64_t end = 0;
    for (const Example& window : windows) {
      EXPECT_LE(window.ids.size(), max_tokens);
      ASSERT_FALSE(window.rows.empty());
      ASSERT_EQ(window.labels.front(), end);  // every word has one owner
      const int64_t left = window.rows.front() - 1,
                    right = window.ids.size() - 2 - window.rows.back();
      EXPECT_TRUE(max_tokens != 21 || end == 0 || left > 1) << left;
      end += window.rows.size();
      EXPECT_TRUE(max_tokens != 21 || end == words.size() || right > 1) << right;
    }
    EXPECT_EQ(end, words.size());
    EXPECT_EQ(windows.size() == 1, max_tokens == 4000);
  }
}

TEST_F(BuildTest, Iob1IsReadAsIob2) {
  const std::string iob1 = "a I-X\nb I-X\nc B-X\nd O\ne I-Y\n\nf I-Y\ng I-X\n";
  const auto labels = LearnTags(Data("a.conll", iob1));
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_THAT(*labels, ElementsAre("B-X", "B-Y", "I-X", "O"));
  const std::vector<std::string> all = {"B-X", "B-Y", "I-X", "I-Y", "O"};
  const auto built =
      BuildTagging(Data("a.conll", iob1), TokenTaggingSpec(), all, *tokenizer_, options_);
  EXPECT_THAT(Dump(built),
      ElementsAre("<class> a b c d e <sep> | 1:0 2:2 3:0 4:4 5:1", "<class> f g <sep> | 1:1 2:0"));
  EXPECT_THAT(built->note, testing::HasSubstr("IOB1"));
  // A short file of the same kind has no B at all; the labels tell that there should be.
  const auto dev =
      BuildTagging(Data("b.conll", "a I-X\nb O\n"), TokenTaggingSpec(), all, *tokenizer_, options_);
  EXPECT_THAT(Dump(dev), ElementsAre("<class> a b <sep> | 1:0 2:4"));
}

TEST_F(BuildTest, OtherSchemesAreNotTakenForIob1) {
  const std::string iob2 = "a B-X\nb I-X\nc O\nd I-X\n", io = "a I-X\nb O\nc I-X\n";
  const auto built = BuildTagging(
      Data("a.conll", iob2), TokenTaggingSpec(), {"B-X", "I-X", "O"}, *tokenizer_, options_);
  EXPECT_THAT(Dump(built), ElementsAre("<class> a b c d <sep> | 1:0 2:1 3:2 4:1"));
  EXPECT_EQ(built->note, "");
  EXPECT_THAT(*LearnTags(Data("b.conll", io)), ElementsAre("I-X", "O"));
  const auto plain =
      BuildTagging(Data("b.conll", io), TokenTaggingSpec(), {"I-X", "O"}, *tokenizer_, options_);
  EXPECT_THAT(Dump(plain), ElementsAre("<class> a b c <sep> | 1:0 2:1 3:0"));
  EXPECT_THAT(*LearnTags(Data("c.conll", "a B-X\nb I-X\nc E-X\nd I-Y\n")),
      ElementsAre("B-X", "E-X", "I-X", "I-Y"));
}

TEST_F(BuildTest, ThreadsDoNotChangeTheStore) {
  std::string text;
  uint32_t state = 1;
  for (int i = 0; i < 3000000; ++i) {
    state = state * 1664525 + 1013904223;
    const uint32_t r = state >> 24;
    text += r < 40 ? ' ' : r < 44 ? '\n' : i % 100000 == 0 ? '\xC3' : char('a' + r % 26);
  }
  const DataSpec data = Data("a.txt", text);
  std::string files[2];
  for (const int threads : {1, 7}) {
    SetThreads(threads);
    options_.cache_dir = Path(absl::StrCat("cache", threads));
    const auto built = BuildMaskedLm(data, Mlm(64), *tokenizer_, options_);
    ASSERT_TRUE(built.ok()) << built.status();
    for (const char* name : {"header", "index", "labels", "tokens"})
      files[threads > 1] += Read(JoinPath(Folder(*built), name));
  }
  EXPECT_GT(files[0].size(), 1000000);
  EXPECT_TRUE(files[0] == files[1]);
}

TEST_F(BuildTest, CacheIsReusedByContent) {
  DataSpec data = Data("a.txt", "the cat sat");
  const auto first = BuildMaskedLm(data, Mlm(8), *tokenizer_, options_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->reused);
  EXPECT_THAT(Folder(*first), testing::MatchesRegex(".*/cache/masked_lm-[0-9a-f]{32}"));
  data.set_files(0, Write("same.txt", "the cat sat"));
  const auto second = BuildMaskedLm(data, Mlm(8), *tokenizer_, options_);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(second->reused);
  EXPECT_EQ(second->note, "");
  EXPECT_EQ(Folder(*first), Folder(*second));
  EXPECT_EQ(second->store.stats().bytes, 11);
  std::set<std::string> folders = {Folder(*first)};
  const auto other = [&](const DataSpec& spec, const MaskedLmSpec& task,
                         const Tokenizer& tokenizer) {
    const auto built = BuildMaskedLm(spec, task, tokenizer, options_);
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_FALSE(built->reused);
    EXPECT_TRUE(folders.insert(Folder(*built)).second);
  };
  other(data, Mlm(9), *tokenizer_);
  other(Data("b.txt", "the cat sat."), Mlm(8), *tokenizer_);
  data.set_max_examples(1);
  other(data, Mlm(8), *tokenizer_);
  data.clear_max_examples();
  data.set_documents(DataSpec::LINE);
  other(data, Mlm(8), *tokenizer_);
  data.clear_documents();
  NormalizerOptions cased;
  cased.lowercase = false;
  std::vector<std::string> tokens;
  for (int i = 0; i < tokenizer_->vocab_size(); ++i) tokens.push_back(tokenizer_->token(i));
  other(data, Mlm(8), **Tokenizer::Create({.tokens = tokens, .scheme = BertScheme(cased)}));
  std::swap(tokens[8], tokens[9]);
  other(data, Mlm(8), **Tokenizer::Create({.tokens = tokens}));
}

TEST_F(BuildTest, UnchangedFilesAreNotReadAgain) {
  const DataSpec data = Data("a.txt", "the cat sat");
  std::this_thread::sleep_for(
      std::chrono::seconds(3));  // a file that has just changed could change again unnoticed
  const auto first = BuildMaskedLm(data, Mlm(8), *tokenizer_, options_);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::atomic<bool> stop = true;  // reading the file or the store would end with kInterrupted
  options_.stop = &stop;
  const auto second = BuildMaskedLm(data, Mlm(8), *tokenizer_, options_);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Folder(*first), Folder(*second));
  // A change in place of the same length, with the time of before.
  const auto time = std::filesystem::last_write_time(Path("a.txt"));
  std::ofstream(Path("a.txt"), std::ios::in | std::ios::out) << "the mat";
  std::filesystem::last_write_time(Path("a.txt"), time);
  EXPECT_EQ(
      ExitOf(BuildMaskedLm(data, Mlm(8), *tokenizer_, options_).status()), Exit::kInterrupted);
  std::ofstream(Path("a.txt"), std::ios::app) << "!";
  EXPECT_EQ(
      ExitOf(BuildMaskedLm(data, Mlm(8), *tokenizer_, options_).status()), Exit::kInterrupted);
  options_.stop = nullptr;
  const auto third = BuildMaskedLm(data, Mlm(8), *tokenizer_, options_);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_NE(Folder(*first), Folder(*third));
}

TEST_F(BuildTest, BrokenCacheIsBuiltAnew) {
  const DataSpec data = Data("a.txt", "the cat sat");
  const auto first = BuildMaskedLm(data, Mlm(8), *tokenizer_, options_);
  ASSERT_TRUE(first.ok());
  for (const std::string name : {"header", "index", "tokens"}) {
    const std::string path = JoinPath(Folder(*first), name), content = Read(path);
    std::ofstream(path, std::ios::binary) << "x" << content.substr(1);
    const auto again = BuildMaskedLm(data, Mlm(8), *tokenizer_, options_);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_FALSE(again->reused);
    EXPECT_THAT(
        again->note, testing::AllOf(testing::HasSubstr("the token cache was broken and is rebuilt"),
                         testing::HasSubstr(absl::StrCat("/", name, ": "))));
    EXPECT_THAT(Dump(again), ElementsAre("<class> the cat sat <sep>"));
    EXPECT_EQ(Read(path), content);
  }
}

TEST_F(BuildTest, LeftoversOfDeadProcessesAreRemoved) {
  const DataSpec data = Data("a.txt", "the cat sat");
  const auto first = BuildMaskedLm(data, Mlm(8), *tokenizer_, options_);
  ASSERT_TRUE(first.ok());
  const std::string folder = Folder(*first);
  ASSERT_TRUE(RemoveStore(folder).ok());
  const std::string dead = folder + ".tmp-999999999", alive = folder + ".tmp-1";
  for (const std::string& f : {dead, alive}) {
    std::filesystem::create_directory(f);
    std::ofstream(f + "/tokens") << "half";
  }
  ASSERT_TRUE(BuildMaskedLm(data, Mlm(8), *tokenizer_, options_).ok());
  EXPECT_FALSE(PathExists(dead));
  EXPECT_TRUE(PathExists(alive));
}

TEST_F(BuildTest, StopsAndReportsProgress) {
  std::string text;
  for (int i = 0; i < 1000000; ++i) text += "the cat sat on\n";
  const DataSpec data = Data("a.txt", text);
  std::atomic<bool> stop{false};
  std::vector<int64_t> seen;
  options_.stop = &stop;
  options_.progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, text.size());
    seen.push_back(done);
    if (seen.size() == 2) stop = true;
  };
  ExpectError(BuildMaskedLm(data, Mlm(64), *tokenizer_, options_).status(), Exit::kInterrupted,
      "stopped while preparing the data");
  EXPECT_EQ(seen.size(), 2);
  EXPECT_THAT(*ListDirectory(Path("cache")), IsEmpty());
  stop = false;
  seen.push_back(0);
  seen.erase(seen.begin(), seen.end() - 1);
  options_.stop = nullptr;
  options_.progress = [&](int64_t done, int64_t) { seen.push_back(done); };
  ASSERT_TRUE(BuildMaskedLm(data, Mlm(64), *tokenizer_, options_).ok());
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), text.size());
}

TEST_F(BuildTest, ChangedFilesAreNoticed) {
  DataSpec data = Data("a.txt", "the cat sat");
  const auto built = BuildMaskedLm(data, Mlm(8), *tokenizer_, options_);
  ASSERT_TRUE(built.ok());
  ASSERT_EQ(built->sources.size(), 1);
  EXPECT_EQ(built->sources[0].size, 11);
  EXPECT_TRUE(CheckSources(built->sources).ok());
  EXPECT_EQ(*SourcesOf(data), built->sources);
  Write("a.txt", "the cat sat!");
  ExpectError(CheckSources(built->sources), Exit::kData,
      "a.txt: the file has changed (11 bytes before, 12 now)");
  std::filesystem::remove(Path("a.txt"));
  ExpectError(CheckSources(built->sources), Exit::kNoInput, "a.txt: cannot open");
  // A file that changes while it is read.
  std::string text;
  for (int i = 0; i < 1000000; ++i) text += "the cat sat on\n";
  data = Data("b.txt", text);
  options_.progress = [&](int64_t, int64_t) { std::ofstream(Path("b.txt"), std::ios::app) << "x"; };
  ExpectError(BuildMaskedLm(data, Mlm(64), *tokenizer_, options_).status(), Exit::kData,
      "b.txt: the file has changed");
  EXPECT_EQ(ListDirectory(Path("cache"))->size(), 1);
}

TEST_F(BuildTest, SharedTreebank) {
  DataSpec data;
  data.add_files(Shared("tagging/ud_english_ewt/en_ewt-ud-dev.conllu"));
  const std::string vocab = Shared("tokenizer/vocab/bert-base-cased/vocab.txt");
  if (!PathExists(data.files(0)) || !PathExists(vocab))
    GTEST_SKIP() << "needs " << data.files(0) << " and " << vocab;
  const auto labels = LearnTags(data);
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(labels->size(), 17);
  const auto tokenizer = LoadTokenizer(vocab, false);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto built = BuildTagging(data, TokenTaggingSpec(), *labels, **tokenizer, options_);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->store.stats().documents, 2001);
  int64_t rows = 0;
  Example e;
  for (int64_t i = 0; i < built->store.size(); ++i) {
    ASSERT_TRUE(built->store.Read(i, &e).ok());
    rows += e.rows.size();
  }
  EXPECT_EQ(rows, built->store.stats().words);
  EXPECT_GT(rows, 25000);
}

TEST_F(BuildTest, SharedBooks) {
  DataSpec data;
  data.add_files(Shared("text/books_valid.txt"));
  const std::string vocab = Shared("tokenizer/vocab/bert-base-uncased/vocab.txt");
  if (!PathExists(data.files(0)) || !PathExists(vocab))
    GTEST_SKIP() << "needs " << data.files(0) << " and " << vocab;
  const auto tokenizer = LoadTokenizer(vocab, true);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto start = std::chrono::steady_clock::now();
  const auto built = BuildMaskedLm(data, Mlm(128), **tokenizer, options_);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_TRUE(built.ok()) << built.status();
  const DataStats& stats = built->store.stats();
  RecordProperty("megabytes_per_second", std::to_string(stats.bytes / seconds / 1e6));
  EXPECT_GT(stats.bytes, 1190000);
  EXPECT_NEAR(static_cast<double>(stats.bytes) / stats.text_tokens, 4.3, 0.4);
}

}  // namespace
}  // namespace cloze
