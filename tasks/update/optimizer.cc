#include "tasks/update/optimizer.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/ops/profile.h"

namespace cloze {

// The rules, each from its own file. Return null if `spec` does not select the rule. `product`:
// type of the operands of products.
std::unique_ptr<UpdateRule> NewMuon(const OptimizerSpec& spec, DType product);
std::unique_ptr<UpdateRule> NewAdamW(const OptimizerSpec& spec, DType product);

namespace {

using Rules = std::vector<std::unique_ptr<UpdateRule>>;

// Returns the rules that `spec` selects. The first one that takes a parameter updates it.
Rules MakeUpdateRules(const OptimizerSpec& spec, DType product) {
  Rules rules;
  for (const auto create : {NewMuon, NewAdamW}) {
    if (auto rule = create(spec, product)) rules.push_back(std::move(rule));
  }
  return rules;
}

// Returns how each parameter is updated, by ParamId.
std::vector<ParamUpdate> UpdatesOf(
    const ParamStore& store, const OptimizerSpec& spec, const Rules& rules) {
  int top = 0;
  for (ParamId id = 0; id < store.size(); ++id) top = std::max(top, store.param(id).layer);
  std::vector<ParamUpdate> updates(store.size());
  for (ParamId id = 0; id < store.size(); ++id) {
    const Param& p = store.param(id);
    if (!p.trainable) continue;
    const auto rule = absl::c_find_if(rules, [&](const auto& rule) { return rule->Takes(p); });
    CLOZE_CHECK(rule != rules.end());
    updates[id] = {&p, rule->get(),
        p.rate * std::pow(spec.layer_decay(), static_cast<float>(top - p.layer)),
        p.decay ? spec.weight_decay() : 0};
  }
  return updates;
}

// Number of state arrays of the rules that update a parameter.
int StatesOf(const std::vector<ParamUpdate>& updates) {
  int states = 0;
  for (const ParamUpdate& update : updates)
    if (update.rule != nullptr) states = std::max(states, update.rule->states());
  return states;
}

}  // namespace

Optimizer::Optimizer(ParamStore* store, const OptimizerSpec& spec, Ranks* ranks, DType product)
    : store_(store), spec_(spec), rules_(MakeUpdateRules(spec, product)),
      updates_(UpdatesOf(*store, spec, rules_)),
      params_(store, ranks, product, [&](ParamId id) { return updates_[id].rule->needs_whole(); }),
      average_(store, &params_, spec.ema_decay()) {
  for (int i = 0; i < StatesOf(updates_); ++i)
    states_.emplace_back(params_.shard().size() * sizeof(float));
}

Optimizer::Memory Optimizer::MemoryOf(
    const ParamStore& store, const OptimizerSpec& spec, int ranks, DType product) {
  const Rules rules = MakeUpdateRules(spec, product);
  const int states = StatesOf(UpdatesOf(store, spec, rules));
  const bool averages = spec.ema_decay() > 0;
  const auto shard = Shard::MaxSize(ranks, store.grads().size()) * sizeof(float);
  Memory memory = {static_cast<int64_t>(shard * (states + averages)),
      absl::StrCat(states == 1 ? "one moment" : "two moments", averages ? ", average" : "")};
  for (const auto& rule : rules) {
    const int64_t scratch = rule->ScratchBytes(store);
    memory.bytes += scratch;
    if (scratch > 0) absl::StrAppend(&memory.parts, ", ", rule->name());
  }
  return memory;
}

std::vector<StateArray> Optimizer::arrays() {
  std::vector<StateArray> arrays;
  for (size_t i = 0; i < states_.size(); ++i)
    arrays.push_back({kStatePrefixes[i], states_[i].as<float>(), &params_.ranks()});
  if (average_.exists()) arrays.push_back({"ema.", average_.values(), &params_.ranks()});
  return arrays;
}

void Optimizer::Step(double rate, double norm) {
  const UpdateStep step = {.rate = static_cast<float>(rate),
      .grad_scale = spec_.clip_norm() > 0
                        ? static_cast<float>(std::min(1.0, spec_.clip_norm() / (norm + 1e-6)))
                        : 1.0f,
      .number = ++steps_};
  UpdateSlices(step);
  params_.GatherWholeGradients();
  for (const auto& rule : rules_) {
    if (!rule->needs_whole()) continue;
    std::vector<ParamUpdate> mine;
    absl::c_copy_if(updates_, std::back_inserter(mine), [&](const ParamUpdate& update) {
      return update.rule == rule.get() && params_.UpdatesWhole(*update.param);
    });
    rule->UpdateWhole(step, mine, store_);
  }
  // All gradients are zero now: their memory can carry rounded weights.
  params_.ShareWeights(ShardedParams::Sender::kUpdater, /*mail=*/store_->grads());
  average_.Add(steps_);
}

void Optimizer::UpdateSlices(const UpdateStep& step) {
  const Op op("optimizer",
      [&] { return OpCost{.bytes = 8.0 * (2 + states_.size()) * params_.shard().size()}; });
  const auto part_of = [&](const ParamSlice& slice, int64_t offset) {
    ParamPart part = {
        store_->values().data() + slice.value, store_->grads().data() + slice.grad, {}, slice.n};
    for (size_t i = 0; i < states_.size(); ++i)
      part.state[i] = states_[i].as<float>().data() + offset;
    return part;
  };
  std::vector<double> sums(updates_.size());
  if (absl::c_any_of(rules_, [](const auto& rule) { return rule->measures(); })) {
    sums = params_.SumByParam([&](const ParamSlice& slice, int64_t offset) {
      return updates_[slice.param].rule->MeasurePart(step, part_of(slice, offset));
    });
  }
  params_.ForOwned([&](const ParamSlice& slice, int64_t offset) {
    const ParamUpdate& update = updates_[slice.param];
    update.rule->Update(step, update, sums[slice.param], part_of(slice, offset));
  });
}

void Optimizer::SwapAverage() {
  if (!average_.exists()) return;
  average_.Swap();
  params_.ShareWeights(ShardedParams::Sender::kOwner, /*mail=*/store_->grads());
}

}  // namespace cloze
