// Fine-tuning: every task learns; LoRA, frozen layers, layer decay and class weights.
#include <cmath>
#include <map>
#include <set>

#include "core/base/threads.h"
#include "core/tensor/safetensors.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/model_folder.h"
#include "tasks/inference/predictor.h"
#include "tasks/training/run_result.h"
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

TEST_F(TrainerTest, FinetunesBothTasksFromARunAndFromNothing) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "mlm", 20)).ok());
  int run = 0;
  for (const std::string& model :
      {NewEncoder(), absl::StrCat("model { start_from: \"", Path("mlm"), "\" }")}) {
    for (const auto& [task, data] : {std::pair("sequence_classification", "classes.tsv"),
             std::pair("token_tagging", "tags.conll")}) {
      LoadedSpec spec = Spec(
          absl::StrCat(model, task, " { max_tokens: 48 }"), data, absl::StrCat("run", run++), 40);
      spec.spec.mutable_validation()->add_files(Path(data));
      const auto summary = Train(spec);
      ASSERT_TRUE(summary.ok()) << summary.status();
      EXPECT_EQ(summary->metric.name, "accuracy");
      EXPECT_EQ(*summary->best.Value("accuracy"), 1.0) << data;
    }
  }
}

TEST_F(TrainerTest, ChainsLearnResumeAndLoad) {
  // The same word is B or I by its place alone, and no label stands before the first.
  std::string tags;
  for (int i = 0; i < 40; ++i)
    tags += i % 2 == 0 ? "the\tO\ncat\tB-X\ncat\tI-X\n\n" : "a\tO\ndog\tB-Y\n\n";
  Write("spans.conll", tags);
  const std::string task = NewEncoder() + " token_tagging { max_tokens: 24 crf: true }";
  LoadedSpec spec = Spec(task, "spans.conll", "crf", 30);
  spec.spec.mutable_validation()->add_files(Path("spans.conll"));
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->metric.name, "span_f1");
  EXPECT_EQ(*summary->best.Value("span_f1"), 1.0);
  EXPECT_THAT(progress_, HasSubstr("loss"));
  ASSERT_TRUE(Train(Spec(task, "spans.conll", "straight", 8)).ok());
  EXPECT_EQ(ExitOf(Train(Spec(task, "spans.conll", "pieces", 8), 5).status()), Exit::kInterrupted);
  ASSERT_TRUE(Train(Spec(task, "spans.conll", "pieces", 8)).ok());
  EXPECT_EQ(Weights("straight"), Weights("pieces"));
  const auto config = LoadConfig(Path("crf"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->crf);
  EXPECT_EQ(config->task_fields.at("window"), 24);
  Model model(*config, false);
  std::vector<std::string> fresh;
  ASSERT_TRUE(model.Load(Path("crf"), 0, &fresh).ok());
  EXPECT_TRUE(fresh.empty());
  // A tagger without a chain goes on from one with it, and the other way round.
  const std::string from_crf =
      absl::StrCat("model { start_from: \"", Path("crf"), "\" } token_tagging { max_tokens: 24 ");
  ASSERT_TRUE(Train(Spec(from_crf + "}", "spans.conll", "plain", 2)).ok());
  EXPECT_FALSE(LoadConfig(Path("plain"))->crf);
  const std::string from_plain = absl::StrCat(
      "model { start_from: \"", Path("plain"), "\" } token_tagging { max_tokens: 24 crf: true }");
  ASSERT_TRUE(Train(Spec(from_plain, "spans.conll", "again", 2)).ok());
  EXPECT_THAT(progress_,
      HasSubstr("new in this model: crf.start_transitions, crf.transitions, crf.end_transitions"));
}

