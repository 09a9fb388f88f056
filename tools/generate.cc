// `cloze generate`: continues texts with a decoder, or maps sources to targets with its encoder.
#include <unistd.h>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "tasks/inference/generator.h"
#include "tools/infer.h"

namespace cloze {
namespace {

struct GenerateCommandOptions {
  InferOptions infer;
  GenerateOptions generate;
  int64_t seed = 1;
  int end_token = -1;
  std::string output = "text";
};

// Prompts, and what is printed for them.
class Prompts {
 public:
  Prompts(Session& session, Generator generator, const GenerateCommandOptions& options)
      : session_(session), generator_(std::move(generator)), options_(options),
        task_(MakeTask(HeadKind::kCausalLm)), encodes_(session.config().encoder != nullptr),
        streams_(options.output == "text" && options.generate.beams == 1 &&
                 (options.infer.out.empty() || options.infer.out == "-") && ::isatty(1) == 1) {}

  // Answers records in order, up to the first wrong one unless options.infer.on_error is "line".
  absl::Status Answer(const std::vector<Record>& records, LineWriter& writer) {
    const auto encode = [&](size_t i, int adapter, std::vector<Query>* prompts) -> absl::Status {
      if (HasNothing(records[i])) return absl::OkStatus();
      ASSIGN_OR_RETURN(Example prompt, Prompt(records[i]));
      prompts->push_back({std::move(prompt), adapter});
      return absl::OkStatus();
    };
    const auto run = [&](absl::Span<const Query> prompts, Emit emit) -> absl::Status {
      for (size_t begin = 0, end; begin < prompts.size(); begin = end) {
        const int adapter = prompts[begin].adapter;
        std::vector<std::vector<int32_t>> ids;
        for (end = begin; end < prompts.size() && prompts[end].adapter == adapter; ++end) {
          // On a terminal a text appears while it grows, so prompts are continued one by one.
          if (streams_ && end > begin) break;
          ids.push_back(prompts[end].ids);
        }
        generator_.UseAdapter(session_.PassAdapter(adapter));
        const auto write = [&](size_t i, auto answer) {
          emit(begin + i, [&](size_t record) { return answer(records[record]); });
        };
        RETURN_IF_ERROR(Generate(ids, write, writer));
      }
      return absl::OkStatus();
    };
    const auto answer_other = [&](size_t i, const absl::StatusOr<int>& adapter) {
      if (!adapter.ok()) return WriteWrong(records[i], adapter.status(), writer);
      ++empty_;
      return Write(records[i], 0, {}, 0, writer);
    };
    return ForEachRecord(session_, records, SourceOf(options_.infer), encode, run, answer_other);
  }
  // Number of wrong records.
  int64_t failed() const { return failed_; }
  // Number of empty prompts, whose answers are empty.
  int64_t empty() const { return empty_; }

 private:
  // True for an empty source, and for a prompt without any character: a decoder continues a space.
  bool HasNothing(const Record& record) const {
    const bool text = record.kind == Record::Kind::kText;
    return encodes_ || !text ? IsEmpty(record) : record.text.empty();
  }

  // Returns a prompt or, for an encoder, the source, with its special tokens.
  absl::StatusOr<Example> Prompt(const Record& record) const {
    CutCounts cut;
    if (!encodes_) {
      ASSIGN_OR_RETURN(
          std::vector<Example> examples, task_->Encode(record, session_.input(), &cut));
      return std::move(examples.front());
    }
    ModelInput input = session_.input();
    input.longest = session_.config().encoder->max_tokens();
    Record source = record;  // without a target that stands beside it
    if (source.kind == Record::Kind::kPair) source.kind = Record::Kind::kText;
    ASSIGN_OR_RETURN(Example example, EncodeRecord(source, input, &cut));
    if (cut.tokens == 0) return example;
    return Error(Exit::kData, "a source of ", std::ssize(example.ids) + cut.tokens,
        " tokens: expected at most ", input.longest, ", the positions of the encoder");
  }

  // Answers a wrong record by its error or, in text, by an empty line.
  absl::Status WriteWrong(const Record& record, const absl::Status& wrong, LineWriter& writer) {
    ++failed_;
    const std::string message(wrong.message());
    if (options_.output == "jsonl") {
      OrderedJson answer = OrderedJson::object();
      if (record.line > 0) answer["line"] = record.line;
      answer["error"] = message;
      return writer.Write(JsonWithId(record, answer));
    }
    std::fprintf(stderr, "cloze: %s\n", message.c_str());
    return streams_ ? WriteStdout("\n") : writer.Write("");
  }

