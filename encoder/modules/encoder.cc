#include "encoder/modules/encoder.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "core/ops/embedding.h"
#include "core/ops/rotary.h"
#include "core/ops/rows.h"
#include "encoder/graph/ops.h"

namespace cloze {
namespace {

// The rows whose hidden states the targets need.
absl::Span<const int32_t> RowsOfTargets(const Batch& batch) {
  return batch.averages() ? batch.pieces : batch.rows;
}

// Return the rows of the position and the type table for the batch. With positions.after_pad,
// positions count no pad tokens, whose row is pad_id; a model with at most one type (RoBERTa) uses
// row 0.
std::vector<int32_t> PositionRows(const Architecture& config, const Pass& pass) {
  const Batch& b = pass.batch;
  std::vector<int32_t> rows = b.positions;
  for (int32_t& row : rows) row += config.positions.offset;
  if (!config.positions.after_pad) return rows;
  for (int64_t s = 0; s < b.sequences(); ++s) {
    int32_t pads = 0;
    for (int64_t r = b.cu_seqlens[s]; r < b.cu_seqlens[s + 1]; ++r) {
      const bool pad = b.ids[r] == config.pad_id;
      rows[r] = pad ? config.pad_id : rows[r] - pads;
      pads += pad;
    }
  }
  return rows;
}

std::vector<int32_t> TypeRows(const Architecture& config, const Pass& pass) {
  if (config.embeddings.token_types > 1) return pass.batch.types;
  return std::vector<int32_t>(pass.batch.types.size());
}

// Return these rows in an export: positions [S] or, with positions.after_pad, [B, S]; types
// [B, S].
Value PositionRows(const Architecture& config, const GraphPass& pass) {
  OnnxGraph& graph = pass.graph;
  if (!config.positions.after_pad)
    return graph.Add("Add", {pass.positions, graph.Integer(config.positions.offset)});
  const Value pad = graph.Integer(config.pad_id),
              token = graph.Add("Not", {graph.Add("Equal", {pass.ids, pad})}),
              one = graph.Add("Cast", {token}, {{"to", int64_t{7}}}),  // int64
      count = graph.Add("CumSum", {one, graph.Integer(1)});
  return graph.Add("Add", {graph.Add("Mul", {count, one}), pad});
}

Value TypeRows(const Architecture& config, const GraphPass& pass) {
  if (config.embeddings.token_types > 1) return pass.types;
  return pass.graph.Add("Mul", {pass.ids, pass.graph.Integer(0)});
}

}  // namespace

Encoder::Encoder(ParamStore* store, const ModelShape& config, ModuleKeys keys)
    : config_(config), pre_(config.pre_norm()),
      pool_(TypeOf(config.head).per_text ? config.pooling : Pool::kClass) {
  const int64_t embedding = config.embedding_size();
  const auto table = [&](Role role, int64_t rows) {
    return store->AddMatrix(KeyOf(keys(role, -1), ParamKind::kWeight), rows, embedding);
  };
  words_ = table(Role::kWordEmbeddings, config.vocab);
  store->Edit(words_).sparse = true;
  if (config.positions.has_table())
    positions_ = table(Role::kPositionEmbeddings, config.positions.count);
  relative_ = RelativeEmbedding(store, config, keys);
  if (config.embeddings.token_types > 0)
    types_ = table(Role::kTokenTypeEmbeddings, config.embeddings.token_types);
  const auto norm = [&](const ParamKey& module, int64_t size) {
    return Norm(store, module, size, config.norm.epsilon, config.norm.biases);
  };
  if (config.embeddings.norm) embedding_norm_ = norm(keys(Role::kEmbeddingsNorm, -1), embedding);
  if (config.projects_embeddings()) {
    projection_ = Linear(store, {keys(Role::kEmbeddingsProjection, -1)}, embedding, config.hidden);
  }
  if (config.norm.place == NormPlace::kBefore)
    first_norm_ = norm(keys(Role::kAttentionNorm, 0), config.hidden);
  for (int i = 0; i < config.layers; ++i) blocks_.emplace_back(store, config, keys, i);
}

void Encoder::AddLora(ParamStore* store, const LoraPlan& plan) {
  for (Block& block : blocks_) block.AddLora(store, plan);
}

int Encoder::LowestTrainable(const Pass& pass) const {
  const bool tables =
      pass.requires_grad(words_) || pass.requires_grad(positions_) || pass.requires_grad(types_);
  if (tables || relative_.requires_grad(pass) || embedding_norm_.requires_grad(pass) ||
      projection_.requires_grad(pass) || first_norm_.requires_grad(pass))
    return -1;
  return absl::c_find_if(blocks_, [&](const Block& b) { return b.requires_grad(pass); }) -
         blocks_.begin();
}

Pass Encoder::WithPositions(const Pass& pass, bool training, RelativeContext* distances) const {
  Pass with = pass;
  if (!relative_.empty()) {
    *distances = relative_.Forward(pass, training);
    with.distances = distances;
  }
  if (config_.positions.kind != Positions::kRotary) return with;
  const auto& positions = pass.batch.positions;
  const int64_t count = positions.empty() ? 1 : *absl::c_max_element(positions) + 1,
                dim = config_.hidden / config_.heads;
  with.rotary[0] = RotaryTable(count, dim, config_.positions.rotary_base[0], pass.arena);
  if (!config_.attention.local.empty())
    with.rotary[1] = RotaryTable(count, dim, config_.positions.rotary_base[1], pass.arena);
  return with;
}

std::vector<RowRange> Encoder::Ranges(const Batch& batch) const {
  std::vector<RowRange> ranges;
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    if (pool_ != Pool::kClass) {
      const auto end = absl::c_upper_bound(batch.cu_seqlens, batch.rows[i]);
      ranges.push_back({*(end - 1), *end});
    } else {
      ranges.push_back({i > 0 ? batch.piece_ends[i - 1] : 0, batch.piece_ends[i]});
    }
  }
  return ranges;
}

