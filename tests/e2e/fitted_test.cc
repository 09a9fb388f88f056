// Temperatures and thresholds that training fits and the model folder keeps. Training is in bf16:
// the values are still those of inference, in f32.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class FittedTest : public testing::Test {
 protected:
  FittedTest() {
    std::string text, table = "text,label\n", held_out = table, several;
    for (int i = 0; i < 240; ++i) {
      text += "A great film and a dull movie was here.\n";
      // A fifth of the held-out labels is wrong: the model is too sure.
      const bool good = i % 2 == 0, wrong = i >= 120 && i * 7 % 10 < 2;
      (i < 120 ? table : held_out) += std::string(good ? "a great film " : "a dull movie ") +
                                      std::to_string(i) + (good != wrong ? ",pos\n" : ",neg\n");
      const std::string first = good ? "great" : "dull", second = i % 3 == 0 ? " film" : "";
      several += R"({"text": ")" + first + second + " " + std::to_string(i) + R"(", "label": [")" +
                 first + '"' + (second.empty() || i % 9 == 0 ? "" : ", \"film\"") + "]}\n";
    }
    Write("text.txt", text), Write("train.csv", table), Write("dev.csv", held_out);
    Write("several.jsonl", several);
    EXPECT_EQ(Run("vocab --size 90 --text text.txt --out vocab").exit, 0);
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << text;
  }
  json Read(const std::string& name) { return json::parse(std::ifstream(dir_ + "/" + name)); }
  RunResult Run(const std::string& arguments) { return RunCloze(arguments, "cd " + dir_ + " && "); }
  void Train(const std::string& name, const std::string& model, const std::string& task,
      const std::string& train, const std::string& validation) {
    Write(name + ".textproto",
        "model { " + model + " } sequence_classification { max_tokens: 24 " + task +
            " } train { files: \"" + train + "\" } validation { files: \"" + validation +
            "\" } batch { tokens: 512 } optimizer { learning_rate: 0.005 } runtime { compute: BF16 "
            "}"
            " schedule { steps: 80 } evaluation { every_steps: 80 } output { directory: \"" +
            name + "\" }");
    const RunResult r = Run("finetune " + name + ".textproto");
    ASSERT_EQ(r.exit, 0) << r.err;
  }
  // The scores of one text.
  json Scores(const std::string& model, const std::string& text) {
    Write("one.txt", text + "\n");
    const RunResult r = Run("predict --model " + model + " one.txt");
    EXPECT_EQ(r.exit, 0) << r.err;
    return json::parse(r.out);
  }

  const std::string dir_ = TemporaryFolder();
  const std::string new_ =
      "tokenizer: \"vocab\" encoder { preset: CUSTOM layers: 1 hidden: 16 heads: 2 intermediate: "
      "16 max_positions: 32 }";
};

TEST_F(FittedTest, TemperatureScalesProbabilitiesOnly) {
  Train("run", new_, "calibrate: true", "train.csv", "dev.csv");
  const json config = Read("run/config.json"), best = Read("run/metrics.json")["metrics"];
  const double temperature = config["cloze"]["temperature"].get<double>();
  EXPECT_EQ(best["temperature"], temperature);
  EXPECT_GT(temperature, 1.05);
  const RunResult r = Run("evaluate --model run --data dev.csv");
  ASSERT_EQ(r.exit, 0) << r.err;
  const json calibrated = json::parse(r.out);
  for (const char* name : {"accuracy", "auc", "ece", "loss"})
    EXPECT_NEAR(calibrated[name].get<double>(), best[name].get<double>(), 1e-5) << name;
  const double odds = std::log(Scores("run", "a great film 3")["scores"]["pos"].get<double>() /
                               Scores("run", "a great film 3")["scores"]["neg"].get<double>());
  // Without it: the same labels, other probabilities.
  json plain = config;
  plain["cloze"].erase("temperature");
  std::filesystem::remove(dir_ + "/run/MANIFEST");
  Write("run/config.json", plain.dump());
  const json before = json::parse(Run("evaluate --model run --data dev.csv").out);
  EXPECT_EQ(before["accuracy"], calibrated["accuracy"]);
  EXPECT_NEAR(before["auc"].get<double>(), calibrated["auc"].get<double>(), 1e-9);
  EXPECT_LT(calibrated["loss"].get<double>(), before["loss"].get<double>());
  EXPECT_LT(calibrated["ece"].get<double>(), before["ece"].get<double>());
  const json scores = Scores("run", "a great film 3")["scores"];
  EXPECT_NEAR(std::log(scores["pos"].get<double>() / scores["neg"].get<double>()),
      odds * temperature, 1e-3);
  plain["cloze"]["temperature"] = "x";
  Write("run/config.json", plain.dump());
  EXPECT_EQ(Run("evaluate --model run --data dev.csv").exit, 65);
}

