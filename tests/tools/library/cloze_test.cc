#include "tools/library/cloze.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/system.h"
#include "tests/sanitized.h"
#include "tests/tools/library/models.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using testing::HasSubstr;

cloze_text TextOf(const std::string& text) {
  return {text.data(), static_cast<int64_t>(text.size()), nullptr, 0, nullptr};
}
cloze_text TextOf(std::string&& text) = delete;  // it would not live long enough

class ApiTest : public ModelsTest {
 protected:
  cloze_model* Open(const std::string& name, const cloze_options* options = nullptr) {
    cloze_model* model = nullptr;
    EXPECT_EQ(cloze_open(Path(name).c_str(), options, &model), CLOZE_OK) << cloze_error();
    return model;
  }
  // The JSON of text `i`.
  static json Json(const cloze_result* result, int64_t i) {
    const char* text = nullptr;
    int64_t length = 0;
    EXPECT_EQ(cloze_json(result, i, &text, &length), CLOZE_OK) << text;
    EXPECT_EQ(std::string(text).size(), length);
    return json::parse(text);
  }
  // Expects one line with `message` as the error of `status`.
  static void ExpectError(cloze_status status, cloze_status expected, const std::string& message) {
    EXPECT_EQ(status, expected) << message;
    EXPECT_THAT(cloze_error(), HasSubstr(message));
    EXPECT_EQ(std::string(cloze_error()).find('\n'), std::string::npos) << cloze_error();
  }
  cloze_result* result_ = nullptr;
};

TEST_F(ApiTest, AnswersAndVectorsOfABatchAndOfOne) {
  cloze_model* const model = Open("classifier");
  const std::vector<std::string> texts = Texts();
  std::vector<cloze_text> batch;
  for (const std::string& text : texts) batch.push_back(TextOf(text));
  ASSERT_EQ(cloze_predict(model, batch.data(), batch.size(), nullptr, &result_), CLOZE_OK);
  EXPECT_EQ(cloze_count(result_), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    cloze_result* one = nullptr;
    ASSERT_EQ(cloze_answer(model, texts[i].data(), texts[i].size(), &one), CLOZE_OK);
    EXPECT_EQ(Json(one, 0), Json(result_, i)) << i;
    EXPECT_EQ(cloze_free(one), CLOZE_OK);
  }
  EXPECT_EQ(cloze_free(result_), CLOZE_OK);

  ASSERT_EQ(cloze_embed(model, batch.data(), batch.size(), nullptr, &result_), CLOZE_OK);
  const float *all = nullptr, *third = nullptr;
  int64_t rows = 0, cols = 0;
  ASSERT_EQ(cloze_vectors(result_, -1, &all, &rows, &cols), CLOZE_OK);
  EXPECT_EQ(rows, texts.size());
  ASSERT_EQ(cloze_vectors(result_, 3, &third, &rows, &cols), CLOZE_OK);
  EXPECT_EQ(third, all + 3 * 32);
  EXPECT_EQ(std::pair(rows, cols), std::pair(int64_t{1}, int64_t{32}));
  cloze_free(result_);
  ASSERT_EQ(cloze_info(model, &result_), CLOZE_OK);
  EXPECT_EQ(Json(result_, 0),
      json::parse(R"({"kind": "sequence_classification", "labels": ["bad", "good", "so so"],
          "adapters": [], "compute": "f32", "max_tokens": 24, "dimensions": 32})"));
  cloze_free(result_);
  EXPECT_EQ(cloze_predict(model, nullptr, 0, nullptr, &result_), CLOZE_OK);
  EXPECT_EQ(cloze_count(result_), 0);
  cloze_free(result_);
  EXPECT_EQ(cloze_close(model), CLOZE_OK);
}

TEST_F(ApiTest, TokensAreThoseOfTheProgram) {
  cloze_model* const model = Open("tagger");
  const std::string text("the cats\0mat", 12), pair = "on, the mat";
  cloze_text texts[] = {TextOf(text), TextOf(text)};
  texts[1].pair = pair.data(), texts[1].pair_length = pair.size();
  ASSERT_EQ(cloze_tokenize(model, texts, 2, nullptr, &result_), CLOZE_OK) << cloze_error();
  std::ofstream(Path("in.jsonl")) << json{{"text", text}} << "\n"
                                  << json{{"text", text}, {"text_pair", pair}} << "\n";
  const auto lines = JsonLines(
      RunCloze("tokenize --model " + Path("tagger") + " --input-format jsonl " + Path("in.jsonl"))
          .out);
  ASSERT_EQ(lines.size(), 2);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Json(result_, i), lines[i]);
  cloze_free(result_);
  cloze_close(model);
}

