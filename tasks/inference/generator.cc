#include "tasks/inference/generator.h"

#include <algorithm>
#include <optional>

#include "core/base/philox.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "tasks/task.h"

namespace cloze {
namespace {

constexpr size_t kAtOnce =
    32;  // hypotheses that pass through the model together, at least one prompt

}  // namespace

// A prompt that is being continued: by beams, or by one hypothesis that is `done` in the end.
struct Generator::Running {
  size_t prompt;  // tokens
  uint64_t number;
  std::optional<BeamSearch> beams = {};
  std::vector<Hypothesis> one = {};
  bool done = false;

  std::vector<Hypothesis>& hypotheses() { return beams.has_value() ? beams->running() : one; }
  bool ended() const { return beams.has_value() ? beams->running().empty() : done; }
  const Hypothesis& best() const { return beams.has_value() ? beams->best() : one.front(); }
};

absl::StatusOr<Generator> Generator::Create(Session& session, GenerateOptions options) {
  const ModelConfig& config = session.config();
  if (config.head != HeadKind::kCausalLm) {
    return Error(Exit::kMismatch, QuotePath(session.folder()),
        " has no head for causal_lm: expected "
        "a decoder, such as a gpt2 folder");
  }
  if (options.beams > config.vocab) {
    return Error(Exit::kUsage, "--beams ", options.beams, ": expected at most ", config.vocab,
        ", the tokens of the vocabulary");
  }
  if (options.beams > 1 && options.rule.temperature > 0)
    return Error(Exit::kUsage, "--beams excludes --temperature, --top-k and --top-p");
  if (options.end_token >= config.vocab) {
    return Error(
        Exit::kUsage, "--end-token ", options.end_token, ": expected an id below ", config.vocab);
  }
  if (!options.stop.empty()) RETURN_IF_ERROR(session.TokenizerOr().status());
  if (options.end_token < 0) options.end_token = config.end_id;
  return Generator(session, std::move(options));
}

std::string Generator::Continuation(absl::Span<const int32_t> ids, size_t prompt) const {
  const Tokenizer& tokenizer = **session_.TokenizerOr();
  if (ids.size() > prompt && ids.back() == options_.end_token) ids.remove_suffix(1);
  const size_t before = tokenizer.Decode(ids.subspan(0, prompt)).size();
  std::string text = tokenizer.Decode(ids);
  text.erase(0, std::min(before, text.size()));
  for (const std::string& stop : options_.stop) text.resize(std::min(text.size(), text.find(stop)));
  return text;
}

bool Generator::Ends(const Hypothesis& hypothesis, size_t prompt) const {
  const std::vector<int32_t>& ids = hypothesis.ids;
  const auto size = static_cast<int64_t>(ids.size());
  if (ids.back() == options_.end_token || size == session_.max_tokens() ||
      size - static_cast<int64_t>(prompt) == options_.max_new_tokens)
    return true;
  if (options_.stop.empty()) return false;
  const Tokenizer& tokenizer = **session_.TokenizerOr();
  const std::string text = tokenizer.Decode(absl::MakeSpan(ids).subspan(prompt));
  return std::any_of(options_.stop.begin(), options_.stop.end(),
      [&](const std::string& stop) { return text.find(stop) != std::string::npos; });
}

ConstMat Generator::Logits(absl::Span<Hypothesis* const> hypotheses) {
  Batch batch;
  std::vector<int32_t> rows, seen, ends;
  const bool whole = hypotheses[0]->rows.empty();  // the prompt, which is alone
  for (Hypothesis* h : hypotheses) {
    const auto size = static_cast<int32_t>(h->ids.size());
    for (int32_t i = whole ? 0 : size - 1; i < size; ++i) {
      rows.push_back(used_);
      h->rows.push_back(used_++);
    }
    batch.Add(whole ? absl::MakeSpan(h->ids) : absl::MakeSpan(h->ids).last(1), whole ? size : 1, 0);
    batch.rows.push_back(static_cast<int32_t>(batch.tokens() - 1));
    batch.positions.back() = size - 1;
    if (whole) continue;
    seen.insert(seen.end(), h->rows.begin(), h->rows.end());
    ends.push_back(static_cast<int32_t>(seen.size()));
  }
  batch.Pad();
  const Decoding decoding = {cache_, rows, seen, ends};
  Model& model = session_.model();
  model.arena().Reset();
  Pass pass = model.NewPass(batch, session_.compute());
  pass.decoding = &decoding;
  return Rows(
      ConstMat(model.head().Logits(pass, model.encoder().Infer(pass))), 0, hypotheses.size());
}

void Generator::Advance(Running& running, absl::Span<const absl::Span<float>> logits) const {
  std::vector<Hypothesis>& hypotheses = running.hypotheses();
  const bool beams = running.beams.has_value();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (beams) LogSoftmax(logits[i]);
    if (options_.repetition_penalty != 1)
      PenalizeRepetition(hypotheses[i].ids, options_.repetition_penalty, logits[i]);
  }
  if (beams) {
    return running.beams->Advance(
        std::vector<absl::Span<const float>>(logits.begin(), logits.end()));
  }
  Hypothesis& h = hypotheses.front();
  int32_t next = 0;
  if (options_.rule.temperature > 0) {
    NextProbabilities(options_.rule, logits[0]);
    const Philox::Block random = Philox(options_.seed, Purpose::kSample)(
        running.number, static_cast<uint32_t>(h.ids.size()), 0);
    next = PickToken(logits[0], random[0] * 0x1p-32);
  } else {
    next = static_cast<int32_t>(BestIndex(logits[0]));
  }
  h.ids.push_back(next);
  running.done = Ends(h, running.prompt);
}

