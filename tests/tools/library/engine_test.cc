#include "tools/library/engine.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <clocale>
#include <thread>

#include "core/base/system.h"
#include "core/base/threads.h"
#include "core/tensor/safetensors.h"
#include "tests/sanitized.h"
#include "tests/tools/library/models.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using testing::HasSubstr;

Record Text(const std::string& text) {
  Record record;
  record.text = text;
  return record;
}

std::vector<Record> TextRecords(const std::vector<std::string>& texts) {
  std::vector<Record> records;
  for (const std::string& text : texts) records.push_back(Text(text));
  return records;
}

class EngineTest : public ModelsTest {
 protected:
  std::shared_ptr<Engine> Open(const std::string& name, const std::string& compute = "auto") {
    auto engine = Engine::Open({.folder = Path(name), .adapters = {}, .compute = compute});
    EXPECT_TRUE(engine.ok()) << engine.status();
    return engine.ok() ? *engine : nullptr;
  }
  // Writes the folder `dense`: that of sentence vectors, with a linear layer to two columns.
  void WriteDense(float weight) {
    std::filesystem::copy(Path("sentence"), Path("dense"),
        std::filesystem::copy_options::recursive |
            std::filesystem::copy_options::overwrite_existing);
    std::filesystem::create_directories(Path("dense/2_Dense"));
    std::vector<float> weights(2 * 32, weight);
    weights[40] = -weight;
    ASSERT_TRUE(ReplaceSafetensors(Path("dense/2_Dense/model.safetensors"),
        {{"linear.weight", {2, 32}, FileType::kF32, weights.data()}})
                    .ok());
    std::ofstream(Path("dense/2_Dense/config.json"))
        << R"({"in_features": 32, "out_features": 2, "bias": false,
            "activation_function": "torch.nn.modules.activation.Tanh"})";
    OrderedJson modules = OrderedJson::parse(*ReadFile(Path("dense/modules.json"), 1 << 20));
    modules.push_back(modules[2]);
    modules[2]["path"] = "2_Dense", modules[2]["type"] = "sentence_transformers.models.Dense";
    std::ofstream(Path("dense/modules.json")) << modules;
  }
  // Standard output of `cloze COMMAND --model MODEL` for the texts as lines of input.
  std::string Program(const std::string& command, const std::string& model,
      const std::vector<std::string>& texts = Texts()) {
    std::ofstream file(Path("input"));
    for (const std::string& text : texts) file << text << "\n";
    file.close();
    return RunCloze(command + " --model " + Path(model), "< " + Path("input") + " ").out;
  }
};

TEST_F(EngineTest, AnswersHaveTheBitsOfTheProgram) {
  for (const std::string compute : {"f32", "bf16", "int8"}) {
    for (const auto& [model, command] : {std::pair("classifier", "predict"), {"tagger", "tag"}}) {
      const auto engine = Open(model, compute);
      const auto answers = engine->Answer(TextRecords(Texts()));
      ASSERT_TRUE(answers.ok()) << answers.status();
      std::string lines;
      for (size_t i = 0; i < answers->size(); ++i) lines += ToJsonLine(*(*answers)[i]) + "\n";
      EXPECT_EQ(lines, Program(command + (" --compute " + compute), model));
      EXPECT_EQ(engine->compute(), compute);
    }
  }
}

TEST_F(EngineTest, FillsAndScoresAsTheProgram) {
  const auto engine = Open("masked");
  EXPECT_EQ(engine->kind(), "masked_lm");
  std::string scores;
  const auto scored = engine->Score(TextRecords(Texts()), /*tokens=*/true);
  ASSERT_TRUE(scored.ok()) << scored.status();
  for (const auto& score : *scored) scores += ToJsonLine(*score) + "\n";
  EXPECT_EQ(scores, Program("score --tokens", "masked"));

  const std::vector<std::string> masked = {"the <mask> sat", "no mask", "<mask> <mask>."};
  for (const int top : {5, 2, 5}) {
    const auto filled = engine->Answer(TextRecords(masked), top);
    ASSERT_TRUE(filled.ok()) << filled.status();
    EXPECT_THAT((*filled)[1].status().message(), HasSubstr("no <mask> in"));
    const std::string program =
        Program("fill-mask --top " + std::to_string(top), "masked", {masked[0], masked[2]});
    EXPECT_EQ(ToJsonLine(*(*filled)[0]) + "\n" + ToJsonLine(*(*filled)[2]) + "\n", program);
  }
  EXPECT_EQ(ExitOf(engine->Answer({}, 0).status()), Exit::kUsage);
}

