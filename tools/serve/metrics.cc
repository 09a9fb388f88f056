#include "tools/serve/metrics.h"

#include "absl/strings/str_cat.h"
#include "core/base/text.h"

namespace cloze {

void ServeHistogram::Observe(double value) {
  int bucket = 0;
  for (double bound = first_; bucket < kBuckets && value > bound; bound *= factor_) ++bucket;
  const std::lock_guard lock(mutex_);
  ++counts_[bucket];
  sum_ += value;
}

void ServeHistogram::Print(absl::string_view name, std::string* out) const {
  const std::lock_guard lock(mutex_);
  absl::StrAppend(out, "# TYPE ", name, " histogram\n");
  int64_t total = 0;
  double bound = first_;
  for (int i = 0; i < kBuckets; ++i, bound *= factor_) {
    total += counts_[i];
    absl::StrAppend(
        out, name, "_bucket{le=\"", Shortest(static_cast<float>(bound)), "\"} ", total, "\n");
  }
  total += counts_[kBuckets];
  absl::StrAppend(out, name, "_bucket{le=\"+Inf\"} ", total, "\n", name, "_sum ", Shortest(sum_),
      "\n", name, "_count ", total, "\n");
}

void ServeMetrics::Count(const std::string& route, absl::string_view error, double seconds) {
  duration.Observe(seconds);
  const std::lock_guard lock(mutex_);
  ++requests_[{route, std::string(error)}];
}

std::string ServeMetrics::Text() const {
  std::string out, failures = "# TYPE cloze_request_failure counter\n";
  const auto single = [&](absl::string_view name, absl::string_view type, int64_t value) {
    absl::StrAppend(&out, "# TYPE ", name, " ", type, "\n", name, " ", value, "\n");
  };
  {
    const std::lock_guard lock(mutex_);
    absl::StrAppend(&out, "# TYPE cloze_request_success counter\n");
    for (const auto& [key, count] : requests_) {
      const auto& [route, error] = key;
      if (error.empty()) {
        absl::StrAppend(&out, "cloze_request_success{route=\"", route, "\"} ", count, "\n");
      } else {
        absl::StrAppend(&failures, "cloze_request_failure{route=\"", route, "\",err=\"", error,
            "\"} ", count, "\n");
      }
    }
  }
  out += failures;
  duration.Print("cloze_request_duration", &out);
  queue.Print("cloze_request_queue_duration", &out);
  inference.Print("cloze_request_inference_duration", &out);
  batch_size.Print("cloze_batch_next_size", &out);
  batch_tokens.Print("cloze_batch_next_tokens", &out);
  single("cloze_queue_size", "gauge", waiting);
  single("cloze_connections", "gauge", connections);
  single("cloze_reload_count", "counter", reloads);
  single("cloze_reload_failure", "counter", failed_reloads);
  return out;
}

}  // namespace cloze
