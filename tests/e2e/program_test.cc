// The program from text to answers, as a user runs it: vocabulary, pretraining, both fine-tunings,
// every inference command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "core/tensor/safetensors.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Made once: text, labelled data, and the runs that learn from them.
class ProgramTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new std::string(TemporaryFolder());
    std::ofstream text(Path("text.txt")), classes(Path("classes.tsv")), tags(Path("tags.conllu"));
    classes << "text\tlabel\n";
    for (int i = 0; i < 80; ++i) {
      const bool good = i % 2 == 0;
      text << (good ? "The good film was a great joy to see.\n\n"
                    : "This bad movie is a dull waste of time.\n\n");
      classes << (good ? "a great film " : "a dull movie ") << i << '\t'
              << (good ? "positive" : "negative") << '\n';
      tags << "# sent_id = " << i << "\n1-2\tTheyll\t_\t_\t_\t_\t_\t_\t_\t_\n1\t"
           << (good ? "film" : "movie") << "\tl\tNOUN\tNN\tF=" << i
           << "\t0\troot\t_\t_\n2\twas\tbe\tVERB\tVBD\t_\t1\tdep\t_\tSpaceAfter=No\n\n";
    }
    text.close(), classes.close(), tags.close();
    Expect0("vocab --text " + Path("text.txt") + " --size 120 --out " + Path("vocab"));
    const std::string encoder = "model { tokenizer: \"" + Path("vocab") +
                                "\" encoder { preset: CUSTOM layers: 2 hidden: 32 heads: 2 "
                                "intermediate: 64 max_positions: 32 } } ";
    Spec("mlm", encoder + "masked_lm { max_tokens: 24 }", "text.txt", 120);
    Expect0("pretrain " + Path("mlm.textproto"));
    const std::string start = "model { start_from: \"" + Path("mlm") + "\" } ";
    Spec("classifier", start + "sequence_classification { max_tokens: 24 }", "classes.tsv", 60);
    Spec("tagger", start + "token_tagging { max_tokens: 24 }", "tags.conllu", 60);
    Expect0("finetune " + Path("classifier.textproto"));
    Expect0("finetune " + Path("tagger.textproto"));
  }
  static void TearDownTestSuite() { delete dir_; }

  static std::string Path(const std::string& name) { return *dir_ + "/" + name; }
  static void Expect0(const std::string& arguments) {
    const RunResult r = RunCloze(arguments);
    ASSERT_EQ(r.exit, 0) << arguments << '\n' << r.err;
  }
  static void Spec(
      const std::string& name, const std::string& task, const std::string& data, int steps) {
    std::ofstream(Path(name + ".textproto"))
        << task << " train { files: \"" << Path(data) << "\" } validation { files: \"" << Path(data)
        << "\" } batch { tokens: 512 } optimizer { learning_rate: 0.005 } schedule { steps: "
        << steps << " } output { directory: \"" << Path(name) << "\" }";
  }

  static std::string* dir_;
};
std::string* ProgramTest::dir_ = nullptr;

TEST_F(ProgramTest, FillsMasks) {
  const RunResult r = RunCloze("fill-mask --model " + Path("mlm"),
      "printf 'The good <mask> was a great joy to see.\\na [MASK] waste of [MASK].\\n' | ");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto lines = JsonLines(r.out);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0]["masks"][0][0]["token"], "film");
  EXPECT_EQ(lines[1]["masks"].size(), 2);
  EXPECT_EQ(RunCloze("fill-mask --model " + Path("mlm") + " nothing").exit, 65);
  const RunResult brackets =
      RunCloze("fill-mask --model " + Path("mlm") + " '[MASK], a [MASK]' 'a [MASK] joy'");
  ASSERT_EQ(brackets.exit, 0) << brackets.err;
  ASSERT_EQ(JsonLines(brackets.out).size(), 2);
  EXPECT_EQ(JsonLines(brackets.out)[0]["masks"].size(), 2);
}

