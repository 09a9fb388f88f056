#include "core/vectors/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/base/threads.h"
#include "core/ops/kernels/kernels.h"

namespace cloze {
namespace {

constexpr int64_t kMaxChunks = 16, kChunkWords = 64;
// Mean number of updates of an output row in a batch; with more, training diverges.
constexpr double kMaxUpdates = 64;
constexpr int64_t kParts = 16;  // of a table's rows, by row modulo this, each updated by one task

enum Stream : uint32_t { kWords, kTargets, kTable };

// Updates of a table by one chunk.
using Updates = std::array<std::vector<RowUpdate>, kParts>;

void Add(Updates* updates, RowUpdate update) { (*updates)[update.row % kParts].push_back(update); }

}  // namespace

// Words of a sentence that were kept, with what they contribute. Matrices are [kept, stride].
struct VectorTrainer::Chunk {
  struct Word {
    int32_t id;
    int32_t reach;       // words on each side
    int64_t place;       // in the text of all epochs
    int32_t begin, end;  // of its sentence, in `words`
  };
  int64_t sentence = 0;     // that of the next word
  int64_t at = 0, end = 0;  // the next word of the text, and the end of the chunk's share
  std::vector<Word> words;
  std::vector<float> sums;       // of the rows of each word
  std::vector<float> hidden;     // of each word as the centre of a window
  std::vector<float> gradients;  // of `sums`
  std::vector<float> scratch, factors;
  std::vector<int32_t> rows;
  Updates input, output;
  int64_t read = 0;  // words of the text, kept or not
  int64_t targets = 0;
  double loss = 0;
};

struct VectorTrainer::Source {
  const Philox& philox;
  const uint64_t place;
  Philox::Words block = {};
  uint32_t count = 0;
  uint32_t Next() {
    if (count % 4 == 0) block = philox(place, count / 4, kTargets);
    return block[count++ % 4];
  }
};

WordSampler::WordSampler(const std::vector<int64_t>& counts)
    : share_(counts.size(), 1), other_(counts.size()) {
  const auto n = static_cast<int32_t>(counts.size());
  std::vector<double> weight(n);  // 1 in the mean
  for (int32_t i = 0; i < n; ++i) weight[i] = std::sqrt(static_cast<double>(counts[i]));
  const double mean = std::accumulate(weight.begin(), weight.end(), 0.0) / n;
  std::vector<int32_t> small, large;
  for (int32_t i = 0; i < n; ++i) ((weight[i] /= mean) < 1 ? small : large).push_back(i);
  while (!small.empty() && !large.empty()) {
    const int32_t i = small.back(), j = large.back();
    small.pop_back();
    share_[i] = static_cast<float>(weight[i]);
    other_[i] = j;
    if ((weight[j] -= 1 - weight[i]) >= 1) continue;
    large.pop_back();
    small.push_back(j);
  }
}

VectorTrainer::~VectorTrainer() = default;

VectorTrainer::VectorTrainer(const Corpus& corpus, const VectorOptions& options)
    : corpus_(corpus), options_(options), subwords_(corpus.words, options.subwords),
      philox_(options.seed, Purpose::kWordVectors), stride_(RoundUp(options.dim, 16)),
      input_(subwords_.rows() * stride_ * 4), output_(std::ssize(corpus.words) * stride_ * 4),
      negatives_(corpus.counts) {
  InitializeTables();
  PlanBatches();
}

// Limits the updates of the most frequent word in a batch, because updates of one batch do not see
// each other.
void VectorTrainer::PlanBatches() {
  const auto total = static_cast<double>(corpus_.text.size());
  double kept = 0, roots = 0, most = 0;
  for (const int64_t count : corpus_.counts) {
    const double ratio = options_.subsample * total / static_cast<double>(count);
    keep_.push_back(
        options_.subsample > 0 ? static_cast<float>(std::min(std::sqrt(ratio) + ratio, 1.0)) : 1);
    kept += static_cast<double>(count) * keep_.back();
    roots += std::sqrt(count);
  }
  // A word is a neighbour of window + 1 words in the mean. Its input rows receive a gradient from
  // each of them, its output row one update as a target or negative of a window.
  const double windows = options_.window + 1, targets = options_.cbow ? 1 : windows;
  for (size_t i = 0; i < keep_.size(); ++i) {
    const auto count = static_cast<double>(corpus_.counts[i]);
    const double share = count * keep_[i] / kept,
                 negatives = options_.negatives * std::sqrt(count) / roots;
    most = std::max(
        {most, targets * (share + negatives), share * windows * (1 + options_.negatives) / 2});
  }
  const double words = kMaxUpdates / most * total / kept;
  batch_words_ = std::clamp<int64_t>(std::llround(words), 8, kMaxChunks * kChunkWords);
  chunks_.resize(CeilDiv(batch_words_, kChunkWords));
}

// Input rows start uniform in +-1 / dim, output rows at 0.
void VectorTrainer::InitializeTables() {
  ParallelFor(subwords_.rows(), [&](int64_t row) {
    float* to = input_.as<float>().data() + row * stride_;
    for (int c = 0; c < options_.dim; c += 4) {
      const Philox::Words block = philox_(row, c / 4, kTable);
      for (int i = 0; i < std::min(4, options_.dim - c); ++i)
        to[c + i] = (2 * Philox::Uniform(block[i]) - 1) / static_cast<float>(options_.dim);
    }
  });
}

bool VectorTrainer::Run(const std::function<bool(const VectorProgress&)>& progress) {
  const auto text = std::ssize(corpus_.text), chunks = std::ssize(chunks_);
  VectorProgress now = {.words = 0, .total = text * options_.epochs, .loss = 0};
  for (int epoch = 0; epoch < options_.epochs; ++epoch) {
    for (int64_t i = 0, begin = 0, sentence = 0; i < chunks; ++i) {
      const auto last =
          std::lower_bound(corpus_.ends.begin(), corpus_.ends.end(), text * (i + 1) / chunks);
      chunks_[i].at = begin;
      chunks_[i].end = begin = *last;
      chunks_[i].sentence = sentence;
      if (*last > chunks_[i].at) sentence = last + 1 - corpus_.ends.begin();
    }
    for (int64_t read = 1; read > 0;) {
      const double left = 1 - static_cast<double>(now.words) / static_cast<double>(now.total);
      ParallelFor(chunks, [&](int64_t i) {
        Read(chunks_[i], epoch);
        Learn(chunks_[i], options_.learning_rate * left);
      });
      Update();
      double loss = 0;
      int64_t targets = 0;
      read = 0;
      for (const Chunk& chunk : chunks_)
        read += chunk.read, targets += chunk.targets, loss += chunk.loss;
      now.words += read;
      if (targets > 0) now.loss = loss / static_cast<double>(targets);
      if (!progress(now)) return false;
    }
  }
  return true;
}

// Reads the next sentences, at least the chunk's share of a batch. Cuts longer ones than a batch.
void VectorTrainer::Read(Chunk& chunk, int epoch) const {
  const int64_t begin = chunk.at;
  chunk.words.clear();
  while (chunk.at < chunk.end && (chunk.at - begin) * std::ssize(chunks_) < batch_words_) {
    const int64_t end = std::min(corpus_.ends[chunk.sentence], chunk.at + batch_words_);
    AddSentence(chunk, chunk.at, end, epoch);
    chunk.at = end;
    if (end == corpus_.ends[chunk.sentence]) ++chunk.sentence;
  }
  chunk.read = chunk.at - begin;
}

void VectorTrainer::AddSentence(Chunk& chunk, int64_t begin, int64_t end, int epoch) const {
  const auto first = static_cast<int32_t>(chunk.words.size());
  for (int64_t i = begin; i < end; ++i) {
    const int32_t id = corpus_.text[i];
    const int64_t place = epoch * std::ssize(corpus_.text) + i;
    const Philox::Words block = philox_(place, 0, kWords);
    if (Philox::Uniform(block[0]) > keep_[id]) continue;
    const auto reach = static_cast<int32_t>(1 + Philox::Below(block[1], options_.window));
    chunk.words.push_back({id, reach, place, first, 0});
  }
  for (size_t i = first; i < chunk.words.size(); ++i)
    chunk.words[i].end = static_cast<int32_t>(chunk.words.size());
}

void VectorTrainer::Learn(Chunk& chunk, double rate) const {
  const auto n = std::ssize(chunk.words);
  chunk.sums.resize(n * stride_);
  chunk.hidden.resize(options_.cbow ? n * stride_ : 0);
  chunk.gradients.assign(n * stride_, 0);
  chunk.scratch.resize(stride_);
  for (Updates* updates : {&chunk.input, &chunk.output}) {
    for (std::vector<RowUpdate>& part : *updates) part.clear();
  }
  chunk.loss = 0;
  chunk.targets = 0;
  for (int64_t i = 0; i < n; ++i) {
    float* sum = chunk.sums.data() + i * stride_;
    const auto rows = subwords_.of(chunk.words[i].id);
    GetKernels().sum_rows.f32(
        std::ssize(rows), stride_, input_.as<float>().data(), rows.data(), sum, false);
    if (options_.cbow) continue;
    for (int64_t c = 0; c < stride_; ++c) sum[c] /= static_cast<float>(rows.size());
  }
  for (int64_t i = 0; i < n; ++i) LearnWord(chunk, i, rate);
  for (int64_t i = 0; i < n; ++i) {
    for (const int32_t row : subwords_.of(chunk.words[i].id))
      Add(&chunk.input, {row, static_cast<int32_t>(i), 1});
  }
}

void VectorTrainer::LearnWord(Chunk& chunk, int64_t at, double rate) const {
  const Chunk::Word& word = chunk.words[at];
  const int64_t begin = std::max<int64_t>(word.begin, at - word.reach),
                end = std::min<int64_t>(word.end, at + word.reach + 1);
  if (end - begin < 2) return;
  float* hidden = chunk.sums.data() + at * stride_;
  float* gradient = chunk.gradients.data() + at * stride_;
  Source source = {philox_, static_cast<uint64_t>(word.place)};
  chunk.rows.clear();
  if (options_.cbow) {
    hidden = chunk.hidden.data() + at * stride_;
    gradient = chunk.scratch.data();
    std::fill_n(hidden, stride_, 0.0f);
    std::fill_n(gradient, stride_, 0.0f);
    size_t parts = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (i == at) continue;
      parts += subwords_.of(chunk.words[i].id).size();
      for (int64_t c = 0; c < stride_; ++c) hidden[c] += chunk.sums[i * stride_ + c];
    }
    for (int64_t c = 0; c < stride_; ++c) hidden[c] /= static_cast<float>(parts);
    AddTarget(chunk, word.id, &source);
  } else {
    for (int64_t i = begin; i < end; ++i) {
      if (i != at) AddTarget(chunk, chunk.words[i].id, &source);
    }
  }
  chunk.factors.resize(std::max(chunk.factors.size(), chunk.rows.size()));
  const int64_t group = 1 + options_.negatives;
  chunk.loss += GetKernels().negative_sampling({.cols = stride_,
      .hidden = hidden,
      .table = output_.as<float>().data(),
      .groups = std::ssize(chunk.rows) / group,
      .group_size = group,
      .rows = chunk.rows.data(),
      .rate = static_cast<float>(rate),
      .factors = chunk.factors.data(),
      .gradient = gradient});
  for (size_t i = 0; i < chunk.rows.size(); ++i)
    Add(&chunk.output, {chunk.rows[i], static_cast<int32_t>(at), chunk.factors[i]});
  if (!options_.cbow) return;
  for (int64_t i = begin; i < end; ++i) {
    float* to = chunk.gradients.data() + i * stride_;
    for (int64_t c = 0; i != at && c < stride_; ++c) to[c] += gradient[c];
  }
}

