// Generated ids and probabilities against those of transformers, in tests/golden/gpt2_causal_lm.
#include "tasks/inference/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/threads.h"
#include "core/tensor/safetensors.h"
#include "tasks/inference/sampling.h"
#include "tasks/probabilities.h"
#include "tasks/task.h"

namespace cloze {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

const std::string kFolder = CLOZE_SOURCE_DIR "/tests/golden/gpt2_causal_lm";

class GeneratorTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Session::Open(kFolder, DType::kF32);
    ASSERT_TRUE(opened.ok()) << opened.status();
    session_ = *std::move(opened);
    options_.max_new_tokens = 20;
  }
  Ids Reference(const std::string& name) const {
    Ids ids(reference_.Find(name)->elements());
    EXPECT_TRUE(reference_.ReadI32(name, absl::MakeSpan(ids)).ok());
    return ids;
  }
  std::vector<float> Floats(const std::string& name) const {
    std::vector<float> values(reference_.Find(name)->elements());
    EXPECT_TRUE(reference_.ReadF32(name, absl::MakeSpan(values)).ok());
    return values;
  }
  std::vector<Ids> Generate(const std::vector<Ids>& prompts, uint64_t first = 0) {
    auto generator = Generator::Create(*session_, options_);
    EXPECT_TRUE(generator.ok()) << generator.status();
    auto results = generator->Generate(prompts, first, [](size_t, absl::Span<const int32_t>) {});
    EXPECT_TRUE(results.ok()) << results.status();
    return *std::move(results);
  }
  std::string ErrorOf(const std::string& folder = kFolder) {
    auto session = Session::Open(folder, DType::kF32);
    EXPECT_TRUE(session.ok()) << session.status();
    return std::string(Generator::Create(**session, options_).status().message());
  }

  SafetensorsReader reference_ = *SafetensorsReader::Open(kFolder + "/reference.safetensors");
  std::unique_ptr<Session> session_;
  GenerateOptions options_;
};

TEST_F(GeneratorTest, Greedy) {
  const Ids prompt = Reference("prompt");
  EXPECT_EQ(Generate({prompt})[0], Reference("greedy"));
  options_.end_token = Reference("end_token")[0];
  EXPECT_EQ(Generate({prompt})[0], Reference("greedy_until_end"));
}

TEST_F(GeneratorTest, Beams) {
  const Ids prompt = Reference("prompt"), end = Reference("end_token");
  const auto expect = [&](int beams, double penalty, int32_t end, const std::string& name) {
    options_.beams = beams, options_.length_penalty = penalty, options_.end_token = end;
    EXPECT_EQ(Generate({prompt})[0], Reference(name)) << name;
  };
  expect(4, 1, -1, "beams_4_length_penalty_1.0");
  expect(5, 0, -1, "beams_5_length_penalty_0.0");
  expect(3, 2, -1, "beams_3_length_penalty_2.0");
  expect(4, 0, end[0], "beams_4_until_end_length_penalty_0.0");
  expect(4, 1, end[0], "beams_4_until_end_length_penalty_1.0");
  expect(4, 2, end[0], "beams_4_until_end_length_penalty_2.0");
}

// The sources and the targets of an encoder-decoder in tests/golden.
class SourcesTest : public GeneratorTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    session_ = Open(DType::kF32);
    reference_ = *SafetensorsReader::Open(folder_ + "/reference.safetensors");
    const Ids ids = Reference("input_ids"), mask = Reference("attention_mask");
    for (int row = 0; row < 3; ++row) {
      Ids& source = sources_.emplace_back();
      for (int i = 17 * row; i < 17 * (row + 1); ++i)
        if (mask[i] != 0) source.push_back(ids[i]);
    }
    options_.max_new_tokens = 12;
  }
  std::unique_ptr<Session> Open(DType compute) const {
    auto session = *Session::Open(folder_, compute);
    // The reference was made with 8 times Marian's fixed positions, which are not in the folder.
    ParamStore& params = session->model().params();
    for (ParamId id = 0; id < params.size(); ++id) {
      const Param& param = params.param(id);
      const bool fixed = session->config().positions.kind == Positions::kSinesFirst &&
                         param.role == Role::kPositionEmbeddings;
      for (int64_t i = 0; fixed && i < param.size(); ++i) params.value(id).f32()[i] *= 8;
    }
    return session;
  }
  const std::string folder_ = absl::StrCat(CLOZE_SOURCE_DIR, "/tests/golden/", GetParam());
  std::vector<Ids> sources_;
};

