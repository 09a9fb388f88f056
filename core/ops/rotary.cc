#include "core/ops/rotary.h"

#include <cmath>

#include "core/ops/op.h"

namespace cloze {
namespace {

void Rotate(const char* name, ConstMat table, const int32_t* position, float sign, Mat x) {
  CLOZE_CHECK(x.cols % table.cols == 0);
  ForRowChunks(name, {x, x}, x.rows, kRowChunk, [&](int64_t begin, int64_t end) {
    GetKernels().rotate[x.type]({end - begin, x.cols / table.cols, table.cols, x.stride,
                                    position + begin, table.f32(), sign},
        x.at(begin, 0));
  });
}

}  // namespace

Mat RotaryTable(int64_t positions, int64_t dim, float base, Arena& arena) {
  CLOZE_CHECK(dim % 2 == 0);
  const Mat table = arena.New(positions, dim, DType::kF32);
  ForRows("rotary table", {table}, positions, [&](int64_t position) {
    for (int64_t m = 0; m < dim / 2; ++m) {
      // In f32, as transformers: far positions differ visibly otherwise.
      const float power = std::pow(double{base}, static_cast<double>(2 * m) / dim),
                  frequency = 1 / power, angle = static_cast<float>(position) * frequency;
      table.f32(position)[m] = std::cos(angle);
      table.f32(position)[m + dim / 2] = std::sin(angle);
    }
  });
  return table;
}

void RotaryForward(ConstMat table, const int32_t* position, Mat x) {
  Rotate("rotary", table, position, 1, x);
}

void RotaryBackward(ConstMat table, const int32_t* position, Mat dx) {
  Rotate("rotary backward", table, position, -1, dx);
}

}  // namespace cloze
