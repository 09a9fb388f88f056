// Optimizers and runs that several ranks share, here threads of one process.
#include <gtest/gtest.h>

#include <barrier>
#include <bit>
#include <cmath>
#include <thread>

#include "tasks/inference/evaluate.h"
#include "tasks/training/outer_optimizer.h"
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

constexpr int kRanks = 3;
constexpr int64_t kSize = 2 * kPiece + 96;  // a piece for each rank; whole cache lines

// What the ranks of a job share.
struct Job {
  std::barrier<> barrier{kRanks};
  absl::Span<double> numbers[kRanks];
  std::vector<Ranks::Message> sent[kRanks];
};

class ThreadRanks : public Ranks {
 public:
  ThreadRanks(Job* job, int rank) : job_(*job), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return kRanks; }
  void Sum(absl::Span<double> numbers) override {
    std::vector<double> sums(numbers.size());
    job_.numbers[rank_] = numbers;
    job_.barrier.arrive_and_wait();
    for (const absl::Span<double> of_rank : job_.numbers) {
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += of_rank[i];
    }
    job_.barrier.arrive_and_wait();
    std::copy(sums.begin(), sums.end(), numbers.begin());
  }
  void Exchange(absl::Span<const Message> send, absl::Span<const Message> receive) override {
    for (const Message& message : send) sent_bytes_ += message.bytes;
    job_.sent[rank_].assign(send.begin(), send.end());
    job_.barrier.arrive_and_wait();
    size_t next[kRanks] = {};
    for (const Message& wanted : receive) {
      const std::vector<Message>& sent = job_.sent[wanted.rank];
      size_t& i = next[wanted.rank];
      while (sent.at(i).rank != rank_) ++i;
      ASSERT_EQ(sent[i].bytes, wanted.bytes);
      std::copy_n(sent[i++].data, wanted.bytes, wanted.data);
    }
    job_.barrier.arrive_and_wait();
  }

  // Returns the bytes sent since the last call.
  int64_t TakeSentBytes() { return std::exchange(sent_bytes_, 0); }

 private:
  Job& job_;
  int rank_;
  int64_t sent_bytes_ = 0;
};

