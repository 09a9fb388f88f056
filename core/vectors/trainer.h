// Learns word vectors by negative sampling: word2vec's skip-gram and CBOW (Mikolov et al. 2013,
// arXiv:1301.3781 and 1310.4546), and fastText's with n-grams. Settings have the same meaning as in
// those programs.
#ifndef CLOZE_CORE_VECTORS_TRAINER_H_
#define CLOZE_CORE_VECTORS_TRAINER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/philox.h"
#include "core/tensor/arena.h"
#include "core/vectors/corpus.h"
#include "core/vectors/subwords.h"

namespace cloze {

// Draws words in proportion to the square roots of their counts, by the alias method (Vose 1991):
// in cell i, word i with probability share_[i], else other_[i].
class WordSampler {
 public:
  // `counts` of all words, at least one, each above 0.
  explicit WordSampler(const std::vector<int64_t>& counts);

  // Returns the word that a random number draws: its upper bits the cell, the others the share.
  int32_t Word(uint32_t random) const {
    const uint64_t draw = uint64_t{random} * share_.size();
    const auto cell = static_cast<int32_t>(draw >> 32);
    return Philox::Uniform(static_cast<uint32_t>(draw)) < share_[cell] ? cell : other_[cell];
  }

 private:
  std::vector<float> share_;
  std::vector<int32_t> other_;
};

struct VectorOptions {
  bool cbow = false;  // predict a word from its neighbours; else each neighbour from it
  int dim = 100;      // of the vectors
  int window = 5;     // largest number of words on each side; drawn from 1 ... window
  int epochs = 5;
  int negatives = 5;            // drawn for each target by counts^0.5
  double learning_rate = 0.05;  // falls linearly to 0
  double subsample = 1e-4;      // words with frequency f are kept with sqrt(t/f) + t/f; 0: all
  int64_t seed = 1;
  SubwordOptions subwords;
};

struct VectorProgress {
  int64_t words = 0, total = 0;  // of all epochs
  double loss = 0;               // mean per target of the last words, at least a batch
};

// Trains in batches of about a thousand words (few distinct words: fewer) from up to 16 places of
// the text. The gradients of a batch are computed from the vectors before it and added in the order
// of the text: the same bits for any number of threads.
class VectorTrainer {
 public:
  // `corpus` must outlive this.
  VectorTrainer(const Corpus& corpus, const VectorOptions& options);
  ~VectorTrainer();

  // Trains all epochs. Calls progress after each batch, and stops early when it returns false.
  // Returns false if it was stopped.
  bool Run(const std::function<bool(const VectorProgress&)>& progress);

  // Sets out [dim] to the vector of a word: the mean of its rows.
  void Vector(int32_t word, float* out) const;

 private:
  struct Chunk;   // the share of a batch from one place of the text
  struct Source;  // random numbers of a word

  void InitializeTables();
  void PlanBatches();
  void Read(Chunk& chunk, int epoch) const;
  void AddSentence(Chunk& chunk, int64_t begin, int64_t end, int epoch) const;
  void Learn(Chunk& chunk, double rate) const;
  void LearnWord(Chunk& chunk, int64_t at, double rate) const;
  void AddTarget(Chunk& chunk, int32_t target, Source* source) const;
  void Update();

  const Corpus& corpus_;
  const VectorOptions options_;
  const SubwordRows subwords_;
  const Philox philox_;
  const int64_t stride_;  // columns of all matrices: dim rounded up to a multiple of 16
  LargeMemory input_, output_;
  std::vector<float> keep_;  // [words] probability of a word to be kept
  const WordSampler negatives_;
  int64_t batch_words_ = 0;  // of the text, kept or not; a batch ends with a sentence
  std::vector<Chunk> chunks_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_VECTORS_TRAINER_H_