TEST_F(ProgramTest, PredictsAndEvaluates) {
  const RunResult r = RunCloze(
      "predict --model " + Path("classifier"), "printf 'a great film\\na dull movie\\n' | ");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto lines = JsonLines(r.out);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0]["label"], "positive");
  EXPECT_EQ(lines[1]["label"], "negative");
  EXPECT_NEAR(
      lines[0]["scores"]["positive"].get<double>() + lines[0]["scores"]["negative"].get<double>(),
      1, 1e-6);
  const RunResult e =
      RunCloze("evaluate --model " + Path("classifier") + " --data " + Path("classes.tsv"));
  ASSERT_EQ(e.exit, 0) << e.err;
  EXPECT_EQ(json::parse(e.out)["accuracy"], 1.0);
  const RunResult m = RunCloze("evaluate --model " + Path("mlm") + " --data " + Path("text.txt"));
  ASSERT_EQ(m.exit, 0) << m.err;
  EXPECT_LT(json::parse(m.out)["loss"].get<double>(), 1.5);
}

TEST_F(ProgramTest, JsonLinesKeepTheirIdsAndBadOnesAreNamed) {
  const RunResult r = RunCloze("predict --input-format jsonl --model " + Path("classifier"),
      R"(printf '{"id": 7, "text": "a great film"}\n{"id": "x", "ids": [2, 20, 3]}\n{"text": 5}\n' | )");
  EXPECT_EQ(r.exit, 65);
  EXPECT_THAT(r.err, HasSubstr("standard input:3"));
  const auto lines = JsonLines(r.out);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0]["id"], 7);
  EXPECT_EQ(lines[1]["id"], "x");
}

TEST_F(ProgramTest, SeveralLabelsOfEachText) {
  std::ofstream data(Path("several.jsonl"));
  for (int i = 0; i < 60; ++i) {
    data << (i % 3 == 0      ? R"({"text": "a great joy", "label": ["good", "short"]})"
                : i % 3 == 1 ? R"({"text": "a dull waste of time", "label": ["bad"]})"
                             : R"({"text": "the", "label": []})")
         << '\n';
  }
  data.close();
  Spec("several",
      "model { start_from: \"" + Path("mlm") +
          "\" } sequence_classification { kind: MULTI_LABEL max_tokens: 24 }",
      "several.jsonl", 80);
  Expect0("finetune " + Path("several.textproto"));
  const RunResult r = RunCloze("predict --model " + Path("several"),
      "printf 'a great joy\\na dull waste of time\\nthe\\n' | ");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto lines = JsonLines(r.out);
  EXPECT_EQ(lines[0]["labels"], json({"good", "short"}));
  EXPECT_EQ(lines[1]["labels"], json({"bad"}));
  EXPECT_EQ(lines[2]["labels"], json::array());
  EXPECT_GT(lines[0]["scores"]["good"].get<double>(), 0.5);
  const RunResult e =
      RunCloze("evaluate --model " + Path("several") + " --data " + Path("several.jsonl"));
  ASSERT_EQ(e.exit, 0) << e.err;
  EXPECT_EQ(json::parse(e.out)["micro_f1"], 1.0);
}

TEST_F(ProgramTest, ANumberForEachPairOfTexts) {
  std::ofstream data(Path("number.tsv"));
  data << "a\tb\tscore\n";
  for (int i = 0; i < 60; ++i)
    data << (i % 2 == 0 ? "a great joy\t" : "a dull waste\t") << (i % 3 == 0 ? "great" : "dull")
         << '\t' << i % 2 + i % 3 << '\n';
  data.close();
  const std::string fields = " text_field: \"a\" text_pair_field: \"b\" label_field: \"score\" ";
  std::ofstream(Path("number.textproto"))
      << "model { start_from: \"" << Path("mlm")
      << "\" } sequence_classification { kind: REGRESSION max_tokens: 24 } train { files: \""
      << Path("number.tsv") << "\"" << fields << "} validation { files: \"" << Path("number.tsv")
      << "\"" << fields
      << "} batch { tokens: 512 } optimizer { learning_rate: 0.005 } schedule { steps: 40 } output "
         "{ directory: \""
      << Path("number") << "\" }";
  Expect0("finetune " + Path("number.textproto"));
  const std::string predict = "predict --model " + Path("number");
  const RunResult r = RunCloze(predict, "printf 'a great joy\\tgreat\\n' | ");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_TRUE(JsonLines(r.out)[0]["score"].is_number());
  const RunResult j = RunCloze(predict + " --input-format jsonl",
      R"(printf '{"text": "a great joy", "text_pair": "great"}\n{"text": "x"}\n' | )");
  EXPECT_EQ(j.exit, 65);
  EXPECT_EQ(j.out, r.out);
  EXPECT_THAT(j.err, HasSubstr("standard input:2: one text, but this model was trained on pairs"));
  const RunResult ids =
      RunCloze("tokenize --pairs --model " + Path("number"), "printf 'a great joy\\tgreat\\n' | ");
  std::ofstream(Path("ids.jsonl")) << ids.out;
  EXPECT_EQ(RunCloze(predict + " --input-format jsonl " + Path("ids.jsonl")).out, r.out);
  EXPECT_THAT(RunCloze(predict, "printf 'no tab\\n' | ").err, HasSubstr("1: no tab"));
  const RunResult e =
      RunCloze("evaluate --model " + Path("number") + " --data " + Path("number.tsv"));
  ASSERT_EQ(e.exit, 0) << e.err;
  EXPECT_TRUE(json::parse(e.out)["pearson"].is_number());
  const RunResult c =
      RunCloze("evaluate --model " + Path("number") + " --data " + Path("classes.tsv"));
  EXPECT_EQ(c.exit, 65);
  EXPECT_THAT(c.err, HasSubstr("text_field: no column \"a\"; there are \"text\", \"label\""));
}

