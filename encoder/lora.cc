#include "encoder/lora.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"

namespace cloze {
namespace {

bool EndsAs(LoraSpec::Target target, const std::string& layer) {
  switch (target) {
    case LoraSpec::QUERY: return absl::EndsWith(layer, ".attention.self.query");
    case LoraSpec::KEY: return absl::EndsWith(layer, ".attention.self.key");
    case LoraSpec::VALUE: return absl::EndsWith(layer, ".attention.self.value");
    case LoraSpec::ATTENTION_OUTPUT: return absl::EndsWith(layer, ".attention.output.dense");
    case LoraSpec::INTERMEDIATE: return absl::EndsWith(layer, ".intermediate.dense");
    case LoraSpec::OUTPUT:
      return absl::EndsWith(layer, ".output.dense") &&
             !absl::EndsWith(layer, ".attention.output.dense");
  }
  CLOZE_CHECK(false);
}

}  // namespace

float LoraScale(const LoraSpec& spec) {
  const float rank = static_cast<float>(spec.rank());
  return spec.alpha() / (spec.rslora() ? std::sqrt(rank) : rank);
}

bool IsTarget(const LoraSpec& spec, const std::string& layer) {
  if (spec.targets().empty())
    return EndsAs(LoraSpec::QUERY, layer) || EndsAs(LoraSpec::VALUE, layer);
  return std::any_of(spec.targets().begin(), spec.targets().end(),
      [&](int target) { return EndsAs(static_cast<LoraSpec::Target>(target), layer); });
}

bool IsLora(const std::string& param) {
  return absl::EndsWith(param, ".lora_A.weight") || absl::EndsWith(param, ".lora_B.weight");
}

Lora::Lora(ParamStore* store, const LoraPlan& plan, const std::string& layer, int64_t in,
    int64_t out, uint32_t stream)
    : a_(store->AddMatrix(absl::StrCat(plan.prefix, layer, ".lora_A.weight"), plan.spec.rank(), in,
          false, Init::kUniform)),
      b_(store->AddMatrix(absl::StrCat(plan.prefix, layer, ".lora_B.weight"), out, plan.spec.rank(),
          false, Init::kZero)),
      rank_(plan.spec.rank()), scale_(LoraScale(plan.spec)), dropout_(plan.spec.dropout()),
      stream_(stream) {}

// dropout(x); x itself when there is none.
ConstMat Lora::Dropped(const Step& step, ConstMat x) const {
  const DropoutSite site = Site(step);
  if (site.p <= 0) return x;
  Mat dropped = step.New(x.rows, x.cols);
  Dropout(x, site, dropped);
  return dropped;
}

// s dy B [n, rank], the gradient of A dropout(x).
Mat Lora::Gradient(const Step& step, ConstMat dy) const {
  Mat dh = step.New(dy.rows, rank_);
  step.matmul.BackwardData(dy, step.weight(b_), dh);
  Combine(scale_, dh, 0, dh);
  return dh;
}

void Lora::Forward(const Step& step, ConstMat x, Mat y) const {
  const Arena::Mark mark = step.arena.mark();
  Mat h = step.New(x.rows, rank_);
  step.matmul.Forward(Dropped(step, x), step.weight(a_), nullptr, h);
  Combine(scale_, h, 0, h);
  step.matmul.Forward(h, step.weight(b_), nullptr, y, true);
  step.arena.Rewind(mark);
}

void Lora::Backward(const Step& step, ConstMat x, ConstMat dy, Mat dx) const {
  const bool weights = !x.empty() && trained(step), data = !dx.empty();
  if (!weights && !data) return;
  const Arena::Mark mark = step.arena.mark();
  const Mat dh = Gradient(step, dy);
  if (weights) AddWeights(step, x, dy, dh);
  if (data) AddData(step, dh, dx);
  step.arena.Rewind(mark);
}

void Lora::AddData(const Step& step, ConstMat dh, Mat dx) const {
  const Arena::Mark mark = step.arena.mark();
  const DropoutSite site = Site(step);
  if (site.p <= 0) {
    step.matmul.BackwardData(dh, step.weight(a_), dx, true);
  } else {
    Mat dropped = step.New(dx.rows, dx.cols);
    step.matmul.BackwardData(dh, step.weight(a_), dropped);
    Dropout(dropped, site, dropped);
    Combine(1, dropped, 1, dx);
  }
  step.arena.Rewind(mark);
}

void Lora::AddWeights(const Step& step, ConstMat x, ConstMat dy, ConstMat dh) const {
  const Arena::Mark mark = step.arena.mark();
  const ConstMat dropped = Dropped(step, x);
  Mat h = step.New(x.rows, rank_);
  step.matmul.Forward(dropped, step.weight(a_), nullptr, h);
  Combine(scale_, h, 0, h);
  step.matmul.BackwardWeight(dy, h, step.weight_grad(b_));
  step.matmul.BackwardWeight(dh, dropped, step.weight_grad(a_));
  step.arena.Rewind(mark);
}

}  // namespace cloze
