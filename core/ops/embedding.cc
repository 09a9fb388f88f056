#include "core/ops/embedding.h"

#include <algorithm>

#include "core/base/threads.h"
#include "core/ops/cost.h"
#include "core/ops/kernels/kernels.h"
#include "core/ops/reduce.h"

namespace cloze {
namespace {

constexpr int64_t kSegment = 256;  // rows summed by one task

// Up to kSegment rows of one id: order[begin, end). The first segment of an id is added to the
// table, the others to scratch.
struct Segment {
  int32_t id;
  int64_t begin, end;
  bool first;
};

}  // namespace

void EmbeddingForward(ConstMat words, const int32_t* ids, ConstMat positions, const int32_t* pos,
    ConstMat types, const int32_t* type, Mat x) {
  CLOZE_CHECK(x.cols == x.stride && words.cols == x.cols && positions.cols == x.cols &&
              (types.empty() || types.cols == x.cols));
  const Op op("embedding", [&] { return Traffic({x, x}); });
  if (op.dry()) return;
  ParallelChunks(x.rows, kRowChunk, [&](int64_t begin, int64_t end) {
    GetKernels().embed[x.type](end - begin, x.cols, words.f32(), ids + begin, positions.f32(),
        pos + begin, types.f32(), types.empty() ? nullptr : type + begin, Rows(x, begin, 0).data);
  });
}

void EmbeddingBackward(ConstMat dx, const int32_t* ids, int64_t rows, Arena& arena, Mat dtable) {
  if (dtable.empty() || rows == 0) return;
  CLOZE_CHECK(dx.cols == dx.stride && dtable.cols == dx.cols);
  const Op op("embedding backward", [&] { return Traffic({dx, dx}); });
  const Arena::Mark mark = arena.mark();
  int32_t* order = arena.NewArray<int32_t>(rows);
  uint64_t* keys = arena.NewArray<uint64_t>(rows);
  Segment* segments = arena.NewArray<Segment>(rows);
  int64_t* slot = arena.NewArray<int64_t>(rows);
  Mat scratch = arena.New(rows / kSegment, dx.cols, DType::kF32);  // all but the first are full
  if (op.dry()) return arena.Rewind(mark);
  for (int64_t r = 0; r < rows; ++r) keys[r] = uint64_t(ids[r]) << 32 | uint64_t(r);
  std::sort(keys, keys + rows);
  for (int64_t r = 0; r < rows; ++r) order[r] = static_cast<int32_t>(keys[r]);
  int64_t count = 0;
  for (int64_t r = 0; r < rows;) {
    const int32_t id = keys[r] >> 32;
    int64_t end = r + 1;
    while (end < rows && end - r < kSegment && int32_t(keys[end] >> 32) == id) ++end;
    segments[count] = {id, r, end, r == 0 || int32_t(keys[r - 1] >> 32) != id};
    r = end, ++count;
  }
  for (int64_t i = 0, next = 0; i < count; ++i) slot[i] = segments[i].first ? -1 : next++;
  const Kernels& kernels = GetKernels();
  ParallelChunks(count, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Segment& s = segments[i];
      float* out = s.first ? dtable.f32(s.id) : scratch.f32(slot[i]);
      kernels.sum_rows[dx.type](s.end - s.begin, dx.cols, dx.data, order + s.begin, out, s.first);
    }
  });
  for (int64_t i = 0; i < count; ++i) {
    if (segments[i].first) continue;
    float *out = dtable.f32(segments[i].id), *in = scratch.f32(slot[i]);
    for (int64_t c = 0; c < dx.cols; ++c) out[c] += in[c];
  }
  arena.Rewind(mark);
}

}  // namespace cloze