// An encoder and a decoder that begin as the pretrained encoder.
TEST_F(ProgramTest, WritesATargetForEachSource) {
  std::ofstream pairs(Path("pairs.tsv"));
  pairs << "text\ttarget\n";
  for (int i = 0; i < 80; ++i) pairs << "a great film\tgood joy\na dull movie\tbad waste of time\n";
  pairs.close();
  Spec("pairs",
      "model { start_from: \"" + Path("mlm") +
          "\" } sequence_to_sequence { max_tokens: 24 max_target_tokens: 12 }",
      "pairs.tsv", 60);
  const std::string run = "finetune " + Path("pairs.textproto") +
                          " --set train.text_pair_field=target"
                          " --set validation.text_pair_field=target";
  Expect0(run + " --plan");
  Expect0(run);
  Expect0("verify " + Path("pairs"));
  const RunResult r =
      RunCloze("generate --model " + Path("pairs"), "printf 'a great film\\na dull movie\\n' | ");
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(r.out, "good joy\nbad waste of time\n");
  const RunResult metrics =
      RunCloze("evaluate --model " + Path("pairs") + " --data " + Path("pairs.tsv"));
  ASSERT_EQ(metrics.exit, 0) << metrics.err;
  EXPECT_EQ(json::parse(metrics.out)["exact_match"], 1.0);
  EXPECT_THAT(json::parse(metrics.out)["bleu_signature"], HasSubstr("tok:13a"));
  const RunResult other = RunCloze("predict --model " + Path("pairs"), "echo text | ");
  EXPECT_NE(other.exit, 0);
  EXPECT_THAT(other.err, HasSubstr("has a head for sequence_to_sequence: use `cloze generate`"));
}

TEST_F(ProgramTest, TagsColumnForColumn) {
  const RunResult r =
      RunCloze("tag --format conllu --model " + Path("tagger") + " " + Path("tags.conllu"));
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(r.out,
      Content(
          Path("tags.conllu")));  // a tagger that is right leaves its own training data as it is
}

TEST_F(ProgramTest, TagsEveryWordOfALongText) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += i % 2 == 0 ? "film " : "was ";
  const RunResult r = RunCloze("tag --model " + Path("tagger"), "echo '" + text + "' | ");
  ASSERT_EQ(r.exit, 0) << r.err;
  const json line = json::parse(r.out);
  ASSERT_EQ(line["words"].size(), 100);
  for (const json& word : line["words"])
    EXPECT_EQ(line["text"].get<std::string>().substr(
                  word["byte_start"], word["byte_end"].get<int>() - word["byte_start"].get<int>()),
        word["text"].get<std::string>());
}

