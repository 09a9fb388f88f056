#include "tasks/training/best_model.h"

#include <cmath>
#include <utility>

namespace cloze {

std::string BestModel::MetricOf(const MetricResults& results) const {
  return spec_.metric().empty() ? results.values.front().first : spec_.metric();
}

absl::StatusOr<bool> BestModel::IsBetter(const MetricResults& results) const {
  const std::string metric = MetricOf(results);
  ASSIGN_OR_RETURN(const double value, results.Value(metric));
  return std::isfinite(value) &&
         (!best_value_.has_value() || cloze::IsBetter(metric, value, *best_value_));
}

void BestModel::Add(int64_t step, bool better, MetricResults results) {
  metric_ = MetricOf(results);
  evaluations_without_best_ = better ? 0 : evaluations_without_best_ + 1;
  if (!better) return;
  best_value_ = *results.Value(metric_);
  best_step_ = step;
  best_ = std::move(results);
}

void BestModel::Forget() {
  best_value_.reset();
  best_ = {};
  best_step_ = 0;
}

void BestModel::ToState(TrainerState* state) const {
  state->set_metric(metric_);
  if (best_value_.has_value()) state->set_best_value(*best_value_);
  state->set_best_step(best_step_);
  state->set_evaluations_without_best(evaluations_without_best_);
  for (const auto& [name, value] : best_.values) {
    TrainerState::Metric* metric = state->add_best();
    metric->set_name(name);
    metric->set_value(value);
  }
  for (const auto& [name, json] : best_.tables) {
    TrainerState::Table* table = state->add_best_table();
    table->set_name(name);
    table->set_json(json);
  }
}

void BestModel::FromState(const TrainerState& state) {
  metric_ = state.metric();
  if (state.has_best_value()) best_value_ = state.best_value();
  best_step_ = state.best_step();
  evaluations_without_best_ = state.evaluations_without_best();
  for (const auto& metric : state.best()) best_.values.emplace_back(metric.name(), metric.value());
  for (const auto& table : state.best_table())
    best_.tables.emplace_back(table.name(), table.json());
}

}  // namespace cloze
