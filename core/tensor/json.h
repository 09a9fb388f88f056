// Forwards to core/base/json.h for files that still include this name.
#ifndef CLOZE_CORE_TENSOR_JSON_H_
#define CLOZE_CORE_TENSOR_JSON_H_

#include "core/base/json.h"

#endif  // CLOZE_CORE_TENSOR_JSON_H_
