// Joins waiting requests into batches for one model.
#ifndef CLOZE_TOOLS_SERVE_BATCHER_H_
#define CLOZE_TOOLS_SERVE_BATCHER_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/library/engine.h"
#include "tools/serve/metrics.h"

namespace cloze {

// The work of a model. Requests with equal operations are joined.
struct Operation {
  bool embed = false;  // Engine::Embed with `options`, else Engine::Answer with `top`
  EmbedOptions options = {};
  int top = 5;
  bool operator==(const Operation&) const = default;
};

// Of one record.
struct Outcome {
  OrderedJson answer;
  std::vector<float> values;  // [rows, columns]
  int64_t columns = 0;
};
// Of all records of a request; the error of the first wrong one.
using Outcomes = absl::StatusOr<std::vector<Outcome>>;

struct Job {
  std::shared_ptr<Engine> engine;
  Operation operation;
  std::vector<Record> records;
  std::function<void(Outcomes)> done;  // called once, by the thread of the batcher
  double queued = 0;                   // SteadySeconds
};

// Thread-safe.
class RequestBatcher {
 public:
  // Joins requests up to `max_tokens`, of four bytes each; a larger request goes alone.
  // At most `max_waiting` requests wait. `metrics` must outlive this.
  RequestBatcher(int64_t max_tokens, int64_t max_waiting, ServeMetrics* metrics);
  ~RequestBatcher() { Finish(); }

  // Queues a job. False if too many wait, or after Finish; `job` is then unchanged.
  bool Submit(Job&& job);
  // Answers the requests that wait, and takes no more.
  void Finish();

 private:
  void Loop();
  std::vector<Job> Take();

  const int64_t max_tokens_, max_waiting_;
  ServeMetrics* const metrics_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_SERVE_BATCHER_H_
