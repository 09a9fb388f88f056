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
// They set the size of options and settings.
class Model {
 public:
  explicit Model(const std::string& folder, cloze_options options = {}) {
    options.size = sizeof options;
    cloze_model* model = nullptr;
    Check(cloze_open(folder.c_str(), &options, &model));
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
    Check(cloze_answer(model_.get(), Data(text), static_cast<int64_t>(text.size()), &result));
    return Json(Own(result)).front();
  }
  using Texts = std::vector<Text>;
  std::vector<std::string> Predict(const Texts& texts, cloze_settings settings = {}) const {
    return Json(Call(cloze_predict, texts, settings));
  }
  std::vector<std::string> Tag(const Texts& texts, cloze_settings settings = {}) const {
    return Json(Call(cloze_tag, texts, settings));
  }
  std::vector<std::string> Fill(const Texts& texts, cloze_settings settings = {}) const {
    return Json(Call(cloze_fill, texts, settings));
  }
  std::vector<std::string> Score(const Texts& texts, cloze_settings settings = {}) const {
    return Json(Call(cloze_score, texts, settings));
  }
  std::vector<std::string> Tokenize(const Texts& texts, cloze_settings settings = {}) const {
    return Json(Call(cloze_tokenize, texts, settings));
  }
  Vectors Embed(const Texts& texts, cloze_settings settings = {}) const {
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
  // A view without data is an empty text.
  static const char* Data(std::string_view text) { return text.empty() ? "" : text.data(); }
  static Result Own(cloze_result* result) {
    return Result(result, [](const cloze_result* r) { cloze_free(const_cast<cloze_result*>(r)); });
  }
  template <typename F>
  Result Call(F f, const Texts& texts, cloze_settings settings) const {
    settings.size = sizeof settings;
    std::vector<cloze_text> own;
    for (const Text& text : texts)
      own.push_back({Data(text.text), static_cast<int64_t>(text.text.size()),
          text.has_pair ? Data(text.pair) : nullptr, static_cast<int64_t>(text.pair.size()),
          text.adapter.empty() ? nullptr : text.adapter.c_str()});
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
