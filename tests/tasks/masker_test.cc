// Which tokens are hidden: every unit, its share, its lengths, and what stands in their place; and
// the batcher of sequences that grow.
#include "tasks/masker.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "tasks/batcher.h"
#include "tasks/packer.h"
#include "tests/tasks/data/test_files.h"
#include "tests/tasks/stores.h"

namespace cloze {
namespace {

class MaskerTest : public FilesTest {
 protected:
  Masker Make(const MaskedLmSpec& spec) {
    auto masker = Masker::Create(spec, *tokenizer_, 7);
    EXPECT_TRUE(masker.ok()) << masker.status();
    return *std::move(masker);
  }
  static MaskedLmSpec Spec(MaskedLmSpec::Unit unit, float share) {
    MaskedLmSpec spec;
    spec.set_unit(unit);
    spec.set_mask_share(share);
    return spec;
  }
  // <class>, words of 1, 2, 3, 1, 2, 3 ... pieces, <sep>.
  Example Words(int words) {
    Example e;
    e.ids.push_back(tokenizer_->special().cls);
    for (int w = 0; w < words; ++w) {
      e.ids.push_back(tokenizer_->id("cat"));
      for (int piece = 0; piece < w % 3; ++piece) e.ids.push_back(tokenizer_->id("##s"));
    }
    e.ids.push_back(tokenizer_->special().sep);
    e.second = e.ids.size();
    return e;
  }
  bool Starts(const Example& e, size_t row) {
    return row >= e.ids.size() || !tokenizer_->ContinuesWord(e.ids[row]);
  }