  // Continues prompts; calls emit(i, answer) for each prompt, where answer(record) prints.
  absl::Status Generate(absl::Span<const std::vector<int32_t>> prompts,
      absl::FunctionRef<void(size_t, absl::FunctionRef<absl::Status(const Record&)>)> emit,
      LineWriter& writer) {
    absl::Status status;
    if (streams_) {
      emit(0, [&](const Record& record) {
        return encodes_ ? absl::OkStatus() : WriteStdout(record.text);
      });
    }
    size_t shown = 0;
    const auto stream = [&](size_t, absl::Span<const int32_t> ids) {
      if (!streams_ || !status.ok()) return;
      std::string text = generator_.Continuation(ids, encodes_ ? 1 : prompts[0].size());
      // A replacement character at the end may be the beginning of another one.
      while (text.ends_with("\uFFFD")) text.resize(text.size() - 3);
      // Neither is the beginning of a text of --stop shown.
      size_t held = 0;
      for (const std::string& stop : options_.generate.stop) {
        size_t n = std::min(stop.size(), text.size());
        while (n > held && !absl::EndsWith(text, absl::string_view(stop).substr(0, n))) --n;
        held = std::max(held, n);
      }
      text.resize(text.size() - held);
      if (text.size() <= shown) return;
      status = WriteStdout(text.substr(shown));
      shown = text.size();
    };
    ASSIGN_OR_RETURN(const auto results, generator_.Generate(prompts, next_, stream));
    next_ += prompts.size();
    RETURN_IF_ERROR(status);
    for (size_t i = 0; i < results.size(); ++i) {
      emit(i, [&](const Record& record) {
        return Write(record, encodes_ ? 1 : prompts[i].size(), results[i], shown, writer);
      });
    }
    return absl::OkStatus();
  }

  absl::Status Write(const Record& record, size_t prompt, const std::vector<int32_t>& ids,
      size_t shown, LineWriter& writer) const {
    if (options_.output == "ids") return writer.Write(absl::StrJoin(ids, " "));
    const std::string text = generator_.Continuation(ids, prompt);
    if (streams_) return WriteStdout(text.substr(std::min(shown, text.size())) + "\n");
    if (options_.output == "text") return writer.Write(encodes_ ? text : record.text + text);
    const OrderedJson json = {{"text", record.text}, {"generated", text},
        {"ids", std::vector<int32_t>(ids.begin() + static_cast<int64_t>(prompt), ids.end())}};
    return writer.Write(JsonWithId(record, json));
  }

  Session& session_;
  Generator generator_;
  const GenerateCommandOptions& options_;
  std::unique_ptr<Task> task_;
  const bool encodes_;  // prompts are sources, which an encoder reads
  const bool streams_;
  uint64_t next_ = 0;  // number of the next prompt
  int64_t failed_ = 0, empty_ = 0;
};

absl::Status Generate(GenerateCommandOptions options) {
  GenerateOptions& generate = options.generate;
  SamplingRule& rule = generate.rule;
  if (rule.temperature == 0 && (rule.top_k > 0 || rule.top_p < 1)) rule.temperature = 1;
  if (absl::c_linear_search(generate.stop, "")) return UsageError("--stop: expected a text");
  generate.seed = static_cast<uint64_t>(options.seed);
  generate.end_token = options.end_token;
  generate.stop_flag = StopOnSignals();
  if (const std::string format = FormatByExtension(options.infer.out);
      format == "csv" || format == "tsv" || (format == "jsonl" && options.output != "jsonl"))
    return UsageError(absl::StrCat("--out ", Quote(options.infer.out), ": expected ",
        format == "jsonl" ? "--output-format jsonl with this name"
                          : "another name (generate does not write tables)"));
  RETURN_IF_ERROR(CheckExtension(options.infer.out, options.output == "jsonl"
                                                        ? std::vector<std::string>{"jsonl", "json"}
                                                        : std::vector<std::string>{"txt", "ids"}));
  if (!options.infer.input.texts.empty() &&
      (options.infer.input.path != "-" || !options.infer.input.format.empty()))
    return Error(Exit::kUsage, "--input and --input-format are not for prompts as arguments");
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options.infer));
  options.infer.input.data.clear_text_pair_field();  // the target of the training data
  ASSIGN_OR_RETURN(Generator generator, Generator::Create(*session, generate));
  if (options.output != "ids") RETURN_IF_ERROR(session->TokenizerOr().status());
  Prompts prompts(*session, std::move(generator), options);
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(options.infer.input));
  RETURN_IF_ERROR(WriteOutput(options.infer.out, options.infer.force, [&](LineWriter& writer) {
    return ForEachBatch(reader, writer,
        [&](const std::vector<Record>& records) { return prompts.Answer(records, writer); });
  }));
  ReportEmpty(prompts.empty(), "whose answer is empty");
  return InvalidLines(options.infer.input.name(), prompts.failed());
}