// Calls f(ranks) for each rank, at once.
template <typename F>
void ForRanks(F f) {
  Job job;
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&job, &f, r] {
      ThreadRanks ranks(&job, r);
      f(ranks);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A vector of kSize floats, and an operand of matrix products with as many.
ParamStore NewStore() {
  ParamStore store;
  store.AddVector({.name = "a"}, kSize, Init::kZero);
  store.SetOperand(store.AddMatrix({.name = "b"}, 2, kSize / 2));
  store.Allocate(true);
  return store;
}

float Gradient(int64_t i) { return std::sin(static_cast<float>(i)); }

class OptimizerOfRanksTest : public testing::TestWithParam<float> {};

TEST_P(OptimizerOfRanksTest, HasTheBitsOfOneRank) {
  OptimizerSpec spec;
  spec.set_muon_rate(GetParam());
  spec.set_clip_updates(true);
  spec.set_ema_decay(0.9f);
  const auto train = [&](Ranks& ranks, ParamStore& store) {
    Optimizer optimizer(&store, spec, &ranks);
    for (int step = 0; step < 3; ++step) {
      for (int64_t i = 0; i < std::ssize(store.grads()); ++i) store.grads()[i] = Gradient(i + step);
      optimizer.Step(0.1, optimizer.GradNorm());
    }
    optimizer.SwapAverage();
  };
  ParamStore one = NewStore();
  train(OneRank(), one);
  ForRanks([&](Ranks& ranks) {
    ParamStore store = NewStore();
    train(ranks, store);
    ASSERT_EQ(store.values(), one.values());
  });
}

INSTANTIATE_TEST_SUITE_P(Rates, OptimizerOfRanksTest, testing::Values(0, 1.5f),
    [](const auto& info) { return info.param > 0 ? "Muon" : "AdamW"; });

// Returns the values that `rank` holds between steps in bf16: it has rounded values of the operands
// that it does not own.
std::vector<float> ForPasses(absl::Span<const float> exact, const ParamStore& store, int rank) {
  std::vector<float> values(exact.begin(), exact.end());
  const Param& operand = store.param(1);
  for (int64_t i = 0; i < operand.size(); ++i) {
    float* const x = &values[operand.offset + i];
    const auto bits = std::bit_cast<uint32_t>(*x);
    if (OwnerOf(operand.grad_offset + i, kRanks) != rank)
      *x = std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
  }
  return values;
}

// Returns the floats of a parameter that `rank` updates.
int64_t Owned(const Param& param, int rank) {
  int64_t n = 0;
  for (int64_t i = 0; i < param.size(); ++i) n += OwnerOf(param.grad_offset + i, kRanks) == rank;
  return n;
}

// Trains in bf16 with a moving average. Calls see(exact) whenever ranks have exchanged weights.
template <typename F>
void TrainInBf16(Ranks& ranks, ParamStore& store, F see) {
  OptimizerSpec spec;
  spec.set_ema_decay(0.9f);
  Optimizer optimizer(&store, spec, &ranks, DType::kBf16);
  const Shard shard(ranks.rank(), ranks.size(), store.grads().size());
  const auto call = [&](auto method, bool exact) { (optimizer.*method)(), see(exact); };
  for (int step = 0; step < 3; ++step) {
    for (int64_t i = 0; i < std::ssize(store.grads()); ++i)
      if (shard.Has(i)) store.grads()[i] = Gradient(i + step);
    optimizer.Step(0.1, optimizer.GradNorm());
    see(false);
    call(&Optimizer::SwapAverage, false);
    if (step == 1) call(&Optimizer::GatherWeights, true);
    call(&Optimizer::SwapAverage, false);
  }
  call(&Optimizer::GatherWeights, true);
}

TEST(RanksTest, OperandsTravelAsBf16ButOwnersKeepThemExact) {
  std::vector<std::vector<float>> expected;  // by call of `see`
  ParamStore one = NewStore();
  TrainInBf16(OneRank(), one,
      [&](bool) { expected.emplace_back(one.values().begin(), one.values().end()); });
  ForRanks([&](ThreadRanks& ranks) {
    ParamStore store = NewStore();
    const int64_t vector = Owned(store.param(0), ranks.rank()),
                  operand = Owned(store.param(1), ranks.rank());
    size_t next = 0;
    TrainInBf16(ranks, store, [&](bool exact) {
      const std::vector<float>& all = expected.at(next++);
      ASSERT_EQ(store.values(), exact ? all : ForPasses(all, store, ranks.rank())) << next;
      ASSERT_EQ(
          ranks.TakeSentBytes(), (kRanks - 1) * (exact ? 4 * operand : 4 * vector + 2 * operand));
      for (const float gradient : store.grads()) ASSERT_EQ(gradient, 0) << next;
    });
    ASSERT_EQ(next, expected.size());
  });
}

class RunOfRanksTest : public TrainerTest, public testing::WithParamInterface<float> {
 protected:
  // Of a model in whose weights each rank has a part.
  LoadedSpec RunSpec(const std::string& run) {
    LoadedSpec loaded =
        Spec(absl::StrCat("model { tokenizer: \"", Path("vocab"),
                 "\" encoder { preset: CUSTOM layers: 2 hidden: 128 heads: 2 intermediate: 512 "
                 "max_positions: 64 } } masked_lm { max_tokens: 32 } validation { files: \"",
                 Path("text.txt"), "\" } evaluation { every_steps: 3 }"),
            "text.txt", run, 8);
    loaded.spec.mutable_runtime()->set_compute(RuntimeSpec::BF16);
    loaded.spec.mutable_optimizer()->set_muon_rate(GetParam());
    loaded.spec.mutable_optimizer()->set_ema_decay(GetParam() > 0 ? 0.9f : 0);
    return loaded;
  }
};

// In bf16: no rounded weight is in a file.
TEST_P(RunOfRanksTest, LeavesTheFilesOfOneRank) {
  const auto one = Train(RunSpec("one"));
  ASSERT_TRUE(one.ok()) << one.status();
  const LoadedSpec spec = RunSpec("three");
  testing::internal::CaptureStderr();
  ForRanks([&](ThreadRanks& ranks) {
    const auto trainer = Trainer::Create(spec, {.ranks = &ranks});
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const auto summary = (*trainer)->Run();
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary->best.values, one->best.values);
  });
  testing::internal::GetCapturedStderr();
  EXPECT_TRUE(Weights("one") == Weights("three"));
  for (const char* name : {"step-00000004/model.safetensors", "step-00000008/model.safetensors",
           "step-00000008/optimizer.safetensors"})
    EXPECT_TRUE(Read(Path("one/") + name) == Read(Path("three/") + name)) << name;
}

