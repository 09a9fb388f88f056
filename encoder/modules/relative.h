// Relative positions: parameters of distances between tokens, shared by the attention of all
// blocks.
#ifndef CLOZE_ENCODER_MODULES_RELATIVE_H_
#define CLOZE_ENCODER_MODULES_RELATIVE_H_

#include <utility>
#include <vector>

#include "core/ops/relative.h"
#include "encoder/modules/architecture.h"
#include "encoder/modules/layers.h"

namespace cloze {

// The distances of one pass.
struct RelativeContext {
  std::vector<int32_t> rows;       // see RelativePositions
  ConstMat bias;                   // f32 [buckets, heads], or empty
  ConstMat vectors;                // [n, hidden] of the compute type, or empty
  Mat dbias, dvectors;             // f32, accumulate; empty: not computed
  int64_t first = 0;               // row of the table that is vectors[0]
  Norm::Saved norm;                // of the vectors
  std::vector<uint64_t> examples;  // [n] with `positions`, coordinates of the vectors for dropout;
                                   // they depend on the batch's first example
  std::vector<int32_t> positions;  // [n] rows of the table

  // Returns the pass for modules that process the vectors.
  Pass Narrow(const Pass& pass) const {
    Pass narrow = pass;
    narrow.coordinates = {examples.data(), positions.data()};
    return narrow;
  }
};

// The distances of an export: the row of the table for query i and key j [S, S], and the biases
// [heads, S, S] or all vectors [2 span, hidden].
struct RelativeValues {
  Value rows, table;
};

// Returns the bucket of a distance, query - key: a row of the table.
int32_t BucketOf(const RelativeConfig& config, int64_t distance);

// The table by bucket: biases [buckets, heads], or vectors [2 k, hidden] with a norm. Empty in
// models without relative positions.
class RelativeEmbedding {
 public:
  RelativeEmbedding() = default;
  RelativeEmbedding(ParamStore* store, const Architecture& config, ModuleKeys keys);

  bool empty() const { return table_ < 0; }
  bool requires_grad(const Pass& pass) const {
    return pass.requires_grad(table_) || norm_.requires_grad(pass);
  }

  // Requires a table. `training`: allocates dvectors.
  RelativeContext Forward(const Pass& pass, bool training) const;
  // Adds to the gradients of the parameters; overwrites dvectors.
  void Backward(const Pass& pass, const RelativeContext& distances) const;
  // Adds nodes in the first call only.
  RelativeValues Export(const GraphPass& pass) const;

 private:
  RelativeConfig config_;
  int64_t max_positions_ = 0;
  ParamId table_ = -1;
  Norm norm_;
};

// The distance terms of one block: projects the vectors as queries and keys, with dropout.
class RelativeProjection {
 public:
  struct Saved {
    ConstMat vectors;  // [n, hidden] after dropout; or empty
    Mat projected;     // [n, modules hidden] for the modules of the layer
  };

  RelativeProjection() = default;
  // Adds the block's own layers for distances, unless the model shares those of tokens.
  RelativeProjection(ParamStore* store, const Architecture& config, ModuleKeys keys, int block);

  bool requires_grad(const Pass& pass) const { return own_.requires_grad(pass); }

  // qkv: the block's layer of queries, keys and values. Requires Pass::distances.
  Saved Forward(const Pass& pass, const Linear& qkv) const;
  // Returns what attention adds to the scores.
  RelativePositions Terms(const Pass& pass, const Saved& saved) const;
  // Returns the gradients that attention writes: that of the bias, and views of *dprojected, which
  // this allocates and sets to zero.
  RelativeGrads NewGrads(const Pass& pass, const Saved& saved, Mat* dprojected) const;
  // Adds to the gradients of the layer that projects the vectors, and to dvectors.
  void Backward(const Pass& pass, const Linear& qkv, const Saved& saved, ConstMat dprojected) const;
  // q [B, heads, S, dim], k [B, heads, dim, S]. Returns the scores [B, heads, S, S] of attention,
  // see RelativePositions; without relative positions, q k / sqrt(dim).
  Value Export(const GraphPass& pass, const Linear& qkv, const Value& q, const Value& k) const;

 private:
  const Linear& layer(const Linear& qkv) const { return config_.shared ? qkv : own_; }
  // Returns the parts of `projected` for the products with queries and with keys.
  template <typename M>
  std::pair<M, M> Parts(const M& projected) const;
  DropoutSite Site(const Pass& narrow) const;

  RelativeConfig config_;
  int64_t hidden_ = 0, heads_ = 0;
  int block_ = 0;
  float dropout_ = 0;
  Linear own_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_RELATIVE_H_