TEST_F(ApiTest, WrongCallsAreErrors) {
  cloze_model* const model = Open("classifier");
  const std::string the_cat = "the cat";
  const cloze_text good = TextOf(the_cat);
  const auto expect = [&](cloze_text text, cloze_status status, const std::string& message) {
    const cloze_text texts[] = {good, text};
    cloze_result* const before = result_ = reinterpret_cast<cloze_result*>(&text);
    ExpectError(cloze_predict(model, texts, 2, nullptr, &result_), status, message);
    EXPECT_NE(result_, before);
    EXPECT_EQ(result_, nullptr);
  };
  expect({nullptr, 3, nullptr, 0, nullptr}, CLOZE_USAGE, "texts[1]: text: is NULL");
  expect({"cat", -1, nullptr, 0, nullptr}, CLOZE_USAGE, "texts[1]: text: length -1");
  expect({"cat", INT64_MIN, nullptr, 0, nullptr}, CLOZE_USAGE, "length");
  expect({"cat", INT64_MAX, nullptr, 0, nullptr}, CLOZE_USAGE, "length");
  expect({"cat", 3, nullptr, 2, nullptr}, CLOZE_USAGE, "pair: is NULL, with a length of 2");
  expect({"cat", 3, "mat", -2, nullptr}, CLOZE_USAGE, "pair: length -2");
  expect({"ca\xff\n", 4, nullptr, 0, nullptr}, CLOZE_DATA, "texts[1]: text: not UTF-8");
  expect({"cat", 3, nullptr, 0, "legal"}, CLOZE_DATA, "unknown adapter legal");
  ExpectError(cloze_predict(nullptr, &good, 1, nullptr, &result_), CLOZE_USAGE, "NULL");
  ExpectError(cloze_predict(model, &good, 1, nullptr, nullptr), CLOZE_USAGE, "result: is NULL");
  ExpectError(cloze_predict(model, nullptr, 1, nullptr, &result_), CLOZE_USAGE, "texts: are NULL");
  ExpectError(cloze_predict(model, &good, -1, nullptr, &result_), CLOZE_USAGE, "negative count");
  ExpectError(cloze_tag(model, &good, 1, nullptr, &result_), CLOZE_USAGE,
      "cloze_tag: not for a model of sequence_classification: expected cloze_predict");
  ExpectError(cloze_fill(model, &good, 1, nullptr, &result_), CLOZE_USAGE, "cloze_fill: not for");
  ExpectError(cloze_score(model, &good, 1, nullptr, &result_), CLOZE_USAGE, "masked_lm");
  EXPECT_EQ(result_, nullptr);
  ASSERT_EQ(cloze_predict(model, &good, 1, nullptr, &result_), CLOZE_OK);
  const float* values = nullptr;
  int64_t rows = 0, cols = 0;
  ExpectError(cloze_vectors(result_, 0, &values, &rows, &cols), CLOZE_USAGE, "no vectors");
  ExpectError(cloze_json(result_, 1, nullptr, nullptr), CLOZE_USAGE, "text 1: the result has 1");
  ExpectError(cloze_json(result_, -1, nullptr, nullptr), CLOZE_USAGE, "text -1");
  const auto* confused = reinterpret_cast<cloze_result*>(model);
  ExpectError(cloze_json(confused, 0, nullptr, nullptr), CLOZE_USAGE, "never was one");
  EXPECT_EQ(cloze_count(confused), -1);
  EXPECT_EQ(cloze_free(result_), CLOZE_OK);
  ExpectError(cloze_free(result_), CLOZE_USAGE, "the handle is closed");
  EXPECT_EQ(cloze_close(model), CLOZE_OK);
  ExpectError(cloze_close(model), CLOZE_USAGE, "the handle is closed");
  ExpectError(cloze_predict(model, &good, 1, nullptr, &result_), CLOZE_USAGE, "closed");
  EXPECT_EQ(cloze_close(nullptr), CLOZE_OK);
  EXPECT_EQ(cloze_free(nullptr), CLOZE_OK);
}

