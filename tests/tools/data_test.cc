// `cloze data check`.
#include <fstream>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Writes a spec of a tiny classifier with the vocabulary vocab.txt in `folder` and returns its
// path.
std::string WriteSpec(const std::string& folder, const std::string& task, const std::string& data) {
  const std::string path = folder + "/s.textproto";
  std::ofstream(path) << "model { tokenizer: '" << folder
                      << "/vocab.txt' encoder { preset: TINY } } sequence_classification { " << task
                      << " } output { directory: 'run' } " << data;
  return path;
}

TEST(DataCheck, CountsAndWarns) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n";
  std::ofstream(folder + "/train.csv") << "text;label\na b;X\na b;x\nb;X\nbb;x\n;X\na z;x\n";
  std::ofstream(folder + "/dev.csv") << "text;label\na b;X\nbb a;x\n";
  const std::string spec = WriteSpec(folder, "",
      "train { files: '" + folder + "/train.csv' delimiter: ';' } validation { files: '" + folder +
          "/dev.csv' delimiter: ';' }");
  const RunResult result = RunCloze("data check " + spec);
  ASSERT_EQ(result.exit, 0) << result.err;
  const json check = json::parse(result.out);
  EXPECT_EQ(check["train"]["classes"], json({{"X", 3}, {"x", 3}}));
  EXPECT_EQ(check["train"]["empty"], 1);
  EXPECT_EQ(check["train"]["repeated"], 1);
  EXPECT_EQ(check["train"]["conflicting"], 1);
  EXPECT_EQ(check["train"]["unknown_tokens"], 1);
  EXPECT_EQ(check["train"]["lengths"]["longest"], 4);
  EXPECT_EQ(check["leaked"], 1);
  EXPECT_EQ(check["label_variants"], json::parse(R"([["X", "x"]])"));
  EXPECT_EQ(check["warnings"].size(), 7u) << check["warnings"];
  const RunResult strict = RunCloze("data check --strict " + spec);
  EXPECT_EQ(strict.exit, 65);
  EXPECT_THAT(strict.err, HasSubstr("7 warnings about the data"));
}

TEST(DataCheck, CountsTheWordsOfAllWindows) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
  std::ofstream train(folder + "/train.conll");
  for (int i = 0; i < 40; ++i) train << (i < 4 ? "a A\n" : "b B\n");
  train.close();
  std::ofstream(folder + "/s.textproto")
      << "model { tokenizer: '" << folder << "/vocab.txt' encoder { preset: TINY } } "
      << "token_tagging { max_tokens: 16 } output { directory: 'run' } train { files: '" << folder
      << "/train.conll' format: CONLL }";
  const RunResult result = RunCloze("data check " + folder + "/s.textproto");
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(json::parse(result.out)["train"]["classes"], json({{"A", 4}, {"B", 36}}));
}

TEST(DataCheck, WindowsAndWeightsAreNoWarnings) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
  std::ofstream(folder + "/train.csv") << "text,label\na a a a b b b b a b a b,X\nb a,Y\n";
  const std::string spec =
      WriteSpec(folder, "max_tokens: 8 long_texts: WINDOWS balance_classes: true",
          "train { files: '" + folder + "/train.csv' }");
  const RunResult result = RunCloze("data check --strict " + spec);
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(json::parse(result.out)["warnings"], json::array());
}

TEST(DataCheck, NamesAHeaderThatIsReadAsData) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
  const std::string rows = "a b a,X\nb b b,Y\na a b,X\nb a a,X\na a a,Y\nb b a,X\n";
  std::ofstream(folder + "/odd.csv") << "Wort,Bereich\n" << rows;
  std::ofstream(folder + "/usual.csv") << "text,label\n" << rows;
  const auto warnings = [&](const std::string& file) {
    const std::string spec = WriteSpec(folder, "",
        "train { files: '" + folder + "/" + file +
            "' header: false text_field: '1' label_field: '2' }");
    return json::parse(RunCloze("data check " + spec).out)["warnings"].dump();
  };
  EXPECT_THAT(warnings("odd.csv"), HasSubstr("odd.csv: the first row looks like a header"));
  EXPECT_THAT(warnings("odd.csv"), HasSubstr(R"(only one example: label \"Bereich\" (add)"));
  EXPECT_THAT(warnings("usual.csv"), HasSubstr("and is read as one"));
  EXPECT_THAT(warnings("usual.csv"), ::testing::Not(HasSubstr("only one example")));
}

TEST(DataCheck, SaysHowToMergeLabels) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
  std::ofstream(folder + "/train.csv") << "text,label\na,X\nb,x\na b,X \nb a,X\na a,Y\nb b,Y\n";
  const std::string data = "train { files: '" + folder + "/train.csv' }",
                    lines = "trim_labels: true label_map: \"x=X\"";
  const json warnings =
      json::parse(RunCloze("data check " + WriteSpec(folder, "", data)).out)["warnings"];
  EXPECT_THAT(warnings.dump(), HasSubstr("to merge them, write in the spec: "
                                         "sequence_classification { trim_labels: true label_map"));
  const RunResult merged = RunCloze("data check " + WriteSpec(folder, lines, data));
  EXPECT_EQ(json::parse(merged.out)["train"]["classes"], json({{"X", 4}, {"Y", 2}})) << merged.err;
  EXPECT_EQ(json::parse(merged.out)["label_variants"], json::array());
}

// They count as wrong at evaluation; the check names no class for them.
TEST(DataCheck, LabelsThatTrainingLacks) {
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
  std::ofstream(folder + "/train.csv") << "text,label\na,X\nb,Y\n";
  std::ofstream(folder + "/dev.csv") << "text,label\na b,X\nb a,odd\n";
  const std::string spec = WriteSpec(folder, "",
      "train { files: '" + folder + "/train.csv' } validation { files: '" + folder + "/dev.csv' }");
  const RunResult result = RunCloze("data check " + spec);
  ASSERT_EQ(result.exit, 0) << result.err;
  const json check = json::parse(result.out);
  EXPECT_EQ(check["validation"]["classes"], json({{"X", 1}, {"Y", 0}}));
  EXPECT_EQ(check["validation"]["lengths"]["histogram"][0]["count"], 2);
}

}  // namespace
}  // namespace cloze
