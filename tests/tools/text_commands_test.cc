#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kTokenizerData = CLOZE_SOURCE_DIR "/tests/golden/wordpiece";

// Writes a small vocab.txt and returns its path.
std::string SmallVocab() {
  const std::string path = TemporaryFolder() + "/vocab.txt";
  std::ofstream(path) << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n";
  return path;
}

TEST(Tokenize, WritesIdsAndOffsets) {
  const RunResult result = RunCloze("tokenize --model " + SmallVocab(), "printf 'A bb\\n' | ");
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out,
      "{\"text\": \"A bb\", \"ids\": [2, 5, 6, 7, 3], \"tokens\": [\"[CLS]\", \"a\", \"b\", "
      "\"##b\", \"[SEP]\"], "
      "\"offsets\": [[0, 0], [0, 1], [2, 3], [3, 4], [0, 0]], \"byte_offsets\": [[0, 0], [0, 1], "
      "[2, 3], [3, 4], [0, 0]], "
      "\"word_ids\": [null, 0, 1, 1, null]}\n");
}

TEST(Tokenize, TakesPairsAndInvalidUtf8) {
  const json pair =
      json::parse(RunCloze("tokenize --pairs --model " + SmallVocab(), "printf 'a\\tb\\n' | ").out);
  EXPECT_EQ(pair["token_type_ids"], json({0, 0, 0, 1, 1}));
  const json invalid =
      json::parse(RunCloze("tokenize --model " + SmallVocab(), "printf '\\377 a\\n' | ").out);
  EXPECT_EQ(invalid["byte_offsets"][1], json({2, 3}));
}

TEST(Tokenize, EqualsTheReference) {
  const std::string cases = kTokenizerData + "/uncased.cases.jsonl";
  const RunResult result = RunCloze(
      "tokenize --input-format jsonl --model " + kTokenizerData + "/vocab/uncased " + cases);
  ASSERT_EQ(result.exit, 0) << result.err;
  std::ifstream expected(cases);
  std::istringstream got(result.out);
  int count = 0;
  for (std::string want, line; std::getline(expected, want); ++count) {
    ASSERT_TRUE(std::getline(got, line));
    json reference = json::parse(want);
    reference.erase("category");
    EXPECT_EQ(json::parse(line), reference);
  }
  EXPECT_EQ(count, 282);
}

TEST(Tokenize, AnswersTheFirstLineAtOnce) {
  const std::string folder = TemporaryFolder();
  const std::string reader = "(head -n 1; date +%s%N) >" + folder + "/first";
  RunCloze("tokenize --model " + SmallVocab() + " | " + reader,
      "(echo a; sleep 1; date +%s%N >" + folder + "/last) | ");
  std::string line;
  int64_t first = 0, last = 0;
  std::ifstream answered(folder + "/first"), ended(folder + "/last");
  ASSERT_TRUE(std::getline(answered, line) && answered >> first && ended >> last);
  EXPECT_LT(first, last);
}

TEST(Tokenize, AnswersEmptyLines) {
  const RunResult result = RunCloze("tokenize --model " + SmallVocab(), "printf ' \\n\\n' | ");
  EXPECT_EQ(result.exit, 0);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 2) << result.out;
  EXPECT_THAT(result.out, HasSubstr("{\"text\": \"\", \"ids\": [2, 3], "));
}

// With truncation_side left, predict reads the end of a text that is too long, and says so.
TEST(Predict, KeepsTheSideThatTheTokenizerNames) {
  const std::string folder = TemporaryFolder(),
                    golden = CLOZE_SOURCE_DIR "/tests/golden/sequence_classification/";
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy(golden + file, folder);
  std::ofstream vocab(folder + "/vocab.txt");
  vocab << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int id = 5; id < 120; ++id) vocab << "t" << id << "\n";
  vocab.close();
  std::ofstream texts(folder + "/texts");
  for (const auto& [begin, end] : {std::pair(5, 75), std::pair(5, 51), std::pair(29, 75)}) {
    for (int id = begin; id < end; ++id) texts << "t" << id << " ";
    texts << "\n";
  }
  texts.close();
  for (const std::string side : {"left", "right"}) {
    std::ofstream(folder + "/tokenizer_config.json")
        << R"({"tokenizer_class": "BertTokenizer", "truncation_side": ")" << side << "\"}";
    const RunResult result = RunCloze("predict --model " + folder + " " + folder + "/texts");
    ASSERT_EQ(result.exit, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("1 text, 24 tokens cut off"));
    const std::vector<json> answers = JsonLines(result.out);
    ASSERT_EQ(answers.size(), 3);
    EXPECT_EQ(answers[0]["scores"], answers[side == "left" ? 2 : 1]["scores"]);
    EXPECT_NE(answers[1]["scores"], answers[2]["scores"]);
  }
}

