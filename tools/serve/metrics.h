// The counts of the server, as Prometheus reads them.
#ifndef CLOZE_TOOLS_SERVE_METRICS_H_
#define CLOZE_TOOLS_SERVE_METRICS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace cloze {

// Counts observations in buckets whose bounds are first * factor^n. Thread-safe.
class ServeHistogram {
 public:
  static constexpr int kBuckets = 35;
  ServeHistogram(double first, double factor) : first_(first), factor_(factor) {}
  void Observe(double value);
  // Appends the lines of the metric `name`.
  void Print(absl::string_view name, std::string* out) const;

 private:
  const double first_, factor_;
  mutable std::mutex mutex_;
  int64_t counts_[kBuckets + 1] = {};  // the last: above all bounds
  double sum_ = 0;
};

// Thread-safe.
struct ServeMetrics {
  // Durations in seconds.
  ServeHistogram duration{1e-5, 1.5}, queue{1e-5, 1.5}, inference{1e-5, 1.5};
  ServeHistogram batch_size{1, 1.5}, batch_tokens{1, 1.5};
  std::atomic<int64_t> waiting = 0, connections = 0, reloads = 0, failed_reloads = 0;

  // Counts an answered request. `error`: Reply::error.
  void Count(const std::string& route, absl::string_view error, double seconds);
  // Returns all metrics in the text format 0.0.4.
  std::string Text() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, int64_t> requests_;  // by route and error
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_SERVE_METRICS_H_