// All that is around the labels stays as it is: comments, ranges, empty nodes, blank lines, CRLF,
// the missing end of the last line.
TEST_F(ProgramTest, TagsAreAllThatChangesInAFile) {
  const std::string conllu =
      "\xEF\xBB\xBF# newdoc\r\n# text = d\xC3\xA9j\xC3\xA0 "
      "'vu'\r\n1-2\tfilmwas\t_\t_\t_\t_\t_\t_\t_\tx=\xE4\xB8\xAD\r\n"
      "1\tfilm\tfilm \t?\tNN\t_\t0\troot\t_\t "
      "\r\n1.1\tgone\t_\t?\t_\t_\t_\t_\t0:x\t_\r\n2\twas\tbe\t?\tVBD\t_\t1\tdep\t_\t_\r\n"
      "\r\n\n\n# alone\n1\t\xCC\x81\t_\t?\t_\t_\t_\t_\t_\t_\n2\tmovie\t_\t?\t_\t_\t_\t_\t_\t_";
  const std::string conll = "-DOCSTART- -X- O\n\nfilm  NN   ?\nwas VBD ?\n\n\nmovie\tNN\t?\r\n  \n";
  for (const auto& [name, content, column] :
      {std::tuple("a.conllu", conllu, 3), std::tuple("a.conll", conll, 2)}) {
    std::ofstream(Path(name), std::ios::binary) << content;
    const bool u = column == 3;
    const RunResult r = RunCloze(
        std::string("tag --format ") + (u ? "conllu" : "conll") + " --model " + Path("tagger"),
        "cat " + Path(name) + " | ");
    ASSERT_EQ(r.exit, 0) << r.err;
    std::string back = r.out;
    for (const char* tag : {"NOUN", "VERB"}) {
      for (size_t at = 0; (at = back.find(tag, at)) != std::string::npos; ++at)
        back.replace(at, 4, 1, '?');
    }
    EXPECT_EQ(back, content);
    EXPECT_NE(r.out, content);
  }
}

// Random text in, every word out, and each span cuts its word out of the text by bytes and by code
// points.
TEST_F(ProgramTest, TagsSliceBackWhateverTheText) {
  static const std::u32string kPool =
      U"film was \u00e9\u0301\u4e2d\U0001F600\u200d\u0001\u00a0\u202e.,[MASK]\t\u2028\ue000";
  std::mt19937 random(1);
  std::ofstream in(Path("random.jsonl"));
  std::vector<std::u32string> texts;
  for (int n = 0; n < 200; ++n) {
    std::u32string text;
    for (int i = random() % 60; i >= 0; --i) text += kPool[random() % kPool.size()];
    if (n % 9 == 0) text += std::u32string(500, U'q');
    texts.push_back(text);
    std::string escaped;
    for (const char32_t c : text) {
      char unit[16];
      const auto put = [&](uint32_t v) {
        std::snprintf(unit, sizeof(unit), "\\u%04x", v), escaped += unit;
      };
      if (c >= 0x10000)
        put(0xD800 + ((c - 0x10000) >> 10)), put(0xDC00 + ((c - 0x10000) & 0x3FF));
      else
        put(c);
    }
    in << "{\"text\": \"" << escaped << "\", \"id\": " << n << "}\n";
  }
  in.close();
  const RunResult r =
      RunCloze("tag --format jsonl --model " + Path("tagger") + " " + Path("random.jsonl"));
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto lines = JsonLines(r.out);
  ASSERT_EQ(lines.size(), texts.size());
  for (size_t n = 0; n < lines.size(); ++n) {
    const std::string text = lines[n]["text"];
    std::u32string covered = texts[n];
    for (const json& w : lines[n]["words"]) {
      const int64_t begin = w["byte_start"], end = w["byte_end"], first = w["start"],
                    last = w["end"];
      ASSERT_EQ(text.substr(begin, end - begin), w["text"].get<std::string>());
      const auto chars = [](const std::string& s) {
        return std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; });
      };
      ASSERT_EQ(chars(text.substr(0, begin)), first);
      ASSERT_EQ(chars(text.substr(begin, end - begin)), last - first);
      std::fill(covered.begin() + first, covered.begin() + last, U'*');
    }
    // Between white space there is always a word.
    for (size_t at = 0, begin = 0; at <= covered.size(); ++at) {
      if (at < covered.size() &&
          std::u32string(U" \t\u00a0\u2028").find(texts[n][at]) == std::u32string::npos)
        continue;
      ASSERT_TRUE(
          begin == at || covered.substr(begin, at - begin).find(U'*') != std::u32string::npos)
          << text;
      begin = at + 1;
    }
  }
}