TEST_F(FittedTest, AdaptersKeepTheirTemperature) {
  Train("base", new_, "", "train.csv", "dev.csv");
  Train("lora", "start_from: \"base\"", "calibrate: true", "train.csv", "dev.csv");
  const RunResult r =
      Run("finetune lora.textproto --set trainable.lora.rank=2 --set output.directory=adapter");
  ASSERT_EQ(r.exit, 0) << r.err;
  const json best = Read("adapter/metrics.json")["metrics"];
  const RunResult evaluated = Run("evaluate --model adapter --data dev.csv");
  ASSERT_EQ(evaluated.exit, 0) << evaluated.err;
  EXPECT_NEAR(json::parse(evaluated.out)["loss"].get<double>(), best["loss"].get<double>(), 1e-5);
  EXPECT_NE(best["temperature"], 1.0);
}

// `evaluate` reads the labels of a table that `predict` wrote.
TEST_F(FittedTest, SeveralLabelsKeepTheirSeparator) {
  std::string table = "text,label\n";
  for (int i = 0; i < 120; ++i)
    table += i % 2 == 0 ? "a great film,\"late, again|b\"\n" : "a dull movie,b\n";
  Write("labels.csv", table);
  Train("run", new_, "kind: MULTI_LABEL threshold: 0.01 label_separator: \"|\"", "labels.csv",
      "labels.csv");
  ASSERT_EQ(Run("predict --model run --out answers.csv labels.csv").exit, 0);
  const RunResult r =
      Run("evaluate --model run --data answers.csv --set label_field=labels "
          "--predictions rows.csv");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(json::parse(r.out)["accuracy"], 1.0);
  EXPECT_THAT(Content(dir_ + "/rows.csv"), HasSubstr(",\"b|late, again\",\"b|late, again\","));
  // True labels have the order of the predicted ones.
  ASSERT_EQ(Run("evaluate --model run --data labels.csv --predictions order.csv").exit, 0);
  EXPECT_THAT(Content(dir_ + "/order.csv"),
      HasSubstr(",\"late, again|b\",\"b|late, again\",\"b|late, again\","));
}

TEST_F(FittedTest, ThresholdsAreThoseOfTheBestF1) {
  Train("run", new_, "kind: MULTI_LABEL thresholds: BEST", "several.jsonl", "several.jsonl");
  const json config = Read("run/config.json"), best = Read("run/metrics.json")["metrics"];
  const std::vector<double> thresholds = config["cloze"]["thresholds"];
  ASSERT_EQ(thresholds.size(), 3);
  EXPECT_EQ(best["thresholds"], config["cloze"]["thresholds"]);
  const RunResult r = Run("evaluate --model run --data several.jsonl");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_NEAR(json::parse(r.out)["macro_f1"].get<double>(), best["macro_f1"].get<double>(), 1e-9);
  const json answer = Scores("run", "great film 3");
  int i = 0;
  for (const char* label : {"dull", "film", "great"}) {
    const bool chosen = answer["scores"][label].get<double>() >= thresholds[i++];
    const auto& labels = answer["labels"];
    EXPECT_EQ(std::find(labels.begin(), labels.end(), label) != labels.end(), chosen) << label;
  }
  // A threshold that no probability reaches.
  json strict = config;
  strict["cloze"]["thresholds"] = {1, 1, 1};
  std::filesystem::remove(dir_ + "/run/MANIFEST");
  Write("run/config.json", strict.dump());
  EXPECT_EQ(Scores("run", "great film 3")["labels"], json::array());
  strict["cloze"]["thresholds"] = {1, 1};
  Write("run/config.json", strict.dump());
  const RunResult wrong = Run("predict --model run one.txt");
  EXPECT_EQ(wrong.exit, 65);
  EXPECT_THAT(wrong.err, HasSubstr("thresholds: expected a probability for each of 3 labels"));
}

TEST_F(FittedTest, WhatCannotBeFittedIsRefused) {
  Write("bad.textproto",
      "model { " + new_ +
          " } sequence_classification { kind: REGRESSION calibrate: true thresholds: BEST } "
          "train { files: \"train.csv\" } output { directory: \"bad\" }");
  const RunResult r = Run("spec check bad.textproto");
  EXPECT_EQ(r.exit, 78);
  EXPECT_THAT(r.err, HasSubstr("calibrate: is not for REGRESSION"));
  EXPECT_THAT(r.err, HasSubstr("thresholds: BEST is only for MULTI_LABEL"));
  EXPECT_THAT(r.err, HasSubstr("the temperature needs validation data"));
}

}  // namespace
}  // namespace cloze
