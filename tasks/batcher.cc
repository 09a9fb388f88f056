#include "tasks/batcher.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/hash_map.h"
#include "tasks/packer.h"

namespace cloze {
namespace {

// Each piece of an example has its own random numbers: those of example + (piece << kPieceShift).
constexpr int kPieceShift = 48;

constexpr int64_t kMaxWaiting = 4096;  // examples

// Adds the keys to *texts, or returns false if one is there already.
bool AddTexts(const std::vector<uint64_t>& keys, HashSet<uint64_t>* texts) {
  if (absl::c_any_of(keys, [&](uint64_t key) { return texts->contains(key); })) return false;
  texts->insert(keys.begin(), keys.end());
  return true;
}

}  // namespace

int64_t Batcher::IndexOf(int64_t number) const {
  const int64_t epoch = number / store_.size(), place = number % store_.size();
  if (!spec_.shuffle()) return place;
  return PermutedIndex(place, store_.size(), order_, static_cast<uint32_t>(epoch));
}

double Batcher::Share(double done) const {
  const double from = spec_.warmup_from(), warmup = spec_.warmup_share();
  return done >= warmup ? 1 : from + (1 - from) * done / warmup;
}

int64_t Batcher::MaxStepExamples(double done) const {
  return std::max<int64_t>(1, static_cast<int64_t>(spec_.examples() * Share(done)));
}

int64_t Batcher::MaxStepTokens(double done) const {
  return static_cast<int64_t>(spec_.tokens() * Share(done));
}

absl::StatusOr<StepData> Batcher::Next(
    int64_t next, double done, const std::vector<int64_t>& waiting) const {
  const int64_t most_examples = MaxStepExamples(done), most_tokens = MaxStepTokens(done);
  StepData step;
  Packer packer(spec_.micro_tokens(), [&](Batch batch) {
    step.micro.push_back(std::move(batch));
    return absl::OkStatus();
  });
  Example example;
  HashSet<uint64_t> texts;  // of the step
  auto again = waiting.begin();
  for (int64_t count = 0; spec_.examples() == 0 || count < most_examples;) {
    const bool waited = again != waiting.end();
    if (!waited && std::ssize(step.waiting) >= kMaxWaiting) break;
    const int64_t number = waited ? *again : next;
    RETURN_IF_ERROR(store_.Read(IndexOf(number), &example));
    std::vector<Example> sequences = task_.Sequences(example, done);
    int64_t length = 0;
    for (const Example& sequence : sequences) length += sequence.ids.size();
    if (spec_.examples() == 0 && count > 0 && step.tokens + length > most_tokens) break;
    if (waited) {
      ++again;
    } else {
      ++next;
    }
    if (!AddTexts(task_.TextKeys(example), &texts)) {
      step.waiting.push_back(number);
      continue;
    }
    const auto piece = [&](uint64_t i) { return number + (i << kPieceShift); };
    for (size_t i = 0; i < sequences.size(); ++i)
      task_.PrepareExample(piece(i), done, &sequences[i]);
    for (size_t i = 0; i < sequences.size(); ++i)
      RETURN_IF_ERROR(packer.Add(
          sequences[i], piece(i), JoinedTokens(absl::MakeConstSpan(sequences).subspan(i))));
    step.tokens += length;
    ++count;
  }
  RETURN_IF_ERROR(packer.Finish());
  step.waiting.insert(step.waiting.end(), again, waiting.end());
  step.next = next;
  return step;
}

double Batcher::LaterBatches(double done) const {
  const double warmup = spec_.warmup_share(), share = Share(done);
  if (done >= warmup) return 1;
  return ((warmup - done) * (share + 1) / 2 + 1 - warmup) / (1 - done) / share;
}

double Batcher::FullStepsPerEpoch() const {
  const double mean_share = 1 - spec_.warmup_share() * (1 - spec_.warmup_from()) / 2;
  const double full = spec_.examples() > 0 ? double(store_.size()) / spec_.examples()
                                           : double(store_.tokens()) / spec_.tokens();
  return full / mean_share;
}

absl::StatusOr<double> Batcher::MeanExamples(double done, int64_t sample) const {
  if (spec_.examples() > 0) return static_cast<double>(MaxStepExamples(done));
  const int64_t most = MaxStepTokens(done);
  Example example;
  int64_t batches = 0, in_batches = 0, tokens = 0;
  for (int64_t next = 0; next < sample; ++next) {
    RETURN_IF_ERROR(store_.Read(IndexOf(next), &example));
    const int64_t length = example.ids.size();
    if (tokens > 0 && tokens + length > most) {
      ++batches;
      in_batches += std::exchange(tokens, 0);
    }
    tokens += length;
  }
  const double filled = batches > 0 ? double(in_batches) / batches : most;
  return filled * store_.size() / store_.tokens();
}

absl::StatusOr<double> Batcher::StepsPerEpoch() const {
  const double growing = spec_.warmup_from() < 1 ? spec_.warmup_share() : 0;
  const int pieces = spec_.examples() > 0 ? 1000 : 20;
  ASSIGN_OR_RETURN(double mean, MeanExamples(1, 20000));
  mean *= 1 - growing;
  for (int i = 0; i < pieces && growing > 0; ++i) {
    ASSIGN_OR_RETURN(const double part, MeanExamples(growing * (i + 0.5) / pieces, 2000));
    mean += part * growing / pieces;
  }
  return store_.size() / mean;
}

}  // namespace cloze
