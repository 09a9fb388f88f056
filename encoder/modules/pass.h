// A batch of packed sequences, and the context of a pass over it.
#ifndef CLOZE_ENCODER_MODULES_PASS_H_
#define CLOZE_ENCODER_MODULES_PASS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/ops/matmul.h"
#include "core/ops/rows.h"
#include "core/tensor/param_store.h"

namespace cloze {

// Returns `rows` rounded up to a multiple of 64, or of 8 below 64.
int64_t PaddedRows(int64_t rows);

// Arrays are [padded_rows] unless noted. Rows from tokens() on are padding, which limits the number
// of matrix shapes; they belong to no sequence and have no loss.
struct Batch {
  std::vector<int32_t> ids, types, positions;  // positions count from 0 in each sequence
  std::vector<uint64_t> row_examples;          // global example number of each row, for dropout
  std::vector<int32_t> cu_seqlens = {0};       // [sequences + 1] first row of each sequence
  std::vector<int32_t> groups;  // first sequence of each example, which may have several joined
                                // ones; may be empty
  std::vector<uint8_t> causal;  // [sequences] true if its tokens see no later ones; empty: none
  std::vector<int32_t> rows, targets;  // [targets] labelled rows, ascending, and their labels
  // If averages(), the hidden state of target i is the mean of the rows pieces[piece_ends[i - 1]]
  // ... pieces[piece_ends[i] - 1], where piece_ends[-1] is 0, or with `largest` the largest of each
  // column. Otherwise it is row rows[i], and these arrays may be empty.
  std::vector<int32_t> pieces, piece_ends;
  bool largest = false;
  std::vector<float> values;  // [targets, labels] replaces `targets` for multi-label (0 or 1) and
                              // regression

  int64_t tokens() const { return cu_seqlens.back(); }
  int64_t padded_rows() const { return static_cast<int64_t>(ids.size()); }
  int64_t sequences() const { return static_cast<int64_t>(cu_seqlens.size()) - 1; }
  bool averages() const { return pieces.size() > rows.size(); }
  RowCoordinates coordinates() const { return {row_examples.data(), positions.data()}; }

  void Clear() { *this = Batch(); }
  // Appends a sequence; `second` is the index of its first token of type 1. Call before Pad().
  void Add(absl::Span<const int32_t> sequence, int64_t second, uint64_t example);
  // Pads the rows to PaddedRows(tokens()).
  void Pad();
};

struct RelativeContext;
struct SourceStates;

// A pass of a decoder that keeps keys and values, for generation.
struct Decoding {
  absl::Span<const Mat> cache;     // for each block [., 2 hidden] keys and values; then the same of
                                   // its attention to the encoder
  absl::Span<const int32_t> rows;  // [tokens] rows of the cache for the batch's tokens
  // The rows of the cache that each token sees, see DecodeAttention. Empty: the sequences of the
  // batch are complete.
  absl::Span<const int32_t> seen, ends;
  // Rows of the cache for the tokens of the sources; with `seen`, the rows that each token sees, in
  // the same form.
  absl::Span<const int32_t> source_rows = {}, source_ends = {};
};

// Modules are const and own no memory: parameters live in the store, activations in the arena.
struct Pass {
  const ParamStore& params;
  Matmul& matmul;
  Arena& arena;
  const Batch& batch;
  uint64_t seed = 0;      // of dropout
  bool training = false;  // dropout on
  DType compute = DType::kF32;
  int adapter = 0;                                 // adapter whose LoRAs are used
  const std::vector<ParamId>* replaced = nullptr;  // [parameters] ids to use instead; null: none
  std::array<ConstMat, 2> rotary =
      {};  // RotaryTable of layers that see all tokens, and of local ones
  const RelativeContext* distances = nullptr;  // null: no relative positions
  const Decoding* decoding = nullptr;          // null: keys and values are not kept
  const SourceStates* states = nullptr;      // null: no encoder, or its keys and values are cached
  RowCoordinates coordinates = {};           // of the rows to process; empty: all rows of the batch
  absl::Span<const int32_t> sequences = {};  // where each sequence begins among these rows
  bool recompute = false;  // saves only the inputs of blocks; backward runs forward again: less
                           // memory, same bits
  // Unless null, called in the backward pass when the gradients of `layer` and all later ones are
  // complete. Never called if blocks are shared.
  const absl::FunctionRef<void(int layer)>* complete = nullptr;

