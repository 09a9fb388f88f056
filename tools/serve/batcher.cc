#include "tools/serve/batcher.h"

#include "core/base/system.h"

namespace cloze {
namespace {

// Returns about how many tokens the records have: a token for each four bytes.
int64_t EstimateTokens(const std::vector<Record>& records) {
  int64_t tokens = 0;
  for (const Record& record : records)
    tokens += 2 + static_cast<int64_t>(record.text.size() + record.text_pair.size()) / 4;
  return tokens;
}

// Appends the outcome of each record to *outcomes.
absl::Status Compute(Engine& engine, const Operation& operation, const std::vector<Record>& records,
    Results<Outcome>* outcomes) {
  if (!operation.embed) {
    ASSIGN_OR_RETURN(auto answers, engine.Answer(records, operation.top));
    for (absl::StatusOr<OrderedJson>& answer : answers) {
      if (!answer.ok()) outcomes->push_back(answer.status());
      if (answer.ok()) outcomes->push_back(Outcome{*std::move(answer), {}, 0});
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Vectors vectors, engine.Embed(records, operation.options));
  for (size_t i = 0; i < records.size(); ++i) {
    const auto row = [&](int64_t r) { return vectors.values.begin() + r * vectors.dimensions; };
    Outcome outcome;
    outcome.columns = vectors.dimensions;
    outcome.values.assign(row(vectors.begin[i]), row(vectors.begin[i + 1]));
    outcomes->push_back(std::move(outcome));
    if (!vectors.status[i].ok()) outcomes->back() = vectors.status[i];
  }
  return absl::OkStatus();
}

// Answers the jobs, whose engine and operation are those of the first.
void Run(absl::Span<Job> jobs) {
  std::vector<Record> records;
  for (const Job& job : jobs) records.insert(records.end(), job.records.begin(), job.records.end());
  Results<Outcome> outcomes;
  const absl::Status computed =
      Caught([&] { return Compute(*jobs[0].engine, jobs[0].operation, records, &outcomes); },
          "fewer or shorter texts");
  size_t next = 0;
  for (Job& job : jobs) {
    std::vector<Outcome> own;
    absl::Status status = computed;
    for (size_t i = 0; status.ok() && i < job.records.size(); ++i) {
      absl::StatusOr<Outcome>& outcome = outcomes[next + i];
      status = outcome.status();
      if (status.ok()) own.push_back(*std::move(outcome));
    }
    next += job.records.size();
    job.done(status.ok() ? Outcomes(std::move(own)) : status);
  }
}

}  // namespace

RequestBatcher::RequestBatcher(int64_t max_tokens, int64_t max_waiting, ServeMetrics* metrics)
    : max_tokens_(max_tokens), max_waiting_(max_waiting), metrics_(metrics),
      thread_([this] { Loop(); }) {}

void RequestBatcher::Finish() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool RequestBatcher::Submit(Job&& job) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ || std::ssize(waiting_) >= max_waiting_) return false;
    job.queued = SteadySeconds();
    waiting_.push_back(std::move(job));
    ++metrics_->waiting;
  }
  changed_.notify_one();
  return true;
}

// Requires the lock and a waiting job. The first job and those after it that fit to it.
std::vector<Job> RequestBatcher::Take() {
  std::vector<Job> batch;
  std::deque<Job> rest;
  int64_t tokens = 0;
  for (Job& job : waiting_) {
    const int64_t more = EstimateTokens(job.records);
    const bool fits =
        batch.empty() || (tokens + more <= max_tokens_ && job.engine == batch[0].engine &&
                             job.operation == batch[0].operation);
    if (fits) {
      tokens += more;
      batch.push_back(std::move(job));
    } else {
      rest.push_back(std::move(job));
    }
  }
  waiting_ = std::move(rest);
  metrics_->waiting -= std::ssize(batch);
  metrics_->batch_tokens.Observe(static_cast<double>(tokens));
  return batch;
}

void RequestBatcher::Loop() {
  while (true) {
    std::vector<Job> batch;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      batch = Take();
    }
    const double begin = SteadySeconds();
    for (const Job& job : batch) metrics_->queue.Observe(begin - job.queued);
    metrics_->batch_size.Observe(static_cast<double>(batch.size()));
    Run(absl::MakeSpan(batch));
    metrics_->inference.Observe(SteadySeconds() - begin);
  }
}

}  // namespace cloze