TEST(Vocab, WritesAFolderThatTokenizes) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/text") << "low lower lowest slow slower\nlow low lower\n";
  const std::string learn =
      "vocab --text " + folder + "/text --out " + folder + "/vocab --min-count 1 --size ";
  const RunResult result = RunCloze(learn + "30");
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(" tokens from 8 words (5 distinct)"));
  const json line =
      json::parse(RunCloze("tokenize --model " + folder + "/vocab", "echo low | ").out);
  EXPECT_EQ(line["tokens"].front(), "<class>");
  EXPECT_EQ(line["tokens"][1], "low");
  EXPECT_EQ(RunCloze(learn + "30").exit, 0);
  EXPECT_EQ(RunCloze(learn + "20").exit, 73);
  EXPECT_EQ(RunCloze(learn + "20 --force").exit, 0);
  EXPECT_THAT(RunCloze(learn + "16 --force").out, HasSubstr("more than --size"));
}

TEST(Vocab, RefusesWhatHoldsNoText) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/text") << "\n \n";
  EXPECT_EQ(
      RunCloze("vocab --size 30 --text " + folder + "/text --out " + folder + "/vocab").exit, 65);
  EXPECT_FALSE(std::filesystem::exists(folder + "/vocab"));
  std::ofstream(folder + "/koi8") << "\xF0\xD2\xC9\n";
  const RunResult koi8 =
      RunCloze("vocab --size 30 --text " + folder + "/koi8 --out " + folder + "/koi");
  EXPECT_EQ(koi8.exit, 65);
  EXPECT_THAT(koi8.err, HasSubstr("/koi8:1: not UTF-8, perhaps KOI8-R; 1 of 1 line"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/koi"));
  EXPECT_EQ(
      RunCloze("vectors --min-count 1 --out " + folder + "/koi --text " + folder + "/koi8").exit,
      65);
  EXPECT_FALSE(std::filesystem::exists(folder + "/koi"));
  EXPECT_EQ(RunCloze("vocab --size 30 --text /nonexistent --out " + folder + "/vocab").exit, 66);
  EXPECT_EQ(RunCloze("vocab --size 3 --text x --out y").exit, 2);
}

TEST(Vocab, LearnsFromTheTextsOfTables) {
  const std::string folder = TemporaryFolder(), out = " --size 60 --min-count 1 --out " + folder;
  std::ofstream(folder + "/t.csv") << "text,label\n\"low, lower\nlowest\",zz\nslow,qq\n";
  std::ofstream(folder + "/t.jsonl") << "{\"body\": \"low, lower\\nlowest\", \"label\": \"zz\"}\n"
                                        "{\"body\": \"slow\", \"label\": \"qq\"}\n";
  std::ofstream(folder + "/t.conll") << "low N\n, N\nlower N\nlowest N\n\nslow N\n";
  ASSERT_EQ(RunCloze("vocab --text " + folder + "/t.csv" + out + "/csv").exit, 0);
  ASSERT_EQ(
      RunCloze("vocab --text-field body --text " + folder + "/t.jsonl" + out + "/jsonl").exit, 0);
  ASSERT_EQ(RunCloze("vocab --text " + folder + "/t.conll" + out + "/conll").exit, 0);
  const std::string vocab = Content(folder + "/csv/vocab.txt");
  EXPECT_THAT(vocab, HasSubstr("\nlowest\n"));
  EXPECT_THAT(vocab, testing::Not(testing::AnyOf(HasSubstr("z"), HasSubstr("q"), HasSubstr("x"))));
  EXPECT_EQ(Content(folder + "/jsonl/vocab.txt"), vocab);
  EXPECT_EQ(Content(folder + "/conll/vocab.txt"), vocab);
  std::ofstream(folder + "/latin.csv") << "zz;\"l\xF6w, lower\nlowest\"\nqq;sl\xF6w\n";
  EXPECT_EQ(RunCloze("vocab --text - --text-field body" + out + "/pipe", "echo a | ").exit, 2);
  const RunResult latin = RunCloze(
      "vocab --text-field 2 --set 'delimiter=;' --set header=false "
      "--set encoding=LATIN1 --no-strip-accents --text " +
      folder + "/latin.csv" + out + "/latin");
  ASSERT_EQ(latin.exit, 0) << latin.err;
  EXPECT_THAT(Content(folder + "/latin/vocab.txt"), HasSubstr("\nsl\xC3\xB6w\n"));
  const RunResult missing = RunCloze("vocab --text " + folder + "/t.jsonl" + out + "/none");
  EXPECT_EQ(missing.exit, 65);
  EXPECT_THAT(missing.err, HasSubstr("\"text\""));
}

TEST(Vocab, KeepsAwayFromModels) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/text") << "low lower\n";
  std::ofstream(folder + "/config.json") << "{}";
  const RunResult run = RunCloze("vocab --size 30 --text " + folder + "/text --out " + folder);
  EXPECT_EQ(run.exit, 73);
  EXPECT_THAT(run.err, HasSubstr("holds a model"));
}

