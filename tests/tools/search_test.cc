// cloze search, similar and the evaluation of retrieval, with hostile vectors.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kModel = std::string(CLOZE_SOURCE_DIR) + "/tests/golden/masked_lm";

// A .npy file of `values`, with this shape, type and order.
std::string Npy(const std::vector<float>& values, const std::string& shape,
    const std::string& type = "<f4", const std::string& fortran = "False") {
  std::string header = absl::StrCat(
      "{'descr': '", type, "', 'fortran_order': ", fortran, ", 'shape': ", shape, ", }");
  header.resize(117, ' ');
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += header + "\n";
  return bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * 4);
}

class SearchTest : public testing::Test {
 protected:
  SearchTest() {
    // A model with a tokenizer of one letter per token.
    std::filesystem::create_directories(model_);
    for (const char* file : {"config.json", "model.safetensors"})
      std::filesystem::copy(kModel + "/" + file, model_);
    std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (char c = 'a'; c <= 'z'; ++c) vocab += absl::StrCat(std::string(1, c), "\n");
    Write("model/vocab.txt", vocab);
    Write("texts.jsonl",
        "{\"_id\": \"d1\", \"title\": \"a\", \"text\": \"b c\"}\n"
        "{\"_id\": \"d2\", \"title\": \"\", \"text\": \"x y z\"}\n"
        "{\"_id\": \"d3\", \"text\": \"a b c\"}\n");
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  std::string At(const std::string& name) const { return folder_ + "/" + name; }
  RunResult Search(const std::string& index, const std::string& rest = "\"a b c\"") {
    return RunCloze("search --model " + model_ + " --index " + At(index) + " " + rest);
  }
  // Runs a search in vectors that are wrong.
  void ExpectRefused(const std::string& name, const std::string& bytes, const std::string& says) {
    Write(name, bytes);
    const RunResult result = Search(name);
    EXPECT_EQ(result.exit, 65) << says << "\n" << result.err;
    EXPECT_THAT(result.err, HasSubstr(says));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  int64_t Dimensions() {
    return nlohmann::json::parse(Content(model_ + "/config.json"))["hidden_size"];
  }
  const std::string folder_ = TemporaryFolder(), model_ = folder_ + "/model";
};

TEST_F(SearchTest, FindsTextsInVectorsOfEveryType) {
  for (const std::string options : {"--out v.npy", "--out v.safetensors --pool mean --normalize",
           "--out b.safetensors --type bf16", "--out i.safetensors --type int8"}) {
    const std::string file = options.substr(6, options.find(' ', 6) - 6);
    const RunResult encoded = RunCloze(absl::StrCat(
        "encode --model ", model_, " ", At("texts.jsonl"), " --out ", At(""), options.substr(6)));
    ASSERT_EQ(encoded.exit, 0) << encoded.err;
    const RunResult result = Search(file, "--top 2 --text " + At("texts.jsonl") + " a b c");
    ASSERT_EQ(result.exit, 0) << result.err;
    const auto hits = JsonLines(result.out)[0]["hits"];
    ASSERT_EQ(hits.size(), 2) << result.out;
    EXPECT_EQ(hits[0]["text"], "a b c") << options;
    EXPECT_THAT((std::vector<std::string>{hits[0]["id"], hits[1]["id"]}),
        testing::UnorderedElementsAre("d1", "d3"));
    EXPECT_NEAR(hits[0]["score"].get<double>(), 1, 0.01);
    EXPECT_EQ(hits[0]["rank"], 1);
  }
}

TEST_F(SearchTest, ReadsQueriesFromFilesAndPipesAndWritesTables) {
  ASSERT_EQ(
      RunCloze("encode --model " + model_ + " --out " + At("v.npy") + " " + At("texts.jsonl")).exit,
      0);
  const std::string search = "search --model " + model_ + " --index " + At("v.npy");
  const auto lines = JsonLines(RunCloze(search, "printf 'a b\\nx y\\n' | ").out);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[1]["query"], "x y");
  EXPECT_EQ(lines[1]["hits"][0]["id"], "d2");
  Write("q.jsonl", "{\"_id\": \"q7\", \"text\": \"x y\"}\n");
  const RunResult csv = RunCloze(search + " --top 1 --format csv --queries " + At("q.jsonl"));
  EXPECT_THAT(csv.out, HasSubstr("query_id,query,rank,score,row,id\nq7,x y,1,0."));
  EXPECT_EQ(RunCloze(search + " --threads 1 a b").out, RunCloze(search + " --threads 3 a b").out);
}

TEST_F(SearchTest, WritesHardNegatives) {
  ASSERT_EQ(
      RunCloze("encode --model " + model_ + " --out " + At("v.npy") + " " + At("texts.jsonl")).exit,
      0);
  const std::string search = absl::StrCat("search --model ", model_, " --index ", At("v.npy"),
      " --text ", At("texts.jsonl"), " --negatives 2 --margin 0 --queries ");
  Write("pairs.jsonl", "{\"text\": \"a b\", \"text_pair\": \"a b c\"}\n");
  const RunResult result = RunCloze(search + At("pairs.jsonl"));
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto group = JsonLines(result.out)[0];
  EXPECT_EQ(group["query"], "a b");
  EXPECT_THAT(group["pos"], ElementsAre("a b c"));
  EXPECT_THAT(group["neg"], ElementsAre("x y z"));
  Write("pairs.jsonl", "{\"text\": \"a b\"}\n");
  EXPECT_THAT(RunCloze(search + At("pairs.jsonl")).err, HasSubstr("pairs.jsonl:1: one text"));
}

TEST_F(SearchTest, SimilarListsPairsOfTextsAndOfVectors) {
  const RunResult texts =
      RunCloze("similar --model " + model_ + " --threshold 0.9999 " + At("texts.jsonl"));
  ASSERT_EQ(texts.exit, 0) << texts.err;
  const auto pairs = JsonLines(texts.out);
  ASSERT_EQ(pairs.size(), 1) << texts.out;
  EXPECT_EQ(pairs[0]["a_id"], "d1");
  EXPECT_EQ(pairs[0]["b_row"], 2);
  Write("a.npy", Npy({1, 0, 0, 2, 3, 3}, "(3, 2)"));
  Write("b.npy", Npy({5, 5}, "(1, 2)"));
  EXPECT_THAT(RunCloze("similar --format csv " + At("a.npy") + " " + At("b.npy")).out,
      HasSubstr("score,a_row,b_row\n"));
  EXPECT_EQ(RunCloze("similar " + At("a.npy")).out, "");
  EXPECT_EQ(JsonLines(RunCloze("similar --threshold 0.7 " + At("a.npy")).out).size(), 2);
  Write("c.npy", Npy({5, 5, 5}, "(1, 3)"));
  EXPECT_EQ(RunCloze("similar " + At("a.npy") + " " + At("c.npy")).exit, 76);
  EXPECT_EQ(RunCloze("similar " + At("texts.jsonl")).exit, 2);
}

TEST_F(SearchTest, RefusesVectorsThatAreWrong) {
  const float nan = std::nanf("");
  ExpectRefused("empty.npy", Npy({}, "(0, 32)"), "no vectors");
  ExpectRefused("nan.npy", Npy({1, nan}, "(1, 2)"), "vector 1 of 1 has a value that is NaN");
  ExpectRefused("huge.npy", Npy({3e38f, 3e38f}, "(1, 2)"), "too large");
  ExpectRefused("one.npy", Npy({1, 2}, "(2,)"), "expected two dimensions");
  ExpectRefused("three.npy", Npy({1, 2}, "(1, 2, 1)"), "expected two dimensions");
  ExpectRefused("negative.npy", Npy({1, 2}, "(-1, 2)"), "expected two dimensions");
  ExpectRefused("wide.npy", Npy({1, 2}, "(4611686018427387904, 4)"), "expected two dimensions");
  ExpectRefused("over.npy", Npy({1, 2}, "(99999999999999999999, 2)"), "expected two dimensions");
  ExpectRefused("short.npy", Npy({1, 2}, "(2, 2)"), "its size does not fit");
  ExpectRefused("double.npy", Npy({1, 2}, "(1, 1)", "<f8"), "expected '<f4'");
  ExpectRefused("order.npy", Npy({1, 2}, "(1, 2)", "<f4", "True"), "fortran_order");
  ExpectRefused("not.npy", "not vectors at all", "not a .npy file");
  ExpectRefused("none.npy", "", "shorter than its header");
  ExpectRefused("header.npy", std::string("\x93NUMPY\x01\x00\xff\xff{", 11) + "  ", "header");
  ExpectRefused("cut.npy", Npy({}, "(1, 2)").substr(0, 60), "header does not fit");
  ExpectRefused("v.safetensors", std::string(8, '\xff'), "v.safetensors");
  Write("ids.npy", Npy({1, 2}, "(1, 2)"));
  Write("ids.npy.ids.json", "[1, 2]");
  EXPECT_THAT(Search("ids.npy").err, HasSubstr("expected a list of 1 ids"));
  Write("ids.npy.ids.json", "[1");
  EXPECT_EQ(Search("ids.npy").exit, 65);
  EXPECT_EQ(Search("missing.npy").exit, 66);
}

TEST_F(SearchTest, RefusesTextsAndModelsThatDoNotFit) {
  Write("two.npy", Npy({1, 2}, "(1, 2)"));
  RunResult result = Search("two.npy");
  EXPECT_EQ(result.exit, 76);
  EXPECT_THAT(result.err, HasSubstr("vectors of 2 dimensions"));
  const int64_t dim = Dimensions();
  Write("v.npy", Npy(std::vector<float>(dim, 1), absl::StrCat("(1, ", dim, ")")));
  result = Search("v.npy", "--text " + At("texts.jsonl") + " a");
  EXPECT_EQ(result.exit, 76);
  EXPECT_THAT(result.err, HasSubstr("3 texts for 1 vector"));
  Write("v.npy.ids.json", "[\"other\"]");
  Write("one.jsonl", "{\"_id\": \"d\", \"text\": \"a\"}\n");
  result = Search("v.npy", "--text " + At("one.jsonl") + " a");
  EXPECT_EQ(result.exit, 76);
  EXPECT_THAT(result.err, HasSubstr("text 1 has the id \"d\", its vector \"other\""));
  EXPECT_EQ(Search("v.npy", "--rerank " + model_ + " a").exit, 2);
  EXPECT_EQ(Search("v.npy", "--rerank " + model_ + " --text " + At("one.jsonl") + " a").exit, 76);
  EXPECT_EQ(Search("v.npy", "--negatives 3 a").exit, 2);
}

TEST_F(SearchTest, IdsOfDatabasesAreNotThoseOfBeir) {
  Write("mongo.jsonl", "{\"_id\": {\"$oid\": \"1\"}, \"title\": \"x\", \"text\": \"a\"}\n");
  Write("plain.jsonl", "{\"text\": \"a\"}\n");
  Write("both.jsonl", "{\"_id\": 3, \"id\": 4, \"title\": \"x\", \"text\": \"a\"}\n");
  const std::string encode = "encode --model " + model_ + " --out - ";
  const RunResult mongo = RunCloze(encode + At("mongo.jsonl"));
  EXPECT_EQ(mongo.exit, 0) << mongo.err;
  EXPECT_EQ(mongo.out, RunCloze(encode + At("plain.jsonl")).out);
  EXPECT_THAT(RunCloze(encode + At("both.jsonl")).out, HasSubstr("{\"id\": 4, "));
}

TEST_F(SearchTest, EvaluateRecognisesACollection) {
  Write("corpus.jsonl", Content(At("texts.jsonl")));
  Write(
      "queries.jsonl", "{\"_id\": \"q\", \"text\": \"x y\"}\n{\"_id\": \"r\", \"text\": \"b\"}\n");
  Write("qrels.tsv", "query-id\tcorpus-id\tscore\nq\td2\t1\nq\tgone\t1\n");
  const RunResult result = RunCloze("evaluate --model " + model_ + " --data " + folder_);
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto scores = JsonLines(result.out)[0];
  EXPECT_EQ(scores["mrr_at_10"], 1);
  EXPECT_EQ(scores["recall_at_100"], 0.5);
  EXPECT_EQ(scores["bm25"]["mrr_at_10"], 1);
  EXPECT_EQ(scores["queries"], 1);
  EXPECT_EQ(scores["queries_without_relevant"], 1);
  EXPECT_THAT(result.err, HasSubstr("1 judgement of documents that the corpus lacks"));
  EXPECT_EQ(RunCloze("evaluate --predictions - --model " + model_ + " --data " + folder_).exit, 2);
  const RunResult twice =
      RunCloze("evaluate --model " + model_ + " --against " + model_ + " --data " + folder_);
  ASSERT_EQ(twice.exit, 0) << twice.err;
  const auto difference = JsonLines(twice.out)[0]["better_than"]["against"];
  EXPECT_EQ(difference["ndcg_at_10"], 0);
  EXPECT_EQ(difference["p"], 1);
  EXPECT_EQ(RunCloze("evaluate --model " + model_ + " --against " + model_ + " --data " +
                     At("texts.jsonl"))
                .exit,
      2);
}

}  // namespace
}  // namespace cloze