TEST_F(ApiTest, WrongOptionsAreErrors) {
  cloze_model* model = nullptr;
  const std::string folder = Path("plain");
  const char* none[] = {nullptr};
  const auto expect = [&](const cloze_options& options, const std::string& message) {
    ExpectError(cloze_open(folder.c_str(), &options, &model), CLOZE_USAGE, message);
    EXPECT_EQ(model, nullptr);
  };
  expect({}, "options.size: 0: expected sizeof options, 40");
  expect({sizeof(cloze_options) - 8, nullptr, nullptr, 0, 0}, "options.size");
  expect({size_t{1} << 40, nullptr, nullptr, 0, 0}, "options.size");
  expect({sizeof(cloze_options), "f64", nullptr, 0, 0}, "compute: f64");
  expect({sizeof(cloze_options), nullptr, nullptr, 1, 0}, "adapters: are NULL");
  expect({sizeof(cloze_options), nullptr, none, 1, 0}, "adapters[0]: is NULL");
  expect({sizeof(cloze_options), nullptr, nullptr, 0, -1}, "threads: -1");
  ExpectError(cloze_open(nullptr, nullptr, &model), CLOZE_USAGE, "folder: is NULL");
  ExpectError(cloze_open(folder.c_str(), nullptr, nullptr), CLOZE_USAGE, "model: is NULL");
  ExpectError(cloze_open(Path("none").c_str(), nullptr, &model), CLOZE_NO_INPUT, "none");

  struct Later {
    cloze_options options;
    int64_t new_setting;
  };
  Later later = {{sizeof(Later), nullptr, nullptr, 0, 2}, 0};
  model = Open("plain", &later.options);
  cloze_close(model);
  later.new_setting = 1;
  expect(later.options, "options.size: 48");

  model = Open("plain");
  const std::string cat = "cat";
  const cloze_text text = TextOf(cat);
  const auto wrong = [&](auto change, const std::string& message) {
    cloze_settings settings = {};
    settings.size = sizeof settings;
    change(settings);
    ExpectError(cloze_embed(model, &text, 1, &settings, &result_), CLOZE_USAGE, message);
  };
  wrong([](cloze_settings& s) { s.size = 3; }, "settings.size: 3");
  wrong([](cloze_settings& s) { s.pool = "men"; }, "pool: men");
  wrong([](cloze_settings& s) { s.prompt = "none"; }, "prompt: none");
  wrong([](cloze_settings& s) { s.dimensions = 33; }, "dimensions: 33");
  wrong([](cloze_settings& s) { s.tokens = 1, s.pool = "cls"; }, "tokens");
  wrong([](cloze_settings& s) { s.normalize = 2; }, "normalize: -1 to 1");
  wrong([](cloze_settings& s) { s.each = -1; }, "each and tokens: expected 0 or 1");
  cloze_close(model);
}

TEST_F(ApiTest, EachTextCanHaveItsOwnStatus) {
  cloze_model* const model = Open("tagger");
  const std::string texts[] = {"the cat", "\xff", "mat"};
  const cloze_text batch[] = {TextOf(texts[0]), TextOf(texts[1]), TextOf(texts[2])};
  cloze_settings settings = {};
  settings.size = sizeof settings, settings.each = 1;
  ASSERT_EQ(cloze_tag(model, batch, 3, &settings, &result_), CLOZE_OK);
  const char* text = nullptr;
  EXPECT_EQ(cloze_json(result_, 1, &text, nullptr), CLOZE_DATA);
  EXPECT_THAT(text, HasSubstr("not UTF-8"));
  EXPECT_EQ(Json(result_, 2)["text"], "mat");
  cloze_free(result_);
  ASSERT_EQ(cloze_embed(model, batch, 3, &settings, &result_), CLOZE_OK);
  const float* values = nullptr;
  int64_t rows = 0, cols = 0;
  ASSERT_EQ(cloze_vectors(result_, 1, &values, &rows, &cols), CLOZE_OK);
  EXPECT_EQ(rows, 0);
  EXPECT_EQ(cloze_json(result_, 1, &text, nullptr), CLOZE_DATA);
  cloze_free(result_);
  cloze_close(model);
}

TEST_F(ApiTest, ClosingWaitsForNoOneAndHarmsNoCall) {
  cloze_model* const model = Open("classifier");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const std::string text = "the cat sat on the mat.";
      while (true) {
        cloze_result* own = nullptr;
        const cloze_status status = cloze_answer(model, text.data(), text.size(), &own);
        if (status != CLOZE_OK) break;
        EXPECT_EQ(cloze_count(own), 1);
        cloze_free(own);
      }
      EXPECT_THAT(cloze_error(), HasSubstr("closed"));
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(cloze_close(model), CLOZE_OK);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ApiTest, OutOfMemoryIsAStatus) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need the memory";
  cloze_model* const model = Open("masked");
  std::string text;
  while (text.size() < 64 << 20) text += "the cat sat on the mat. ";
  rlimit before;
  getrlimit(RLIMIT_AS, &before);
  const rlimit tight = {
      static_cast<rlim_t>(SystemNumber("/proc/self/statm") * 4096 + (100 << 20)), before.rlim_max};
  setrlimit(RLIMIT_AS, &tight);
  const cloze_text long_text = TextOf(text);
  const cloze_status status = cloze_tokenize(model, &long_text, 1, nullptr, &result_);
  setrlimit(RLIMIT_AS, &before);
  ExpectError(status, CLOZE_LIMIT, "out of memory");
  EXPECT_EQ(cloze_answer(model, "a <mask>", 8, &result_), CLOZE_OK) << "afterwards";
  cloze_free(result_);
  cloze_close(model);
}

}  // namespace
}  // namespace cloze