  std::unique_ptr<Tokenizer> tokenizer_ = SmallTokenizer();
};

TEST_F(MaskerTest, KnowsWhichPiecesGoOnAWord) {
  EXPECT_TRUE(tokenizer_->ContinuesWord(tokenizer_->id("##s")));
  EXPECT_FALSE(tokenizer_->ContinuesWord(tokenizer_->id("cat")));
  EXPECT_FALSE(tokenizer_->ContinuesWord(tokenizer_->id(",")));
}

TEST_F(MaskerTest, EveryUnitKeepsTheShareAndSparesSpecialTokens) {
  for (const auto unit : {MaskedLmSpec::TOKEN, MaskedLmSpec::WORD, MaskedLmSpec::SPAN}) {
    const Masker masker = Make(Spec(unit, 0.15f));
    int64_t picked = 0, ordinary = 0;
    for (uint64_t number = 0; number < 200; ++number) {
      const Example before = Words(60);
      Example e = before;
      masker.Apply(number, 0, &e);
      const int64_t most = std::lround(0.15f * (before.ids.size() - 2));
      EXPECT_GE(e.rows.size(), 1);
      EXPECT_LE(static_cast<int64_t>(e.rows.size()), most);
      EXPECT_TRUE(std::is_sorted(e.rows.begin(), e.rows.end()));
      EXPECT_EQ(std::set<int32_t>(e.rows.begin(), e.rows.end()).size(), e.rows.size())
          << "a row twice";
      for (size_t i = 0; i < e.rows.size(); ++i) {
        EXPECT_EQ(e.labels[i], before.ids[e.rows[i]]);
        EXPECT_FALSE(tokenizer_->is_special(e.labels[i]));
        EXPECT_EQ(e.ids[e.rows[i]], tokenizer_->special().mask);
      }
      picked += e.rows.size(), ordinary += before.ids.size() - 2;
    }
    EXPECT_NEAR(double(picked) / ordinary, 0.15, 0.01) << unit;
  }
}

TEST_F(MaskerTest, TheShareMovesToTheFinalOne) {
  MaskedLmSpec spec = Spec(MaskedLmSpec::TOKEN, 0.3f);
  const Masker same = Make(spec);
  spec.set_final_mask_share(0.1f);
  const Masker masker = Make(spec);
  for (const auto& [done, picks] : {std::pair(0.0, 36), {0.5, 24}, {0.75, 18}, {1.0, 12}}) {
    Example e = Words(60);  // 120 pieces
    masker.Apply(5, done, &e);
    EXPECT_EQ(e.rows.size(), picks) << done;
    Example constant = Words(60);
    same.Apply(5, done, &constant);
    EXPECT_EQ(constant.rows.size(), 36);
    for (const int32_t row : e.rows)
      EXPECT_THAT(constant.rows, testing::Contains(row)) << "a smaller share picks fewer of them";
  }
}

TEST_F(MaskerTest, CausalSequencesPredictTheNextTokenUntilTheirShareIsZero) {
  MaskedLmSpec spec = Spec(MaskedLmSpec::TOKEN, 0.15f);
  const Masker masks = Make(spec);
  spec.set_causal_share(0.8f);
  spec.set_causal_until(0.5f);
  const Masker masker = Make(spec);
  const Example before = Words(60);
  std::vector<int32_t> rows(before.ids.size() - 2);  // not <sep>
  std::iota(rows.begin(), rows.end(), 0);
  const std::vector<int32_t> next(before.ids.begin() + 1, before.ids.end() - 1);
  constexpr int kExamples = 800;
  for (const auto& [done, share] : {std::pair(0.0, 0.8), {0.25, 0.4}, {0.5, 0.0}, {1.0, 0.0}}) {
    int causal = 0;
    for (uint64_t number = 0; number < kExamples; ++number) {
      Example e = before, masked = before;
      masker.Apply(number, done, &e);
      masks.Apply(number, done, &masked);
      causal += e.causal;
      if (!e.causal) {
        EXPECT_EQ(e.ids, masked.ids);
        EXPECT_EQ(e.rows, masked.rows);
        continue;
      }
      EXPECT_EQ(e.ids, before.ids);
      EXPECT_EQ(e.rows, rows);
      EXPECT_EQ(e.labels, next);
    }
    EXPECT_NEAR(double(causal) / kExamples, share, 0.03) << done;
  }
}

TEST_F(MaskerTest, ACausalSequenceOfSpecialTokensHasNoTarget) {
  MaskedLmSpec spec;
  spec.set_causal_share(1);
  Example e;
  e.ids = {tokenizer_->special().cls, tokenizer_->special().sep};
  Make(spec).Apply(1, 0, &e);
  EXPECT_TRUE(e.causal);
  EXPECT_TRUE(e.rows.empty());
}

// The words of a span are kept together; words on both sides of a special token are no span.
TEST_F(MaskerTest, SpansEndAtSpecialTokens) {
  MaskedLmSpec spec = Spec(MaskedLmSpec::SPAN, 1);
  spec.set_mean_span(10);
  spec.set_longest_span(10);
  spec.set_keep_share(0.5f);
  const Masker masker = Make(spec);
  const SpecialIds& special = tokenizer_->special();
  const int32_t cat = tokenizer_->id("cat");
  int unlike = 0;
  for (uint64_t number = 0; number < 1000; ++number) {
    Example e;
    e.ids = {special.cls, cat, special.sep, cat, special.sep};
    masker.Apply(number, 0, &e);
    if (e.rows.size() < 2) continue;  // it gives up after many attempts
    unlike += e.ids[1] != e.ids[3];
  }
  EXPECT_GT(unlike, 400);
}

TEST_F(MaskerTest, WordsAndSpansAreHiddenWhole) {
  for (const auto unit : {MaskedLmSpec::WORD, MaskedLmSpec::SPAN}) {
    const Masker masker = Make(Spec(unit, 0.15f));
    for (uint64_t number = 0; number < 100; ++number) {
      const Example before = Words(60);
      Example e = before;
      masker.Apply(number, 0, &e);
      const std::set<int32_t> rows(e.rows.begin(), e.rows.end());
      for (const int32_t row : rows) {
        EXPECT_TRUE(Starts(before, row) || rows.count(row - 1) > 0)
            << "a word's middle without its beginning";
        EXPECT_TRUE(Starts(before, row + 1) || rows.count(row + 1) > 0)
            << "a word's beginning without its end";
      }
    }
  }
}

TEST_F(MaskerTest, LengthsOfSpansAreGeometric) {
  MaskedLmSpec spec = Spec(MaskedLmSpec::SPAN, 0.02f);
  spec.set_random_share(1);  // nothing is <mask>, so that only rows tell
  const Masker masker = Make(spec);
  Example before;
  before.ids.assign(1000, tokenizer_->id("cat"));
  std::map<int, int> lengths;
  int spans = 0, words = 0;
  for (uint64_t number = 0; number < 2000; ++number) {
    Example e = before;
    masker.Apply(number, 0, &e);
    // The first span placed is the only one that the budget of 20 never cuts; which it was is
    // unknown, so count all runs.
    for (size_t i = 0, begin = 0; i < e.rows.size(); ++i) {
      if (i + 1 < e.rows.size() && e.rows[i + 1] == e.rows[i] + 1) continue;
      ++spans, words += i + 1 - begin, ++lengths[i + 1 - begin];
      begin = i + 1;
    }
  }
  // Mean 3.8 by SpanBERT's numbers; the last span of a sequence is cut by the budget.
  EXPECT_NEAR(double(words) / spans, 3.45, 0.2);
  for (int n = 1; n < 10; ++n) EXPECT_GT(lengths[n], lengths[n + 1]) << n;
  EXPECT_LT(lengths[11] + lengths[12], spans / 50) << "longer ones are neighbours only";
}

TEST_F(MaskerTest, SpansAreKeptOrReplacedAsAWhole) {
  MaskedLmSpec spec = Spec(MaskedLmSpec::SPAN, 0.05f);
  spec.set_keep_share(0.5f);
  spec.set_mean_span(100), spec.set_longest_span(10);
  const Masker masker = Make(spec);
  int kept = 0, masked = 0;
  for (uint64_t number = 0; number < 200; ++number) {
    Example e;
    e.ids.assign(100, tokenizer_->id("cat"));
    masker.Apply(number, 0, &e);
    int changes = 0;
    for (size_t i = 0; i < e.rows.size(); ++i) {
      const bool mask = e.ids[e.rows[i]] == tokenizer_->special().mask;
      (mask ? masked : kept)++;
      changes += i > 0 && e.rows[i] == e.rows[i - 1] + 1 &&
                 mask != (e.ids[e.rows[i - 1]] == tokenizer_->special().mask);
    }
    EXPECT_LE(changes, 2) << "inside a span all tokens fare alike; spans may touch";
  }
  EXPECT_NEAR(double(kept) / (kept + masked), 0.5, 0.15);
}

TEST_F(MaskerTest, RandomWordsAreNeverSpecial) {
  MaskedLmSpec spec = Spec(MaskedLmSpec::TOKEN, 0.9f);
  spec.set_random_share(1);
  const Masker masker = Make(spec);
  std::set<int32_t> drawn;
  for (uint64_t number = 0; number < 500; ++number) {
    Example e = Words(40);
    masker.Apply(number, 0, &e);
    for (const int32_t row : e.rows) drawn.insert(e.ids[row]);
  }
  for (const int32_t id : drawn) EXPECT_FALSE(tokenizer_->is_special(id)) << tokenizer_->token(id);
  EXPECT_EQ(static_cast<int32_t>(drawn.size()), tokenizer_->vocab_size() - 5)
      << "every other token is drawn";
}

TEST_F(MaskerTest, AWordLongerThanTheShareIsStillTaken) {
  for (const auto unit : {MaskedLmSpec::WORD, MaskedLmSpec::SPAN}) {
    Example e;
    e.ids = {tokenizer_->id("cat"), tokenizer_->id("##s"), tokenizer_->id("##s")};
    Make(Spec(unit, 0.15f)).Apply(1, 0, &e);
    EXPECT_EQ(e.rows, (std::vector<int32_t>{0, 1, 2})) << unit;
  }
}

TEST_F(MaskerTest, SplitsLongSequencesEvenly) {
  const Example e = Words(50);  // 2 + 99 tokens
  const std::vector<Example> pieces = SplitSequence(e, 24, true);
  ASSERT_EQ(pieces.size(), 5u);
  std::vector<int32_t> joined = {e.ids.front()};
  for (const Example& piece : pieces) {
    EXPECT_LE(piece.ids.size(), 24u);
    EXPECT_GE(piece.ids.size(), 21u);
    EXPECT_EQ(piece.ids.front(), tokenizer_->special().cls);
    EXPECT_EQ(piece.ids.back(), tokenizer_->special().sep);
    joined.insert(joined.end(), piece.ids.begin() + 1, piece.ids.end() - 1);
  }
  joined.push_back(e.ids.back());
  EXPECT_EQ(joined, e.ids);
  EXPECT_EQ(SplitSequence(e, 101, true).size(), 1u);
}

class BatcherTest : public MaskerTest {
 protected:
  BatcherTest() {
    std::string text;
    for (int i = 0; i < 40; ++i)
      absl::StrAppend(
          &text, "the cat sat on the mat , the cat sat on the cats and a dog ran far away .\n\n");
    spec_.set_max_tokens(24);
    auto built = BuildMaskedLm(Data("text.txt", text), spec_, *tokenizer_,
        {.cache_dir = Path("cache"), .progress = nullptr});
    EXPECT_TRUE(built.ok()) << built.status();
    store_.emplace(std::move(built->store));
  }
  StepData Next(const Batcher& batcher, int64_t next, double done) {
    auto data = batcher.Next(next, done);
    EXPECT_TRUE(data.ok()) << data.status();
    return *std::move(data);
  }
  const Task& MakeTask() {
    TaskSpec spec;
    *spec.mutable_masked_lm() = spec_;
    task_ = cloze::MakeTask(spec);
    EXPECT_TRUE(task_->Bind(ModelConfig(), tokenizer_.get(), 1).ok());
    return *task_;
  }
  MaskedLmSpec spec_;
  std::unique_ptr<Task> task_;
  std::optional<ExampleStore> store_;
};

TEST_F(BatcherTest, SequencesGrow) {
  spec_.set_warmup_from_tokens(8);
  spec_.set_warmup_share(0.5f);
  BatchSpec batch;
  batch.set_tokens(200);
  const Batcher batcher(*store_, MakeTask(), batch, 1);
  int64_t longest_before = 0;
  for (const auto& [done, longest] : {std::pair(0.0, 8), std::pair(0.24, 8), std::pair(0.26, 16),
           std::pair(0.5, 24), std::pair(1.0, 24)}) {
    const StepData data = Next(batcher, 3, done);
    EXPECT_LE(data.tokens, 200);
    int64_t most = 0;
    std::set<std::pair<uint64_t, int32_t>> places;
    for (const Batch& b : data.micro) {
      for (int64_t s = 0; s < b.sequences(); ++s)
        most = std::max<int64_t>(most, b.cu_seqlens[s + 1] - b.cu_seqlens[s]);
      for (int64_t i = 0; i < b.tokens(); ++i)
        EXPECT_TRUE(places.emplace(b.row_examples[i], b.positions[i]).second)
            << "random numbers twice";
    }
    EXPECT_LE(most, longest) << done;
    EXPECT_GE(most, longest_before) << done;
    longest_before = most;
  }
}

TEST_F(BatcherTest, EveryEpochHasItsOwnOrderAndItsOwnMasks) {
  constexpr int kTexts = 50;
  std::string text;
  for (int i = 0; i < kTexts; ++i) {
    for (int word = 0; word < 20; ++word)
      text.append({static_cast<char>('a' + (word + i) % 26), static_cast<char>('a' + i / 26), ' '});
    text += "\n\n";
  }
  MaskedLmSpec task;
  task.set_max_tokens(48);
  auto built = BuildMaskedLm(Data("texts.txt", text), task, *tokenizer_,
      {.cache_dir = Path("cache"), .progress = nullptr});
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_EQ(built->store.size(), kTexts);
  BatchSpec batch;
  batch.set_examples(1);
  const Batcher batcher(built->store, MakeTask(), batch, 1);
  using Ids = std::vector<int32_t>;
  std::vector<std::vector<Ids>> orders;    // of the texts
  std::vector<std::map<Ids, Ids>> hidden;  // rows of each text
  for (int epoch = 0; epoch < 3; ++epoch) {
    orders.emplace_back(), hidden.emplace_back();
    for (int i = 0; i < kTexts; ++i) {
      const StepData step = Next(batcher, epoch * kTexts + i, 1);
      ASSERT_EQ(step.micro.size(), 1);
      Batch one = step.micro[0];
      for (size_t r = 0; r < one.rows.size(); ++r) one.ids[one.rows[r]] = one.targets[r];
      one.ids.resize(one.tokens());
      orders.back().push_back(one.ids);
      hidden.back()[one.ids] = one.rows;
    }
  }
  for (int epoch = 1; epoch < 3; ++epoch) {
    EXPECT_NE(orders[epoch], orders[epoch - 1]);
    EXPECT_THAT(orders[epoch], testing::UnorderedElementsAreArray(orders[0]));
    int same = 0;
    for (const auto& [ids, rows] : hidden[epoch]) same += hidden[epoch - 1][ids] == rows;
    EXPECT_LT(same, kTexts / 4) << "texts with the masks of the epoch before";
  }
  batch.set_shuffle(false);
  const Batcher ordered(built->store, *task_, batch, 1);
  int same = 0;
  for (int i = 0; i < kTexts; ++i) {
    const Batch first = Next(ordered, i, 1).micro[0],
                second = Next(ordered, kTexts + i, 1).micro[0];
    same += first.rows == second.rows;
  }
  EXPECT_LT(same, kTexts / 4) << "texts with the masks of the epoch before";
}

TEST_F(BatcherTest, BatchesKnowTheirCausalSequences) {
  Batch batch;
  Example e;
  e.ids = {1, 2, 3};
  for (const bool causal : {false, true, false, true}) {
    e.causal = causal;
    AddExample(e, 0, &batch);
    EXPECT_TRUE(batch.causal.empty() || std::ssize(batch.causal) == batch.sequences());
  }
  EXPECT_THAT(batch.causal, testing::ElementsAre(0, 1, 0, 1));
}

TEST_F(BatcherTest, AnEpochReadsEachExampleOnceThoughBatchesStayUnfilled) {
  BatchSpec batch;
  for (const int64_t tokens : {30, 50, 400}) {
    batch.set_tokens(tokens);
    const Batcher batcher(*store_, MakeTask(), batch, 1);
    const auto per_epoch = batcher.StepsPerEpoch();
    ASSERT_TRUE(per_epoch.ok()) << per_epoch.status();
    int64_t next = 0, steps = 0;
    for (; next < 10 * store_->size(); ++steps) next = Next(batcher, next, 1).next;
    EXPECT_NEAR(*per_epoch, steps / 10.0, 0.02 * *per_epoch) << tokens;
    EXPECT_GE(*per_epoch, batcher.FullStepsPerEpoch()) << tokens;
    EXPECT_EQ(*per_epoch > 1.2 * batcher.FullStepsPerEpoch(), tokens < 100) << tokens;
  }
  batch.set_examples(8);
  EXPECT_EQ(*Batcher(*store_, MakeTask(), batch, 1).StepsPerEpoch(), store_->size() / 8.0);
}

TEST_F(BatcherTest, EpochsOfGrowingBatchesReadAllExamples) {
  for (const auto& [examples, tokens, from, share] :
      {std::tuple(2, 0, 0.5f, 1.0f), std::tuple(3, 0, 0.34f, 1.0f), std::tuple(8, 0, 0.125f, 0.3f),
          std::tuple(0, 60, 0.1f, 1.0f), std::tuple(0, 400, 0.25f, 0.5f)}) {
    BatchSpec batch;
    batch.set_examples(examples);
    if (tokens > 0) batch.set_tokens(tokens);
    batch.set_warmup_from(from);
    batch.set_warmup_share(share);
    const Batcher batcher(*store_, MakeTask(), batch, 1);
    constexpr int kEpochs = 40;
    const double all = kEpochs * *batcher.StepsPerEpoch();
    int64_t next = 0;
    for (int step = 0; step < all; ++step) next = Next(batcher, next, step / all).next;
    EXPECT_NEAR(next / (kEpochs * double(store_->size())), 1, 0.02) << examples << " " << tokens;
  }
}

TEST_F(BatcherTest, BatchesGrowAndTheRunGetsLongerForIt) {
  BatchSpec batch;
  batch.set_tokens(400);
  const double full = Batcher(*store_, MakeTask(), batch, 1).FullStepsPerEpoch();
  batch.set_warmup_from(0.25f);
  batch.set_warmup_share(0.5f);
  const Batcher batcher(*store_, MakeTask(), batch, 1);
  EXPECT_LE(Next(batcher, 0, 0).tokens, 100);
  EXPECT_GT(Next(batcher, 0, 0.25).tokens, 200);
  EXPECT_LE(Next(batcher, 0, 0.25).tokens, 250);
  EXPECT_GT(Next(batcher, 0, 0.5).tokens, 370);
  EXPECT_NEAR(batcher.FullStepsPerEpoch(), full / (1 - 0.5 * 0.75 / 2), 1e-9);
  EXPECT_NEAR(batcher.LaterBatches(0), (1 - 0.5 * 0.75 / 2) / 0.25, 1e-9);
  EXPECT_NEAR(batcher.LaterBatches(0.25), (0.25 * 0.8125 + 0.5) / 0.75 / 0.625, 1e-9);
  EXPECT_EQ(batcher.LaterBatches(0.5), 1);
  EXPECT_EQ(batcher.LaterBatches(1), 1);
  batch.set_examples(8);
  const auto sequences = [&](double done) {
    int64_t n = 0;
    for (const Batch& b : Next(Batcher(*store_, MakeTask(), batch, 1), 0, done).micro)
      n += b.sequences();
    return n;
  };
  EXPECT_EQ(sequences(0), 2);
  EXPECT_EQ(sequences(0.25), 5);
  EXPECT_EQ(sequences(1), 8);
}

}  // namespace
}  // namespace cloze
