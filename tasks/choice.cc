#include "tasks/choice.h"

namespace cloze {
namespace {

double NumberCalled(const std::string& name, const MetricResults& results) {
  for (const auto& [known, value] : results.values)
    if (known == name) return value;
  return kNaN;
}

}  // namespace

ModelScore ScoreOf(const MetricResults& results, const std::string& metric) {
  return {NumberCalled(metric, results), NumberCalled("loss", results)};
}

int CompareModels(const Metric& metric, const ModelScore& a, const ModelScore& b) {
  if (IsBetter(metric, a.value, b.value)) return 1;
  if (IsBetter(metric, b.value, a.value)) return -1;
  return (a.loss < b.loss) - (a.loss > b.loss);
}

}  // namespace cloze
