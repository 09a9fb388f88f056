// Commands in a pipe answer each line as soon as it arrives, also if the file of the weights
// changes meanwhile.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Creates a model of each kind once, with one training step.
class PipeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new std::string(TemporaryFolder());
    std::ofstream vocab(Path("vocab.txt"));
    vocab << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n";
    for (int i = 0; i < 92; ++i) vocab << "zz" << i << '\n';
    vocab.close();
    std::ofstream(Path("text.txt")) << "a b\n\nb a bb\n\na a b\n";
    std::ofstream(Path("classes.tsv")) << "text\tlabel\na b\tyes\nb b\tno\n";
    std::ofstream(Path("tags.conll")) << "a X\nb Y\n\nb X\n\n";
    Make("pretrain", "mlm", "masked_lm { max_tokens: 16 }", "text.txt");
    Make("finetune", "classifier", "sequence_classification { max_tokens: 16 }", "classes.tsv");
    Make("finetune", "tagger", "token_tagging { max_tokens: 16 }", "tags.conll");
  }
  static void TearDownTestSuite() { delete dir_; }

  static std::string Path(const std::string& name) { return *dir_ + "/" + name; }
  static void Make(const std::string& command, const std::string& name, const std::string& task,
      const std::string& data) {
    std::ofstream(Path(name + ".textproto"))
        << "model { tokenizer: '" << Path("vocab.txt")
        << "' encoder { preset: CUSTOM layers: 1 hidden: 8 heads: 1 intermediate: 8 max_positions: "
           "16 } } "
        << task << " train { files: '" << Path(data)
        << "' } batch { tokens: 64 micro_tokens: 64 } schedule { steps: 1 } output { directory: '"
        << Path(name) << "' } runtime { threads: 1 }";
    const RunResult r = RunCloze(command + " " + Path(name + ".textproto"));
    ASSERT_EQ(r.exit, 0) << r.err;
  }
  static std::string Weights() { return Path("classifier") + "/model.safetensors"; }

  static std::string* dir_;
};
std::string* PipeTest::dir_ = nullptr;

TEST_F(PipeTest, ASignalLeavesNoPartOfAFile) {
  for (const std::string command : {"predict --model classifier", "tag --model tagger",
           "encode --model classifier", "score --model mlm"}) {
    const std::string out = command.substr(0, command.find(' ')) + ".out",
                      final = out + (command[0] == 'e' ? ".npy" : ".jsonl"),
                      until = "n=0; until ls " + final +
                              ".tmp* 2>/dev/null || [ $n -ge 200 ]; do "
                              "sleep 0.05; n=$((n + 1)); done; ";
    const RunResult result = RunCloze(
        command + " --out " + final + " <in >log 2>&1 & p=$!; " + until + "kill -TERM $p; wait $p",
        "cd " + *dir_ + "; rm -f in; mkfifo in; exec 9<>in; echo a b >&9; ");
    EXPECT_EQ(result.exit, 75) << command << result.out << result.err;
    for (const auto& entry : std::filesystem::directory_iterator(*dir_))
      EXPECT_THAT(entry.path().filename().string(), testing::Not(StartsWith(out)));
  }
}

// Sends one line and expects one; then a line, two blank lines and the beginning of the next line.
void ExpectAnswers(const std::vector<std::string>& arguments, const std::string& line) {
  SCOPED_TRACE(arguments[0]);
  Conversation talk(arguments);
  for (int i = 0; i < 3; ++i) {
    talk.Say(line + "\n");
    EXPECT_THAT(talk.Hear(), StartsWith("{"));
  }
  talk.Say(line + "\n\n \n" + line);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(talk.Hear(), StartsWith("{"));
  talk.Say("\n");
  EXPECT_THAT(talk.Hear(), StartsWith("{"));
  talk.Say(line);  // without a line end
  EXPECT_EQ(talk.End(), 0);
  EXPECT_THAT(talk.Hear(), StartsWith("{"));
  EXPECT_EQ(talk.Hear(), "(nothing)");
}

