#include "tasks/training/outer_optimizer.h"

#include <algorithm>

#include "core/base/threads.h"

namespace cloze {

OuterOptimizer::OuterOptimizer(
    ParamStore* store, Optimizer* inner, const DistributedSpec& spec, Ranks* ranks)
    : store_(store), inner_(inner), spec_(spec), ranks_(ranks),
      shard_(ranks->rank(), ranks->size(), store->grads().size()), owned_(ranks->size()),
      start_(shard_.size() * sizeof(float)), momentum_(start_.bytes()) {
  for (const Piece& piece : inner->pieces())
    owned_[OwnerOf(piece.grad, ranks->size())].push_back(piece);
}

OuterOptimizer::Arrays OuterOptimizer::At(const Piece& piece) const {
  return {store_->values().data() + piece.value, inner_->m().data() + piece.grad,
      inner_->v().data() + piece.grad};
}

void OuterOptimizer::Begin() {
  for (const Piece& piece : owned_[ranks_->rank()])
    std::copy_n(At(piece)[0], piece.n, &start_.as<float>()[shard_.Place(piece.grad)]);
}

void OuterOptimizer::Step() {
  const int me = ranks_->rank(), size = ranks_->size();
  std::vector<float> received(size * std::tuple_size_v<Arrays> * kPiece);
  size_t rounds = 0;
  for (const auto& pieces : owned_) rounds = std::max(rounds, pieces.size());
  for (size_t round = 0; round < rounds; ++round) {
    const Piece* own = round < owned_[me].size() ? &owned_[me][round] : nullptr;
    std::vector<Arrays> of_ranks(size);
    std::vector<Ranks::Message> theirs, others, results;
    const auto add = [](int rank, const Arrays& arrays, int64_t n, auto* messages) {
      for (float* data : arrays) messages->push_back(Ranks::MessageOf(rank, data, n));
    };
    for (int r = 0; r < size; ++r) {
      float* buffer = &received[r * std::tuple_size_v<Arrays> * kPiece];
      of_ranks[r] = {buffer, buffer + kPiece, buffer + 2 * kPiece};
      if (r == me && own != nullptr) of_ranks[r] = At(*own);
      if (r == me) continue;
      if (round < owned_[r].size()) add(r, At(owned_[r][round]), owned_[r][round].n, &theirs);
      if (own != nullptr) add(r, of_ranks[r], own->n, &others), add(r, At(*own), own->n, &results);
    }
    ranks_->Exchange(theirs, others);
    if (own != nullptr) Update(*own, of_ranks);
    ranks_->Exchange(results, theirs);
  }
  store_->TrainableChanged();
}

void OuterOptimizer::Update(const Piece& piece, const std::vector<Arrays>& of_ranks) {
  const Arrays own = At(piece);
  const int64_t place = shard_.Place(piece.grad);
  float *start = &start_.as<float>()[place], *momentum = &momentum_.as<float>()[place];
  const float rate = spec_.outer_rate(), keep = spec_.outer_momentum();
  ParallelChunks(piece.n, 1 << 13, [&](int64_t begin, int64_t end) {
    for (size_t a = 0; a < own.size(); ++a) {
      for (int64_t i = begin; i < end; ++i) {
        double sum = 0;
        for (const Arrays& arrays : of_ranks) sum += arrays[a][i];
        own[a][i] = static_cast<float>(sum / of_ranks.size());
      }
    }
    for (int64_t i = begin; i < end; ++i) {
      const float g = start[i] - own[0][i];
      momentum[i] = keep * momentum[i] + g;
      own[0][i] = start[i] - rate * (g + keep * momentum[i]);
    }
  });
}

}  // namespace cloze