// Each token is the likeliest one after the whole source and the tokens before it.
TEST_P(SourcesTest, CachedStepsAgreeWithWholePasses) {
  const std::vector<Ids> targets = Generate(sources_);
  Model& model = session_->model();
  for (int row = 0; row < 3; ++row) {
    Ids pair = sources_[row];
    const auto second = static_cast<int32_t>(pair.size());
    pair.insert(pair.end(), targets[row].begin(), targets[row].end() - 1);
    Batch batch;
    batch.Add(pair, second, 0);
    for (int32_t r = second; r < std::ssize(pair); ++r) batch.rows.push_back(r);
    batch.Pad();
    model.arena().Reset();
    const Pass pass = model.NewPass(batch, DType::kF32);
    const Mat logits = model.head().Logits(pass, model.backbone().Infer(pass));
    for (int64_t i = 0; i < std::ssize(batch.rows); ++i)
      EXPECT_EQ(BestIndex({logits.f32(i), 120}), targets[row][i + 1]) << row << " " << i;
  }
}

TEST_P(SourcesTest, GreedyAndBeams) {
  for (const auto& [beams, name] : {std::pair(1, "greedy."), std::pair(4, "beams_4.")}) {
    options_.beams = beams;
    const std::vector<Ids> targets = Generate(sources_);
    for (int row = 0; row < 3; ++row)
      EXPECT_EQ(targets[row], Reference(absl::StrCat(name, row))) << name << row;
  }
}

TEST_P(SourcesTest, ResultsDependNeitherOnTheBatchNorOnThreads) {
  std::vector<Ids> sources;
  for (int i = 0; i < 40; ++i) {
    for (int t = 0; t < 1 + i * 7 % 48; ++t)
      (t == 0 ? sources.emplace_back() : sources.back()).push_back(5 + (i * 13 + t * t) % 110);
  }
  for (const DType compute : {DType::kF32, DType::kBf16}) {
    session_ = Open(compute);
    for (const int beams : {1, 3}) {
      options_.beams = beams;
      const std::vector<Ids> all = Generate(sources);
      const int threads = Threads();
      for (const int count : {1, 3}) {
        SetThreads(count);
        for (const size_t i : {0u, 7u, 33u}) EXPECT_EQ(Generate({sources[i]}, i)[0], all[i]) << i;
        EXPECT_EQ(Generate(sources), all);
      }
      SetThreads(threads);
    }
  }
}

TEST_P(SourcesTest, ForcesAndForbidsTokens) {
  const Ids free = Generate(sources_)[0];
  auto& config = const_cast<ModelConfig&>(session_->config());
  config.generation.banned = {free[1]};
  for (const int beams : {1, 2}) {
    options_.beams = beams;
    EXPECT_THAT(Generate(sources_)[0], testing::Not(testing::Contains(free[1])));
  }
  config.generation.forced_first_id = 7, config.generation.forced_last_id = config.end_id;
  for (const int beams : {1, 2}) {
    options_.beams = beams;
    const Ids ids = Generate(sources_)[0];
    EXPECT_EQ(ids[1], 7);
    EXPECT_EQ(ids.back(), config.end_id);
  }
}

