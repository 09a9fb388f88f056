#include "tasks/update/update_rule.h"

namespace cloze {

// Return null if `spec` does not select the rule.
std::unique_ptr<UpdateRule> NewMuon(const OptimizerSpec& spec, DType product);
std::unique_ptr<UpdateRule> NewAdamW(const OptimizerSpec& spec, DType product);

std::vector<std::unique_ptr<UpdateRule>> MakeUpdateRules(const OptimizerSpec& spec, DType product) {
  std::vector<std::unique_ptr<UpdateRule>> rules;
  for (const auto create : {NewMuon, NewAdamW}) {
    if (auto rule = create(spec, product)) rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace cloze