TEST_F(ProgramTest, LooksInside) {
  const RunResult n = RunCloze("neighbors --model " + Path("mlm") + " --top 3 film Bad");
  ASSERT_EQ(n.exit, 0) << n.err;
  const auto lines = JsonLines(n.out);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[1]["token"], "bad");
  ASSERT_EQ(lines[0]["neighbors"].size(), 3);
  EXPECT_NE(lines[0]["neighbors"][0]["token"], "film");
  EXPECT_GE(lines[0]["neighbors"][0]["score"], lines[0]["neighbors"][1]["score"]);
  const auto file = SafetensorsReader::Open(Path("mlm") + "/model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string name = "bert.embeddings.word_embeddings.weight";
  ASSERT_NE(file->Find(name), nullptr);
  std::vector<float> table(file->Find(name)->elements());
  ASSERT_TRUE(file->ReadF32(name, absl::MakeSpan(table)).ok());
  const auto dot = [&](int a, int b) {
    return std::inner_product(&table[a * 32], &table[a * 32] + 32, &table[b * 32], 0.0);
  };
  const json words = json::parse(RunCloze("tokenize --model " + Path("mlm"), "echo film | ").out);
  const int film = words["ids"][1], near = lines[0]["neighbors"][0]["id"];
  EXPECT_NEAR(lines[0]["neighbors"][0]["score"],
      dot(film, near) / std::sqrt(dot(film, film) * dot(near, near)), 1e-5);
  const RunResult a = RunCloze("analogy --model " + Path("mlm") + " good film bad");
  ASSERT_EQ(a.exit, 0) << a.err;
  EXPECT_EQ(JsonLines(a.out)[0]["neighbors"].size(), 10);
  const RunResult unknown = RunCloze("analogy --model " + Path("mlm") + " good moviee bad");
  EXPECT_EQ(unknown.exit, 65);
  EXPECT_THAT(unknown.err, HasSubstr("\"moviee\" is not one token of the vocabulary (it is"));
  EXPECT_THAT(unknown.err, HasSubstr("did you mean \"movie\"?"));
  EXPECT_EQ(RunCloze("analogy --model " + Path("mlm") + " good film").exit, 2);
  const std::string out = Path("page.html");
  const RunResult page =
      RunCloze("attention --model " + Path("mlm") + " 'The <b>film' --out " + out);
  ASSERT_EQ(page.exit, 0) << page.err;
  const std::string html = Content(out);
  EXPECT_THAT(html, HasSubstr("<symbol id=\"m-l2h2\""));
  EXPECT_EQ(html.find("<b>film"), std::string::npos);
  EXPECT_EQ(RunCloze("attention --model " + Path("mlm") + " x --out " + out).exit, 73);
  EXPECT_EQ(RunCloze("attention --model " + Path("mlm") + " x --force --out " + out).exit, 0);
}

TEST_F(ProgramTest, ReportsRunsAsOnePage) {
  std::filesystem::create_directory(Path("<b>&"));
  for (const char* file : {"log.jsonl", "spec.textproto", "metrics.json"})
    std::filesystem::copy_file(
        Path("classifier") + "/" + file, Path("<b>&") + "/" + std::string(file));
  std::ofstream(Path("<b>&") + "/log.jsonl", std::ios::app) << "{\"step\": 61, \"lo";  // torn
  Expect0("report " + Path("mlm") + " '" + Path("<b>&") + "' --out " + Path("report.html"));
  const std::string page = Content(Path("report.html"));
  for (const char* part : {"training loss, smoothed", "validation: accuracy", "tokens per second",
           "<td>positive</td>", "true \\ predicted", "sequence_classification {", "&lt;b&gt;&amp;"})
    EXPECT_THAT(page, HasSubstr(part));
  for (const char* part : {"<b>", "<script", "http:", "https:", "nan,", "inf,"})
    EXPECT_THAT(page, testing::Not(HasSubstr(part)));
  for (const char* tag : {"table", "tr", "figure", "svg", "pre", "div"}) {
    const auto count = [&](const std::string& text) {
      size_t found = 0;
      for (size_t at = 0; (at = page.find(text, at)) != std::string::npos; ++at) ++found;
      return found;
    };
    EXPECT_EQ(count("<" + std::string(tag) + ">") + count("<" + std::string(tag) + " "),
        count("</" + std::string(tag) + ">"))
        << tag;
  }
  EXPECT_EQ(RunCloze("report " + Path("none")).exit, 66);
  EXPECT_THAT(RunCloze("report " + Path("mlm") + " --out -").out, HasSubstr("<!DOCTYPE html>"));
  // All runs in a folder; an older page is replaced, another file is not.
  std::filesystem::create_directories(Path("sweep/b"));
  for (const char* run : {"sweep/a", "sweep/b/1"}) std::filesystem::copy(Path("<b>&"), Path(run));
  Expect0("report " + Path("sweep") + " --out " + Path("report.html"));
  for (const char* run : {"sweep/a", "sweep/b/1"})
    EXPECT_THAT(Content(Path("report.html")), HasSubstr(std::string(run) + "</h2>"));
  std::ofstream(Path("notes.html")) << "precious";
  EXPECT_EQ(RunCloze("report " + Path("mlm") + " --out " + Path("notes.html")).exit, 73);
  EXPECT_EQ(Content(Path("notes.html")), "precious");
}