Mat Encoder::Pooled(const Pass& pass, Mat y, int32_t** largest) const {
  const Pool pool = PoolOf(pass.batch);
  if (pool == Pool::kClass) return y;
  const Mat pooled = pass.New(PaddedRows(pass.batch.rows.size()), y.cols);
  if (pool == Pool::kMax) {
    *largest = pass.arena.NewArray<int32_t>(pooled.rows * pooled.cols);
    MaxRows(y, Ranges(pass.batch), pooled, *largest);
  } else {
    AverageRows(y, Ranges(pass.batch), pass.arena, pooled);
  }
  return pooled;
}

BlockState Encoder::NewState(const Pass& pass, int64_t rows) const {
  BlockState state;
  state.y = pass.New(rows, config_.hidden);
  state.residual = pre_ ? pass.New(rows, config_.hidden) : state.y;
  return state;
}

void Encoder::Embed(const Pass& pass, const BlockState& out, Saved* saved) const {
  const Batch& b = pass.batch;
  Mat z = pass.New(out.y.rows, config_.embedding_size());
  const auto table = [&](ParamId id) { return id < 0 ? ConstMat() : pass.value(id); };
  const bool scaled = config_.embeddings.scale != 1;
  EmbeddingForward(table(words_), b.ids.data(), scaled ? ConstMat() : table(positions_),
      PositionRows(config_, pass).data(), table(types_), TypeRows(config_, pass).data(), z);
  if (scaled) {
    const Mat positions = pass.New(z.rows, z.cols);
    EmbeddingForward(
        table(positions_), PositionRows(config_, pass).data(), {}, nullptr, {}, nullptr, positions);
    Axpby(1, positions, config_.embeddings.scale, z);
  }
  const bool projects = config_.projects_embeddings();
  saved->embedded = projects ? pass.New(z.rows, z.cols) : out.residual;
  const DropoutSite dropout = pass.Site(config_.dropout, DropoutSiteId(DropoutKind::kEmbeddings));
  if (embedding_norm_.empty()) {
    Dropout(z, dropout, saved->embedded);
  } else {
    saved->embeddings = embedding_norm_.Forward(pass, {}, z, {}, dropout, z, saved->embedded);
  }
  if (projects) projection_.Forward(pass, saved->embedded, out.residual);
  if (config_.norm.place == NormPlace::kBefore)
    saved->first = first_norm_.Forward(pass, {}, out.residual, {}, {}, out.residual, out.y);
  if (config_.norm.place == NormPlace::kBeforeExceptFirst) Axpby(1, out.residual, 0, out.y);
}