  ParamId in_use(ParamId id) const {
    return replaced == nullptr || id >= static_cast<ParamId>(replaced->size()) ? id
                                                                               : (*replaced)[id];
  }
  ConstMat value(ParamId id) const { return params.value(in_use(id)); }
  // These functions accept -1, which means no parameter: they return false or null.
  bool requires_grad(ParamId id) const { return id >= 0 && params.param(id).grad_offset >= 0; }
  const float* vector(ParamId id) const { return id < 0 ? nullptr : value(id).f32(); }
  float* vector_grad(ParamId id) const {
    return id < 0 ? nullptr : static_cast<float*>(params.grad(id).data);
  }
  // Returns `count` adjacent weights [out, in], the first of which is `id`, as one matrix.
  Weight weight(ParamId id, int count = 1) const {
    ConstMat w = value(id);
    return {{w.data, w.rows * count, w.cols, w.stride, w.type}, params.version(in_use(id)),
        params.param(id).int8};
  }
  Mat weight_grad(ParamId id, int count = 1) const {
    Mat w = params.grad(id);
    return {w.data, w.rows * count, w.cols, w.stride, w.type};
  }

  // Returns the dropout with probability p at a site, a unique number in the model.
  DropoutSite Site(float p, uint32_t site) const {
    return {training ? p : 0, seed, site,
        coordinates.example == nullptr ? batch.coordinates() : coordinates};
  }
  Mat New(int64_t rows, int64_t cols) const { return arena.New(rows, cols, compute); }
  // Returns the first row of each sequence, [sequences + 1].
  absl::Span<const int32_t> cu_seqlens() const {
    return sequences.empty() ? absl::MakeConstSpan(batch.cu_seqlens) : sequences;
  }
  // Returns the same pass over another batch.
  Pass Over(const Batch& other) const;
};

// Numbers of dropout sites: four per block, and four before the first block for embeddings and
// head. Attention adds the number of the head below bit 12, LoRA that of the linear layer.
enum class DropoutKind : uint32_t {
  kEmbeddings = 0,
  kHeadInput = 1,
  kHeadOutput = 2,
  kAttention = 4,
  kAttentionOutput = 5,
  kFeedForwardOutput = 6,
  kLora = 7
};
inline uint32_t DropoutSiteId(DropoutKind kind, int block = 0) {
  const uint32_t number = static_cast<uint32_t>(kind) + 4 * static_cast<uint32_t>(block);
  return kind == DropoutKind::kAttention ? number : number << 12;
}

// The rows of a batch that have a target, or other chosen rows, packed and padded. After the last
// attention only the rows that targets need are computed, because no other hidden states are used.
// Its arrays belong to the arena of the pass.
class TargetRows {
 public:
  explicit TargetRows(const Pass& pass) : TargetRows(pass, pass.batch.rows) {}
  // `rows` ascend and must outlive this.
  TargetRows(const Pass& pass, absl::Span<const int32_t> rows);

  int64_t padded() const { return padded_; }
  // Returns the pass for modules that process only these rows.
  Pass Narrow(const Pass& pass) const;
  // Returns the target rows of x [padded_rows, n] as [padded(), n], padded with zeros.
  Mat Gather(const Pass& pass, ConstMat x) const;
  // Backward of Gather: overwrites dx [padded_rows, n], other rows with zeros.
  void Scatter(ConstMat dy, Mat dx) const { ScatterRows(dy, rows_, dx); }

 private:
  absl::Span<const int32_t> rows_;
  int64_t padded_;
  RowCoordinates coordinates_;       // [padded]
  std::vector<int32_t> cu_seqlens_;  // [sequences + 1] in these rows
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_PASS_H_
