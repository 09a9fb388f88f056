// Vectors of texts, as evaluation and search compare them.
#ifndef CLOZE_TOOLS_TEXT_VECTORS_H_
#define CLOZE_TOOLS_TEXT_VECTORS_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tools/infer.h"

namespace cloze {

// Says when to report the progress of long work: every five seconds.
class Reminder {
 public:
  bool Due() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::seconds(5)) return false;
    last_ = now;
    return true;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Encodes texts as sentence-transformers would with the folder of the model; for a folder that does
// not say how, the vector is the mean of all tokens, of length 1.
class TextEncoder {
 public:
  TextEncoder() = default;  // cannot encode
  // Opens the model and completes the input of `options`; their format is that of another output.
  // Errors of OpenSession and VectorsOf; kNoInput without a tokenizer.
  static absl::StatusOr<TextEncoder> Open(InferOptions* options);

  int64_t dimensions() const { return ColumnsOf(pooling_, session_->config().hidden); }
  // "cosine", "dot", "euclidean" or "manhattan", as the folder says.
  const std::string& similarity() const { return pooling_.vectors->similarity; }
  // Returns [texts, dimensions()]. Texts longer than the model are cut and counted. Reports the
  // progress of long work on stderr, naming the texts as `what`.
  absl::StatusOr<std::vector<float>> Encode(
      TextRole role, absl::Span<const std::string> texts, absl::string_view what);
  const CutCounts& cut() const { return cut_; }

 private:
  std::unique_ptr<Session> session_;
  TextPooling pooling_;
  CutCounts cut_;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_TEXT_VECTORS_H_