TEST_F(TrainerTest, OtherLabelsGetANewOutputLayer) {
  const auto train = [&](const std::string& model, const std::string& labels, const char* run) {
    std::string data = "text\tlabel\n";
    for (int i = 0; i < 20; ++i)
      absl::StrAppend(
          &data, i % 2 == 0 ? "the cat\t" : "a dog\t", labels.substr(i % labels.size(), 1), "\n");
    Write(absl::StrCat(labels, ".tsv"), data);
    progress_.clear();
    const absl::Status status = Train(Spec(model + " sequence_classification { max_tokens: 24 }",
                                          absl::StrCat(labels, ".tsv"), run, 1))
                                    .status();
    ASSERT_TRUE(status.ok()) << status;
  };
  train(NewEncoder(), "xy", "first");
  const std::string start = absl::StrCat("model { start_from: \"", Path("first"), "\" }");
  train(start, "xy", "same");
  EXPECT_THAT(progress_, testing::Not(HasSubstr("new in this model")));
  train(start, "zy", "other");
  EXPECT_THAT(progress_, testing::AllOf(HasSubstr("new in this model: classifier.weight"),
                             HasSubstr("its output layer is not used")));
  train(start, "xyz", "more");
  EXPECT_THAT(progress_, HasSubstr("new in this model: classifier.weight, classifier.bias"));
}

TEST_F(TrainerTest, LabelsThatTrainingLacksAreWrongInValidation) {
  Write("train.tsv", "text\tlabel\nthe cat\tx\na dog\ty\nthe cat\tx\na dog\ty\n");
  Write("dev.tsv", "text\tlabel\nthe cat\tx\na dog\tq\na dog\tr\n");
  const std::string task = NewEncoder() + " sequence_classification { max_tokens: 24 ";
  LoadedSpec spec = Spec(task + "}", "train.tsv", "unseen", 1);
  spec.spec.mutable_validation()->add_files(Path("dev.tsv"));
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(summary->best.ToJson(), HasSubstr("\"unseen_labels\":2"));
  EXPECT_THAT(progress_, HasSubstr("the model does not have count as wrong: \"q\", \"r\"\n"));
  EXPECT_THAT(summary->best.ToJson(), HasSubstr("a dog"));
  spec.spec.mutable_evaluation()->set_errors(0);
  spec.spec.mutable_output()->set_directory(Path("private"));
  ASSERT_TRUE(Train(spec).ok());
  EXPECT_THAT(Read(Path("private/log.jsonl")) + Read(Path("private/metrics.json")),
      testing::AllOf(HasSubstr("calibration"), testing::Not(HasSubstr("a dog"))));
  // In training they stay an error.
  EXPECT_THAT(
      Train(Spec(task + "labels: \"x\" labels: \"y\" }", "dev.tsv", "other", 1)).status().message(),
      HasSubstr("unknown label \"q\""));
}

TEST_F(TrainerTest, SetsOfLabelsAndTagsThatTrainingLacksAreWrongInValidation) {
  Write("train.tsv", "text\tlabel\nthe cat\tx\na dog\ty\nthe cat\tx\na dog\tx,y\n");
  Write("dev.tsv", "text\tlabel\nthe cat\tx\na dog\tq,y\na dog\tr\n");
  Write("train.conll", "the O\ncat B-A\n\na O\ndog O\n");
  Write("dev.conll", "the O\ncat B-A\ndog I-A\n\na O\ndog B-C\n\na O\ncat B-A\n");
  const auto results = [&](const std::string& task, const std::string& kind) {
    LoadedSpec spec = Spec(NewEncoder() + task, "train." + kind, "run" + task.substr(0, 30), 1);
    spec.spec.mutable_validation()->add_files(Path("dev." + kind));
    const auto summary = Train(spec);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.ok() ? summary->best : MetricResults();
  };
  const std::string several = " sequence_classification { max_tokens: 24 kind: MULTI_LABEL }";
  EXPECT_THAT(results(several, "tsv").ToLine(), HasSubstr("unseen_labels 2"));
  EXPECT_THAT(progress_, HasSubstr("count as wrong: \"q\", \"r\"\n"));
  for (const bool crf : {false, true}) {
    const MetricResults tags =
        results(absl::StrCat(" token_tagging { crf: ", crf, " max_tokens: 24 }"), "conll");
    EXPECT_THAT(tags.ToLine(), HasSubstr("unseen_labels 2"));
    EXPECT_THAT(*tags.Value("loss"), testing::AllOf(testing::Gt(0), testing::Lt(5)));
    EXPECT_THAT(progress_, HasSubstr("count as wrong: \"B-C\", \"I-A\""));
  }
}