absl::StatusOr<std::vector<std::vector<int32_t>>> Generator::Generate(
    absl::Span<const std::vector<int32_t>> prompts, uint64_t first,
    absl::FunctionRef<void(size_t, absl::Span<const int32_t>)> on_token) {
  std::vector<std::vector<int32_t>> results;
  const size_t most = std::max<size_t>(1, kAtOnce / options_.beams);
  for (size_t begin = 0; begin < prompts.size(); begin += most) {
    const auto group = prompts.subspan(begin, most);
    RETURN_IF_ERROR(GenerateGroup(
        group, first + begin, [&](size_t i, auto ids) { on_token(begin + i, ids); }, &results));
  }
  return results;
}

void Generator::Reserve(absl::Span<const std::vector<int32_t>> prompts) {
  const ModelConfig& config = session_.config();
  int64_t rows = 0;
  for (const auto& prompt : prompts) {
    const auto size = static_cast<int64_t>(prompt.size());
    rows += size + options_.beams * std::min(options_.max_new_tokens, config.max_tokens() - size);
  }
  const DType type = session_.compute();
  const int64_t block = rows * 2 * config.hidden * SizeOf(type);
  if (block * config.layers > memory_.bytes()) memory_ = LargeMemory(block * config.layers);
  cache_.clear();
  for (int i = 0; i < config.layers; ++i)
    cache_.push_back({memory_.get() + i * block, rows, 2 * config.hidden, 2 * config.hidden, type});
  used_ = 0;
}

absl::Status Generator::GenerateGroup(absl::Span<const std::vector<int32_t>> prompts,
    uint64_t first, absl::FunctionRef<void(size_t, absl::Span<const int32_t>)> on_token,
    std::vector<std::vector<int32_t>>* results) {
  Reserve(prompts);
  std::vector<Running> all;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const size_t size = prompts[i].size();
    Running& running = all.emplace_back(Running{.prompt = size, .number = first + i});
    const Hypothesis prompt = {.ids = prompts[i]};
    if (options_.beams == 1) running.one = {prompt};
    if (options_.beams > 1)
      running.beams.emplace(prompt, options_.beams, options_.length_penalty,
          [this, size](const Hypothesis& h) { return Ends(h, size); });
  }
  const int64_t vocab = session_.config().vocab;
  std::vector<float> logits;
  const auto add = [&](absl::Span<Hypothesis* const> hypotheses) {
    const ConstMat rows = Logits(hypotheses);
    for (int64_t r = 0; r < rows.rows; ++r)
      logits.insert(logits.end(), rows.f32(r), rows.f32(r) + vocab);
  };
  for (bool prompt = true;; prompt = false) {
    if (options_.stop_flag != nullptr && *options_.stop_flag)
      return Error(Exit::kInterrupted, "stopped while generating");
    std::vector<Running*> active;
    std::vector<Hypothesis*> hypotheses;
    std::vector<size_t> ends;
    for (Running& running : all) {
      if (running.ended()) continue;
      active.push_back(&running);
      for (Hypothesis& h : running.hypotheses()) hypotheses.push_back(&h);
      ends.push_back(hypotheses.size());
    }
    if (active.empty()) break;
    logits.clear();
    // Each prompt on its own, so that its results do not depend on the others.
    for (size_t i = 0; prompt && i < hypotheses.size(); ++i) add({&hypotheses[i], 1});
    if (!prompt) add(hypotheses);
    ParallelFor(active.size(), [&](int64_t i) {
      std::vector<absl::Span<float>> own;
      for (size_t h = i > 0 ? ends[i - 1] : 0; h < ends[i]; ++h)
        own.push_back(absl::MakeSpan(logits).subspan(h * vocab, vocab));
      Advance(*active[i], own);
    });
    for (Running* running : active)
      if (options_.beams == 1) on_token(running - all.data(), running->one.front().ids);
  }
  for (const Running& running : all) results->push_back(running.best().ids);
  return absl::OkStatus();
}

}  // namespace cloze
