#include "core/ops/scratch.h"

#include "core/base/threads.h"
#include "core/ops/chain.h"
#include "core/ops/ops.h"
#include "core/ops/reduce.h"

namespace cloze {

void CountColumnSums(Arena& arena, int64_t rows, int64_t cols) {
  const Arena::Mark mark = arena.mark();
  arena.NewArray<float>((rows + kRowChunk - 1) / kRowChunk * cols);
  arena.Rewind(mark);
}

void CountNormBackward(Arena& arena, int64_t rows, int64_t cols) {
  const Arena::Mark mark = arena.mark();
  arena.NewArray<float>(3 * cols);
  CountColumnSums(arena, rows, 3 * cols);
  arena.Rewind(mark);
}

void CountAttention(Arena& arena, int64_t longest, int64_t head_dim) {
  const Arena::Mark mark = arena.mark();
  arena.NewArray<float>(AttentionScratch(longest, head_dim) * Threads());
  arena.Rewind(mark);
}

void CountEmbeddingBackward(Arena& arena, int64_t rows, int64_t cols) {
  const Arena::Mark mark = arena.mark();
  arena.NewArray<char>(EmbeddingScratch(rows, cols));
  arena.Rewind(mark);
}

void CountRowLoss(Arena& arena, int64_t rows) {
  const Arena::Mark mark = arena.mark();
  arena.NewArray<double>(2 * rows);
  arena.Rewind(mark);
}

void CountChainLoss(Arena& arena, int64_t rows, int64_t labels, bool gradients) {
  const Arena::Mark mark = arena.mark();
  arena.New(rows, labels, DType::kF32);
  arena.NewArray<LossSum>(kChainParts);
  arena.NewArray<double>(gradients ? kChainParts * labels * (labels + 2) : 0);
  arena.Rewind(mark);
}

}  // namespace cloze