// Adds a target and its negatives to chunk.rows.
void VectorTrainer::AddTarget(Chunk& chunk, int32_t target, Source* source) const {
  chunk.rows.push_back(target);
  ++chunk.targets;
  for (int i = 0; i < options_.negatives;) {
    const int32_t negative = negatives_.Word(source->Next());
    if (negative == target) continue;
    chunk.rows.push_back(negative);
    ++i;
  }
}

void VectorTrainer::Update() {
  ParallelFor(2 * kParts, [&](int64_t task) {
    const bool input = task < kParts;
    for (Chunk& chunk : chunks_) {
      const std::vector<float>& hidden = options_.cbow ? chunk.hidden : chunk.sums;
      const std::vector<RowUpdate>& updates = (input ? chunk.input : chunk.output)[task % kParts];
      GetKernels().add_rows(std::ssize(updates), updates.data(), stride_,
          (input ? chunk.gradients : hidden).data(), (input ? input_ : output_).as<float>().data());
    }
  });
}

void VectorTrainer::Vector(int32_t word, float* out) const {
  const auto rows = subwords_.of(word);
  std::fill_n(out, options_.dim, 0.0f);
  for (const int32_t row : rows) {
    const float* from = input_.as<float>().data() + row * stride_;
    for (int c = 0; c < options_.dim; ++c) out[c] += from[c];
  }
  for (int c = 0; c < options_.dim; ++c) out[c] /= static_cast<float>(rows.size());
}

}  // namespace cloze
