// Each task stores in config.json what it needs to answer, and refuses what it cannot use.
#include "tasks/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <google/protobuf/text_format.h>
#include <cmath>
#include "core/base/file.h"
#include "encoder/model.h"
#include "tasks/tag_metrics.h"
#include "tasks/text_metrics.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

TaskSpec SpecOf(const std::string& text) {
  TaskSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  return spec;
}

// The config of a new model of the task, as config.json gives it back.
ModelConfig Stored(const std::string& spec, std::vector<std::string> labels, bool pairs = false) {
  EncoderSpec encoder;
  encoder.set_preset(EncoderSpec::TINY);
  ModelConfig config = *ConfigFromSpec(encoder);
  config.vocab = 100;
  config.labels = std::move(labels);
  DataSpec train;
  if (pairs) train.set_text_pair_field("second");
  MakeTask(SpecOf(spec))->Describe(train, &config);
  const auto again = ParseConfig(FormatConfig(config), "config.json");
  EXPECT_TRUE(again.ok()) << again.status();
  return *again;
}

// All that a task restored from `config` would store again.
Json Restored(const ModelConfig& config, int64_t longest = 512, bool pairs = false) {
  const auto task = RestoreTask("dir", config, longest);
  EXPECT_TRUE(task.ok()) << task.status();
  DataSpec train;
  if (pairs) train.set_text_pair_field("second");
  EXPECT_EQ((*task)->reads_pairs(), pairs);
  ModelConfig again = config;
  again.problem_type.clear();
  again.task_fields.clear();
  (*task)->Describe(train, &again);
  EXPECT_EQ(again.problem_type, config.problem_type);
  return again.task_fields;
}

TEST(Task, StatesTheDirectionOfEachMetric) {
  const auto better = [](const char* spec, const char* metric) {
    return FindMetric(MakeTask(SpecOf(spec))->metrics(), metric)->better;
  };
  EXPECT_EQ(better("masked_lm {}", "bits_per_byte"), Better::kSmaller);
  EXPECT_EQ(better("masked_lm {}", "accuracy"), Better::kLarger);
  EXPECT_EQ(better("sequence_classification { kind: REGRESSION }", "mse"), Better::kSmaller);
  EXPECT_EQ(better("sequence_classification {}", "ece"), Better::kSmaller);
  EXPECT_EQ(better("sequence_to_sequence {}", "bleu"), Better::kLarger);
}

TEST(StoredTask, ClassifiersKeepTheirKindAndHowTheyRead) {
  const struct {
    const char* kind;
    std::vector<std::string> labels;
    const char* problem_type;
  } cases[] = {{"SINGLE_LABEL", {"a", "b"}, "single_label_classification"},
      {"MULTI_LABEL", {"a", "b"}, "multi_label_classification"},
      {"MULTI_LABEL", {"a"}, "multi_label_classification"},
      {"REGRESSION", {"LABEL_0"}, "regression"}};
  for (const auto& c : cases) {
    const std::string spec = absl::StrCat("sequence_classification { kind: ", c.kind,
        " max_tokens: 64 long_texts: HEAD_TAIL threshold: 0.3 }");
    const ModelConfig config = Stored(spec, c.labels, true);
    EXPECT_EQ(config.problem_type, c.problem_type);
    Json fields = {{"max_tokens", 64}, {"long_texts", "head_tail"}, {"pairs", true}};
    if (c.kind == std::string("MULTI_LABEL")) fields["threshold"] = 0.3;
    EXPECT_EQ(config.task_fields, fields);
    EXPECT_EQ(Restored(config, 512, true), fields);
    fields["max_tokens"] = 48;
    EXPECT_EQ(Restored(config, 48, true), fields);
  }
  EXPECT_EQ(Stored("sequence_classification { }", {"a", "b"}).task_fields,
      Json({{"max_tokens", SequenceClassificationSpec().max_tokens()}}));
}

TEST(Classifier, AnswersALongTextByTheMeanLogitsOfItsWindows) {
  const ModelConfig config = Stored("sequence_classification { }", {"a", "b"});
  const auto task = RestoreTask("dir", config, 512);
  ASSERT_TRUE(task.ok() && (*task)->Bind(config, nullptr, 1).ok()) << task.status();
  const Model model(config, false);
  const std::vector<Example> windows(2);
  const std::vector<float> logits = {0, 4, 2, 0};
  const OrderedJson answer =
      (*task)->NewDecoder(model, {})(Record(), {windows, View(logits.data(), 2, 2)});
  EXPECT_EQ(answer["label"], "b");
  EXPECT_NEAR(answer["score"], 1 / (1 + std::exp(-1.0)), 1e-5);
}