TEST(Vocab, LearnsByteLevelBpe) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/text") << "low low lower lowest\nlow lower\n";
  const std::string learn =
      "vocab --text " + folder + "/text --out " + folder + "/vocab --kind bpe ";
  EXPECT_EQ(RunCloze(learn + "--size 264").exit, 0);
  EXPECT_FALSE(std::filesystem::exists(folder + "/vocab/vocab.txt"));
  const json line = json::parse(
      RunCloze("tokenize --model " + folder + "/vocab", "echo 'low low \xC3\xA9' | ").out);
  EXPECT_EQ(line["tokens"][0], "<s>");
  EXPECT_EQ(line["tokens"].back(), "</s>");
  EXPECT_EQ(line["ids"].size(), 2 + 1 + 1 + 3u) << line;  // low, Ġlow, Ġ and two bytes
  EXPECT_EQ(RunCloze(learn + "--size 264").exit, 0) << "the same again";
  const RunResult other = RunCloze(learn + "--size 263");
  EXPECT_EQ(other.exit, 73);
  EXPECT_THAT(other.err, HasSubstr("is a different vocabulary"));
  EXPECT_EQ(RunCloze(learn + "--size 264 --lowercase").exit, 2);
  EXPECT_EQ(RunCloze(learn + "--size 100").exit, 78);
  EXPECT_EQ(RunCloze("vocab --kind word --text x --out y").exit, 2);
}

// The vocabulary of another kind, which other programs might read, does not stay beside the new
// one.
TEST(Vocab, ForceLeavesNoFilesOfAnotherKind) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/text") << "low low lower lowest\nlow lower slow\n";
  const auto learn = [&](const std::string& kind, const std::string& out) {
    const RunResult result = RunCloze("vocab --force --min-count 1 --size 290 --text " + folder +
                                      "/text --kind " + kind + " --out " + folder + out);
    EXPECT_EQ(result.exit, 0) << result.err;
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder + out))
      files[entry.path().filename()] = Content(entry.path());
    return files;
  };
  const std::string kinds[] = {"wordpiece", "bpe", "unigram"};
  for (const std::string& kind : kinds) {
    const auto fresh = learn(kind, "/" + kind);
    for (const std::string& old : kinds) {
      learn(old, "/out");
      std::ofstream(folder + "/out/added_tokens.json") << "{\"zz\": 7}";
      EXPECT_EQ(learn(kind, "/out"), fresh) << old << ", then " << kind;
    }
  }
}

TEST(Vocab, SaysWhichLettersLoseTheirMarks) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/text") << "\u0151d \u0151d \u045Eda n\u0303am dam dam dam dam\n";
  const auto learn = [&](const std::string& options) {
    const RunResult result = RunCloze("vocab --force --min-count 1 --size 300 --text " + folder +
                                      "/text --out " + folder + "/vocab " + options);
    EXPECT_EQ(result.exit, 0) << result.err;
    return result.out;
  };
  for (const char* kind : {"", "--kind unigram --strip-accents"}) {
    const std::string said = learn(kind);
    EXPECT_THAT(
        said, HasSubstr("accents stripped: \u0151→o, n\u0303→n, \u045E→\u0443 (50 % of words); "
                        "--no-strip-accents keeps them\n"));
  }
  for (const char* kind : {"--no-strip-accents", "--no-lowercase", "--kind bpe", "--kind unigram"})
    EXPECT_THAT(learn(kind), testing::Not(HasSubstr("accents"))) << kind;
}

