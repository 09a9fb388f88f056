// Comparison of two models on the same texts or queries.
#ifndef CLOZE_TASKS_PAIRED_BOOTSTRAP_H_
#define CLOZE_TASKS_PAIRED_BOOTSTRAP_H_

#include <cstdint>

#include "absl/types/span.h"

namespace cloze {

// The lead of the second model over the first: the difference of a metric, its 95 % interval, and
// the two-sided p-value of "there is no difference".
struct MetricDifference {
  double value = 0, low = 0, high = 0, p = 1;
};

struct PairedComparison {
  int64_t texts = 0, only_first = 0,
          only_second = 0;  // only_...: texts that only this one has right
  MetricDifference accuracy, macro_f1;
};

// Compares predictions [texts] with the true labels [texts], all from 0. Draws texts with
// replacement 10,000 times (fewer with more than 20,000 texts, at least 1,000), each time the same
// ones for both (Efron and Tibshirani 1993; percentile intervals). The draws are a function of the
// number of texts alone. macro_f1 as in ClassificationMetric. Requires equal sizes and a text.
PairedComparison ComparePaired(absl::Span<const int32_t> labels, absl::Span<const int32_t> first,
    absl::Span<const int32_t> second);

// Compares the means of a number per query in the same way.
MetricDifference CompareMeans(absl::Span<const double> first, absl::Span<const double> second);

}  // namespace cloze

#endif  // CLOZE_TASKS_PAIRED_BOOTSTRAP_H_
