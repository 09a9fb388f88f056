// The upper limit of Matmul's speed.
#ifndef CLOZE_TOOLS_BENCH_PEAK_PRODUCT_H_
#define CLOZE_TOOLS_BENCH_PEAK_PRODUCT_H_

#include <cstdint>
#include <memory>

#include "core/tensor/mat.h"

namespace cloze::bench {

// A product x [m, k] w [k, n] by oneDNN in its preferred way: all threads at once, both operands in
// its own layouts.
class PeakProduct {
 public:
  PeakProduct(int64_t m, int64_t n, int64_t k, DType type);
  ~PeakProduct();
  PeakProduct(const PeakProduct&) = delete;
  PeakProduct& operator=(const PeakProduct&) = delete;
  void Run();

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace cloze::bench

#endif  // CLOZE_TOOLS_BENCH_PEAK_PRODUCT_H_
