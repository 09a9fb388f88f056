// `cloze encode`: vectors of texts, as safetensors.
#include "core/tensor/safetensors.h"
#include "tools/infer.h"

namespace cloze {
namespace {

struct Options {
  InferOptions infer;
  std::string out, pool = "none";
  bool all_layers = false;
};

// Adds `hidden` [tokens, hidden], reduced as `pool` says: "class" or "mean" give [hidden].
absl::Status AddTensor(
    SafetensorsStream& out, const std::string& name, ConstMat hidden, const std::string& pool) {
  const auto rows = [&](int64_t n) {
    return absl::MakeSpan(hidden.f32(), static_cast<size_t>(n * hidden.cols));
  };
  if (pool == "none") return out.Add(name, {hidden.rows, hidden.cols}, rows(hidden.rows));
  if (pool == "class") return out.Add(name, {hidden.cols}, rows(1));
  std::vector<float> mean(hidden.cols);
  for (int64_t c = 0; c < hidden.cols; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < hidden.rows; ++r) sum += hidden.f32(r)[c];
    mean[c] = static_cast<float>(sum / hidden.rows);
  }
  return out.Add(name, {hidden.cols}, mean);
}

absl::Status Encode(Options options) {
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options.infer));
  ASSIGN_OR_RETURN(SafetensorsStream out, SafetensorsStream::Create(options.out));
  CutCounts cut;
  int64_t number = 0;
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(options.infer.input));
  LineWriter writer;
  RETURN_IF_ERROR(ForEachRecords(reader, writer, [&](const std::vector<Record>& records) {
    std::vector<Query> queries;
    for (const Record& record : records) {
      const std::string where = absl::StrCat(SourceOf(options.infer.input), ":", record.line);
      const auto adapter = session->AdapterNamed(record.adapter);
      if (!adapter.ok()) return Annotate(adapter.status(), where);
      auto example = EncodeRecord(record, session->input(), &cut);
      if (!example.ok()) return Annotate(example.status(), where);
      queries.push_back({*std::move(example), *adapter});
    }
    absl::Status status;
    RETURN_IF_ERROR(
        session->Hidden(queries, !options.all_layers, [&](int64_t i, int layer, ConstMat hidden) {
          const std::string name =
              options.all_layers ? absl::StrCat(number + i, ".", layer) : absl::StrCat(number + i);
          if (status.ok()) status = AddTensor(out, name, hidden, options.pool);
        }));
    number += records.size();
    return status;
  }));
  ReportCut(cut);
  return out.Finish();
}

}  // namespace

void AddEncode(Command& app) {
  const auto declare = [](Command& command, Options& options) {
    AddInferOptions(command, &options.infer);
    command.Add(
        "--out", &options.out, "Safetensors file to write; must not exist.", {.required = true});
    command.Add("--pool", &options.pool,
        "class: only the vector [hidden] of the first token. mean: the mean [hidden] of all "
        "tokens.",
        {.choices = {"none", "class", "mean"}});
    command.Add("--all-layers", &options.all_layers,
        "Write all layers, named LINE.LAYER. Layer 0 holds the embeddings.");
  };
  app.AddCommand<Options>("encode",
      "Write the hidden states of texts to a safetensors file. Each line that is not blank gives a "
      "tensor [tokens, hidden], named 0, 1, and so on.",
      "  cloze encode --model models/bert --pool mean --out vectors.safetensors texts.txt\n"
      "  cloze encode --model models/bert --out tokens.safetensors < texts.txt",
      declare, Encode);
}

}  // namespace cloze
