// Starts an encoder-decoder from two encoders.
#ifndef CLOZE_ENCODER_HALVES_H_
#define CLOZE_ENCODER_HALVES_H_

#include <string>
#include <vector>

#include "encoder/model.h"

namespace cloze {

// Reads the halves of `model`, a pair (see PairOf), from the folders of the encoder and of the
// decoder. Initializes the parameters that neither folder has: the attention to the encoder and,
// without a masked-LM head, the decoder's head. Appends their names to *fresh, one for all of the
// attention. Errors of LoadConfig and Model::Load.
absl::Status LoadHalves(const std::string& encoder, const std::string& decoder, uint64_t seed,
    Model* model, std::vector<std::string>* fresh);

}  // namespace cloze

#endif  // CLOZE_ENCODER_HALVES_H_
