// The table of families: a new one is added here.
#ifndef CLOZE_ENCODER_FAMILIES_ALL_H_
#define CLOZE_ENCODER_FAMILIES_ALL_H_

#include "encoder/modules/family.h"

namespace cloze {

extern const Family kBert, kRoberta, kRobertaPreLayerNorm, kDistilBert;
inline constexpr const Family* kFamilies[] = {
    &kBert, &kRoberta, &kRobertaPreLayerNorm, &kDistilBert};

// BERT's names of encoder modules, which other families share.
extern const RoleName kBertEncoderNames[12];

}  // namespace cloze

#endif  // CLOZE_ENCODER_FAMILIES_ALL_H_
