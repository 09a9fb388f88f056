#include "tasks/inference/generator.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/algorithm/container.h"
#include "core/base/philox.h"
#include "core/base/threads.h"
#include "tasks/probabilities.h"
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
  if (config.head != HeadKind::kCausalLm && config.head != HeadKind::kSequenceToSequence) {
    return Error(Exit::kMismatch, QuotePath(session.folder()),
        " has no head for causal_lm or sequence_to_sequence: expected a decoder, such as a gpt2 or "
        "marian folder");
  }
  if (options.beams > config.vocab) {
    return Error(Exit::kUsage, "beams ", options.beams, ": expected at most ", config.vocab,
        ", the tokens of the vocabulary");
  }
  if (options.beams > 1 && options.rule.temperature > 0)
    return Error(Exit::kUsage, "beams exclude temperature, top_k and top_p");
  if (options.end_token >= config.vocab) {
    return Error(
        Exit::kUsage, "end_token ", options.end_token, ": expected an id below ", config.vocab);
  }
  if (config.head == HeadKind::kSequenceToSequence && config.generation.start_id < 0) {
    return Error(Exit::kMismatch, QuotePath(session.folder()),
        ": config.json has no decoder_start_token_id, with which targets begin");
  }
  const auto tokenizer = session.TokenizerOr();
  if (!options.stop.empty()) RETURN_IF_ERROR(tokenizer.status());
  return Generator(session.model(), config, tokenizer.ok() ? *tokenizer : nullptr,
      session.compute(), std::move(options));
}

Generator::Generator(Model& model, const ModelConfig& config, const Tokenizer* tokenizer,
    DType compute, GenerateOptions options)
    : model_(model), config_(config), tokenizer_(tokenizer), compute_(compute),
      options_(std::move(options)) {
  if (options_.end_token < 0) options_.end_token = config.end_id;
}

std::string Generator::NewText(absl::Span<const int32_t> ids, size_t prompt) const {
  const Tokenizer& tokenizer = *tokenizer_;
  if (encodes()) ids.remove_prefix(prompt), prompt = 0;
  const size_t before = tokenizer.Decode(ids.subspan(0, prompt)).size();
  std::string text = tokenizer.Decode(ids);
  text.erase(0, std::min(before, text.size()));
  return text;
}

std::string Generator::Continuation(absl::Span<const int32_t> ids, size_t prompt) const {
  if (ids.size() > prompt && ids.back() == options_.end_token) ids.remove_suffix(1);
  std::string text = NewText(ids, prompt);
  for (const std::string& stop : options_.stop) text.resize(std::min(text.size(), text.find(stop)));
  return text;
}

bool Generator::Ends(const Hypothesis& hypothesis, size_t prompt) const {
  const std::vector<int32_t>& ids = hypothesis.ids;
  const auto size = static_cast<int64_t>(ids.size());
  if (ids.back() == options_.end_token || size == config_.max_tokens() ||
      size - static_cast<int64_t>(prompt) == options_.max_new_tokens)
    return true;
  if (options_.stop.empty()) return false;
  const std::string text = NewText(ids, prompt);
  return std::any_of(options_.stop.begin(), options_.stop.end(),
      [&](const std::string& stop) { return text.find(stop) != std::string::npos; });
}

ConstMat Generator::Logits(absl::Span<Hypothesis* const> hypotheses) {
  Batch batch;
  std::vector<int32_t> rows, seen, ends, source, source_ends;
  const bool whole = hypotheses[0]->rows.empty();  // the prompt, which is alone
  for (Hypothesis* h : hypotheses) {
    const auto size = static_cast<int32_t>(h->ids.size());
    for (int32_t i = whole ? 0 : size - 1; i < size; ++i) {
      rows.push_back(used_);
      h->rows.push_back(used_++);
    }
    std::vector<int32_t> ids = whole && encodes() ? *h->source : std::vector<int32_t>();
    const auto before = static_cast<int32_t>(ids.size());  // of type 0, in a model with an encoder
    ids.insert(ids.end(), whole ? h->ids.begin() : h->ids.end() - 1, h->ids.end());
    batch.Add(ids, encodes() ? before : std::ssize(ids), 0);
    batch.rows.push_back(static_cast<int32_t>(batch.tokens() - 1));
    batch.positions.back() = before + size - 1;
    for (int32_t i = 0; encodes() && i < std::ssize(*h->source); ++i)
      source.push_back(h->source_row + i);
    if (whole) continue;
    seen.insert(seen.end(), h->rows.begin(), h->rows.end());
    ends.push_back(static_cast<int32_t>(seen.size()));
    source_ends.push_back(static_cast<int32_t>(source.size()));
  }
  batch.Pad();
  const Decoding decoding = {cache_, rows, seen, ends, source, source_ends};
  model_.arena().Reset();
  Pass pass = model_.NewPass(batch, compute_, false, 0, adapter_);
  pass.decoding = &decoding;
  return Rows(
      ConstMat(model_.head().Logits(pass, model_.backbone().Infer(pass))), 0, hypotheses.size());
}

