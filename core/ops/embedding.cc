#include "core/ops/embedding.h"

#include <algorithm>

#include "absl/types/span.h"
#include "core/ops/op.h"

namespace cloze {

// Rows summed by one task.
static constexpr int64_t kSegment = 256;

void EmbeddingForward(ConstMat words, const int32_t* ids, ConstMat positions, const int32_t* pos,
    ConstMat types, const int32_t* type, Mat x) {
  CLOZE_CHECK(x.cols == x.stride && words.cols == x.cols &&
              (positions.empty() || positions.cols == x.cols) &&
              (types.empty() || types.cols == x.cols));
  ForRowChunks("embedding", {x, x}, x.rows, kRowChunk, [&](int64_t begin, int64_t end) {
    GetKernels().embed[x.type](end - begin, x.cols, words.f32(), ids + begin, positions.f32(),
        positions.empty() ? nullptr : pos + begin, types.f32(),
        types.empty() ? nullptr : type + begin, x.at(begin, 0));
  });
}

void EmbeddingBackward(ConstMat dx, const int32_t* ids, int64_t rows, Arena& arena, Mat dtable) {
  if (dtable.empty() || rows == 0) return;
  CLOZE_CHECK(dx.cols == dx.stride && dtable.cols == dx.cols);
  const Op op("embedding backward", [&] { return MemoryCost({dx, dx}); });
  const Arena::Mark mark = arena.mark();
  // Up to kSegment rows of one id, order[begin, end). The first segment of an id is added to the
  // table, the others to rows of `scratch`.
  struct Segment {
    int32_t id;
    int64_t begin, end, slot;  // in `scratch`; -1: the first
  };
  int32_t* order = arena.NewArray<int32_t>(rows);
  uint64_t* keys = arena.NewArray<uint64_t>(rows);
  Segment* segments = arena.NewArray<Segment>(rows);
  Mat scratch = arena.New(
      rows / kSegment, dx.cols, DType::kF32);  // each segment of an id but its last is full
  if (op.dry()) return arena.Rewind(mark);
  for (int64_t r = 0; r < rows; ++r) keys[r] = uint64_t(ids[r]) << 32 | uint64_t(r);
  std::sort(keys, keys + rows);
  int64_t count = 0, slots = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t id = keys[r] >> 32;
    order[r] = static_cast<int32_t>(keys[r]);
    const bool first = r == 0 || segments[count - 1].id != id;
    if (first || r - segments[count - 1].begin == kSegment)
      segments[count++] = {id, r, r, first ? -1 : slots++};
    segments[count - 1].end = r + 1;
  }
  ParallelChunks(count, 8, [&](int64_t begin, int64_t end) {
    for (const Segment& s : absl::MakeSpan(segments + begin, segments + end)) {
      const bool first = s.slot < 0;
      GetKernels().sum_rows[dx.type](s.end - s.begin, dx.cols, dx.data, order + s.begin,
          first ? dtable.f32(s.id) : scratch.f32(s.slot), first);
    }
  });
  for (const Segment& s : absl::MakeSpan(segments, count)) {
    if (s.slot < 0) continue;
    float *out = dtable.f32(s.id), *in = scratch.f32(s.slot);
    for (int64_t c = 0; c < dx.cols; ++c) out[c] += in[c];
  }
  arena.Rewind(mark);
}

}  // namespace cloze