INSTANTIATE_TEST_SUITE_P(Optimizers, RunOfRanksTest, testing::Values(0, 2),
    [](const auto& info) { return info.param > 0 ? "MuonAverage" : "AdamW"; });

// Rank 0 reads the stream; the others, whose standard input may be anything, read its store.
TEST_F(TrainerTest, RanksShareAStream) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "one", 4)).ok());
  const TextPipe pipe(Read(Path("text.txt")));
  LoadedSpec spec = Spec(Mlm(), "text.txt", "three", 4);
  spec.spec.mutable_train()->set_files(0, pipe.path());
  spec.spec.mutable_train()->set_format(DataSpec::TEXT);
  testing::internal::CaptureStderr();
  ForRanks([&](ThreadRanks& ranks) {
    const auto trainer = Trainer::Create(spec, {.ranks = &ranks});
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    EXPECT_TRUE((*trainer)->Run().ok());
  });
  testing::internal::GetCapturedStderr();
  EXPECT_TRUE(Weights("one") == Weights("three"));
}

class EvaluationOfRanksTest : public TrainerTest {};

TEST_F(EvaluationOfRanksTest, EndsOnAllRanksIfOneCannotReadAnExample) {
  const LoadedSpec loaded = Spec(Mlm(), "text.txt", "run", 1);
  ASSERT_TRUE(Train(loaded).ok());
  const auto tokenizer = LoadTokenizer(Path("run"), true);
  const auto config = LoadConfig(Path("run"));
  ASSERT_TRUE(tokenizer.ok() && config.ok());
  const auto task = MakeTask(loaded.spec);
  ASSERT_TRUE(task->Bind(*config, tokenizer->get(), 1).ok());
  BuildOptions options;
  options.cache_dir = Path("cache");
  const auto built = task->Build(loaded.spec.train(), DataUse::kTraining, **tokenizer, options);
  ASSERT_TRUE(built.ok()) << built.status();
  const std::string damaged = Path("damaged");
  std::filesystem::copy(built->store.folder(), damaged);
  std::string tokens = Read(damaged + "/tokens");
  tokens.back() ^= 1;
  std::ofstream(damaged + "/tokens") << tokens;
  ForRanks([&](Ranks& ranks) {
    const auto store =
        ExampleStore::Open(ranks.rank() == 1 ? damaged : built->store.folder(), config->vocab, 0);
    ASSERT_TRUE(store.ok()) << store.status();
    Model model(*config, false);
    std::vector<std::string> fresh;
    ASSERT_TRUE(model.Load(Path("run"), 0, &fresh).ok());
    const auto results = Evaluate(model, *task, *store, {.batch_tokens = 64, .ranks = &ranks});
    ExpectError(results.status(), Exit::kData, "does not fit its checksum");
  });
}

TEST(RanksTest, TheOuterStepMovesToTheMean) {
  DistributedSpec spec;
  spec.set_outer_rate(0.5f);
  spec.set_outer_momentum(0.8f);
  ForRanks([&](Ranks& ranks) {
    ParamStore store = NewStore();
    Optimizer inner(&store, OptimizerSpec());
    OuterOptimizer outer(&store, &inner, spec, &ranks);
    double start = 0, momentum = 0;
    for (int step = 0; step < 3; ++step) {
      outer.Begin();
      for (int64_t i = 0; i < kSize; ++i) {
        store.values()[i] += static_cast<float>(ranks.rank() + step);
        inner.m()[i] = static_cast<float>(ranks.rank());
        inner.v()[i] = static_cast<float>(2 * ranks.rank());
      }
      outer.Step();
      const double g = -(1.0 + step);  // the mean of rank + step
      momentum = 0.8 * momentum + g;
      start -= 0.5 * (g + 0.8 * momentum);
      for (int64_t i = 0; i < kSize; ++i) {
        ASSERT_NEAR(store.values()[i], start, 1e-5) << i;
        ASSERT_EQ(inner.m()[i], 1);
        ASSERT_EQ(inner.v()[i], 2);
      }
    }
  });
}

}  // namespace
}  // namespace cloze
