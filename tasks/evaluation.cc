#include "tasks/evaluation.h"

#include <cmath>
#include <cstring>

#include "absl/algorithm/container.h"

namespace cloze {
namespace {

// Appends the number of values, and the values.
template <typename T>
void Append(const std::vector<T>& values, std::string* bytes) {
  const size_t count = values.size();
  bytes->append(reinterpret_cast<const char*>(&count), sizeof(count));
  bytes->append(reinterpret_cast<const char*>(values.data()), count * sizeof(T));
}

// The reverse of Append; removes them from *bytes.
template <typename T>
void Take(absl::string_view* bytes, std::vector<T>* values) {
  size_t count = 0;
  std::memcpy(&count, bytes->data(), sizeof(count));
  values->resize(count);
  if (count > 0) std::memcpy(values->data(), bytes->data() + sizeof(count), count * sizeof(T));
  bytes->remove_prefix(sizeof(count) + count * sizeof(T));
}

}  // namespace

bool Evaluation::Output::finite() const {
  return AllFinite(logits) &&
         absl::c_all_of(losses, [](const Loss& loss) { return std::isfinite(loss.loss); });
}

std::string Evaluation::Output::Serialize() const {
  std::string bytes;
  Append(losses, &bytes);
  Append(logits, &bytes);
  Append(tokens, &bytes);
  return bytes;
}

Evaluation::Output Evaluation::Output::Parse(absl::string_view bytes) {
  Output output;
  Take(&bytes, &output.losses);
  Take(&bytes, &output.logits);
  Take(&bytes, &output.tokens);
  return output;
}

TextEvaluation::TextEvaluation(const Model& model)
    : model_(model), joiner_([this](const TextLogits& text) {
        AddText(text);
        if (on_text != nullptr) on_text(text);
      }) {}

absl::StatusOr<Evaluation::Output> TextEvaluation::Run(
    const Pass& pass, absl::Span<const Example>) const {
  const int64_t rows = pass.batch.rows.size();
  const Mat logits = Rows(model_.head().Logits(pass, model_.backbone().Infer(pass)), 0, rows);
  Output output;
  for (int64_t r = 0; r < rows; ++r)
    output.logits.insert(output.logits.end(), logits.f32(r), logits.f32(r) + logits.cols);
  int64_t items = 0;
  const LossSum sum = Loss(pass, logits, &items);
  output.losses = {{sum.loss, sum.correct, items}};
  return output;
}

void TextEvaluation::Add(Output output, absl::Span<const Example> examples) {
  int64_t rows = 0, row = 0;
  for (const Example& example : examples) rows += example.rows.size();
  const int64_t labels = rows > 0 ? output.logits.size() / rows : 0;
  const ConstMat logits = View(output.logits.data(), rows, labels);
  for (const Example& example : examples) {
    joiner_.Add(example, Rows(logits, row, example.rows.size()));
    row += example.rows.size();
  }
  for (const Output::Loss& loss : output.losses) loss_sum_ += loss.loss, items_ += loss.targets;
}

MetricResults TextEvaluation::Results() {
  joiner_.Finish();
  return Count();
}

}  // namespace cloze