TEST_P(SourcesTest, ForcesTheTokenOfTheLastPosition) {
  auto& config = const_cast<ModelConfig&>(session_->config());
  options_.max_new_tokens = 1000;
  options_.end_token = 119;
  config.generation.banned = {119, config.end_id};
  config.generation.forced_last_id = config.end_id;
  for (const int beams : {1, 2}) {
    options_.beams = beams;
    const Ids ids = Generate({sources_[0]})[0];
    EXPECT_EQ(ids.size(), config.max_tokens());
    EXPECT_EQ(ids.back(), config.end_id);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SourcesTest, testing::Values("marian", "bart", "bert2bert"),
    [](const auto& info) { return std::string(info.param); });

TEST_F(GeneratorTest, ProbabilitiesOfTheNextToken) {
  const std::vector<std::pair<std::string, SamplingRule>> rules = {{"temperature_0.7", {0.7}},
      {"top_k_5", {1, 5}}, {"top_p_0.8", {1, 0, 0.8}},
      {"temperature_1.3_top_k_20_top_p_0.9", {1.3, 20, 0.9}}};
  for (const auto& [name, rule] : rules) {
    std::vector<float> p = Floats("next_logits");
    NextProbabilities(rule, absl::MakeSpan(p));
    const std::vector<float> expected = Floats("next_probability." + name);
    for (size_t i = 0; i < p.size(); ++i) {
      EXPECT_NEAR(p[i], expected[i], 1e-6) << name << " " << i;
      EXPECT_EQ(p[i] == 0, expected[i] == 0) << name << " " << i;
    }
  }
}

TEST_F(GeneratorTest, ResultsDependNeitherOnTheBatchNorOnThreads) {
  std::vector<Ids> prompts;
  for (int i = 0; i < 40; ++i) {
    Ids& prompt = prompts.emplace_back();
    for (int t = 0; t < 1 + i * 7 % 30; ++t) prompt.push_back(5 + (i * 13 + t * t) % 110);
  }
  for (const DType compute : {DType::kF32, DType::kBf16}) {
    session_ = *Session::Open(kFolder, compute);
    for (const int beams : {1, 3}) {
      options_.beams = beams, options_.rule = {beams == 1 ? 1.0 : 0.0, 0, 1};
      const std::vector<Ids> all = Generate(prompts);
      const int threads = Threads();
      for (const int count : {1, 3}) {
        SetThreads(count);
        for (const size_t i : {0u, 7u, 33u}) EXPECT_EQ(Generate({prompts[i]}, i)[0], all[i]) << i;
        EXPECT_EQ(Generate(prompts), all);
      }
      SetThreads(threads);
    }
  }
}

TEST_F(GeneratorTest, SeedAndPromptNumberDecideDraws) {
  const Ids prompt = Reference("prompt");
  options_.rule.temperature = 1;
  const std::vector<Ids> two = Generate({prompt, prompt});
  EXPECT_NE(two[0], two[1]);
  EXPECT_EQ(Generate({prompt}, 1)[0], two[1]);
  options_.seed = 2;
  EXPECT_NE(Generate({prompt})[0], two[0]);
}

TEST_F(GeneratorTest, PenalizesRepetition) {
  options_.repetition_penalty = 100;
  const Ids ids = Generate({Reference("prompt")})[0];
  EXPECT_EQ(std::set<int32_t>(ids.begin(), ids.end()).size(), ids.size());
  std::vector<float> scores = {2, -2, 3, 0};
  PenalizeRepetition({0, 1, 1}, 2, absl::MakeSpan(scores));
  EXPECT_THAT(scores, testing::ElementsAre(1, -4, 3, 0));
}

// Ids of transformers 5.12 for these members of generation_config.json.
TEST(GenerationConfig, IsReadFromTheFolder) {
  const std::string folder = testing::TempDir() + "/generation_config";
  std::filesystem::copy(kFolder, folder,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  const auto generated = [&](const std::string& config) {
    std::ofstream(folder + "/generation_config.json") << config;
    auto session = Session::Open(folder, DType::kF32);
    EXPECT_TRUE(session.ok()) << session.status();
    GenerateOptions options;
    options.max_new_tokens = 8;
    const auto ids =
        Generator::Create(**session, options)->Generate({{2, 5, 6, 7, 3}}, 0, [](size_t, auto) {});
    return Ids((*ids)[0].begin() + 5, (*ids)[0].end());
  };
  EXPECT_EQ(generated("{}"), (Ids{103, 39, 11, 11, 103, 54, 62, 62}));
  EXPECT_EQ(generated(R"({"no_repeat_ngram_size": 1})"), (Ids{103, 39, 11, 79, 54, 114, 89, 65}));
  EXPECT_EQ(generated(R"({"bad_words_ids": [[103]]})"), (Ids{56, 61, 92, 54, 89, 0, 69, 46}));
  EXPECT_EQ(generated(R"({"forced_eos_token_id": 9})").back(), 9);
  EXPECT_EQ(generated(R"({"eos_token_id": 54})"), (Ids{103, 39, 11, 11, 103, 54}));
  for (const char* least : {"\"min_new_tokens\": 8", "\"min_length\": 13"})
    EXPECT_EQ(generated(absl::StrCat("{\"eos_token_id\": 54, ", least, "}")),
        (Ids{103, 39, 11, 11, 103, 103, 13, 89}));
}

TEST_F(GeneratorTest, BansRepeatedSequences) {
  const auto banned = [](std::vector<int32_t> tokens, int64_t n) {
    std::vector<float> scores(4);
    BanRepeatedSequences(tokens, n, absl::MakeSpan(scores));
    Ids ids;
    for (int32_t id = 0; id < 4; ++id)
      if (std::isinf(scores[id])) ids.push_back(id);
    return ids;
  };
  EXPECT_EQ(banned({1, 2, 1}, 1), (Ids{1, 2}));
  EXPECT_EQ(banned({1, 2, 1, 3, 1}, 2), (Ids{2, 3}));
  EXPECT_EQ(banned({1, 2, 3, 1, 2}, 3), (Ids{3}));
  EXPECT_EQ(banned({1, 2, 3, 1, 2}, 4), Ids());
  EXPECT_EQ(banned({1}, 3), Ids());
}

TEST_F(GeneratorTest, EndsAtTheLastPosition) {
  options_.max_new_tokens = 1000;
  options_.end_token = 119;
  const Ids ids = Generate({Reference("prompt")})[0];
  EXPECT_TRUE(ids.size() == 48 || ids.back() == 119);
}

TEST_F(GeneratorTest, PicksByProbability) {
  EXPECT_EQ(PickToken({0, 0.25, 0.75, 0}, 0), 1);
  EXPECT_EQ(PickToken({0, 0.25, 0.75, 0}, 0.24), 1);
  EXPECT_EQ(PickToken({0, 0.25, 0.75, 0}, 0.26), 2);
  EXPECT_EQ(PickToken({0, 0.25, 0.75, 0}, 0.999999), 2);
}

TEST_F(GeneratorTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(
      ErrorOf(CLOZE_SOURCE_DIR "/tests/golden/masked_lm"), HasSubstr("no head for causal_lm"));
  options_.beams = 121;
  EXPECT_THAT(ErrorOf(), HasSubstr("beams 121: expected at most 120"));
  options_.beams = 2, options_.rule.temperature = 1;
  EXPECT_THAT(ErrorOf(), HasSubstr("beams exclude temperature"));
  options_ = {.end_token = 120};
  EXPECT_THAT(ErrorOf(), HasSubstr("end_token 120: expected an id below 120"));
  options_ = {.stop = {"."}};
  EXPECT_THAT(ErrorOf(), HasSubstr("no tokenizer: expected"));
}

}  // namespace
}  // namespace cloze