TEST_F(EngineTest, VectorsAreThoseOfTheProgram) {
  struct Case {
    const char *model, *options;
    EmbedOptions embed;
  };
  const Case cases[] = {{"sentence", "", {}}, {"plain", "", {}}, {"classifier", "", {}},
      {"sentence", "--prompt query", {.prompt = "query"}},
      {"sentence", "--pool mean", {.pool = "mean"}}, {"dense", "", {}},
      {"plain", "--pool max --normalize", {.pool = "max", .normalize = true}}};
  WriteDense(1);
  for (const Case& c : cases) {
    const auto vectors = Open(c.model)->Embed(TextRecords(Texts()), c.embed);
    ASSERT_TRUE(vectors.ok()) << vectors.status();
    std::string lines;
    for (size_t i = 0; i + 1 < vectors->begin.size(); ++i) {
      OrderedJson vector = OrderedJson::array();
      const int64_t cols = vectors->dimensions;
      for (int64_t k = vectors->begin[i] * cols; k < vectors->begin[i + 1] * cols; ++k)
        vector.push_back(Decimal(vectors->values[k]));
      lines += "{\"id\": null, \"vector\": " + ToJsonLine(vector) + "}\n";
    }
    EXPECT_EQ(lines, Program(std::string("encode --out - ") + c.options, c.model)) << c.options;
  }
}

TEST_F(EngineTest, VectorsCanBeShortenedAndOfTokens) {
  const auto engine = Open("sentence");
  const std::vector<Record> records = TextRecords({"the cat", "mat"});
  const auto whole = engine->Embed(records, {.normalize = false}),
             some = engine->Embed(records, {.dimensions = 5}),
             tokens = engine->Embed(records, {.tokens = true});
  ASSERT_TRUE(whole.ok() && some.ok() && tokens.ok());
  double squares = 0;
  for (int i = 0; i < 5; ++i) squares += whole->values[i] * double{whole->values[i]};
  for (int i = 0; i < 5; ++i)
    EXPECT_FLOAT_EQ(some->values[i], whole->values[i] / std::sqrt(squares)) << i;
  EXPECT_EQ(some->dimensions, 5);
  EXPECT_THAT(tokens->begin, testing::ElementsAre(0, 4, 7));  // <class> the cat <sep>
  EXPECT_EQ(tokens->values[3], whole->values[3]) << "of the first token";
  for (const EmbedOptions& wrong : {EmbedOptions{.pool = "men"}, EmbedOptions{.prompt = "Query"},
           EmbedOptions{.pool = "mean", .prompt = "query"}, EmbedOptions{.dimensions = 33},
           EmbedOptions{.normalize = true, .tokens = true}, EmbedOptions{.dimensions = -1}})
    EXPECT_EQ(ExitOf(engine->Embed(records, wrong).status()), Exit::kUsage);
}

TEST_F(EngineTest, WrongRecordsDoNotHarmOthers) {
  const auto engine = Open("tagger");
  std::vector<Record> records = TextRecords(Texts());
  const auto alone = engine->Answer(records);
  ASSERT_TRUE(alone.ok());
  records[1].kind = Record::Kind::kPair;
  records[5].adapter = "none";
  records[9].kind = Record::Kind::kIds;
  records[9].ids = {7, 1000};
  records[12].wrong = Error(Exit::kUsage, "wrong");
  const auto among = engine->Answer(records);
  ASSERT_TRUE(among.ok());
  for (size_t i = 0; i < records.size(); ++i) {
    const bool wrong = i == 1 || i == 5 || i == 9 || i == 12;
    EXPECT_EQ((*among)[i].ok(), !wrong) << i;
    if (wrong) continue;
    EXPECT_EQ((*among)[i]->dump(), (*alone)[i]->dump()) << i;
  }
}

TEST_F(EngineTest, RefusesWhatTheModelCannotDo) {
  const std::vector<Record> records = {Text("the cat")};
  EXPECT_EQ(ExitOf(Open("plain")->Answer(records).status()), Exit::kUsage);
  EXPECT_EQ(ExitOf(Open("sentence")->Answer(records).status()), Exit::kUsage);
  EXPECT_EQ(ExitOf(Open("classifier")->Score(records).status()), Exit::kUsage);
  EXPECT_EQ(Open("plain")->kind(), "encoder");
  EXPECT_EQ(Open("sentence")->kind(), "sentence_embedding");
  EXPECT_EQ(Open("sentence")->max_tokens(), 12);
  EXPECT_EQ(ExitOf(Engine::Open({.folder = Path("missing")}).status()), Exit::kNoInput);
  EXPECT_EQ(
      ExitOf(Engine::Open({.folder = Path("plain"), .compute = "f16"}).status()), Exit::kUsage);
}