// Returns the values of a file's tensors, by name.
std::map<std::string, std::vector<float>> TensorsOf(const std::string& path) {
  std::map<std::string, std::vector<float>> values;
  const auto reader = SafetensorsReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  for (const TensorInfo& t : reader->tensors()) {
    values[t.name].resize(t.elements());
    EXPECT_TRUE(reader->ReadF32(t.name, absl::MakeSpan(values[t.name])).ok());
  }
  return values;
}

TEST_F(TrainerTest, TrainsOnlyWhatTheSpecSays) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "mlm", 20)).ok());
  const auto before = TensorsOf(Path("mlm/model.safetensors"));
  const std::string start = absl::StrCat(
      "model { start_from: \"", Path("mlm"), "\" } sequence_classification { max_tokens: 48 } ");
  for (const std::string part : {"head_only: true", "last_layers: 1"}) {
    const std::string run = part.substr(0, 4);
    const auto summary = Train(Spec(start + "trainable { " + part + " }", "classes.tsv", run, 120));
    ASSERT_TRUE(summary.ok()) << summary.status();
    const double most =
        run == "last" ? 0.5 : 0.7;  // a head alone has little to go by in so small a model
    EXPECT_LT(summary->loss, most) << part;
    for (const auto& [name, values] : TensorsOf(Path(run) + "/model.safetensors")) {
      const bool trained = name.find("pooler") != std::string::npos ||
                           name.find("classifier") != std::string::npos ||
                           (run == "last" && name.find("layer.1.") != std::string::npos);
      if (!trained) {
        EXPECT_EQ(values, before.at(name)) << part << " " << name;
      } else if (before.count(name) > 0) {
        EXPECT_NE(values, before.at(name)) << part << " " << name;
      }
    }
  }
  ExpectError(Train(Spec(start + "trainable { last_layers: 3 }", "classes.tsv", "no", 4)).status(),
      Exit::kSpec, "the model has 2");
  ExpectError(Train(Spec(NewEncoder() + "sequence_classification {} trainable { lora {} }",
                        "classes.tsv", "no", 4))
                  .status(),
      Exit::kSpec, "trainable.lora: needs an existing model");
}

TEST_F(TrainerTest, LoraWritesAnAdapterAndResumesWithTheSameBits) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "mlm", 20)).ok());
  const std::string start = absl::StrCat("model { start_from: \"", Path("mlm"),
      "\" } sequence_classification { max_tokens: 48 } ",
      "trainable { lora { rank: 4 dropout: 0.1 targets: [QUERY, VALUE, OUTPUT] } }");
  const auto straight = Train(Spec(start, "classes.tsv", "straight", 120));
  ASSERT_TRUE(straight.ok()) << straight.status();
  EXPECT_LT(straight->loss, 0.5);
  EXPECT_THAT(progress_, HasSubstr("training "));
  for (const int stop : {1, 4, 9}) {
    SetThreads(stop % 3 + 1);
    EXPECT_EQ(ExitOf(Train(Spec(start, "classes.tsv", "pieces", 120), stop).status()),
        Exit::kInterrupted);
  }
  ASSERT_TRUE(Train(Spec(start, "classes.tsv", "pieces", 120)).ok());
  const std::string weights = "/adapter_model.safetensors";
  EXPECT_EQ(Read(Path("straight") + weights), Read(Path("pieces") + weights));
  EXPECT_FALSE(PathExists(Path("straight/model.safetensors")));
  const std::string checkpoint = Path("straight/step-00000120");
  EXPECT_FALSE(PathExists(checkpoint + "/model.safetensors"));
  EXPECT_EQ(TensorsOf(checkpoint + "/optimizer.safetensors").size(),
      2 * TensorsOf(checkpoint + weights).size());
  const auto config = LoadConfig(Path("mlm"));
  ASSERT_TRUE(config.ok());
  const auto adapter = Adapter::Open(Path("straight"), *config);
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  EXPECT_EQ(adapter->config().labels, std::vector<std::string>({"cat", "dog"}));
  // A base that changed meanwhile is noticed.
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "other", 4)).ok());
  std::filesystem::copy(Path("other/model.safetensors"), Path("mlm"),
      std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(Path("mlm/MANIFEST"));
  std::filesystem::remove_all(Path("pieces/step-00000120"));
  ExpectError(
      Train(Spec(start, "classes.tsv", "pieces", 120)).status(), Exit::kMismatch, "another base");
}

