// The loss of sentence_embedding on the vectors of a step.
#ifndef CLOZE_TASKS_EMBEDDING_LOSS_H_
#define CLOZE_TASKS_EMBEDDING_LOSS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/tensor/arena.h"
#include "proto/task.pb.h"

namespace cloze {

using EmbeddingSpec = SentenceEmbeddingSpec;

// The role of a text in its example, which begins with the anchor and its positive. kDocument,
// kQuery: a text of a retrieval collection, an example by itself.
enum class GroupRole : int32_t { kAnchor, kPositive, kNegative, kDocument, kQuery };
inline constexpr int32_t kGroupRoles = 5;
// The label of a text: its role and its class. Texts of the same class, but 0, are no negatives of
// each other.
inline constexpr int32_t LabelOf(GroupRole role, int32_t text_class = 0) {
  return static_cast<int32_t>(role) + kGroupRoles * text_class;
}
inline constexpr GroupRole RoleOf(int32_t label) {
  return static_cast<GroupRole>(label % kGroupRoles);
}
inline constexpr int32_t ClassOf(int32_t label) { return label / kGroupRoles; }

// Returns the mean loss of v [texts, hidden] f32, with labels [texts] and, for COSENT and COSINE,
// scores [texts]: the sum over SentenceEmbeddingSpec.dimensions. Adds its gradient to dv.
double EmbeddingLoss(const SentenceEmbeddingSpec& spec, absl::Span<const int32_t> labels,
    absl::Span<const float> scores, ConstMat v, Arena& arena, Mat dv);

}  // namespace cloze

#endif  // CLOZE_TASKS_EMBEDDING_LOSS_H_