BlockState Encoder::RunBlocks(const Pass& pass, int count, const std::optional<TargetRows>& targets,
    Observer observe, const std::vector<float*>& probs) const {
  const int64_t rows = pass.batch.padded_rows();
  BlockState state = NewState(pass, rows), next = count > 0 ? NewState(pass, rows) : BlockState();
  const Arena::Mark mark = pass.arena.mark();
  Saved unused;
  Embed(pass, state, &unused);
  pass.arena.Rewind(mark);
  observe(0, state.residual);
  for (int i = 0; i < count; ++i) {
    const std::optional<TargetRows> narrow = TargetsOf(i, targets);
    if (narrow.has_value())
      next = {Rows(next.y, 0, narrow->padded()), Rows(next.residual, 0, narrow->padded())};
    blocks_[i].Forward(pass, state, next, narrow, probs.empty() ? nullptr : probs[i]);
    pass.arena.Rewind(mark);
    std::swap(state, next);
    observe(i + 1, i + 1 == config_.layers ? state.y : state.residual);
  }
  return state;
}

Encoder::Saved Encoder::Forward(const Pass& given) const {
  Saved saved;
  const Pass pass = WithPositions(given, true, &saved.distances);
  saved.rotary = pass.rotary;
  saved.lowest = LowestTrainable(pass);
  saved.targets.emplace(pass, RowsOfTargets(pass.batch));
  BlockState state;
  if (saved.lowest < 0) {
    state = NewState(pass, pass.batch.padded_rows());
    Embed(pass, state, &saved);
  } else {
    state = RunBlocks(pass, saved.lowest, saved.targets, [](int, ConstMat) {});
  }
  for (int i = std::max(saved.lowest, 0); i < config_.layers; ++i) {
    const std::optional<TargetRows> narrow = TargetsOf(i, saved.targets);
    const BlockState next = NewState(pass, narrow.has_value() ? narrow->padded() : state.y.rows);
    const Arena::Mark mark = pass.arena.mark();
    const Block::Saved block = blocks_[i].Forward(pass, state, next, narrow);
    if (pass.recompute) {
      pass.arena.Rewind(mark);
      saved.states.push_back(state);
    } else {
      saved.blocks.push_back(block);
    }
    state = next;
  }
  if (pass.recompute) saved.states.push_back(state);
  saved.y = Pooled(pass, state.y, &saved.largest);
  return saved;
}

Mat Encoder::Infer(const Pass& pass) const {
  const TargetRows targets(pass, RowsOfTargets(pass.batch));
  RelativeContext distances;
  const Pass with = WithPositions(pass, false, &distances);
  int32_t* largest = nullptr;
  return Pooled(pass, RunBlocks(with, config_.layers, targets, [](int, ConstMat) {}).y, &largest);
}

void Encoder::Observe(const Pass& pass, Observer observe, const std::vector<float*>& probs) const {
  RelativeContext distances;
  RunBlocks(WithPositions(pass, false, &distances), config_.layers, {}, observe, probs);
}

void Encoder::Backward(const Pass& given, const Saved& saved, Mat dy) const {
  Pass pass = given;
  pass.rotary = saved.rotary;
  if (!relative_.empty()) pass.distances = &saved.distances;
  const Arena::Mark mark = pass.arena.mark();
  if (const Pool pool = PoolOf(pass.batch); pool != Pool::kClass) {
    const Mat all = pass.New(
        pool_ != Pool::kClass ? pass.batch.padded_rows() : saved.targets->padded(), dy.cols);
    if (pool == Pool::kMax) {
      MaxRowsBackward(dy, saved.largest, std::ssize(pass.batch.rows), all);
    } else {
      AverageRowsBackward(dy, Ranges(pass.batch), all);
    }
    dy = all;
  }
  BlockState d = {dy, dy};
  if (pre_) d.residual = pass.arena.NewZero(dy.rows, dy.cols, pass.compute);
  const int first = std::max(saved.lowest, 0);
  for (int i = config_.layers - 1; i >= first; --i) {
    const bool need_dx = i > saved.lowest;
    const std::optional<TargetRows> narrow = TargetsOf(i, saved.targets);
    const BlockState d_in = !need_dx             ? BlockState()
                            : narrow.has_value() ? NewState(pass, pass.batch.padded_rows())
                                                 : d;
    const Arena::Mark block = pass.arena.mark();
    const int at = i - first;
    // Forward again writes the same bits to the next state.
    const Block::Saved s =
        pass.recompute ? blocks_[i].Forward(pass, saved.states[at], saved.states[at + 1], narrow)
                       : saved.blocks[at];
    blocks_[i].Backward(pass, s, d, d_in);
    // In a pre-norm model block i gives the norm at the start of block i + 1 its gradients.
    if (pass.complete != nullptr && config_.sharing.groups == 0) (*pass.complete)(pre_ ? i + 1 : i);
    pass.arena.Rewind(block);
    d = d_in;
  }
  if (saved.lowest < 0) EmbeddingsBackward(pass, saved, d);
  relative_.Backward(pass, saved.distances);
  pass.arena.Rewind(mark);
}