TEST_F(TrainerTest, LayerDecayLowersTheRateOfLowerLayers) {
  ParamStore store;
  for (int layer = -1; layer <= 1; ++layer) store.AddMatrix({.layer = layer}, 1, 4);
  store.Allocate(true);
  OptimizerSpec spec;
  spec.set_layer_decay(0.5);
  spec.set_weight_decay(0);
  Optimizer optimizer(&store, spec);
  for (float& g : store.grads()) g = 1;
  optimizer.Step(0.1, 0.5);
  for (ParamId id = 0; id < 3; ++id)
    EXPECT_NEAR(store.value(id).f32()[0], -0.1 * std::pow(0.5, 2 - id), 1e-6) << id;
}

TEST_F(TrainerTest, LearnsSeveralLabelsNumbersPairsAndWindows) {
  std::string several = "text\tlabel\n", number = "text\tother\tlabel\n", rare = "text\tlabel\n";
  for (int i = 0; i < 60; ++i) {
    const bool cat = i % 2 == 0, sat = i % 3 == 0;
    absl::StrAppend(&several, cat ? "the cat " : "a dog ", sat ? "sat on" : "ran to", "\t",
        cat ? "cat" : "", sat ? " ,sat" : "", "\n");
    absl::StrAppend(&number, cat ? "the cat" : "a dog", "\t", sat ? "sat on" : "ran to", "\t",
        cat + 0.5 * sat, "\n");
    absl::StrAppend(&rare, "the mat . the mat . the mat . the mat . the ", cat ? "cat" : "dog",
        "\t", cat ? "cat" : "dog", "\n");
  }
  Write("several.tsv", several);
  Write("number.tsv", number);
  Write("rare.tsv", rare);
  const auto run = [&](const std::string& task, const std::string& data, const std::string& pair) {
    LoadedSpec spec =
        Spec(NewEncoder() + " sequence_classification { " +
                 (task.find("max_tokens") < 99 ? "" : "max_tokens: 48 ") + task + " }",
            data, data + task.substr(0, 9), 160);
    spec.spec.mutable_validation()->add_files(Path(data));
    for (DataSpec* d : {spec.spec.mutable_train(), spec.spec.mutable_validation()})
      d->set_text_pair_field(pair);
    const auto summary = Train(spec);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.ok() ? *summary : Trainer::Summary();
  };
  const auto multi = run("kind: MULTI_LABEL", "several.tsv", "");
  EXPECT_EQ(multi.metric.name, "micro_f1");
  EXPECT_EQ(*multi.best.Value("accuracy"), 1.0);
  const auto regression = run("kind: REGRESSION", "number.tsv", "other");
  EXPECT_EQ(regression.metric.name, "pearson");
  EXPECT_GT(*regression.best.Value("pearson"), 0.95);
  EXPECT_LT(regression.loss, 0.1);  // of the last step; the best correlation comes earlier
  EXPECT_EQ(LoadConfig(Path("number.tsvkind: REG"))->task_fields["pairs"], true);
  EXPECT_EQ(*run("long_texts: WINDOWS max_tokens: 10", "rare.tsv", "").best.Value("accuracy"), 1.0);
  EXPECT_THAT(progress_, HasSubstr("read in several windows: 60 texts"));
  EXPECT_THAT(progress_, testing::Not(HasSubstr("than there are ranks")));
  EXPECT_EQ(
      *run("balance_classes: true label_smoothing: 0.1", "classes.tsv", "").best.Value("accuracy"),
      1.0);
  EXPECT_THAT(progress_, HasSubstr("class weights: cat 1, dog 1"));
}