const std::string kModels = CLOZE_SOURCE_DIR "/tests/golden/release_0.1/runs/";

TEST(Predict, TheTextComesBeforeIdsOfTheUser) {
  const auto predict = [](const std::string& run, const std::string& members) {
    return RunCloze("predict --input-format jsonl --model " + kModels + run,
        "echo '{\"text\": \"" + std::string(run == "windows" ? 300 : 1, 'a') + " the owl\"" +
            members + "}' | ");
  };
  for (const char* run : {"classifier", "windows"}) {
    const std::string expected = predict(run, "").out;
    EXPECT_THAT(expected, HasSubstr("label"));
    for (const char* ids : {"[2, 3]", "[\"a\"]", "[99999999]", "7"})
      EXPECT_EQ(predict(run, std::string(", \"ids\": ") + ids).out, expected) << run << ids;
  }
  EXPECT_THAT(predict("pairs", ", \"ids\": [2, 3]").err, HasSubstr("was trained on pairs"));
}

TEST(Predict, ReadsTablesAsSetTells) {
  const std::string folder = TemporaryFolder(), model = " --model " + kModels + "classifier ";
  std::ofstream(folder + "/plain.csv") << "text\nthe owl\ncaf\xC3\xA9\n";
  std::ofstream(folder + "/other.csv") << "1;the owl\n2;caf\xE9\n";
  const std::string plain = RunCloze("predict" + model + folder + "/plain.csv").out;
  const std::string set = " --set encoding=LATIN1 --text-field 2 --set header=false ";
  const RunResult other =
      RunCloze("predict --set 'delimiter=;'" + model + set + folder + "/other.csv");
  EXPECT_EQ(other.out, plain) << other.err;
  EXPECT_THAT(RunCloze("predict" + model + set + folder + "/other.csv").err,
      HasSubstr("set delimiter: \";\")"));
  EXPECT_EQ(RunCloze("predict --set encoding=LATIN1" + model, "printf 'the owl\ncaf\351\n' | ").out,
      plain)
      << "of a pipe";
  for (const auto& [wrong, expected] : {std::pair<const char*, const char*>{"label_field=1",
                                            "expected delimiter, encoding or header"},
           {"delimiter=ab", "expected one ASCII character"}, {"encoding=KOI8", "encoding"},
           {"header", "expected FIELD=VALUE"}}) {
    const RunResult run = RunCloze(std::string("predict --set ") + wrong + model);
    EXPECT_NE(run.exit, 0) << wrong;
    EXPECT_THAT(run.err, HasSubstr(expected)) << wrong;
  }
}

TEST(Predict, WrongTypesAreAnErrorOfTheirLine) {
  const RunResult result =
      RunCloze("predict --on-error line --input-format jsonl --model " + kModels + "classifier",
          R"(printf '{"ids": [2, 5, 3], "token_type_ids": [1, 1, 1]}\n{"ids": [2, 5, 3]}\n' | )");
  EXPECT_EQ(result.exit, 65);
  EXPECT_THAT(result.out, ::testing::HasSubstr("\"line\": 1, \"error\": "));
  EXPECT_THAT(result.out, ::testing::HasSubstr("\"label\": "));
}

TEST(Evaluate, PredictionsOfFastTextFilesHaveTheTexts) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/ft.txt") << "__label__bird the owl\n";
  const RunResult result = RunCloze("evaluate --model " + kModels + "classifier --data " + folder +
                                    "/ft.txt --predictions " + folder + "/p.jsonl");
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(Content(folder + "/p.jsonl"), ::testing::StartsWith("{\"text\": \"the owl\", "));
}

TEST(Tag, WordsAndNumbersAreNotOverwritten) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/c.conll") << "the X O\nowl Y O\n\n";
  const RunResult result =
      RunCloze("tag --column 1 --model " + kModels + "tagger " + folder + "/c.conll");
  EXPECT_EQ(result.exit, 65);
  EXPECT_THAT(result.err, ::testing::HasSubstr("holds the words"));
}

}  // namespace
}  // namespace cloze