TEST(Classifier, ErrorTextsAreCutBetweenCharacters) {
  const auto tokenizer = Tokenizer::Create(
      {.tokens = {"<pad>", "<unk>", "<class>", "<sep>", "<mask>", "a", "\u4e2d"}});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const ModelConfig config = Stored("sequence_classification { }", {"a", "b"});
  const Model model(config, false);
  const SequenceClassificationSpec spec;
  const std::vector<std::string> labels = {"a", "b"};
  const auto evaluation = NewTextMetrics(model, spec, Decision(), {}, labels, tokenizer->get());
  Example example;
  example.ids = {2, 5};
  example.ids.insert(example.ids.end(), 60, 6);
  example.ids.push_back(3);
  example.rows = {0};
  example.labels = {1};
  evaluation->Add({.losses = {}, .logits = {3, 0}}, {&example, 1});
  const OrderedJson errors = OrderedJson::parse(evaluation->Results().ToJson())["errors"];
  ASSERT_EQ(errors.size(), 1);
  const std::string text = errors[0]["text"];
  ASSERT_EQ((*tokenizer)->Decode(example.ids).substr(0, 202).size(), 202);
  EXPECT_EQ(text, (*tokenizer)->Decode(example.ids).substr(0, 198) + "...") << "byte 200 is inside";
}

TEST(Classifier, KeepsItsAnswersForComparisons) {
  const ModelConfig config = Stored("sequence_classification { }", {"a", "b"});
  const Model model(config, false);
  const SequenceClassificationSpec spec;
  const std::vector<std::string> labels = {"a", "b"};
  const auto answers = [&](bool fit) {
    const auto evaluation = NewTextMetrics(model, spec, Decision(), {.fit = fit}, labels, nullptr);
    Example example;
    example.ids = {2, 3};
    example.rows = {0};
    for (const int32_t label : {1, 0, 2}) {
      example.labels = {label};
      evaluation->Add({.losses = {}, .logits = {label == 1 ? 0.f : 3.f, 1}}, {&example, 1});
    }
    return evaluation->Results().answers;
  };
  EXPECT_EQ(
      answers(true), "{\"labels\": [\"a\", \"b\"], \"true\": [1, 0, 2], \"predicted\": [1, 0, 0]}");
  EXPECT_EQ(answers(false), "") << "only for runs";
}

TEST(Tagger, ShowsTheSurestWrongWordOfEachSentence) {
  const auto tokenizer = Tokenizer::Create(
      {.tokens = {"<pad>", "<unk>", "<class>", "<sep>", "<mask>", "a", "b", "##c"}});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const ModelConfig config = Stored("token_tagging { }", {"N", "V"});
  const Model model(config, false);
  for (const bool last : {false, true}) {
    const auto evaluation = NewTagMetrics(model, {"X"}, true, 2, tokenizer->get(), last);
    Example sentence;  // the words "a", "bcc" and "b"
    sentence.ids = {2, 5, 6, 7, 7, 6, 3};
    sentence.further = {0, 2, 0};
    sentence.rows = last ? std::vector<int32_t>{1, 4, 5} : std::vector<int32_t>{1, 2, 5};
    sentence.labels = {0, 0, 2};
    const auto add = [&](std::vector<float> logits) {
      evaluation->Add({.losses = {}, .logits = std::move(logits)}, {&sentence, 1});
    };
    add({1, 0, 0, 2, 1, 0});  // wrong: bcc with 0.88, b with 0.73
    add({1, 0, 1, 0, 0, 3});  // wrong: b, whose label is unknown, with 0.95
    add({0, 1, 1, 0, 0, 0});  // wrong: a with 0.73, which two others precede
    const OrderedJson errors = OrderedJson::parse(evaluation->Results().ToJson())["errors"];
    ASSERT_EQ(errors.size(), 2);
    EXPECT_EQ(errors[0]["example"], 2);
    EXPECT_EQ(errors[0]["word"], 3);
    EXPECT_EQ(errors[0]["token"], "b");
    EXPECT_TRUE(errors[0]["label"].is_null());
    EXPECT_EQ(errors[0]["predicted"], "V");
    EXPECT_EQ(errors[1]["word"], 2);
    EXPECT_EQ(errors[1]["token"], "bcc");
    EXPECT_EQ(errors[1]["label"], "N");
    EXPECT_EQ(errors[1]["text"], (*tokenizer)->Decode(sentence.ids));
  }
}