void Generator::Constrain(
    absl::Span<const int32_t> ids, size_t prompt, absl::Span<float> scores) const {
  if (options_.repetition_penalty != 1)
    PenalizeRepetition(ids, options_.repetition_penalty, scores);
  const GenerationConfig& generation = config_.generation;
  for (const int32_t id : generation.banned) scores[id] = -std::numeric_limits<float>::infinity();
  if (generation.no_repeat_ngram > 0) BanRepeatedSequences(ids, generation.no_repeat_ngram, scores);
  const auto size = std::ssize(ids), added = size - static_cast<int64_t>(prompt);
  const bool goes_on = size < generation.min_length || added < generation.min_new_tokens;
  if (goes_on && options_.end_token >= 0)
    scores[options_.end_token] = -std::numeric_limits<float>::infinity();
  const bool last = std::ssize(ids) + 1 == config_.max_tokens() ||
                    std::ssize(ids) + 1 - static_cast<int64_t>(prompt) == options_.max_new_tokens;
  const int32_t forced = ids.size() == prompt ? generation.forced_first_id : -1,
                id = forced < 0 && last ? generation.forced_last_id : forced;
  if (id < 0) return;
  std::fill(scores.begin(), scores.end(), -std::numeric_limits<float>::infinity());
  scores[id] = 0;
}

void Generator::Advance(Running& running, absl::Span<const absl::Span<float>> logits) const {
  std::vector<Hypothesis>& hypotheses = running.hypotheses();
  const bool beams = running.beams.has_value();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (beams) LogSoftmax(logits[i]);
    Constrain(hypotheses[i].ids, running.prompt, logits[i]);
  }
  if (beams) {
    return running.beams->Advance(
        std::vector<absl::Span<const float>>(logits.begin(), logits.end()));
  }
  Hypothesis& h = hypotheses.front();
  int32_t next = 0;
  if (options_.rule.temperature > 0) {
    NextProbabilities(options_.rule, logits[0]);
    const Philox::Words random = Philox(options_.seed, Purpose::kSample)(
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
  int64_t rows = 0, source_rows = 0;
  for (const auto& prompt : prompts) {
    const int64_t size = encodes() ? 1 : std::ssize(prompt);
    if (encodes()) source_rows += std::ssize(prompt);
    rows += size + options_.beams * std::min(options_.max_new_tokens, config_.max_tokens() - size);
  }
  const DType type = compute_;
  const int64_t row = 2 * config_.hidden * SizeOf(type),
                bytes = (rows + source_rows) * row * config_.layers;
  if (bytes > memory_.bytes()) memory_ = LargeMemory(bytes);
  cache_.clear();
  char* next = memory_.get();
  for (const int64_t count : {rows, source_rows}) {
    for (int i = 0; i < config_.layers; ++i, next += count * row)
      cache_.push_back({next, count, 2 * config_.hidden, 2 * config_.hidden, type});
  }
  used_ = 0;
}

absl::Status Generator::GenerateGroup(absl::Span<const std::vector<int32_t>> prompts,
    uint64_t first, absl::FunctionRef<void(size_t, absl::Span<const int32_t>)> on_token,
    std::vector<std::vector<int32_t>>* results) {
  Reserve(prompts);
  std::vector<Running> all;
  int32_t source_row = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    Hypothesis prompt = {.ids = prompts[i]};
    if (encodes()) {
      prompt = {
          .ids = {config_.generation.start_id}, .source = &prompts[i], .source_row = source_row};
      source_row += static_cast<int32_t>(prompts[i].size());
    }
    const size_t size = prompt.ids.size();
    Running& running = all.emplace_back(Running{.prompt = size, .number = first + i});
    if (options_.beams == 1) running.one = {prompt};
    if (options_.beams > 1)
      running.beams.emplace(prompt, options_.beams, options_.length_penalty,
          [this, size](const Hypothesis& h) { return Ends(h, size); });
  }
  const int64_t vocab = config_.vocab;
  std::vector<float> logits;
  const auto add = [&](absl::Span<Hypothesis* const> hypotheses) {
    const ConstMat rows = Logits(hypotheses);
    for (int64_t r = 0; r < rows.rows; ++r)
      logits.insert(logits.end(), rows.f32(r), rows.f32(r) + vocab);
  };
  for (bool prompt = true;; prompt = false) {
    RETURN_IF_ERROR(CheckStopped(options_.stop_flag, "generating"));
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
    std::atomic<bool> finite = true;
    ParallelFor(active.size(), [&](int64_t i) {
      std::vector<absl::Span<float>> own;
      for (size_t h = i > 0 ? ends[i - 1] : 0; h < ends[i]; ++h)
        own.push_back(absl::MakeSpan(logits).subspan(h * vocab, vocab));
      if (absl::c_all_of(own, AllFinite)) return Advance(*active[i], own);
      finite = false;
    });
    if (!finite) return NotFinite();
    for (Running* running : active)
      if (options_.beams == 1) on_token(running - all.data(), running->one.front().ids);
  }
  for (const Running& running : all) results->push_back(running.best().ids);
  return absl::OkStatus();
}

}  // namespace cloze
