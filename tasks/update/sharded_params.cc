#include "tasks/update/sharded_params.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/algorithm/container.h"
#include "core/base/threads.h"
#include "core/ops/adamw.h"
#include "core/ops/rows.h"

namespace cloze {
namespace {

absl::Span<char> BytesOf(float* data, int64_t bytes) {
  return {reinterpret_cast<char*>(data), static_cast<size_t>(bytes)};
}

}  // namespace

std::vector<ParamSlice> SlicesOf(const ParamStore& store) {
  std::vector<ParamSlice> slices;
  for (ParamId id = 0; id < store.size(); ++id) {
    const Param& p = store.param(id);
    for (int64_t i = 0, n = 0; p.trainable && i < p.size(); i += n) {
      const int64_t grad = p.grad_offset + i;
      n = std::min(kSliceFloats - grad % kSliceFloats, p.size() - i);
      slices.push_back({id, p.offset + i, grad, n});
    }
  }
  return slices;
}

ShardedParams::ShardedParams(
    ParamStore* store, Ranks* ranks, DType product, absl::FunctionRef<bool(ParamId)> whole)
    : store_(store), ranks_(ranks), shard_(ranks->rank(), ranks->size(), store->grads().size()) {
  for (const ParamSlice& slice : SlicesOf(*store)) {
    const Param& p = store->param(slice.param);
    const bool one_updater = whole(slice.param);
    const bool narrow =
        !one_updater && p.matmul_only && product == DType::kBf16 && ranks->size() > 1;
    const int owner = OwnerOf(slice.grad, ranks->size());
    if (owner == ranks->rank()) owned_.push_back(std::ssize(slices_));
    slices_.push_back(
        {slice, owner, one_updater ? OwnerOf(p.grad_offset, ranks->size()) : owner, narrow});
  }
}

void ShardedParams::ForOwned(absl::FunctionRef<void(const ParamSlice&, int64_t)> f) const {
  ParallelFor(owned_.size(), [&](int64_t i) {
    const ParamSlice& slice = slices_[owned_[i]];
    f(slice, shard_.OffsetOf(slice.grad));
  });
}

std::vector<double> ShardedParams::SumByParam(
    absl::FunctionRef<double(const ParamSlice&, int64_t)> f) const {
  std::vector<double> of_slices(slices_.size()), of_params(store_->size());
  ParallelFor(owned_.size(), [&](int64_t i) {
    const ParamSlice& slice = slices_[owned_[i]];
    of_slices[owned_[i]] = f(slice, shard_.OffsetOf(slice.grad));
  });
  ranks_->Sum(absl::MakeSpan(of_slices));
  for (size_t i = 0; i < slices_.size(); ++i) of_params[slices_[i].param] += of_slices[i];
  return of_params;
}

double ShardedParams::GradNorm() const {
  std::vector<double> sums(CeilDiv(store_->grads().size(), kSquaresChunk));
  shard_.ForEach([&](int64_t at, int64_t n) {
    absl::c_copy(SquareSums(store_->grads().subspan(at, n)), sums.begin() + at / kSquaresChunk);
  });
  ranks_->Sum(absl::MakeSpan(sums));
  return std::sqrt(absl::c_accumulate(sums, 0.0));
}

void ShardedParams::GatherWholeGradients() {
  if (absl::c_all_of(slices_, [](const RoutedSlice& s) { return s.owner == s.updater; })) return;
  float* grads = store_->grads().data();
  Exchange([&](const RoutedSlice& s) {
    return s.owner == s.updater
               ? Transfer{}
               : Transfer{s.owner, s.updater, BytesOf(grads + s.grad, s.n * sizeof(float))};
  });
  ParallelFor(owned_.size(), [&](int64_t i) {
    const RoutedSlice& s = slices_[owned_[i]];
    if (s.updater != s.owner) std::memset(grads + s.grad, 0, s.n * sizeof(float));
  });
}

void ShardedParams::ShareWeights(Sender sender, absl::Span<float> mail) {
  const int me = ranks_->rank();
  ForNarrow(mail, [&](const RoutedSlice& s, Mat exact, Mat rounded) {
    if (s.owner == me) Convert(exact, rounded);
  });
  Exchange([&](const RoutedSlice& s) -> Transfer {
    return {sender == Sender::kOwner ? s.owner : s.updater, -1,
        s.narrow ? BytesOf(&mail[s.grad], s.n * sizeof(Bf16))
                 : BytesOf(store_->values().data() + s.value, s.n * sizeof(float))};
  });
  ForNarrow(mail, [&](const RoutedSlice& s, Mat exact, Mat rounded) {
    if (s.owner != me) Convert(rounded, exact);
    std::memset(rounded.data, 0, s.n * sizeof(Bf16));
  });
  exact_ = absl::c_none_of(slices_, [](const RoutedSlice& s) { return s.narrow; });
  store_->TrainableChanged();
}

void ShardedParams::GatherWeights() {
  if (exact_) return;
  Exchange([&](const RoutedSlice& s) -> Transfer {
    return {s.owner, -1,
        BytesOf(store_->values().data() + s.value, s.narrow ? s.n * sizeof(float) : 0)};
  });
  exact_ = true;  // packed copies stay: they hold the same bits
}

void ShardedParams::ForNarrow(
    absl::Span<float> mail, absl::FunctionRef<void(const RoutedSlice&, Mat, Mat)> f) {
  ParallelFor(slices_.size(), [&](int64_t i) {
    const RoutedSlice& s = slices_[i];
    if (!s.narrow) return;
    f(s, View(store_->values().data() + s.value, 1, s.n),
        {&mail[s.grad], 1, s.n, s.n, DType::kBf16});
  });
}

void ShardedParams::Exchange(absl::FunctionRef<Transfer(const RoutedSlice&)> of_slice) {
  if (ranks_->size() == 1) return;
  std::vector<Ranks::Message> send, receive;
  const auto add = [&](int rank, absl::Span<char> bytes, std::vector<Ranks::Message>* messages) {
    if (bytes.empty()) return;
    const auto n = static_cast<int64_t>(bytes.size());
    Ranks::Message* last = messages->empty() ? nullptr : &messages->back();
    if (last != nullptr && last->rank == rank && last->data + last->bytes == bytes.data()) {
      last->bytes += n;
    } else {
      messages->push_back({rank, bytes.data(), n});
    }
  };
  const int me = ranks_->rank();
  for (int r = 0; r < ranks_->size(); ++r) {
    for (const RoutedSlice& s : slices_) {
      const Transfer t = of_slice(s);
      const auto goes = [&](int from, int to) {
        return t.from == from && (t.to == to || (t.to < 0 && from != to));
      };
      if (goes(r, me)) add(r, t.bytes, &receive);
      if (goes(me, r)) add(r, t.bytes, &send);
    }
  }
  ranks_->Exchange(send, receive);
}

}  // namespace cloze