TEST_F(TrainerTest, EvaluationCountsTextsAndNotWindows) {
  std::string rows = "text\tlabel\n";
  for (int i = 0; i < 6; ++i)
    absl::StrAppend(&rows, "the mat . the mat . the mat . the mat . the ", i % 2 ? "cat" : "dog",
        "\t", i % 2 ? "cat" : "dog", "\n");
  Write("long.tsv", rows);
  LoadedSpec spec =
      Spec(NewEncoder() + " sequence_classification { long_texts: WINDOWS max_tokens: 10 }",
          "long.tsv", "run", 2);
  spec.spec.mutable_validation()->add_files(Path("long.tsv"));
  spec.spec.mutable_evaluation()->set_max_examples(4);
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const auto results = ParseJson(summary->best.ToJson(), "results");
  ASSERT_TRUE(results.ok()) << results.status();
  int texts = 0;
  for (const Json& label : results->at("per_class")) texts += label.at("support").get<int>();
  EXPECT_EQ(texts, 4) << summary->best.ToJson();
}

// Half of the texts have each label: ln 2. The rate decides whether anything is learned.
TEST_F(TrainerTest, SaysOnceThatNothingIsLearned) {
  const auto notes = [&](const std::string& task, const std::string& data, double rate, int stop) {
    LoadedSpec spec = Spec(NewEncoder() + task, data, absl::StrCat("run", data, rate), 60);
    spec.spec.mutable_optimizer()->set_learning_rate(rate);
    std::string all;
    for (absl::Status status = Error(Exit::kInterrupted, ""); !status.ok();) {
      status = Train(spec, stop).status();
      EXPECT_TRUE(status.ok() || ExitOf(status) == Exit::kInterrupted) << status;
      all += progress_;
    }
    return all;
  };
  const std::string classes = " sequence_classification { max_tokens: 48 }";
  const std::string stuck = notes(classes, "classes.tsv", 1e-8, 1000);
  EXPECT_THAT(stuck, HasSubstr("a model that ignores its input reaches 0.6931"));
  EXPECT_THAT(stuck, HasSubstr("lower optimizer.learning_rate"));
  EXPECT_EQ(stuck.find("note: "), stuck.rfind("note: "));
  // Of 30 texts each, weighted 1 and 10: p = 1/11 and 10/11, (30 ln 11 + 300 ln 1.1) / 330.
  EXPECT_THAT(notes(" sequence_classification { max_tokens: 48 labels: ['cat', 'dog'] "
                    "class_weights: [1, 10] label_smoothing: 0.2 }",
                  "classes.tsv", 2e-8, 1000),
      HasSubstr("ignores its input reaches 0.3046"));
  EXPECT_THAT(notes(classes, "classes.tsv", 3e-3, 1000), testing::Not(HasSubstr("note: ")));
  // D, N and V in each sentence, and A in every second one: 60, 60, 60 and 30 words.
  const std::string tags = notes(" token_tagging { max_tokens: 24 }", "tags.conll", 1e-8, 25);
  EXPECT_THAT(tags, HasSubstr("ignores its input reaches 1.352"));
  EXPECT_EQ(tags.find("note: "), tags.rfind("note: "));
  const std::string text = notes(" masked_lm { max_tokens: 32 }", "text.txt", 1e-8, 1000);
  EXPECT_THAT(text, HasSubstr("raise optimizer.learning_rate"));
  TaskSpec spec;
  spec.mutable_sequence_classification();
  EXPECT_THAT(PlateauNote(190, 0.69, spec), HasSubstr("there: lower optimizer.learning_rate"));
  EXPECT_THAT(PlateauNote(2.5, 0.24, spec, 13), HasSubstr("there: raise optimizer.learning_rate"));
  EXPECT_THAT(PlateauNote(20, 0.24, spec, 13), HasSubstr("there: lower optimizer.learning_rate"));
  spec.mutable_sequence_classification()->set_kind(SequenceClassificationSpec::REGRESSION);
  EXPECT_THAT(PlateauNote(190, 0.69, spec), HasSubstr("there: raise optimizer.learning_rate"));
  spec.mutable_masked_lm();
  EXPECT_THAT(PlateauNote(6.5, 6.4, spec), HasSubstr("query_key_start: 2"));
  spec.mutable_causal_lm();
  EXPECT_THAT(PlateauNote(6.5, 6.4, spec), HasSubstr("there: take more and smaller steps"));
}

