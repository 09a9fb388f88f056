#include "tasks/update/outer_optimizer.h"

#include <algorithm>

#include "core/base/threads.h"

namespace cloze {

OuterOptimizer::OuterOptimizer(ParamStore* store, const std::vector<StateArray>& inner,
    const DistributedSpec& spec, Ranks* ranks)
    : store_(store), inner_(inner), spec_(spec), ranks_(ranks),
      shard_(ranks->rank(), ranks->size(), store->grads().size()), owned_(ranks->size()),
      start_(shard_.size() * sizeof(float)), momentum_(start_.bytes()) {
  for (const ParamSlice& slice : SlicesOf(*store))
    owned_[OwnerOf(slice.grad, ranks->size())].push_back(slice);
}

OuterOptimizer::Arrays OuterOptimizer::At(const ParamSlice& slice) const {
  Arrays arrays = {store_->values().data() + slice.value};
  for (const StateArray& state : inner_) arrays.push_back(state.data.data() + slice.grad);
  return arrays;
}

void OuterOptimizer::Begin() {
  for (const ParamSlice& slice : owned_[ranks_->rank()])
    std::copy_n(At(slice)[0], slice.n, &start_.as<float>()[shard_.OffsetOf(slice.grad)]);
}

void OuterOptimizer::Step() {
  const int me = ranks_->rank(), size = ranks_->size();
  const int64_t arrays = 1 + std::ssize(inner_);
  std::vector<float> received(size * arrays * kSliceFloats);
  size_t rounds = 0;
  for (const auto& slices : owned_) rounds = std::max(rounds, slices.size());
  for (size_t round = 0; round < rounds; ++round) {
    const ParamSlice* own = round < owned_[me].size() ? &owned_[me][round] : nullptr;
    std::vector<Arrays> of_ranks(size);
    std::vector<Ranks::Message> theirs, others, results;
    const auto add = [](int rank, const Arrays& arrays, int64_t n, auto* messages) {
      for (float* data : arrays) messages->push_back(MessageOf(rank, data, n));
    };
    for (int r = 0; r < size; ++r) {
      for (int64_t a = 0; a < arrays; ++a)
        of_ranks[r].push_back(&received[(r * arrays + a) * kSliceFloats]);
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

void OuterOptimizer::Update(const ParamSlice& slice, const std::vector<Arrays>& of_ranks) {
  const Arrays own = At(slice);
  const int64_t offset = shard_.OffsetOf(slice.grad);
  float *start = &start_.as<float>()[offset], *momentum = &momentum_.as<float>()[offset];
  const float rate = spec_.outer_rate(), keep = spec_.outer_momentum();
  ParallelChunks(slice.n, 1 << 13, [&](int64_t begin, int64_t end) {
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
