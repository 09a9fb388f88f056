// Rules by which gradients change weights. A rule sees parts of parameters in memory; it knows
// neither ranks nor files. A new rule is one file, lines in optimizer.cc and its fields in
// OptimizerSpec.
#ifndef CLOZE_TASKS_UPDATE_UPDATE_RULE_H_
#define CLOZE_TASKS_UPDATE_UPDATE_RULE_H_

#include <cstdint>
#include <iterator>
#include <vector>

#include "core/tensor/param_store.h"
#include "proto/training.pb.h"

namespace cloze {

// State arrays with a float for every trainable value, by their prefixes in checkpoints. A rule
// uses the first ones.
inline constexpr const char* kStatePrefixes[] = {"m.", "v."};

class UpdateRule;

// The update of a trainable parameter.
struct ParamUpdate {
  const Param* param = nullptr;
  UpdateRule* rule = nullptr;  // null: the parameter is not trainable
  float rate = 0;              // multiplies the learning rate
  float decay = 0;             // weight decay
};

// A step of the optimizer.
struct UpdateStep {
  float rate;        // learning rate
  float grad_scale;  // multiplies gradients
  int64_t number;    // from 1
};

// n values of a parameter, their gradients and states.
struct ParamPart {
  float *value, *grad, *state[std::size(kStatePrefixes)];
  int64_t n;
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  virtual const char* name() const = 0;
  // True if the rule can update the trainable parameter.
  virtual bool Takes(const Param& param) const = 0;
  // Number of state arrays.
  virtual int states() const = 0;

  // True if Update needs a sum over the whole parameter; MeasurePart returns a part's share of it.
  virtual bool measures() const { return false; }
  virtual double MeasurePart(const UpdateStep&, const ParamPart&) const { return 0; }
  // Updates the part and sets its gradients to zero, or if needs_whole(), leaves in them what
  // UpdateWhole needs. `sum`: of MeasurePart.
  virtual void Update(const UpdateStep& step, const ParamUpdate& update, double sum,
      const ParamPart& part) const = 0;

  // True if UpdateWhole ends a step.
  virtual bool needs_whole() const { return false; }
  // Updates whole parameters of `store` and sets their gradients to zero.
  virtual void UpdateWhole(const UpdateStep&, const std::vector<ParamUpdate>&, ParamStore*) {}
  // Returns an upper bound of the bytes that UpdateWhole keeps.
  virtual int64_t ScratchBytes(const ParamStore&) const { return 0; }
};

}  // namespace cloze

#endif  // CLOZE_TASKS_UPDATE_UPDATE_RULE_H_
