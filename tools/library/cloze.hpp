// Cloze for C++17: the C API of cloze.h with objects that close themselves, and exceptions.
#ifndef CLOZE_HPP_
#define CLOZE_HPP_

#include <cloze.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cloze {

// A call that returned a status.
class Error : public std::runtime_error {
 public:
  Error(cloze_status status, const char* what) : std::runtime_error(what), status_(status) {}
  cloze_status status() const { return status_; }

 private:
  cloze_status status_;
};

// A text or a pair of texts, as UTF-8. Refers to them during a call.
struct Text {
  Text(std::string_view text) : text(text) {}
  Text(const std::string& text) : text(text) {}
  Text(const char* text) : text(text) {}
  Text(std::string_view text, std::string_view pair) : text(text), pair(pair), has_pair(true) {}

  std::string_view text, pair;
  bool has_pair = false;
  std::string adapter;  // its NAME; "": none
};

struct Options {
  std::string compute = "auto";       // or "f32", "bf16", "int8"
  std::vector<std::string> adapters;  // FOLDER or NAME=FOLDER
  int threads = 0;                    // see cloze_options
};

// How texts become vectors; empty and zero: as the folder says. See cloze_settings.
struct EmbedSettings {
  std::string pool, prompt;
  int normalize = 0;
  int64_t dimensions = 0;
  bool tokens = false;
};

// Vectors of texts, which it owns: text i has the rows [begin[i], begin[i + 1]).
class Vectors {
 public:
  int64_t rows() const { return rows_; }
  int64_t dimensions() const { return dimensions_; }
  const float* row(int64_t r) const { return values_ + r * dimensions_; }
  const std::vector<int64_t>& begin() const { return begin_; }

 private:
  friend class Model;
  std::shared_ptr<const cloze_result> result_;
  const float* values_ = nullptr;
  int64_t rows_ = 0, dimensions_ = 0;
  std::vector<int64_t> begin_;
};

// An open model. Copies share it; const methods may be called from many threads. All methods throw
// Error; those with texts return a JSON object for each, as the command of the program prints it.
class Model {
 public:
  explicit Model(const std::string& folder, const Options& options = {}) {
    std::vector<const char*> adapters;
    for (const std::string& adapter : options.adapters) adapters.push_back(adapter.c_str());
    const cloze_options own = {
        sizeof own, options.compute.c_str(), adapters.data(), adapters.size(), options.threads};
    cloze_model* model = nullptr;
    Check(cloze_open(folder.c_str(), &own, &model));
    model_ = std::shared_ptr<cloze_model>(model, [](cloze_model* m) { cloze_close(m); });
  }

  // Kind, labels and sizes of the model, as cloze_info.
  std::string Info() const {
    cloze_result* result = nullptr;
    Check(cloze_info(model_.get(), &result));
    return Json(Own(result)).front();
  }
  // The answer of `cloze predict`, `tag` or `fill-mask`, whichever fits the model.
  std::string Answer(std::string_view text) const {
    cloze_result* result = nullptr;
    Check(cloze_answer(model_.get(), text.data(), static_cast<int64_t>(text.size()), &result));
    return Json(Own(result)).front();
  }
  std::vector<std::string> Predict(const std::vector<Text>& texts) const {
    return Json(Call(cloze_predict, texts, Settings()));
  }
  std::vector<std::string> Tag(const std::vector<Text>& texts) const {
    return Json(Call(cloze_tag, texts, Settings()));
  }
  std::vector<std::string> Fill(const std::vector<Text>& texts, int top = 5) const {
    cloze_settings settings = Settings();
    settings.top = top;
    return Json(Call(cloze_fill, texts, settings));
  }
  std::vector<std::string> Score(const std::vector<Text>& texts, bool tokens = false) const {
    cloze_settings settings = Settings();
    settings.tokens = tokens;
    return Json(Call(cloze_score, texts, settings));
  }
  std::vector<std::string> Tokenize(const std::vector<Text>& texts) const {
    return Json(Call(cloze_tokenize, texts, Settings()));
  }
  Vectors Embed(const std::vector<Text>& texts, const EmbedSettings& how = {}) const {
    cloze_settings settings = Settings();
    settings.pool = how.pool.empty() ? nullptr : how.pool.c_str();
    settings.prompt = how.prompt.empty() ? nullptr : how.prompt.c_str();
    settings.normalize = how.normalize, settings.dimensions = how.dimensions;
    settings.tokens = how.tokens;
    Vectors vectors;
    vectors.result_ = Call(cloze_embed, texts, settings);
    const cloze_result* result = vectors.result_.get();
    vectors.begin_.push_back(0);
    for (int64_t i = 0, rows = 0; i < cloze_count(result); ++i) {
      Check(cloze_vectors(result, i, &vectors.values_, &rows, &vectors.dimensions_));
      vectors.begin_.push_back(vectors.begin_.back() + rows);
    }
    Check(cloze_vectors(result, -1, &vectors.values_, &vectors.rows_, &vectors.dimensions_));
    return vectors;
  }

 private:
  using Result = std::shared_ptr<const cloze_result>;

  static void Check(cloze_status status) {
    if (status != CLOZE_OK) throw Error(status, cloze_error());
  }
  static cloze_settings Settings() {
    cloze_settings settings = {};
    settings.size = sizeof settings;
    return settings;
  }
  static Result Own(cloze_result* result) {
    return Result(result, [](const cloze_result* r) { cloze_free(const_cast<cloze_result*>(r)); });
  }
  template <typename F>
  Result Call(F f, const std::vector<Text>& texts, const cloze_settings& settings) const {
    std::vector<cloze_text> own;
    for (const Text& text : texts) {
      const char* pair = text.pair.data() != nullptr ? text.pair.data() : "";
      own.push_back({text.text.data() != nullptr ? text.text.data() : "",
          static_cast<int64_t>(text.text.size()), text.has_pair ? pair : nullptr,
          static_cast<int64_t>(text.pair.size()),
          text.adapter.empty() ? nullptr : text.adapter.c_str()});
    }
    cloze_result* result = nullptr;
    Check(f(model_.get(), own.data(), static_cast<int64_t>(own.size()), &settings, &result));
    return Own(result);
  }
  static std::vector<std::string> Json(const Result& result) {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < cloze_count(result.get()); ++i) {
      const char* text = nullptr;
      int64_t length = 0;
      Check(cloze_json(result.get(), i, &text, &length));
      texts.emplace_back(text, static_cast<size_t>(length));
    }
    return texts;
  }

  std::shared_ptr<cloze_model> model_;
};

}  // namespace cloze

#endif  // CLOZE_HPP_