void Encoder::EmbeddingsBackward(const Pass& pass, const Saved& saved, const BlockState& d) const {
  if (config_.norm.place == NormPlace::kBefore)
    first_norm_.Backward(pass, saved.first, d.y, d.residual, {}, {}, nullptr, d.y, {});
  if (config_.norm.place == NormPlace::kBeforeExceptFirst) Axpby(1, d.residual, 1, d.y);
  const DropoutSite dropout = pass.Site(config_.dropout, DropoutSiteId(DropoutKind::kEmbeddings));
  Mat dz = d.y;
  if (config_.projects_embeddings()) {
    dz = pass.New(d.y.rows, config_.embedding_size());
    AddColumnSums(d.y, pass.arena, projection_.bias_grad(pass));
    projection_.Backward(pass, saved.embedded, d.y, dz);
  }
  if (embedding_norm_.empty()) {
    Dropout(dz, dropout, dz);
  } else {
    embedding_norm_.Backward(pass, saved.embeddings, dz, {}, {}, dropout, nullptr, dz, {});
  }
  const Batch& b = pass.batch;
  if (types_ >= 0)
    EmbeddingBackward(
        dz, TypeRows(config_, pass).data(), b.tokens(), pass.arena, pass.params.grad(types_));
  const auto to_positions = [&] {
    if (positions_ < 0) return;
    EmbeddingBackward(dz, PositionRows(config_, pass).data(), b.tokens(), pass.arena,
        pass.params.grad(positions_));
  };
  // As in PyTorch, the word embedding of padding gets no gradient, and neither does its position.
  const bool after_pad = config_.positions.after_pad;
  if (!after_pad) to_positions();
  if (config_.embeddings.scale != 1) Axpby(config_.embeddings.scale, dz, 0, dz);
  for (int64_t r = 0; (after_pad || config_.attention.cross) && r < b.tokens(); ++r)
    if (b.ids[r] == config_.pad_id) ZeroRowsFrom(Rows(dz, r, 1), 0);
  if (after_pad) to_positions();
  EmbeddingBackward(dz, b.ids.data(), b.tokens(), pass.arena, pass.params.grad(words_));
}

BlockValues Encoder::Embed(const GraphPass& pass) const {
  OnnxGraph& graph = pass.graph;
  const int64_t size = config_.embedding_size();
  const auto gather = [&](ParamId table, const Value& rows) {
    return graph.Add("Gather", {pass.value(table), rows});
  };
  Value x = gather(words_, pass.ids);
  if (types_ >= 0) x = graph.Add("Add", {x, gather(types_, TypeRows(config_, pass))});
  if (positions_ >= 0) {
    const Value positions = gather(positions_, PositionRows(config_, pass));
    if (!config_.positions.after_pad) graph.DeclareShape(positions, {kSequenceLength, size});
    x = graph.Add("Add", {x, positions});
  }
  x = embedding_norm_.Export(pass, x, "embeddings");
  graph.DeclareShape(x, {kBatchSize, kSequenceLength, size});
  if (config_.projects_embeddings()) x = projection_.Export(pass, x);
  return {first_norm_.empty() ? x : first_norm_.Export(pass, x), x};
}

Value Encoder::Export(const GraphPass& pass) const {
  GraphPass with = pass;
  if (!relative_.empty()) with.relative = &relative_;
  BlockValues state = Embed(with);
  for (const Block& block : blocks_) state = block.Export(with, state);
  if (!TypeOf(config_.head).per_text) return state.y;
  switch (pool_) {
    case Pool::kClass: return AddFirst(pass.graph, state.y);
    case Pool::kMean: return AddMean(pass.graph, state.y, pass.tokens);
    case Pool::kMax: return AddMax(pass.graph, state.y, pass.mask);
  }
  CLOZE_CHECK(false);
}

}  // namespace cloze
