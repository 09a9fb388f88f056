#include "tasks/training/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/algorithm/container.h"
#include "core/base/threads.h"
#include "core/ops/adamw.h"
#include "core/ops/profile.h"
#include "core/ops/rows.h"

namespace cloze {
namespace {

absl::Span<char> BytesOf(float* data, int64_t bytes) {
  return {reinterpret_cast<char*>(data), static_cast<size_t>(bytes)};
}

// m = beta1 m + (1 - beta1) g, then g = beta1 m + (1 - beta1) g: the direction of Muon.
void AddToMomentum(const AdamW& all, Mat g, Mat m) {
  const float share = (1 - all.beta1) * all.grad_scale;
  Axpby(share, g, all.beta1, m);
  Axpby(all.beta1, m, share, g);
}

}  // namespace

Optimizer::Optimizer(ParamStore* store, const OptimizerSpec& spec, Ranks* ranks, DType product)
    : store_(store), spec_(spec), ranks_(ranks),
      shard_(ranks->rank(), ranks->size(), store->grads().size()),
      m_(shard_.size() * sizeof(float)), v_(m_.bytes()), muon_(product) {
  int top = 0;
  for (ParamId id = 0; id < store->size(); ++id) top = std::max(top, store->param(id).layer);
  for (ParamId id = 0; id < store->size(); ++id) {
    const Param& p = store->param(id);
    if (!p.trainable) continue;
    const bool matrix = spec.muon_rate() > 0 && Muon::Takes(p);
    const bool narrow = !matrix && p.operand && product == DType::kBf16 && ranks->size() > 1;
    const float rate = p.rate * std::pow(spec.layer_decay(), static_cast<float>(top - p.layer));
    const int first_owner = OwnerOf(p.grad_offset, ranks->size());
    for (int64_t i = 0, n = 0; i < p.size(); i += n) {
      const int64_t grad = p.grad_offset + i;
      n = std::min(kPiece - grad % kPiece, p.size() - i);
      const int owner = OwnerOf(grad, ranks->size());
      if (owner == ranks->rank()) own_.push_back(std::ssize(pieces_));
      pieces_.push_back({id, p.offset + i, grad, n, p.decay, rate, owner,
          matrix ? first_owner : owner, narrow, matrix});
    }
    if (!matrix || first_owner != ranks->rank()) continue;
    const float decay = p.decay ? spec.weight_decay() : 0;
    for (const Muon::Matrix& m : Muon::MatricesOf(p, rate * spec.muon_rate(), decay))
      matrices_.push_back(m);
  }
  if (spec_.ema_decay() > 0) average_ = LargeMemory(m_.bytes());
  StartAverage();
}

std::vector<StateArray> Optimizer::arrays() {
  std::vector<StateArray> all = {{"m.", m(), ranks_}, {"v.", v(), ranks_}};
  if (spec_.ema_decay() > 0) all.push_back({"ema.", average(), ranks_});
  return all;
}

double Optimizer::GradNorm() const {
  std::vector<double> sums(CeilDiv(store_->grads().size(), kSquaresChunk));
  shard_.ForEach([&](int64_t at, int64_t n) {
    absl::c_copy(SquareSums(store_->grads().subspan(at, n)), sums.begin() + at / kSquaresChunk);
  });
  ranks_->Sum(absl::MakeSpan(sums));
  return std::sqrt(absl::c_accumulate(sums, 0.0));
}

void Optimizer::Step(double rate, double norm) {
  const AdamW all = {.rate = static_cast<float>(rate),
      .beta1 = spec_.beta1(),
      .beta2 = spec_.beta2(),
      .epsilon = spec_.epsilon(),
      .decay = 0,
      .grad_scale = spec_.clip_norm() > 0
                        ? static_cast<float>(std::min(1.0, spec_.clip_norm() / (norm + 1e-6)))
                        : 1.0f,
      .bias_correction = spec_.bias_correction(),
      .step = ++steps_};
  {
    const Op op("adamw", [&] { return OpCost{.bytes = 8.0 * m_.bytes()}; });
    float *values = store_->values().data(), *grads = store_->grads().data();
    const std::vector<AdamW> settings = PieceSettings(all);
    ForPieces([&](int64_t i, int64_t place) {
      const Piece& p = pieces_[i];
      float *const g = grads + p.grad, *const m = &this->m()[place];
      if (p.matrix) return AddToMomentum(all, View(g, 1, p.n), View(m, 1, p.n));
      AdamWStep(settings[i], values + p.value, g, m, &v()[place], p.n);
    });
  }
  if (spec_.muon_rate() > 0) StepMatrices(all.rate);
  ShareWeights(&Piece::source);
  const auto mix =
      static_cast<float>(1 - std::min<double>(spec_.ema_decay(), (1.0 + steps_) / (10.0 + steps_)));
  ForAverage([&](const float* weights, float* average, int64_t n) {
    for (int64_t j = 0; j < n; ++j) average[j] += mix * (weights[j] - average[j]);
  });
}

void Optimizer::StepMatrices(float rate) {
  const Op op("muon", [&] { return OpCost{.bytes = 4.0 * m_.bytes()}; });
  float* grads = store_->grads().data();
  Exchange([&](const Piece& p) {
    return p.matrix && p.owner != p.source
               ? Transfer{p.owner, p.source, BytesOf(grads + p.grad, p.n * sizeof(float))}
               : Transfer{};
  });
  ForPieces([&](int64_t i, int64_t) {
    const Piece& p = pieces_[i];
    if (p.matrix && p.source != ranks_->rank()) std::memset(grads + p.grad, 0, p.n * sizeof(float));
  });
  muon_.Step(rate, matrices_, store_);
}

std::vector<AdamW> Optimizer::PieceSettings(const AdamW& all) {
  std::vector<AdamW> settings(pieces_.size(), all);
  std::vector<double> ratios(pieces_.size());
  ForPieces([&](int64_t i, int64_t place) {
    const Piece& p = pieces_[i];
    settings[i].rate *= p.rate;
    settings[i].decay = p.decay ? spec_.weight_decay() : 0;
    if (spec_.clip_updates() && !p.matrix)
      ratios[i] = SumUpdateRatios(all, store_->grads().data() + p.grad, &v()[place], p.n);
  });
  if (!spec_.clip_updates()) return settings;
  ranks_->Sum(absl::MakeSpan(ratios));
  std::vector<double> of_params(store_->size());
  for (size_t i = 0; i < pieces_.size(); ++i) of_params[pieces_[i].param] += ratios[i];
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const ParamId id = pieces_[i].param;
    const double rms = std::sqrt(of_params[id] / store_->param(id).size());
    settings[i].rate = static_cast<float>(settings[i].rate / std::max(rms, 1.0));
  }
  return settings;
}