TEST_F(PipeTest, EachLineIsAnsweredWhenItHasCome) {
  ExpectAnswers({"tokenize", "--model", Path("vocab.txt")}, "a b");
  ExpectAnswers({"predict", "--model", Path("classifier")}, "a b");
  ExpectAnswers({"tag", "--model", Path("tagger")}, "a b");
  ExpectAnswers({"fill-mask", "--model", Path("mlm")}, "a <mask>");
  EXPECT_EQ(RunCloze("fill-mask --model " + Path("mlm") + " ''").out,
      "{\"text\": \"\", \"masks\": []}\n");
}

TEST_F(PipeTest, EachSentenceIsAnsweredWhenItsBlankLineHasCome) {
  for (const std::string format : {"conll", "conllu"}) {
    SCOPED_TRACE(format);
    const auto word = [&](int i) {
      return format == "conll" ? "b ?" : std::to_string(i) + "\tb\t_\t?\t_\t_\t_\t_\t_\t_";
    };
    Conversation talk({"tag", "--model", Path("tagger"), "--format", format});
    for (int i = 0; i < 2; ++i) {
      talk.Say(
          word(1) + "\n" + word(2) + "\n\n" + word(1) + "\n");  // and the beginning of the next
      EXPECT_NE(talk.Hear(), word(1));
      EXPECT_NE(talk.Hear(), word(2));
      EXPECT_EQ(talk.Hear(), "");
      talk.Say("\n");
      EXPECT_NE(talk.Hear(), word(1));
      EXPECT_EQ(talk.Hear(), "");
    }
    talk.Say("# the end");
    EXPECT_EQ(talk.End(), format == "conllu" ? 0 : 65);  // three columns
  }
}

TEST_F(PipeTest, TrainingReadsAPipe) {
  const std::string spec = Path("mlm.textproto"), in = "printf 'a b\\n\\nb a bb\\n' | gzip | ",
                    arguments = "pretrain " + spec + " --set output.directory=" + Path("piped") +
                                " --set train.format=TEXT --set train.files=";
  for (const std::string file : {"-", "/dev/stdin"}) {
    const RunResult r = RunCloze(arguments + file, in);
    EXPECT_EQ(r.exit, 0) << r.err;
    EXPECT_THAT(r.err, HasSubstr(file == "-" ? "train: 2 examples" : "no stream is read again"));
  }
  const RunResult r = RunCloze("finetune " + Path("classifier.textproto") +
                                   " --set output.directory=" + Path("piped2") +
                                   " --set train.format=TSV --set train.files=-",
      "printf 'text\\tlabel\\na\\tx\\n' | ");
  EXPECT_EQ(r.exit, 78);
  EXPECT_THAT(r.err, HasSubstr("standard input can be read only once"));
  const RunResult vocab =
      RunCloze("vocab --size 20 --text /dev/stdin --out " + Path("piped_vocab"), in);
  EXPECT_EQ(vocab.exit, 0) << vocab.err;
  EXPECT_THAT(vocab.out, HasSubstr("from 5 words"));
}

TEST_F(PipeTest, TextThatIsNotUtf8IsNamedOnce) {
  const RunResult r = RunCloze("predict --model " + Path("classifier"),
      "(printf 'a\\nb\\344\\na\\344\\n'; yes '' | head -n 2000) | ");
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(r.err,
      "cloze: warning: standard input:2: not UTF-8, perhaps Windows-1252 or Latin-1: expected "
      "UTF-8 "
      "(convert the file with iconv, or set its encoding: WINDOWS1252); "
      "other bytes are "
      "read "
      "as U+FFFD\n"
      "cloze: empty: 2000 texts, whose answer is empty\n");
}

TEST_F(PipeTest, SentencesBeforeAWrongLineAreAnswered) {
  const RunResult r = RunCloze(
      "tag --format conll --model " + Path("tagger"), "printf 'a ?\\n\\nb ?\\n\\na b c\\n' | ");
  EXPECT_EQ(r.exit, 65);
  EXPECT_THAT(r.err, HasSubstr("standard input:5: 3 columns: expected 2"));
  EXPECT_EQ(std::count(r.out.begin(), r.out.end(), '\n'), 4) << r.out;
}

