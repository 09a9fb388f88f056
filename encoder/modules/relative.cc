#include "encoder/modules/relative.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/ops/rows.h"
#include "encoder/graph/ops.h"

namespace cloze {
namespace {

// T5's buckets (Raffel et al. 2020): exact up to a quarter of them, logarithmic up to 128, the
// upper half for keys after the query. In f32, as transformers does.
int32_t BiasBucket(int32_t buckets, int64_t distance) {
  const int32_t half = buckets / 2, exact = half / 2, after = distance < 0 ? half : 0;
  const int64_t size = std::abs(distance);
  if (size < exact) return after + static_cast<int32_t>(size);
  const float part = std::log(static_cast<float>(size) / static_cast<float>(exact)) /
                     static_cast<float>(std::log(128.0 / exact));
  const auto large = static_cast<int32_t>(part * static_cast<float>(half - exact));
  return after + std::min(exact + large, half - 1);
}

// DeBERTa-v2's: exact up to half of the span, then logarithmic, in f32.
int32_t VectorBucket(const RelativeConfig& c, int64_t distance) {
  const int32_t middle = c.span / 2;
  const int64_t size = std::abs(distance);
  int64_t bucket = distance;
  if (c.furthest > 0 && size > middle) {
    const float part = std::log(static_cast<float>(size) / static_cast<float>(middle)) /
                       std::log(static_cast<float>((c.furthest - 1.0) / middle));
    const float large = std::ceil(part * static_cast<float>(middle - 1)) + middle;
    bucket = static_cast<int64_t>(distance < 0 ? -large : large);
  }
  return static_cast<int32_t>(std::clamp<int64_t>(bucket + c.span, 0, 2 * c.span - 1));
}

}  // namespace

int32_t BucketOf(const RelativeConfig& config, int64_t distance) {
  return config.buckets > 0 ? BiasBucket(config.buckets, distance) : VectorBucket(config, distance);
}

RelativeEmbedding::RelativeEmbedding(ParamStore* store, const Architecture& config, ModuleKeys keys)
    : config_(config.relative), max_positions_(config.positions.count) {
  if (!config_.any()) return;
  const ParamKey key = KeyOf(keys(Role::kRelativePositions, -1), ParamKind::kWeight);
  table_ = config_.buckets > 0 ? store->AddMatrix(key, config_.buckets, config.heads)
                               : store->AddMatrix(key, 2 * config_.span, config.hidden);
  if (config_.norm)
    norm_ = Norm(store, keys(Role::kRelativeNorm, -1), config.hidden, config.norm.epsilon, true);
}

RelativeContext RelativeEmbedding::Forward(const Pass& pass, bool training) const {
  const Batch& batch = pass.batch;
  int64_t longest = 1;
  for (int64_t s = 0; s < batch.sequences(); ++s)
    longest = std::max<int64_t>(longest, batch.cu_seqlens[s + 1] - batch.cu_seqlens[s]);
  RelativeContext d;
  for (int64_t distance = 1 - longest; distance < longest; ++distance)
    d.rows.push_back(BucketOf(config_, distance));
  const ConstMat table = pass.value(table_);
  if (config_.buckets > 0) {
    d.bias = table;
    d.dbias = pass.params.grad(table_);
    return d;
  }
  // Buckets ascend with the distance. Most batches have the same number of rows after rounding up.
  const int64_t count = std::min(table.rows, PaddedRows(d.rows.back() - d.rows.front() + 1));
  d.first = std::min<int64_t>(d.rows.front(), table.rows - count);
  for (int32_t& row : d.rows) row -= static_cast<int32_t>(d.first);
  d.examples.assign(count, batch.row_examples.empty() ? 0 : ~batch.row_examples.front());
  for (int64_t i = 0; i < count; ++i) d.positions.push_back(static_cast<int32_t>(d.first + i));
  const ConstMat used = Rows(table, d.first, count);
  const auto matrix = [&](DType type) { return pass.arena.New(count, table.cols, type); };
  Mat y = matrix(DType::kF32);
  if (config_.norm) {
    d.norm = norm_.Forward(pass, {}, used, {}, {}, matrix(DType::kF32), y);
  } else {
    Axpby(1, used, 0, y);
  }
  d.vectors = y;
  if (pass.compute != DType::kF32) {
    const Mat narrow = matrix(pass.compute);
    Convert(y, narrow);
    d.vectors = narrow;
  }
  if (training && requires_grad(pass))
    d.dvectors = pass.arena.NewZero(count, table.cols, DType::kF32);
  return d;
}

void RelativeEmbedding::Backward(const Pass& pass, const RelativeContext& d) const {
  if (d.dvectors.empty()) return;
  if (config_.norm) norm_.Backward(pass, d.norm, d.dvectors, {}, {}, {}, nullptr, d.dvectors, {});
  if (const Mat grad = pass.params.grad(table_); !grad.empty())
    Axpby(1, d.dvectors, 1, Rows(grad, d.first, d.dvectors.rows));
}

RelativeValues RelativeEmbedding::Export(const GraphPass& pass) const {
  OnnxGraph& graph = pass.graph;
  const Value rows = graph.Once("relative_rows", [&] {
    std::vector<int64_t> buckets;
    const int64_t furthest = max_positions_ - 1;
    for (int64_t distance = -furthest; distance <= furthest; ++distance)
      buckets.push_back(BucketOf(config_, distance));
    const Value all = graph.List("rows_of_distances", buckets),
                distances = AddDistances(graph, pass.positions);
    return graph.Add("Gather", {all, graph.Add("Add", {distances, graph.Integer(furthest)})});
  });
  const Value table = graph.Once("relative_table", [&] {
    const Value all = pass.value(table_);
    if (config_.buckets > 0) return graph.Transpose(graph.Add("Gather", {all, rows}), {2, 0, 1});
    return config_.norm ? norm_.Export(pass, all) : all;
  });
  return {rows, table};
}

RelativeProjection::RelativeProjection(
    ParamStore* store, const Architecture& config, ModuleKeys keys, int block)
    : config_(config.relative), hidden_(config.hidden), heads_(config.heads), block_(block),
      dropout_(config.dropout) {
  if (config_.span == 0 || config_.shared) return;
  std::vector<ParamKey> modules;
  if (config_.key_terms) modules.push_back(keys(Role::kPositionQuery, block));
  if (config_.query_terms) modules.push_back(keys(Role::kPositionKey, block));
  own_ = Linear(store, modules, hidden_, hidden_, true);
}

template <typename M>
std::pair<M, M> RelativeProjection::Parts(const M& projected) const {
  const int64_t key = config_.shared || config_.key_terms ? hidden_ : 0;
  return {config_.query_terms ? M(Columns(projected, key, hidden_)) : M(),
      config_.key_terms ? M(Columns(projected, 0, hidden_)) : M()};
}

// This site number lies between those of the attention's output and of the MLP, and is free.
DropoutSite RelativeProjection::Site(const Pass& narrow) const {
  return narrow.Site(dropout_, DropoutSiteId(DropoutKind::kAttentionOutput, block_) + 1);
}

RelativeProjection::Saved RelativeProjection::Forward(const Pass& pass, const Linear& qkv) const {
  const ConstMat vectors = pass.distances->vectors;
  Saved s = {vectors, {}};
  if (vectors.empty()) return s;
  const Pass narrow = pass.distances->Narrow(pass);
  if (const DropoutSite site = Site(narrow); site.p > 0) {
    const Mat dropped = pass.New(vectors.rows, vectors.cols);
    Dropout(vectors, site, dropped);
    s.vectors = dropped;
  }
  s.projected = pass.New(vectors.rows, layer(qkv).out());
  layer(qkv).Forward(narrow, s.vectors, s.projected);
  return s;
}

RelativePositions RelativeProjection::Terms(const Pass& pass, const Saved& s) const {
  RelativePositions terms = {.rows = pass.distances->rows, .bias = pass.distances->bias};
  if (!s.vectors.empty()) std::tie(terms.keys, terms.queries) = Parts(ConstMat(s.projected));
  return terms;
}

RelativeGrads RelativeProjection::NewGrads(
    const Pass& pass, const Saved& s, Mat* dprojected) const {
  RelativeGrads grads = {.bias = pass.distances->dbias};
  if (s.vectors.empty()) return grads;
  *dprojected = pass.arena.NewZero(s.projected.rows, s.projected.cols, pass.compute);
  std::tie(grads.keys, grads.queries) = Parts(*dprojected);
  return grads;
}

void RelativeProjection::Backward(
    const Pass& pass, const Linear& qkv, const Saved& s, ConstMat dprojected) const {
  if (s.vectors.empty()) return;
  const RelativeContext& d = *pass.distances;
  const Pass narrow = d.Narrow(pass);
  AddColumnSums(dprojected, pass.arena, layer(qkv).bias_grad(pass));
  const Mat dx = d.dvectors.empty() ? Mat() : pass.New(s.vectors.rows, hidden_);
  layer(qkv).Backward(narrow, s.vectors, dprojected, dx);
  if (dx.empty()) return;
  Dropout(dx, Site(narrow), dx);
  const Mat wide = pass.arena.New(dx.rows, hidden_, DType::kF32);
  Convert(dx, wide);
  Axpby(1, wide, 1, d.dvectors);
}

Value RelativeProjection::Export(
    const GraphPass& pass, const Linear& qkv, const Value& q, const Value& k) const {
  OnnxGraph& graph = pass.graph;
  const int64_t dim = hidden_ / heads_;
  const Value products = graph.Add("MatMul", {q, k});
  const RelativeValues distances = config_.any() ? pass.relative->Export(pass) : RelativeValues();
  // Multiplies x [B, heads, S, dim] by all vectors, projected by a module of the layer, and picks
  // for each pair of tokens the product with the vector of their distance.
  const auto picked = [&](const Value& x, int module, const Value& rows) {
    const Value vectors = layer(qkv).Export(pass, distances.table, module),
                split = graph.Transpose(graph.Reshape(vectors, {0, heads_, dim}), {1, 2, 0}),
                all = graph.Add("MatMul", {x, split}),
                pairs = graph.Add("Expand", {rows, graph.Add("Shape", {products})});
    return graph.Add("GatherElements", {all, pairs}, {{"axis", int64_t{-1}}});
  };
  Value sum = products;
  if (config_.query_terms) {
    const int key = config_.shared || config_.key_terms ? 1 : 0;
    sum = graph.Add("Add", {sum, picked(q, key, distances.rows)});
  }
  if (config_.key_terms) {
    const Value keys = graph.Transpose(k, {0, 1, 3, 2}),
                term = picked(keys, 0, graph.Add("Transpose", {distances.rows}));
    sum = graph.Add("Add", {sum, graph.Transpose(term, {0, 1, 3, 2})});
  }
  const int64_t terms = 1 + config_.query_terms + config_.key_terms;
  const float scale = std::sqrt(static_cast<float>(terms * dim));
  const Value scores = graph.Add("Div", {sum, graph.Float(scale)});
  return config_.buckets > 0 ? graph.Add("Add", {scores, distances.table}) : scores;
}

}  // namespace cloze