TEST_F(ProgramTest, EncodesVectors) {
  const std::string out = Path("vectors.safetensors");
  const RunResult r = RunCloze(
      "encode --model " + Path("mlm") + " --out " + out, "printf 'a film\\nthe joy\\n' | ");
  ASSERT_EQ(r.exit, 0) << r.err;
  auto file = SafetensorsReader::Open(out);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_NE(file->Find("1"), nullptr);
  EXPECT_EQ(file->Find("1")->shape[1], 32);
  const auto read = [](const SafetensorsReader& from, const std::string& name) {
    std::vector<float> values(from.Find(name)->elements());
    EXPECT_TRUE(from.ReadF32(name, absl::MakeSpan(values)).ok());
    return values;
  };
  const std::vector<float> all = read(*file, "0");
  for (const std::string pool : {"class", "mean"}) {
    const RunResult pooled = RunCloze("encode --model " + Path("mlm") + " --pool " + pool +
                                          " --out " + Path(pool + ".safetensors"),
        "printf 'a film\\n' | ");
    ASSERT_EQ(pooled.exit, 0) << pooled.err;
    const auto vectors = SafetensorsReader::Open(Path(pool + ".safetensors"));
    ASSERT_TRUE(vectors.ok()) << vectors.status();
    const std::vector<float> vector = read(*vectors, "vectors");
    ASSERT_EQ(vector.size(), 32);
    const int64_t rows = pool == "class" ? 1 : all.size() / 32;
    for (int c = 0; c < 32; ++c) {
      double sum = 0;
      for (int64_t row = 0; row < rows; ++row) sum += all[row * 32 + c];
      EXPECT_NEAR(vector[c], sum / rows, 1e-5) << pool;
    }
  }
  EXPECT_NE(RunCloze("encode --model " + Path("mlm") + " --out " + out, "echo x | ").exit,
      0);  // never overwrites
}

TEST_F(ProgramTest, WrongUseIsExplained) {
  const RunResult wrong = RunCloze("predict --model " + Path("tagger"), "echo x | ");
  EXPECT_EQ(wrong.exit, 76);
  EXPECT_THAT(wrong.err, HasSubstr("cloze tag"));
  EXPECT_EQ(RunCloze("predict --model " + Path("absent"), "echo x | ").exit, 66);
  const RunResult task = RunCloze("finetune " + Path("mlm.textproto"));
  EXPECT_EQ(task.exit, 78);
  EXPECT_THAT(task.err, HasSubstr("mlm.textproto:1:"));
  EXPECT_THAT(task.err, HasSubstr("masked_lm: is a task for `cloze pretrain`"));
  const RunResult mask =
      RunCloze("fill-mask --model " + Path("mlm"), "printf 'a <mask>\\nno\\n' | ");
  EXPECT_EQ(mask.exit, 65);
  EXPECT_THAT(mask.err, HasSubstr("standard input:2: no <mask>"));
  EXPECT_EQ(RunCloze("tag --column 2 --model " + Path("tagger"), "echo x | ").exit, 2);
  const RunResult label = RunCloze(
      "finetune " + Path("classifier.textproto") +
      " --set sequence_classification.labels=good,bad --set output.directory=" + Path("other"));
  EXPECT_EQ(label.exit, 65);
  EXPECT_THAT(label.err, HasSubstr("classes.tsv:2"));
}