TEST_F(PipeTest, AnswersKeepTheOrderOfTheLines) {
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    lines += "{\"id\": " + std::to_string(i) + ", \"text\": \"";
    for (int n = 0; n <= i * 7 % 12; ++n) lines += n % 3 == 0 ? "b " : "a ";
    lines += "<mask>\"}\n";
  }
  std::ofstream(Path("lengths.jsonl")) << lines;
  const std::pair<std::string, std::string> commands[] = {
      {"predict", "classifier"}, {"tag --format jsonl", "tagger"}, {"fill-mask", "mlm"}};
  for (const auto& [command, model] : commands) {
    const std::string format = command[0] == 't' ? " " : " --input-format jsonl ",
                      run = command + format + "--model " + Path(model);
    const RunResult together = RunCloze(run, "cat " + Path("lengths.jsonl") + " | ");
    ASSERT_EQ(together.exit, 0) << together.err;
    std::istringstream answers(together.out), questions(lines);
    for (int i = 0; i < 40; ++i) {
      std::string answer, question;
      ASSERT_TRUE(std::getline(answers, answer) && std::getline(questions, question));
      EXPECT_EQ(json::parse(answer)["id"], i);
      if (i % 8 != 3) continue;
      std::ofstream(Path("one.jsonl")) << question << '\n';
      const json alone = json::parse(RunCloze(run, "cat " + Path("one.jsonl") + " | ").out),
                 among = json::parse(answer);
      ASSERT_EQ(alone.size(), among.size());
      EXPECT_EQ(alone.value("text", ""), among.value("text", ""));
      EXPECT_EQ(alone.value("words", json()).size(), among.value("words", json()).size());
      const json scores = alone.value("scores", json::object());
      for (const auto& [label, score] : scores.items())
        EXPECT_NEAR(score.get<double>(), among["scores"][label].get<double>(), 1e-5);
    }
  }
}

// The values of the embeddings, the largest tensor of the file, for writing.
struct Embeddings {
  explicit Embeddings(const std::string& path)
      : file(path, std::ios::in | std::ios::out | std::ios::binary) {
    uint64_t size = 0;
    file.read(reinterpret_cast<char*>(&size), 8);
    std::string header(size, ' ');
    file.read(header.data(), size);
    const json tensor = json::parse(header)["bert.embeddings.word_embeddings.weight"];
    begin = 8 + size + tensor["data_offsets"][0].get<uint64_t>();
    row = 4 * tensor["shape"][1].get<uint64_t>();
  }
  void Put(int id, float value) {
    file.seekp(begin + id * row);
    file.write(reinterpret_cast<const char*>(&value), 4);
    file.flush();
  }
  std::fstream file;
  uint64_t begin = 0, row = 0;
};

TEST_F(PipeTest, EmbeddingsAreReadAndCheckedWhenTheyAreNeeded) {
  const std::string copy = Path("odd");
  std::filesystem::copy(Path("classifier"), copy, std::filesystem::copy_options::recursive);
  std::filesystem::remove(copy + "/MANIFEST");
  Embeddings(copy + "/model.safetensors").Put(6, NAN);
  EXPECT_EQ(RunCloze("predict --model " + copy, "echo a a | ").exit, 0);
  const RunResult r = RunCloze("predict --model " + copy, "echo a b | ");
  EXPECT_EQ(r.exit, 65);
  EXPECT_THAT(r.err, HasSubstr("tensor bert.embeddings.word_embeddings.weight: element 48 is NaN"));
  EXPECT_EQ(RunCloze("neighbors --model " + copy + " a").exit, 65);
  EXPECT_EQ(RunCloze("verify " + copy).exit, 76);
}

TEST_F(PipeTest, AFileCutShortIsAnErrorAndNoSignal) {
  const std::string copy = Path("short");
  std::filesystem::copy(Path("classifier"), copy, std::filesystem::copy_options::recursive);
  Conversation talk({"predict", "--model", copy});
  talk.Say("a\n");
  const std::string answer = talk.Hear();
  EXPECT_THAT(answer, StartsWith("{"));
  std::filesystem::resize_file(copy + "/model.safetensors", 100);
  talk.Say("a\n");  // needs nothing new
  EXPECT_EQ(talk.Hear(), answer);
  talk.Say("zz80\n");
  EXPECT_EQ(talk.Hear(), "(nothing)");
  EXPECT_EQ(talk.End(), 65);
}

}  // namespace
}  // namespace cloze
