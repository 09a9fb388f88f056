// The loops that are ours: everything between the matmuls, for one range of rows and one thread,
// compiled once per instruction set. Callers (core/ops/*.cc) split the work and check shapes. Only
// plain types here.
#ifndef CLOZE_CORE_OPS_KERNELS_KERNELS_H_
#define CLOZE_CORE_OPS_KERNELS_KERNELS_H_

#include <cstdint>

namespace cloze {

enum class ActivationKind : uint8_t { kGelu, kGeluTanh, kRelu, kTanh };

// Dropout of one row: element c is kept when its 16 random bits are at least `threshold`, and then
// scaled. Bits come from Philox(key, {position | block << 16, stream, example}), eight elements a
// block. threshold 0: no dropout.
struct RowDropout {
  uint32_t key0, key1, threshold, stream;
  float scale;
  const uint64_t* example;  // of each row
  const int32_t* position;  // of each row
};

// z = residual + dropout(x); y = norm(z) * gain + bias, then output dropout. Pointers may be null
// where the op lacks that part.
struct NormArgs {
  int64_t rows, cols;
  const void *x, *residual;  // T; x null: z = residual
  void *z, *y;               // T; z null: not kept
  float *mean, *rstd;        // [rows]
  const float *gain, *bias;  // [cols]
  float epsilon;
  RowDropout in, out;  // on x, on y
};

// Backward of the above: dz = norm'(out-dropout'(dy)) + dz_in; dx = in-dropout'(dz). Adds to dgain,
// dbias [cols], and the column sums of dx to dxsum.
struct NormGradArgs {
  int64_t rows, cols;
  const void *dy, *z, *dz_in;  // T; dz_in may be null
  void *dz, *dx;               // T; dx null: not needed, or the same as dz when there is no dropout
  const float *mean, *rstd, *gain;
  float *dgain, *dbias, *dxsum;  // dxsum may be null
  RowDropout in, out;
};

// Longest row of norm and dropout, whose factors stand on the stack; callers check.
constexpr int64_t kMaxDropoutRow = 16384;

// Queries that attention handles at a time.
constexpr int64_t kAttentionQueries = 64;

// Attention of one sequence and head; rows of q, k, v, out are `stride` (out_stride) elements
// apart.
struct AttentionArgs {
  int64_t tokens, head_dim, stride, out_stride;
  const void *q, *k, *v;  // T [tokens, head_dim]
  void* out;              // T [tokens, head_dim]
  float* lse;             // [tokens] log-sum-exp of the scaled scores
  float* probs;  // [tokens, tokens] or null: probabilities before dropout, for looking inside
  float scale;
  // Example and position of row 0 on; stream holds the head. Of a short sequence neighbouring
  // queries share the row of the first of them: up to 32 tokens 4 with 32 elements each, up to 64
  // tokens 2 with 64.
  RowDropout dropout;
  float* scratch;  // AttentionScratch(tokens, head_dim) floats
};
struct AttentionGradArgs {
  AttentionArgs forward;
  const void* dout;    // T, out_stride apart
  void *dq, *dk, *dv;  // T, stride apart; overwritten
};

struct AdamArgs {
  float *value, *grad, *m, *v;  // grad is set to zero
  int64_t n;
  float rate, beta1, beta2, epsilon, decay, grad_scale, correction1, correction2_root;
};

// A weight [depth, cols], given as f32 with one of its steps 1, laid out in blocks: element (k, n),
// at from[k * depth_step + n * cols_step], goes to to[k / block_depth * depth_stride + n /
// block_cols * cols_stride + block], where with g = block_depth / kPackUnits (1 for f32, 2 for
// bf16) block = (k % block_depth / g * block_cols + n % block_cols) * g + k % g. Blocks, of 16
// columns or a multiple, are filled up with zeros.
constexpr int64_t kPackUnits = 16;
struct PackArgs {
  int64_t depth, cols, depth_step, cols_step, block_depth, block_cols, depth_stride, cols_stride;
  const float* from;
  void* to;  // T
};

// Columns of bf16 [tokens, cols] in panels of kPanelCols, for the matrix unit: of each kPanelTokens
// tokens a tile of the first half of the columns, then one of the second: 16 x 16 units of two
// tokens each, by tokens and columns, or `turned`. Filled up with zeros.
constexpr int64_t kPanelCols = 32, kPanelTokens = 32;
struct PanelArgs {
  int64_t tokens, cols, stride;
  const void* from;
  bool turned;
  float* to;      // of the first panel
  int64_t panel;  // floats from one panel to the next
};
// dw [rows, cols] += left^T right over `tiles` x kPanelTokens tokens; left is turned.
struct GradientArgs {
  int64_t tiles, rows, cols;
  const float *left, *right;
  int64_t panel;
  float* dw;
  int64_t stride;
};

// y [rows, cols] (+)= x w + bias, x [rows, depth] bf16, depth a multiple of kProductBlock, rows at
// most kProductRows and cols kProductCols. w holds blocks of kProductBlock squared as PackArgs has
// them, those of the same columns side by side. Where rows cut a product into pieces, they begin at
// multiples of kProductBlock.
constexpr int64_t kProductBlock = 32, kProductRows = 128, kProductCols = 256;
struct ProductArgs {
  int64_t rows, cols, depth, x_stride, y_stride;
  const void *x, *w;
  const float* bias;  // or null
  void* y;            // T
  bool add;
  float* scratch;  // ProductScratch(rows, depth) floats
};
inline int64_t ProductScratch(int64_t rows, int64_t depth) {
  return (rows + kProductBlock - 1) / kProductBlock * kProductBlock * kProductCols +
         (rows < kProductBlock ? kProductBlock * depth / 2 : 0);
}

struct LossRow {
  float loss;
  int32_t best;  // index of the largest logit
};

// One table per instruction set. Index 0 of the pairs is f32, 1 is bf16.
struct Kernels {
  const char* name;
  bool multiplies_bf16;
  void (*norm[2])(const NormArgs&);
  void (*norm_grad[2])(const NormGradArgs&);
  // y = act(u), n elements.
  void (*activation[2])(ActivationKind, int64_t n, const void* u, void* y);
  // y = act(u); du = dy * act'(u), may be dy itself; bias_sum[cols] += column sums of du.
  void (*activation_grad[2])(ActivationKind, int64_t rows, int64_t cols, const void* u,
      const void* dy, void* y, void* du, float* bias_sum);
  // sum[cols] += column sums of x [rows, cols], rows `stride` apart.
  void (*column_sum[2])(int64_t rows, int64_t cols, const void* x, int64_t stride, float* sum);
  // y = dropout(x); rows [rows, cols].
  void (*dropout[2])(int64_t rows, int64_t cols, const void* x, void* y, const RowDropout&);
  // x[r] = a[ia[r]] + b[ib[r]] + c[ic[r]], tables f32 [.., cols].
  void (*embed[2])(int64_t rows, int64_t cols, const float* a, const int32_t* ia, const float* b,
      const int32_t* ib, const float* c, const int32_t* ic, void* x);
  // out[cols] (+)= sum over r of x[index[r]] [cols].
  void (*sum_rows[2])(
      int64_t rows, int64_t cols, const void* x, const int32_t* index, float* out, bool accumulate);
  void (*attention[2])(const AttentionArgs&);
  void (*attention_grad[2])(const AttentionGradArgs&);
  // Softmax cross entropy of a row of `n` logits against `target`, in place: with `gradient_scale`
  // != 0 the logits become their gradient times it, otherwise they stay. `logits` T.
  LossRow (*softmax_loss[2])(int64_t n, void* logits, int32_t target, float gradient_scale);
  // y = a x + b y, n elements; b 0: y is not read.
  void (*combine[2])(int64_t n, float a, const void* x, float b, void* y);
  void (*convert[2][2])(int64_t n, const void* from, void* to);  // [from][to]
  void (*pack[2])(const PackArgs&);
  // Null where there is no matrix unit.
  void (*gradient_panels)(const PanelArgs&) = nullptr;
  void (*gradient)(const GradientArgs&) = nullptr;
  void (*product[2])(const ProductArgs&) = {};
  void (*adamw)(const AdamArgs&);
  double (*sum_squares)(int64_t n, const float* x);
};

// Floats of scratch that one thread needs for attention over `tokens`, forward or backward.
int64_t AttentionScratch(int64_t tokens, int64_t head_dim);

// The best table this CPU can run; CLOZE_MAX_ISA=avx512bf16|avx512|avx2|baseline in the environment
// lowers it (for tests and mixed clusters).
const Kernels& GetKernels();

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_KERNELS_KERNELS_H_