TEST_F(EngineTest, TokensAreThoseOfTheTokenizer) {
  const auto engine = Open("classifier");
  const auto encoding = engine->Tokenize(Text("Cats"));
  ASSERT_TRUE(encoding.ok());
  std::vector<std::string> tokens;
  for (const int32_t id : encoding->ids) tokens.push_back(engine->Token(id));
  EXPECT_THAT(tokens, testing::ElementsAre("<class>", "cat", "##s", "<sep>"));
  EXPECT_EQ(engine->Token(-1) + engine->Token(1 << 20), "");
}

TEST_F(EngineTest, OneFolderIsReadOnce) {
  const auto first = Open("plain");
  EXPECT_EQ(first, Open("plain/../plain"));
  EXPECT_NE(first, Open("plain", "bf16"));
  const auto before = first->Embed({{Text("the cat")}}, {});
  WriteModel(Path("plain"), HeadKind::kNone, /*seed=*/2);
  const auto second = Open("plain");
  EXPECT_NE(first, second);
  EXPECT_EQ(before->values, first->Embed({{Text("the cat")}}, {})->values);
  EXPECT_NE(before->values, second->Embed({{Text("the cat")}}, {})->values);
}

TEST_F(EngineTest, FilesOfModulesCountToo) {
  WriteDense(1);
  const auto first = Open("dense");
  EXPECT_EQ(first->dimensions(), 2);
  EXPECT_EQ(first, Open("dense"));
  WriteDense(2);
  EXPECT_NE(first, Open("dense"));
}

TEST_F(EngineTest, ThreadsShareAnEngine) {
  const auto engine = Open("classifier");
  const std::vector<Record> records = TextRecords(Texts());
  const auto expected = engine->Answer(records);
  std::atomic<int> different = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const auto own = Engine::Open({.folder = Path(t % 2 == 0 ? "classifier" : "tagger")});
      for (size_t i = t; i < records.size(); ++i) {
        if (t % 2 == 0)
          different += (*own)->Answer({&records[i], 1})->at(0)->dump() != expected->at(i)->dump();
        else
          different += !(*own)->Answer({&records[i], 1})->at(0).ok();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(different, 0);
}

// Waits until f() is true; false after ten seconds.
template <typename F>
bool Wait(F f) {
  for (int i = 0; i < 1000 && !f(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return f();
}

TEST_F(EngineTest, ThreadsEndWithTheLastEngine) {
  Engine::UseThreads(3);
  const int64_t before = ThreadCount();
  auto one = Open("classifier"), other = Open("tagger");
  ASSERT_TRUE(one->Answer(TextRecords(Texts())).ok());
  EXPECT_TRUE(Wait([&] { return ThreadCount() >= before + 2; }));
  one.reset();
  EXPECT_GE(ThreadCount(), before + 2);
  other.reset();
#ifndef __clang__  // whose OpenMP keeps its threads
  EXPECT_TRUE(Wait([&] { return ThreadCount() == before; }));
#endif
  ASSERT_TRUE(Open("classifier")->Answer(TextRecords(Texts())).ok()) << "anew";
}

// Runs f in a child process; true if it returns true within a minute.
template <typename F>
bool InChild(F f) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(f() ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(EngineTest, ParentAndChildAnswerAfterAFork) {
  Engine::UseThreads(3);
  const auto engine = Open("classifier");
  const std::vector<Record> records = TextRecords(Texts());
  const auto expected = engine->Answer(records);
  const auto same = [&] {
    const auto answers = engine->Answer(records);
    for (size_t i = 0; i < records.size(); ++i)
      if (answers->at(i)->dump() != expected->at(i)->dump()) return false;
    return ThreadCount() > 1;
  };
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;  // in calls at the time of the forks
  // AddressSanitizer's allocator may stay locked in the child if another thread allocates.
  for (int t = 0; t < (kSanitized ? 0 : 2); ++t)
    others.emplace_back([&] {
      while (!stop) EXPECT_TRUE(engine->Answer(records).ok());
    });
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(InChild([&] { return same() && InChild(same); }));
    EXPECT_TRUE(same());
  }
  stop = true;
  for (std::thread& thread : others) thread.join();
}

TEST_F(EngineTest, TheCallersOpenMpThreadsStay) {
  const auto engine = Open("classifier");
  SetLibraryThreads(7);
  ASSERT_TRUE(engine->Answer(TextRecords(Texts())).ok());
  std::thread([&] { ASSERT_TRUE(engine->Answer(TextRecords(Texts())).ok()); }).join();
  EXPECT_EQ(LibraryThreads(), 7);
}

}  // namespace
}  // namespace cloze
