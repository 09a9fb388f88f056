// README.md of a model folder: a model card, as hubs show it.
#ifndef CLOZE_TOOLS_MODEL_CARD_H_
#define CLOZE_TOOLS_MODEL_CARD_H_

#include <string>

#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace cloze {

// Writes README.md into `folder`, which holds the model of the run in `run` (mostly the same
// folder), from the run's config.json, spec.textproto, metrics.json and about.json: front matter
// (YAML with tags, metrics and model-index), result, data, settings, use, licence. Says nothing
// that these files do not. The card is not in MANIFEST, because people edit it. Replaces only a
// README.md that Cloze wrote and nobody has changed.
absl::Status WriteModelCard(const std::string& folder, const std::string& run);

// Copies README.md of the model folder `from`, if it has one, into `to`, with `change`, a sentence
// about what was done with the model, at its end.
absl::Status CopyModelCard(
    const std::string& from, const std::string& to, absl::string_view change);

}  // namespace cloze

#endif  // CLOZE_TOOLS_MODEL_CARD_H_