// What the tables of the peers' scripts read.
void ExpectBenchLine(const json& line, const std::string& work, const std::string& config) {
  EXPECT_EQ(line["peer"], "cloze");
  EXPECT_EQ(line["work"], work);
  EXPECT_EQ(line["config"], config);
  for (const char* field : {"batch", "seq", "tokens_per_s", "step_ms_median", "min", "max", "reps",
           "peak_rss_mb", "threads"})
    EXPECT_TRUE(line[field].is_number()) << work << " " << field;
  for (const char* field : {"dtype", "share_of_peak", "clean"})
    EXPECT_TRUE(line.contains(field)) << work << " " << field;
  EXPECT_LE(line["min"], line["step_ms_median"]);
  EXPECT_LE(line["step_ms_median"], line["max"]);
}

TEST(Bench, PrintsALineForEachCase) {
  const RunResult r = RunCloze(
      "bench train finetune infer tokenize start --encoder tiny --vocab 300 --batch 2 --seq 16 "
      "--steps 2 --warmup 1 --compute f32 --json "
      "--megabytes 0.05 --profile --threads 1");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto lines = JsonLines(r.out);
  ASSERT_EQ(lines.size(), 6);
  const std::pair<std::string, std::string> expected[] = {{"mlm_train", "tiny/v300"},
      {"finetune_cls", "tiny/sst2"}, {"infer_cls", "tiny"}, {"wordpiece_train", "v300"},
      {"tokenize", "v300"}, {"cold_start_cls", "tiny/v300"}};
  for (int i = 0; i < 6; ++i) ExpectBenchLine(lines[i], expected[i].first, expected[i].second);
  EXPECT_EQ(lines[0]["dtype"], "fp32");
  EXPECT_GT(lines[0]["tokens_per_s"].get<double>(), 0);
  EXPECT_GT(lines[4]["mb_per_s"].get<double>(), 0);
  for (const char* op : {"matmul dw", "attention backward", "optimizer", "between ops"})
    EXPECT_THAT(r.err, HasSubstr(op));
}

TEST(Bench, TrainsDecoders) {
  const RunResult r = RunCloze("bench train --encoder " CLOZE_SOURCE_DIR
                               "/tests/golden/gpt2_causal_lm/config.json --vocab 100 --batch 1 "
                               "--seq 8 --steps 1 --warmup 0 --json");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(JsonLines(r.out).at(0)["work"], "clm_train");
}

TEST(Bench, SaysWhatIsWrong) {
  EXPECT_EQ(RunCloze("bench").exit, 2);
  EXPECT_EQ(RunCloze("bench trian").exit, 2);
  EXPECT_THAT(RunCloze("bench train --encoder huge").err,
      HasSubstr("--encoder huge: expected tiny, mini, small, medium, base or the path of a"));
  const std::string electra = CLOZE_SOURCE_DIR "/tools/bench/configs/electra_small.json";
  EXPECT_EQ(
      RunCloze("bench infer --encoder " + electra + " --seq 8 --steps 1 --vocab 100").exit, 0);
  const std::string gpt2 = CLOZE_SOURCE_DIR "/tools/bench/configs/gpt2.json";
  EXPECT_THAT(
      RunCloze("bench infer --encoder " + gpt2).err, HasSubstr("a decoder: only for train"));
  EXPECT_EQ(RunCloze("bench tokenize --text no-such-file").exit, 66);
}