TEST_F(TrainerTest, WeightsOfLabelsDecideBetweenThemInTagging) {
  std::string tags;
  for (int i = 0; i < 40; ++i) tags += i % 4 == 0 ? "the\tD\ncat\tA\n\n" : "the\tD\ncat\tN\n\n";
  Write("often.conll", tags);
  const auto accuracy = [&](const std::string& weights) {
    LoadedSpec spec =
        Spec(NewEncoder() + " token_tagging { max_tokens: 24 labels: [ 'A', 'D', 'N' ] " + weights +
                 " }",
            "often.conll", "run" + weights.substr(0, 9), 60);
    spec.spec.mutable_validation()->add_files(Path("often.conll"));
    const auto summary = Train(spec);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.ok() ? *summary->best.Value("accuracy") : 0;
  };
  EXPECT_NEAR(accuracy(""), 70 / 80.0, 1e-6);
  EXPECT_NEAR(accuracy("class_weights: [ 9, 1, 1 ] label_smoothing: 0.1"), 50 / 80.0, 1e-6);
  EXPECT_NEAR(accuracy("label_weights: 'A=9' label_smoothing: 0.1"), 50 / 80.0, 1e-6);
  accuracy("balance_classes: true");
  EXPECT_THAT(progress_, HasSubstr("class weights: A 2.66667, D 0.666667, N 0.888889"));
}

// A few steps with each choice; the model that the folder holds answers as the evaluation counted.
TEST_F(TrainerTest, TaggersAnswerFromThePiecesThatTheyWereTrainedOn) {
  const std::vector<std::string> words = {"the", "cats", "abc", "mats"},
                                 tags = {"D", "N", "X", "M"};
  std::string data;
  for (int i = 0; i < 40; ++i) {
    for (int w = 0; w < 4; ++w)
      absl::StrAppend(&data, words[(i + w) % 4], "\t", tags[(i + w * w) % 4], "\n");
    data += "\n";
  }
  Write("pieces.conll", data);
  std::set<std::string> weights;
  for (const std::string pieces : {"FIRST", "MEAN", "LAST"}) {
    LoadedSpec spec =
        Spec(NewEncoder() + " token_tagging { max_tokens: 10 pieces: " + pieces + " }",
            "pieces.conll", pieces, 12);
    spec.spec.mutable_validation()->add_files(Path("pieces.conll"));
    const auto summary = Train(spec);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_TRUE(summary->best.Value("accuracy_multi_piece").ok());
    weights.insert(Weights(pieces));
    const auto session = Session::Open(Path(pieces), DType::kF32);
    ASSERT_TRUE(session.ok()) << session.status();
    const auto predictor =
        Predictor::Create(**session, {.command = "tag", .source = {.name = "test"}});
    ASSERT_TRUE(predictor.ok()) << predictor.status();
    int right = 0;
    for (int i = 0; i < 40; ++i) {
      Record record;
      record.kind = Record::Kind::kWords;
      for (int w = 0; w < 4; ++w) record.words.push_back(words[(i + w) % 4]);
      const auto count = [&](const Record&, const OrderedJson& answer) {
        for (int w = 0; w < 4; ++w) right += answer["tags"][w] == tags[(i + w * w) % 4];
        return absl::OkStatus();
      };
      ASSERT_TRUE((*predictor)->Answer({&record, 1}, count).ok());
    }
    EXPECT_NEAR(*summary->best.Value("accuracy"), right / 160.0, 1e-9) << pieces;
  }
  EXPECT_EQ(weights.size(), 3);
}

}  // namespace
}  // namespace cloze
