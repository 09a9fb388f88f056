#include "tasks/embedding_metrics.h"

#include <algorithm>
#include <numeric>

#include "core/base/threads.h"
#include "core/ops/contrastive.h"
#include "core/ops/matmul.h"
#include "tasks/embedding_groups.h"
#include "tasks/embedding_loss.h"
#include "tasks/scores.h"

namespace cloze {
namespace {

constexpr size_t kRanked = 4096;   // examples among which positives are ranked
constexpr int64_t kAtOnce = 256;   // anchors whose cosines are in memory
constexpr int64_t kLastRank = 10;  // of mrr_at_10

}  // namespace

std::vector<Metric> VectorMetrics::All() {
  return {{"spearman_cosine", Better::kLarger}, {"pearson_cosine", Better::kLarger},
      {"accuracy", Better::kLarger}, {"ndcg_at_10", Better::kLarger},
      {"mrr_at_10", Better::kLarger}, {"recall_at_100", Better::kLarger},
      {"map_at_100", Better::kLarger}};
}

void VectorMetrics::Add(const Example& text, absl::Span<float> vector) {
  float length = 0;
  const Mat row = View(vector.data(), 1, std::ssize(vector));
  NormalizeForward(row, row, &length);
  hidden_ = row.cols;
  const GroupRole role = RoleOf(text.labels[0]);
  const int32_t text_class = ClassOf(text.labels[0]);
  const auto append = [&](std::vector<float>* to) {
    to->insert(to->end(), vector.begin(), vector.end());
  };
  if (role == GroupRole::kDocument) {
    append(&documents_);
  } else if (role == GroupRole::kQuery) {
    append(&queries_);
    judged_.push_back(JudgementsOf(text.labels));
  } else if (!text.values.empty()) {
    if (role == GroupRole::kAnchor) {
      anchor_.assign(vector.begin(), vector.end());
      return;
    }
    scored_.Add(
        text.values[0], std::inner_product(vector.begin(), vector.end(), anchor_.begin(), 0.0));
    ++pairs_;
  } else if (role == GroupRole::kAnchor) {
    if (anchor_classes_.size() == kRanked) Rank();
    append(&anchors_);
    anchor_classes_.push_back(text_class);
  } else {
    if (role == GroupRole::kPositive) targets_.push_back(std::ssize(candidate_classes_));
    append(&candidates_);
    candidate_classes_.push_back(text_class);
  }
}

void VectorMetrics::Rank() {
  const int64_t n = std::ssize(targets_), m = std::ssize(candidate_classes_);
  Matmul matmul;
  const ConstMat candidates = View(static_cast<const float*>(candidates_.data()), m, hidden_);
  std::vector<float> memory(std::min(kAtOnce, n) * m);
  std::vector<int64_t> ranks(n);
  for (int64_t begin = 0; begin < n; begin += kAtOnce) {
    const int64_t rows = std::min(kAtOnce, n - begin);
    const Mat cosines = View(memory.data(), rows, m);
    matmul.Forward(
        View(static_cast<const float*>(anchors_.data()) + begin * hidden_, rows, hidden_),
        {candidates, 1}, nullptr, cosines);
    ParallelFor(rows, [&](int64_t r) {
      const int64_t i = begin + r;
      for (int64_t c = 0; c < m; ++c) {
        const bool same = anchor_classes_[i] != 0 && candidate_classes_[c] == anchor_classes_[i];
        ranks[i] += !same && cosines.f32(r)[c] > cosines.f32(r)[targets_[i]];
      }
    });
  }
  for (const int64_t rank : ranks) {
    ++ranked_;
    first_ += rank == 0;
    if (rank < kLastRank) reciprocal_ranks_ += 1 / static_cast<double>(rank + 1);
  }
  anchors_.clear(), candidates_.clear();
  targets_.clear(), anchor_classes_.clear(), candidate_classes_.clear();
}

MetricResults VectorMetrics::Results() {
  if (!judged_.empty()) {
    const VectorRows table = {.data = documents_.data(),
        .rows = static_cast<int64_t>(documents_.size()) / hidden_,
        .cols = hidden_};
    const ConstMat queries = View(queries_.data(), std::ssize(judged_), hidden_);
    return ScoreRankings(judged_, RankByProducts(table, queries));
  }
  if (pairs_ > 0) {
    MetricResults results;
    for (const auto& [name, value] : scored_.Results().values)
      if (name == "pearson" || name == "spearman")
        results.values.emplace_back(name + "_cosine", value);
    absl::c_sort(results.values, [](const auto& a, const auto& b) { return a.first > b.first; });
    return results;
  }
  if (!targets_.empty()) Rank();
  const double count = ranked_ > 0 ? static_cast<double>(ranked_) : kNaN;
  return {{{"accuracy", static_cast<double>(first_) / count},
      {"mrr_at_10", reciprocal_ranks_ / count}}};
}

}  // namespace cloze