TEST(GoldenPrediction, EqualsPyTorch) {
  const std::string folder = CLOZE_SOURCE_DIR "/tests/golden/sequence_classification";
  auto reference = SafetensorsReader::Open(folder + "/reference.safetensors");
  ASSERT_TRUE(reference.ok());
  std::vector<int32_t> ids(3 * 17), mask(3 * 17);
  std::vector<float> logits(3 * 3);
  ASSERT_TRUE(reference->ReadI32("input_ids", absl::MakeSpan(ids)).ok() &&
              reference->ReadI32("attention_mask", absl::MakeSpan(mask)).ok() &&
              reference->ReadF32("logits", absl::MakeSpan(logits)).ok());
  std::string input;
  for (int s = 0; s < 3; ++s) {
    for (int i = 0; i < 17 && mask[s * 17 + i] != 0; ++i)
      absl::StrAppend(&input, i > 0 ? " " : "", ids[s * 17 + i]);
    input += "\\n";
  }
  const RunResult r = RunCloze(
      "predict --input-format ids --compute f32 --model " + folder, "printf '" + input + "' | ");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto lines = JsonLines(r.out);
  ASSERT_EQ(lines.size(), 3);
  for (int s = 0; s < 3; ++s) {
    double sum = 0;
    for (int c = 0; c < 3; ++c) sum += std::exp(logits[s * 3 + c]);
    int c = 0;
    for (const auto& [label, score] : lines[s]["scores"].items())
      EXPECT_NEAR(score.get<double>(), std::exp(logits[s * 3 + c++]) / sum, 1e-5) << label;
  }
}

TEST(GoldenTagging, EqualsPyTorch) {
  const std::string folder = CLOZE_SOURCE_DIR "/tests/golden/token_tagging";
  auto reference = SafetensorsReader::Open(folder + "/reference.safetensors");
  ASSERT_TRUE(reference.ok());
  std::vector<int32_t> ids(3 * 17);
  std::vector<float> logits(3 * 17 * 7);
  ASSERT_TRUE(reference->ReadI32("input_ids", absl::MakeSpan(ids)).ok() &&
              reference->ReadF32("logits", absl::MakeSpan(logits)).ok());
  std::string input;
  for (int i = 0; i < 17; ++i)
    absl::StrAppend(
        &input, i > 0 ? " " : "", ids[i]);  // the first sequence is the longest: no padding
  const RunResult r =
      RunCloze("tag --format ids --compute f32 --model " + folder, "echo '" + input + "' | ");
  ASSERT_EQ(r.exit, 0) << r.err;
  const json line = json::parse(r.out);
  ASSERT_EQ(line["tags"].size(), 17);
  for (int i = 0; i < 17; ++i) {
    const float* row = logits.data() + i * 7;
    const auto best = std::max_element(row, row + 7) - row;
    double sum = 0;
    for (int c = 0; c < 7; ++c) sum += std::exp(row[c]);
    EXPECT_EQ(line["tags"][i], absl::StrCat("LABEL_", best));
    EXPECT_NEAR(line["scores"][i].get<double>(), std::exp(row[best]) / sum, 1e-5);
  }
}

TEST(MiniLm, EveryLayerEqualsTheReference) {
  const std::string folder = CLOZE_SOURCE_DIR "/../shared/data/models/all-MiniLM-L6-v2-fp16";
  auto reference = SafetensorsReader::Open(folder + "/reference_hidden_states.safetensors");
  if (!reference.ok()) GTEST_SKIP() << "no MiniLM beside the project";
  const std::string out = TemporaryFolder() + "/hidden.safetensors";
  const RunResult r =
      RunCloze("encode --all-layers --compute f32 --model " + folder + " --out " + out,
          "printf 'Hello, world!\\nThe film was surprisingly good.\\nBerlin is the capital of "
          "Germany.\\n' | ");
  ASSERT_EQ(r.exit, 0) << r.err;
  auto ours = SafetensorsReader::Open(out);
  ASSERT_TRUE(ours.ok()) << ours.status();
  for (int s = 0; s < 3; ++s) {
    for (int layer = 0; layer <= 6; ++layer) {
      const std::string name = absl::StrCat("s", s, ".hidden_", layer, "_f32"),
                        mine = absl::StrCat(s, ".", layer);
      ASSERT_NE(ours->Find(mine), nullptr);
      std::vector<float> expected(reference->Find(name)->elements()),
          got(ours->Find(mine)->elements());
      ASSERT_EQ(expected.size(), got.size());
      ASSERT_TRUE(reference->ReadF32(name, absl::MakeSpan(expected)).ok() &&
                  ours->ReadF32(mine, absl::MakeSpan(got)).ok());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], expected[i], 1e-5) << name << " element " << i;
    }
  }
}

}  // namespace
}  // namespace cloze