void DeclareChoice(Command& command, GenerateOptions* options) {
  command.Add("--beams", &options->beams,
      "Beam search: the number of hypotheses that are kept. 1: greedy search, or sampling.",
      {.min = 1, .max = 1024});
  command.Add("--length-penalty", &options->length_penalty,
      "Beam search: hypotheses are ranked by log probability / new tokens ^ this.",
      {.min = -100, .max = 100});
  command.Add("--temperature", &options->rule.temperature,
      "Sample from softmax(logits / temperature). 0: greedy, or 1 if --top-k or --top-p is given.",
      {.min = 0, .max = 1000});
  command.Add("--top-k", &options->rule.top_k,
      "Draw from the k likeliest tokens only. 0: from all.", {.min = 0, .max = 1e9});
  command.Add("--top-p", &options->rule.top_p,
      "Draw from the smallest set of the likeliest tokens with at least this total probability.",
      {.min = 0, .max = 1});
  command.Add("--repetition-penalty", &options->repetition_penalty,
      "Divide positive logits of tokens that occurred by this, and multiply negative ones. 1: "
      "none.",
      {.min = 0.01, .max = 100});
}

}  // namespace

void AddGenerate(Command& app) {
  const auto declare = [](Command& command, GenerateCommandOptions& options) {
    AddInferOptions(command, &options.infer, false);
    options.infer.input.blank_lines = true;
    command.Add(
        "prompt", &options.infer.input.texts, "Texts to continue. Default: those of --input.");
    command.Add("--input", &options.infer.input.path,
        "File with prompts: one per line, or a table or JSON lines; - is standard input. The "
        "answer to an empty line is empty.",
        {.type = "FILE"});
    AddInputFormat(command, &options.infer.input);
    AddOnError(command, &options.infer,
        "answer it by an empty line, or with --output-format jsonl by an object with \"error\"");
    command.Add("--output-format", &options.output,
        "text: the prompt and its continuation (of ids, only the continuation), or the target of a "
        "source. jsonl: {\"text\": prompt, \"generated\": text, \"ids\": new ids}. ids: all ids, "
        "between spaces; with an encoder those of the target.",
        {.choices = {"text", "jsonl", "ids"}});
    command.Add("--out", &options.infer.out,
        "File for the texts; it appears when all are written. Default: standard output.",
        {.type = "FILE"});
    command.Add("--force", &options.infer.force, "Replace an existing file.");
    command.Add("--max-new-tokens", &options.generate.max_new_tokens,
        "Maximum number of new tokens for a prompt; generation also ends at the model's last "
        "position.",
        {.min = 1, .max = 1e9});
    DeclareChoice(command, &options.generate);
    command.Add("--seed", &options.seed,
        "Random seed. The same seed, prompt and place of the prompt in the input give the same "
        "text.",
        {.min = 0, .max = 9e18});
    command.Add("--end-token", &options.end_token, "Id that ends a text. -1: the model's.",
        {.min = -1, .max = 1e9});
    command.Add("--stop", &options.generate.stop,
        "Text that ends generation and is not printed. Repeatable.",
        {.type = "TEXT", .repeatable = true});
  };
  app.AddCommand<GenerateCommandOptions>("generate",
      "Continue texts with a decoder, or map texts to texts with an encoder-decoder.",
      "  cloze generate --model models/gpt2 --temperature 0.8 --top-p 0.95 'Once upon a time'\n"
      "  cloze generate --model models/gpt2 --beams 4 --output-format jsonl < prompts.txt",
      declare, Generate);
}

}  // namespace cloze
