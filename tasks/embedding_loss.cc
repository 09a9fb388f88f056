#include "tasks/embedding_loss.h"

#include <algorithm>
#include <vector>

#include "core/ops/contrastive.h"
#include "core/ops/rows.h"

namespace cloze {
namespace {

// The rows of a step's vectors by their roles.
struct StepTexts {
  std::vector<int32_t> anchors, candidates;  // candidates: the positives, then the negatives
  std::vector<int32_t> targets, anchor_classes, candidate_classes;
  std::vector<ScoredPair> pairs;
  std::vector<Triplet> triplets;

  StepTexts(absl::Span<const int32_t> labels, absl::Span<const float> scores) {
    std::vector<int32_t> negatives;
    for (int32_t r = 0; r < std::ssize(labels); ++r) {
      const GroupRole role = RoleOf(labels[r]);
      if (role == GroupRole::kAnchor) {
        anchors.push_back(r);
        anchor_classes.push_back(ClassOf(labels[r]));
      } else if (role == GroupRole::kPositive) {
        targets.push_back(static_cast<int32_t>(candidates.size()));
        candidates.push_back(r);
        pairs.push_back({anchors.back(), r, scores.empty() ? 0 : scores[r]});
      } else {
        negatives.push_back(r);
        triplets.push_back({anchors.back(), candidates.back(), r});
      }
    }
    CLOZE_CHECK(anchors.size() == targets.size());
    candidates.insert(candidates.end(), negatives.begin(), negatives.end());
    for (const int32_t r : candidates) candidate_classes.push_back(ClassOf(labels[r]));
  }
  absl::Span<const int32_t> positives() const {
    return absl::MakeConstSpan(candidates).first(anchors.size());
  }
};

Mat Gathered(ConstMat x, absl::Span<const int32_t> rows, Arena& arena) {
  const Mat y = arena.New(std::ssize(rows), x.cols, DType::kF32);
  GatherRows(x, rows, y);
  return y;
}

void AddToRows(ConstMat dy, absl::Span<const int32_t> rows, Mat dx) {
  for (int64_t i = 0; i < std::ssize(rows); ++i) Axpby(1, Rows(dy, i, 1), 1, Rows(dx, rows[i], 1));
}

// Texts among which others are searched, and their classes.
struct Searched {
  absl::Span<const int32_t> rows, classes;
};

// Mean loss of finding y[to.rows[targets[i]]] for y[from[i]]; adds `share` of its gradient to dy.
double Find(const EmbeddingSpec& spec, const StepTexts& texts, absl::Span<const int32_t> from,
    const Searched& to, double share, ConstMat y, Arena& arena, Matmul& matmul, Mat dy) {
  const Mat a = Gathered(y, from, arena), c = Gathered(y, to.rows, arena),
            da = arena.NewZero(a.rows, a.cols, DType::kF32),
            dc = arena.NewZero(c.rows, c.cols, DType::kF32);
  const double mean = share / static_cast<double>(from.size());
  const LossSum sum = InBatchLoss(a, c, {texts.targets, texts.anchor_classes, to.classes},
      spec.scale(), static_cast<float>(mean), arena, matmul, da, dc);
  AddToRows(da, from, dy);
  AddToRows(dc, to.rows, dy);
  return mean * sum.loss;
}

// Mean loss of y; adds its gradient to dy.
double LossOfColumns(const EmbeddingSpec& spec, const StepTexts& texts, ConstMat y, Arena& arena,
    Matmul& matmul, Mat dy) {
  const auto mean = [](size_t n) { return 1 / static_cast<float>(std::max<size_t>(n, 1)); };
  switch (spec.loss()) {
    case EmbeddingSpec::IN_BATCH_NEGATIVES:
    case EmbeddingSpec::SIMCSE: {
      const double share = spec.symmetric() ? 0.5 : 1;
      double loss = Find(spec, texts, texts.anchors, {texts.candidates, texts.candidate_classes},
          share, y, arena, matmul, dy);
      if (spec.symmetric())
        loss += Find(spec, texts, texts.positives(), {texts.anchors, texts.anchor_classes}, share,
            y, arena, matmul, dy);
      return loss;
    }
    case EmbeddingSpec::COSENT: return CosentLoss(y, texts.pairs, spec.scale(), 1, dy);
    case EmbeddingSpec::COSINE: {
      const float share = mean(texts.pairs.size());
      return share * CosineLoss(y, texts.pairs, share, dy);
    }
    case EmbeddingSpec::TRIPLET: {
      const float share = mean(texts.triplets.size());
      return share * TripletLoss(y, texts.triplets, spec.margin(), share, dy);
    }
  }
  CLOZE_CHECK(false);
}

}  // namespace

double EmbeddingLoss(const SentenceEmbeddingSpec& spec, absl::Span<const int32_t> labels,
    absl::Span<const float> scores, ConstMat v, Arena& arena, Mat dv) {
  const StepTexts texts(labels, scores);
  std::vector<int64_t> columns(spec.dimensions().begin(), spec.dimensions().end());
  if (columns.empty()) columns = {v.cols};
  Matmul matmul;
  double loss = 0;
  for (const int64_t n : columns) {
    const Arena::Mark mark = arena.mark();
    const ConstMat x = Columns(v, 0, n);
    const Mat dx = Columns(dv, 0, n);
    if (spec.loss() == EmbeddingSpec::TRIPLET && !spec.normalize()) {
      loss += LossOfColumns(spec, texts, x, arena, matmul, dx);
    } else {
      const Mat y = arena.New(v.rows, n, DType::kF32), dy = arena.NewZero(v.rows, n, DType::kF32);
      float* const lengths = arena.NewArray<float>(v.rows);
      NormalizeForward(x, y, lengths);
      loss += LossOfColumns(spec, texts, y, arena, matmul, dy);
      NormalizeBackward(y, lengths, dy, dx);
    }
    arena.Rewind(mark);
  }
  return loss;
}

}  // namespace cloze
