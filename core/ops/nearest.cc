#include "core/ops/nearest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/ops/matmul.h"
#include "core/ops/op.h"

namespace cloze {
namespace {

constexpr int64_t kBlockRows = 512;      // of a product with many queries
constexpr int64_t kStreamRows = 16384;   // that one task reads for few queries
constexpr int64_t kCachedRows = 64;      // whose scores are computed before they are compared
constexpr int64_t kQueriesOfTask = 128;  // whose best rows one task keeps

bool IsBetter(const Hit& a, const Hit& b) {
  return a.score != b.score ? a.score > b.score : a.row < b.row;
}

// The best rows of one query. Rows come in ascending order, so an equal score is never better.
class Best {
 public:
  // Requires top > 0.
  explicit Best(int64_t top) : top_(top) {}
  float worst() const { return worst_; }
  void Add(const Hit& hit) {
    if (std::ssize(heap_) == top_) {
      std::pop_heap(heap_.begin(), heap_.end(), IsBetter);
      heap_.back() = hit;
    } else {
      heap_.push_back(hit);
    }
    std::push_heap(heap_.begin(), heap_.end(), IsBetter);
    if (std::ssize(heap_) == top_) worst_ = heap_.front().score;
  }
  const std::vector<Hit>& hits() const { return heap_; }
  std::vector<Hit> Sorted() && {
    std::sort_heap(heap_.begin(), heap_.end(), IsBetter);
    return std::move(heap_);
  }

 private:
  int64_t top_;
  float worst_ = -std::numeric_limits<float>::infinity();
  std::vector<Hit> heap_;  // the worst in front
};

const void* RowAt(const VectorRows& table, int64_t row) {
  return static_cast<const char*>(table.data) + row * table.cols * SizeOf(table.type);
}

// out [rows] = products of rows [first, first + rows) with q.
void Dots(const VectorRows& table, int64_t first, int64_t rows, const float* q, float* out) {
  const void* x = RowAt(table, first);
  if (table.type == DType::kS8) {
    GetKernels().dot_int8_rows(rows, table.cols, static_cast<const int8_t*>(x), q, out);
  } else {
    GetKernels().dot_rows[table.type](rows, table.cols, x, q, out);
  }
  if (table.scales == nullptr) return;
  for (int64_t r = 0; r < rows; ++r) out[r] *= table.scales[first + r];
}

// Rounds to bf16, as Matmul does where the CPU multiplies it.
std::vector<float> RoundedToBf16(ConstMat queries) {
  std::vector<float> rounded(queries.rows * queries.cols);
  std::vector<uint16_t> narrow(rounded.size());
  GetKernels().convert.f32(rounded.size(), queries.f32(), true, narrow.data());
  GetKernels().convert.bf16(rounded.size(), narrow.data(), false, rounded.data());
  return rounded;
}

// Reads each row once from memory, for all queries.
std::vector<std::vector<Hit>> NearestToFew(const VectorRows& table, ConstMat queries, int64_t top) {
  const int64_t tasks = CeilDiv(table.rows, kStreamRows), n = queries.rows;
  std::vector<Best> parts(tasks * n, Best(top));
  ParallelFor(tasks, [&](int64_t task) {
    float scores[kCachedRows];
    const int64_t end = std::min(table.rows, (task + 1) * kStreamRows);
    for (int64_t row = task * kStreamRows; row < end; row += kCachedRows) {
      const int64_t rows = std::min(kCachedRows, end - row);
      for (int64_t q = 0; q < n; ++q) {
        Best& best = parts[task * n + q];
        Dots(table, row, rows, queries.f32(q), scores);
        for (int64_t r = 0; r < rows; ++r)
          if (scores[r] > best.worst()) best.Add({row + r, scores[r]});
      }
    }
  });
  std::vector<std::vector<Hit>> hits(n);
  for (int64_t q = 0; q < n; ++q) {
    Best best(top);
    for (int64_t task = 0; task < tasks; ++task) {
      std::vector<Hit> part = std::move(parts[task * n + q]).Sorted();
      for (const Hit& hit : part)
        if (hit.score > best.worst()) best.Add(hit);
    }
    hits[q] = std::move(best).Sorted();
  }
  return hits;
}

// Adds rows of a block to the best ones of queries [begin, end).
void KeepBest(int64_t first, ConstMat scores, int64_t begin, int64_t end, Best* best) {
  float worst[kQueriesOfTask];
  for (int64_t q = begin; q < end; ++q) worst[q - begin] = best[q].worst();
  for (int64_t r = 0; r < scores.rows; ++r) {
    const float* row = scores.f32(r) + begin;
    int any = 0;
    for (int64_t q = 0; q < end - begin; ++q) any |= row[q] > worst[q];
    if (any == 0) continue;
    for (int64_t q = 0; q < end - begin; ++q) {
      if (!(row[q] > worst[q])) continue;
      best[begin + q].Add({first + r, row[q]});
      worst[q] = best[begin + q].worst();
    }
  }
}

}  // namespace

void ForScores(const VectorRows& table, ConstMat queries,
    absl::FunctionRef<void(int64_t first, ConstMat scores)> f) {
  CLOZE_CHECK(queries.cols == table.cols && queries.rows <= kQueryTile);
  Matmul matmul;
  const bool wide = table.type == DType::kS8;
  std::vector<float> products(kBlockRows * queries.rows), rows(wide ? kBlockRows * table.cols : 0);
  for (int64_t first = 0; first < table.rows; first += kBlockRows) {
    const int64_t n = std::min(kBlockRows, table.rows - first);
    ConstMat x = {RowAt(table, first), n, table.cols, table.cols, table.type};
    if (wide) {
      WidenRows(table, first, n, rows.data());
      x = View(std::as_const(rows).data(), n, table.cols);
    }
    const Mat y = View(products.data(), n, queries.rows);
    matmul.Forward(x, {.w = queries}, nullptr, y);
    if (!wide && table.scales != nullptr) {
      ParallelChunks(n, kRowChunk, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          GetKernels().axpby.f32(queries.rows, table.scales[first + r], y.f32(r), 0, y.f32(r));
      });
    }
    f(first, y);
  }
}