void Optimizer::ForPieces(absl::FunctionRef<void(int64_t i, int64_t place)> f) const {
  ParallelFor(own_.size(), [&](int64_t i) { f(own_[i], shard_.Place(pieces_[own_[i]].grad)); });
}

void Optimizer::ForAverage(absl::FunctionRef<void(float*, float*, int64_t)> f) {
  if (average().empty()) return;
  ForPieces([&](int64_t i, int64_t place) {
    f(store_->values().data() + pieces_[i].value, &average()[place], pieces_[i].n);
  });
}

void Optimizer::StartAverage() {
  ForAverage([](float* weights, float* average, int64_t n) { std::copy_n(weights, n, average); });
}

void Optimizer::SwapAverage() {
  if (spec_.ema_decay() <= 0) return;
  ForAverage([](float* weights, float* average, int64_t n) {
    std::swap_ranges(weights, weights + n, average);
  });
  ShareWeights(&Piece::owner);
}

void Optimizer::ShareWeights(int Piece::*from) {
  const int me = ranks_->rank();
  ForNarrow([&](const Piece& p, Mat exact, Mat rounded) {
    if (p.owner == me) Convert(exact, rounded);
  });
  Exchange([&](const Piece& p) -> Transfer {
    return {p.*from, -1,
        p.narrow ? BytesOf(store_->grads().data() + p.grad, p.n * sizeof(Bf16))
                 : BytesOf(store_->values().data() + p.value, p.n * sizeof(float))};
  });
  ForNarrow([&](const Piece& p, Mat exact, Mat rounded) {
    if (p.owner != me) Convert(rounded, exact);
    std::memset(rounded.data, 0, p.n * sizeof(Bf16));
  });
  exact_ = absl::c_none_of(pieces_, [](const Piece& p) { return p.narrow; });
  store_->TrainableChanged();
}

void Optimizer::GatherWeights() {
  if (exact_) return;
  Exchange([&](const Piece& p) -> Transfer {
    return {p.owner, -1,
        BytesOf(store_->values().data() + p.value, p.narrow ? p.n * sizeof(float) : 0)};
  });
  exact_ = true;  // packed copies stay: they hold the same bits
}

void Optimizer::ForNarrow(absl::FunctionRef<void(const Piece&, Mat, Mat)> f) {
  ParallelFor(pieces_.size(), [&](int64_t i) {
    const Piece& p = pieces_[i];
    if (!p.narrow) return;
    f(p, View(store_->values().data() + p.value, 1, p.n),
        {store_->grads().data() + p.grad, 1, p.n, p.n, DType::kBf16});
  });
}

void Optimizer::Exchange(absl::FunctionRef<Transfer(const Piece&)> of_piece) {
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
    for (const Piece& p : pieces_) {
      const Transfer t = of_piece(p);
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
