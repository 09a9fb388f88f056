// Block, encoder and heads as their equations, with parameters by their names in the model folder.
// Forward only, S = double or Dual.
#ifndef CLOZE_TESTS_REFERENCE_MODEL_H_
#define CLOZE_TESTS_REFERENCE_MODEL_H_

#include <map>
#include <string>

#include "encoder/families/model_config.h"
#include "encoder/modules/block.h"
#include "encoder/modules/pass.h"
#include "tests/reference/reference.h"

namespace cloze::reference {

// A pass (encoder/modules/pass.h) over parameters that are tables.
template <typename S>
struct Model {
  const ModelConfig& config;
  const Batch& batch;
  std::map<std::string, Table<S>> params;
  uint64_t seed = 0;
  bool training = false;
  std::vector<float> weights = {};  // of labels
  double smoothing = 0;

  const Table<S>& matrix(const std::string& name) const { return params.at(name); }
  const std::vector<S>& vector(const std::string& name) const { return params.at(name).v; }
  bool pre() const { return config.pre_norm(); }

  DropoutSite Site(float p, DropoutKind kind, int block = 0) const {
    return {training ? p : 0, seed, DropoutSiteId(kind, block),
        {batch.row_examples.data(), batch.positions.data()}};
  }

  Table<S> Dense(const Table<S>& x, const std::string& name) const {
    return Linear(x, matrix(name + ".weight"), vector(name + ".bias"));
  }
  Table<S> LayerNorm(const Table<S>& x, const std::string& name) const {
    return Norm(x, vector(name + ".weight"), vector(name + ".bias"), config.norm.epsilon);
  }

  // Dropout(W_o concat(heads(x)) + b).
  Table<S> SelfAttention(const Table<S>& x, const std::string& layer, int block) const {
    const int64_t hidden = config.hidden;
    Table<S> qkv(x.rows, 3 * hidden);
    const char* names[] = {"query", "key", "value"};
    for (int part = 0; part < 3; ++part) {
      const Table<S> projected = Dense(x, layer + "attention.self." + names[part]);
      for (int64_t r = 0; r < x.rows; ++r) {
        for (int64_t c = 0; c < hidden; ++c) qkv(r, part * hidden + c) = projected(r, c);
      }
    }
    const Table<S> context = Attention(qkv, batch.cu_seqlens, config.heads,
        Site(config.attention.dropout, DropoutKind::kAttention, block));
    return Dropout(Dense(context, layer + "attention.output.dense"),
        Site(config.dropout, DropoutKind::kAttentionOutput, block));
  }

  // Dropout(W_2 act(W_1 x + b_1) + b_2).
  Table<S> FeedForward(const Table<S>& x, const std::string& layer, int block) const {
    const Table<S> act = Activation(config.mlp.activation, Dense(x, layer + "intermediate.dense"));
    return Dropout(Dense(act, layer + "output.dense"),
        Site(config.dropout, DropoutKind::kFeedForwardOutput, block));
  }

  Table<S> PostNormBlock(const Table<S>& x, int block) const {
    const std::string layer = "bert.encoder.layer." + std::to_string(block) + ".";
    const Table<S> y =
        LayerNorm(x + SelfAttention(x, layer, block), layer + "attention.output.LayerNorm");
    return LayerNorm(y + FeedForward(y, layer, block), layer + "output.LayerNorm");
  }
  Table<S> PreNormBlock(const Table<S>& x, int block) const {
    const std::string layer = "roberta_prelayernorm.encoder.layer." + std::to_string(block) + ".";
    const Table<S> y = x + SelfAttention(LayerNorm(x, layer + "attention.LayerNorm"), layer, block);
    return y + FeedForward(LayerNorm(y, layer + "intermediate.LayerNorm"), layer, block);
  }

