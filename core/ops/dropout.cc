#include "core/ops/dropout.h"

#include <cmath>

#include "core/base/philox.h"
#include "core/ops/op.h"
#include "core/ops/rows.h"

namespace cloze {

RowDropout RowsFrom(const DropoutSite& site, int64_t row) {
  if (site.p <= 0) return {};
  const auto key = Philox(site.seed, Purpose::kDropout).key();
  return {.key0 = key[0],
      .key1 = key[1],
      .threshold = static_cast<uint32_t>(std::lround(site.p * 65536.0)),
      .site = site.site,
      .scale = 1.0f / (1.0f - site.p),
      .example = site.rows.example + row,
      .position = site.rows.position + row};
}

void Dropout(ConstMat x, const DropoutSite& site, Mat y) {
  CLOZE_CHECK(x.cols == x.stride && y.cols == y.stride && x.type == y.type);
  const Op op("dropout", [&] { return MemoryCost({x, y}); });
  if (op.dry()) return;
  if (site.p <= 0) {
    if (x.data != y.data) Convert(x, y);
    return;
  }
  CLOZE_CHECK(x.cols <= kMaxDropoutRow);
  ParallelChunks(x.rows, kRowChunk, [&](int64_t begin, int64_t end) {
    GetKernels().dropout[x.type](
        end - begin, x.cols, x.at(begin, 0), y.at(begin, 0), RowsFrom(site, begin));
  });
}

}  // namespace cloze