std::vector<std::vector<Hit>> NearestRows(const VectorRows& table, ConstMat queries, int64_t top) {
  CLOZE_CHECK(queries.cols == table.cols && queries.stride == queries.cols);
  top = std::min(top, table.rows);
  if (top <= 0) return std::vector<std::vector<Hit>>(queries.rows);
  std::vector<float> rounded;
  if (table.type == DType::kBf16) {
    rounded = RoundedToBf16(queries);
    queries = View(std::as_const(rounded).data(), queries.rows, queries.cols);
  }
  if (queries.rows <= kFewQueries) return NearestToFew(table, queries, top);
  std::vector<std::vector<Hit>> hits(queries.rows);
  for (int64_t begin = 0; begin < queries.rows; begin += kQueryTile) {
    const int64_t n = std::min(kQueryTile, queries.rows - begin);
    std::vector<Best> best(n, Best(top));
    ForScores(table, Rows(queries, begin, n), [&](int64_t first, ConstMat scores) {
      ParallelChunks(n, kQueriesOfTask,
          [&](int64_t from, int64_t to) { KeepBest(first, scores, from, to, best.data()); });
    });
    for (int64_t q = 0; q < n; ++q) hits[begin + q] = std::move(best[q]).Sorted();
  }
  return hits;
}

void WidenRows(const VectorRows& table, int64_t begin, int64_t n, float* out) {
  ParallelChunks(n, kRowChunk, [&](int64_t from, int64_t to) {
    for (int64_t r = from; r < to; ++r) {
      const void* x = RowAt(table, begin + r);
      const float scale = table.scales == nullptr ? 1 : table.scales[begin + r];
      float* y = out + r * table.cols;
      if (table.type == DType::kS8) {
        GetKernels().widen_int8(table.cols, static_cast<const int8_t*>(x), scale, y);
      } else {
        GetKernels().convert[table.type](table.cols, x, false, y);
        if (scale != 1) GetKernels().axpby.f32(table.cols, scale, y, 0, y);
      }
    }
  });
}

void RowLengths(const VectorRows& table, float* lengths) {
  ParallelChunks(table.rows, kStreamRows, [&](int64_t begin, int64_t end) {
    std::vector<float> row(table.cols);
    for (int64_t r = begin; r < end; ++r) {
      WidenRows(table, r, 1, row.data());
      lengths[r] = static_cast<float>(std::sqrt(GetKernels().sum_squares(table.cols, row.data())));
    }
  });
}

}  // namespace cloze