  Table<S> Embeddings() const {
    const std::string name = std::string(pre() ? "roberta_prelayernorm." : "bert.") + "embeddings.";
    std::vector<int32_t> positions = batch.positions;
    for (int32_t& p : positions) p += config.positions.offset;
    const Table<S> sum = Embedding(matrix(name + "word_embeddings.weight"), batch.ids,
        matrix(name + "position_embeddings.weight"), positions,
        matrix(name + "token_type_embeddings.weight"), batch.types);
    return Dropout(
        LayerNorm(sum, name + "LayerNorm"), Site(config.dropout, DropoutKind::kEmbeddings));
  }

  // Last hidden states [padded_rows, hidden].
  Table<S> Encoder() const {
    Table<S> x = Embeddings();
    for (int i = 0; i < config.layers; ++i) x = pre() ? PreNormBlock(x, i) : PostNormBlock(x, i);
    return pre() ? LayerNorm(x, "roberta_prelayernorm.LayerNorm") : x;
  }

  // The hidden states of the targets: their rows, or the means of their pieces.
  Table<S> Targets(const Table<S>& hidden) const {
    return batch.averages() ? Average(Gather(hidden, batch.pieces), batch.piece_ends)
                            : Gather(hidden, batch.rows);
  }

  // Logits of the targets.
  Table<S> MaskedLmLogits(const Table<S>& hidden) const {
    const std::string name = pre() ? "lm_head." : "cls.predictions.",
                      transform = pre() ? "lm_head." : "cls.predictions.transform.";
    const ActivationKind kind = pre() ? ActivationKind::kGelu : config.mlp.activation;
    const Table<S> act = Activation(kind, Dense(Targets(hidden), transform + "dense"));
    const Table<S> h = LayerNorm(act, transform + (pre() ? "layer_norm" : "LayerNorm"));
    return Linear(h,
        matrix(std::string(pre() ? "roberta_prelayernorm" : "bert") +
               ".embeddings.word_embeddings.weight"),
        vector(name + "bias"));
  }
  Table<S> ClassifierLogits(const Table<S>& hidden) const {
    std::vector<uint64_t> examples;
    std::vector<int32_t> positions;
    for (const int32_t r : batch.rows)
      examples.push_back(batch.row_examples[r]), positions.push_back(batch.positions[r]);
    const auto drop = [&](const Table<S>& x, DropoutKind kind) {
      return Dropout(x, {training ? config.head_dropout() : 0, seed, DropoutSiteId(kind),
                            {examples.data(), positions.data()}});
    };
    const Table<S> h = Targets(hidden);
    if (!config.pooler) return Dense(drop(h, DropoutKind::kHeadOutput), "classifier");
    const Table<S> input = pre() ? drop(h, DropoutKind::kHeadInput) : h;
    const Table<S> pooled = Activation(
        ActivationKind::kTanh, Dense(input, pre() ? "classifier.dense" : "bert.pooler.dense"));
    return Dense(
        drop(pooled, DropoutKind::kHeadOutput), pre() ? "classifier.out_proj" : "classifier");
  }
  S Loss(const Table<S>& hidden) const {
    if (config.crf) {
      std::vector<int32_t> words(batch.sequences());  // of each sequence
      for (const int32_t r : batch.rows) {
        for (int64_t s = 0; s < batch.sequences(); ++s)
          words[s] += r >= batch.cu_seqlens[s] && r < batch.cu_seqlens[s + 1];
      }
      return CrfLoss(ClassifierLogits(hidden), words, batch.targets,
          vector("crf.start_transitions"), matrix("crf.transitions"),
          vector("crf.end_transitions"));
    }
    if (config.head == HeadKind::kMaskedLm)
      return CrossEntropy(MaskedLmLogits(hidden), batch.targets);
    const Table<S> logits = ClassifierLogits(hidden);
    if (config.problem_type == "multi_label_classification")
      return BinaryCrossEntropy(logits, batch.values);
    if (config.problem_type == "regression") return SquaredError(logits, batch.values);
    return WeightedCrossEntropy(logits, batch.targets, weights, smoothing);
  }
};

}  // namespace cloze::reference

#endif  // CLOZE_TESTS_REFERENCE_MODEL_H_