TEST(StoredTask, TaggersKeepHowTheyDecode) {
  const ModelConfig config =
      Stored("token_tagging { max_tokens: 77 viterbi: false crf: true }", {"B-A", "I-A", "O"});
  EXPECT_TRUE(config.crf);
  EXPECT_EQ(config.task_fields, Json({{"viterbi", false}, {"window", 77}}));
  EXPECT_EQ(Restored(config), config.task_fields);
  EXPECT_EQ(
      Stored("token_tagging { max_tokens: 77 }", {"A", "O"}).task_fields, Json({{"window", 77}}));
  const ModelConfig mean = Stored("token_tagging { max_tokens: 77 pieces: MEAN }", {"A", "O"});
  EXPECT_EQ(mean.task_fields, Json({{"window", 77}, {"pieces", "mean"}}));
  EXPECT_EQ(Restored(mean), mean.task_fields);
}

TEST(StoredTask, QuestionAnsweringKeepsWindowsAndAnswers) {
  const ModelConfig config = Stored(
      "question_answering { max_tokens: 64 overlap: 9 longest_question: 12 longest_answer: 7 "
      "unanswerable: true }",
      {});
  EXPECT_EQ(config.task_fields, Json({{"max_tokens", 64}, {"overlap", 9}, {"longest_question", 12},
                                    {"longest_answer", 7}, {"unanswerable", true}}));
  const auto task = RestoreTask("dir", config, 48);
  ASSERT_TRUE(task.ok()) << task.status();
  ModelConfig again = config;
  (*task)->Describe({}, &again);
  Json fields = config.task_fields;
  fields["max_tokens"] = 48;
  EXPECT_EQ(again.task_fields, fields);
}

TEST(StoredTask, FoldersFromElsewhereReadWhatFits) {
  ModelConfig config = Stored("sequence_classification { }", {"x"});
  config.task_fields.clear();
  config.problem_type.clear();
  const auto number = RestoreTask("dir", config, 300);
  ASSERT_TRUE(number.ok()) << number.status();
  EXPECT_EQ((*number)->max_tokens(), 300);
  ModelConfig again = config;
  (*number)->Describe({}, &again);
  EXPECT_EQ(again.problem_type, "regression");  // as in transformers
  config.head = HeadKind::kNone;
  EXPECT_EQ((*RestoreTask("dir", config, 300))->name(), "sentence_embedding");
}

TEST(StoredTask, BadMembersAreNamed) {
  const struct {
    const char *task, *fields, *problem_type, *message;
    std::vector<std::string> labels = {"a", "b"};
  } cases[] = {
      {"sequence_classification { }", "{}", "regression",
          "id2label: 2 labels: expected one number for a regression"},
      {"sequence_classification { }", "{}", "ranking",
          "problem_type: ranking: expected \"single_label_classification\" or "
          "\"multi_label_classification\" or \"regression\""},
      {"sequence_classification { }", "{}", "single_label_classification",
          "id2label: expected more than one label", {"x"}},
      {"sequence_classification { }", R"({"long_texts": "middle"})", "",
          "long_texts: MIDDLE: expected head, tail, head_tail or windows"},
      {"sequence_classification { }", R"({"max_tokens": 1})", "", "max_tokens: expected"},
      {"sequence_classification { }", R"({"threshold": 2})", "", "threshold: expected"},
      {"sequence_classification { }", R"({"pairs": 1})", "", "pairs: expected"},
      {"token_tagging { }", "{}", "regression", "problem_type: regression: expected"},
      {"question_answering { }", R"({"overlap": -1})", "", "overlap: expected", {}},
      {"question_answering { }", R"({"unanswerable": 1})", "", "unanswerable: expected", {}},
      {"token_tagging { }", R"({"window": 2})", "", "window: expected"},
      {"token_tagging { }", R"({"pieces": "middle"})", "",
          "pieces: MIDDLE: expected first, mean or last"},
      {"token_tagging { }", R"({"viterbi": "no"})", "", "viterbi: expected"},
  };
  for (const auto& c : cases) {
    ModelConfig config = Stored(c.task, c.labels);
    config.problem_type = c.problem_type;
    config.task_fields = Json::parse(c.fields);
    const absl::Status status = RestoreTask("dir", config, 512).status();
    ExpectError(status, Exit::kData, c.message);
    EXPECT_THAT(std::string(status.message()), testing::StartsWith("dir/config.json: "));
  }
}

}  // namespace
}  // namespace cloze
