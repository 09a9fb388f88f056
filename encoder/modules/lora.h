// LoRA: a low-rank addition to a linear layer that stays as it is (Hu et al. 2021).
#ifndef CLOZE_ENCODER_MODULES_LORA_H_
#define CLOZE_ENCODER_MODULES_LORA_H_

#include <functional>
#include <string>

#include "encoder/modules/pass.h"
#include "proto/task.pb.h"

namespace cloze {

// Which linear layers of a model get a LoRA, and of which kind.
struct LoraPlan {
  LoraSpec spec;
  std::function<bool(const std::string& layer)>
      wanted;          // by the layer's name, "bert.encoder.layer.0.attention.self.query"
  int adapter = 0;     // the number by which a Pass chooses it
  std::string prefix;  // before its parameters' names; "" or ends with "/"
};

// s in y = W x + s B A x.
float LoraScale(const LoraSpec& spec);
// Is `layer` one of spec.targets, by the end of its name?
bool IsTarget(const LoraSpec& spec, const std::string& layer);
// Is it a parameter of a LoRA, by the end of its name?
bool IsLora(const std::string& param);
// Is it one that model folders do not have: of a LoRA, or with a prefix, all of which end with "/"?
inline bool IsOfAdapter(const std::string& param) {
  return IsLora(param) || param.find('/') != std::string::npos;
}

// y += s B A dropout(x). A [rank, in] starts as Kaiming-uniform (a = sqrt(5)) and B [out, rank] as
// zero, as in PEFT.
class Lora {
 public:
  // Adds PREFIX LAYER.lora_A.weight and .lora_B.weight. Dropout is at the place `stream` of the
  // model.
  Lora(ParamStore* store, const LoraPlan& plan, const std::string& layer, int64_t in, int64_t out,
      uint32_t stream);

  bool trained(const Pass& pass) const { return pass.trained(a_); }

  // x [n, in]; y [n, out] is added to.
  void Forward(const Pass& pass, ConstMat x, Mat y) const;
  // dy [n, out]. Adds the gradients of A and B unless they are frozen or x is empty; dx [n, in] is
  // added to unless it is empty.
  void Backward(const Pass& pass, ConstMat x, ConstMat dy, Mat dx) const;

 private:
  DropoutSite Site(const Pass& pass) const { return pass.Site(dropout_, stream_); }
  ConstMat Dropped(const Pass& pass, ConstMat x) const;
  Mat Gradient(const Pass& pass, ConstMat dy) const;
  void AddData(const Pass& pass, ConstMat dh, Mat dx) const;
  void AddWeights(const Pass& pass, ConstMat x, ConstMat dy, ConstMat dh) const;

  ParamId a_, b_;
  int64_t rank_;
  float scale_, dropout_;
  uint32_t stream_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_LORA_H_
