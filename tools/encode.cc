// `cloze encode`: vectors of texts, as one matrix, or hidden states of tokens.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "core/ops/rows.h"
#include "core/ops/stored_matrix.h"
#include "core/tensor/safetensors.h"
#include "tools/infer.h"
#include "tools/text_vectors.h"

namespace cloze {
namespace {

struct EncodeOptions {
  InferOptions infer;                // with the output
  std::string prompt, type = "f32";  // of the elements of a matrix
  TextPooling how;                   // with the rules of the folder, unless --pool is given
  int64_t columns = 0;               // of a vector
  bool all_layers = false;
  int64_t failed = 0;  // wrong lines so far, with --on-error line
};

// Receives record, its number, layer, hidden [tokens, hidden]; for a wrong record its error, for
// that and for one without a token a row of zeros.
using Layer =
    std::function<absl::Status(const Record&, const absl::Status& wrong, int64_t, int, ConstMat)>;

// Calls f for each layer, or the last layer, of all records. A wrong one ends the command, or with
// --on-error line is reported and gets one row of zeros.
absl::Status ForEachLayer(EncodeOptions& options, Session& session, const Layer& f) {
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(options.infer.input));
  LineWriter writer;
  CutCounts cut;
  int64_t number = 0, empty = 0;
  const auto answer = [&](const std::vector<Record>& records) -> absl::Status {
    RETURN_IF_ERROR(ForEachHidden(session, records, SourceOf(options.infer), options.how.vectors,
        !options.all_layers, &cut,
        [&](size_t i, const absl::Status& wrong, int layer, ConstMat hidden) {
          options.failed += !wrong.ok();
          if (!wrong.ok())
            std::fprintf(stderr, "cloze: %s\n", std::string(wrong.message()).c_str());
          return f(records[i], wrong, number + i, layer, hidden);
        }));
    empty += absl::c_count_if(records, IsEmpty);
    number += std::ssize(records);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachBatch(reader, writer, answer));
  ReportCut(cut);
  ReportEmpty(empty, "whose vector is that of no words");
  return absl::OkStatus();
}

// Returns the vector of a record of ForEachLayer.
std::vector<float> VectorOf(
    const EncodeOptions& options, const absl::Status& wrong, ConstMat hidden) {
  return wrong.ok() ? TextVector(hidden, options.how) : std::vector<float>(options.columns);
}

// Tensors named by their numbers.
absl::Status WriteTensors(EncodeOptions& options, Session& session) {
  ASSIGN_OR_RETURN(
      SafetensorsStream out, SafetensorsStream::Create(options.infer.out, options.infer.force));
  const auto add = [&](const Record&, const absl::Status& wrong, int64_t number, int layer,
                       ConstMat hidden) {
    const std::string name =
        options.all_layers ? absl::StrCat(number, ".", layer) : absl::StrCat(number);
    if (options.how.pool != "none")
      return out.Add(name, {options.columns}, VectorOf(options, wrong, hidden));
    return out.Add(name, {hidden.rows, hidden.cols},
        absl::MakeSpan(hidden.f32(), static_cast<size_t>(hidden.rows * hidden.cols)));
  };
  RETURN_IF_ERROR(ForEachLayer(options, session, add));
  return out.Finish();
}

// Returns the ids as a list in JSON, null where there is none; "" if there are none.
std::string IdList(const std::vector<std::string>& ids) {
  const bool any = std::any_of(ids.begin(), ids.end(), [](const auto& id) { return id != "null"; });
  return any ? absl::StrCat("[", absl::StrJoin(ids, ", "), "]") : "";
}

// The tensor "vectors" [texts, hidden], and the metadata "ids".
absl::Status WriteMatrix(EncodeOptions& options, Session& session) {
  ASSIGN_OR_RETURN(
      SafetensorsStream out, SafetensorsStream::Create(options.infer.out, options.infer.force));
  std::vector<std::string> ids;
  RETURN_IF_ERROR(out.Add("vectors", {0, options.columns}, {}));
  RETURN_IF_ERROR(ForEachLayer(options, session,
      [&](const Record& record, const absl::Status& wrong, int64_t, int, ConstMat hidden) {
        ids.push_back(record.id.empty() ? "null" : record.id);
        return out.Add("vectors", {1, options.columns}, VectorOf(options, wrong, hidden));
      }));
  Metadata metadata = DefaultMetadata();
  if (std::string list = IdList(ids); !list.empty()) metadata["ids"] = std::move(list);
  return out.Finish(metadata);
}

// The matrix of WriteMatrix in bf16, or in int8 with "vectors_scale" [texts, 1]: each vector has
// the scale at which its largest element is 127.
absl::Status WriteNarrowMatrix(EncodeOptions& options, Session& session) {
  const int64_t cols = options.columns;
  const bool int8 = options.type == "int8";
  std::vector<std::string> ids;
  std::vector<float> scales;
  std::vector<int8_t> bytes;
  std::vector<Bf16> halves;
  RETURN_IF_ERROR(ForEachLayer(options, session,
      [&](const Record& record, const absl::Status& wrong, int64_t, int, ConstMat hidden) {
        const std::vector<float> v = VectorOf(options, wrong, hidden);
        if (!AllFinite(v)) return NotFinite();
        ids.push_back(record.id.empty() ? "null" : record.id);
        const ConstMat row = View(v.data(), 1, cols);
        if (int8) {
          const Int8Matrix rounded = QuantizeMatrix(row);
          scales.push_back(rounded.scale[0]);
          bytes.insert(bytes.end(), rounded.q.begin(), rounded.q.end());
        } else {
          halves.resize(halves.size() + cols);
          Convert(row, {&halves[halves.size() - cols], 1, cols, cols, DType::kBf16});
        }
        return absl::OkStatus();
      }));
  Metadata metadata = DefaultMetadata();
  if (std::string list = IdList(ids); !list.empty()) metadata["ids"] = std::move(list);
  const int64_t rows = std::ssize(ids);
  std::vector<TensorData> tensors = {{"vectors", {rows, cols}, FileType::kBf16, halves.data()}};
  if (int8)
    tensors = {{"vectors", {rows, cols}, FileType::kI8, bytes.data()},
        {"vectors_scale", {rows, 1}, FileType::kF32, scales.data()}};
  return ReplaceSafetensors(options.infer.out, tensors, metadata);
}

// Writes the matrix of a .npy file, and the id of each row to *ids.
absl::Status WriteNpyRows(EncodeOptions& options, Session& session, const std::string& path,
    const Fd& fd, std::vector<std::string>* ids) {
  constexpr size_t kHeader = 128;
  const std::string blank(kHeader, ' ');
  RETURN_IF_ERROR(WriteAll(fd, path, blank.data(), kHeader));
  RETURN_IF_ERROR(ForEachLayer(options, session,
      [&](const Record& record, const absl::Status& wrong, int64_t, int, ConstMat hidden) {
        ids->push_back(record.id.empty() ? "null" : record.id);
        const std::vector<float> v = VectorOf(options, wrong, hidden);
        return WriteAll(fd, path, v.data(), static_cast<int64_t>(v.size() * sizeof(float)));
      }));
  std::string header = absl::StrCat(absl::string_view("\x93NUMPY\x01\x00\x76\x00", 10),
      "{'descr': '<f4', 'fortran_order': False, 'shape': (", ids->size(), ", ", options.columns,
      "), }");
  header.resize(kHeader - 1, ' ');
  header += '\n';
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return Errno(Exit::kIo, "cannot seek", path);
  return WriteAll(fd, path, header.data(), kHeader);
}

// NumPy's format 1.0, float32 in C order; the ids go to FILE.ids.json. The ids get their name
// first, when no matrix has it: none is ever without its ids or beside those of another.
absl::Status WriteNpy(EncodeOptions& options, Session& session) {
  const std::string& out = options.infer.out;
  const std::string list_of_ids = out + ".ids.json";
  RETURN_IF_ERROR(CheckOutput(list_of_ids, options.infer.force));
  std::string list;
  bool named = false;
  const auto create = [&](const std::string& temporary) -> absl::Status {
    std::vector<std::string> ids;
    RETURN_IF_ERROR(CreateFile(
        temporary, [&](const Fd& fd) { return WriteNpyRows(options, session, out, fd, &ids); }));
    list = IdList(ids);
    if (list.empty()) {
      if (PathExists(list_of_ids)) ::unlink(out.c_str()), ::unlink(list_of_ids.c_str());
      return absl::OkStatus();
    }
    const auto write = [&](const std::string& name) -> absl::Status {
      RETURN_IF_ERROR(WriteNewFile(name, list + "\n"));
      named = options.infer.force;
      if (named) ::unlink(out.c_str());
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(ReplaceFile(list_of_ids, write, options.infer.force));
    named = true;
    return absl::OkStatus();
  };
  absl::Status status = ReplaceFile(out, create, options.infer.force);
  if (!status.ok() && named) ::unlink(list_of_ids.c_str());
  return status;
}

// JSON lines on standard output.
absl::Status PrintVectors(EncodeOptions& options, Session& session) {
  return ForEachLayer(options, session,
      [&](const Record& record, const absl::Status& wrong, int64_t, int, ConstMat hidden) {
        if (!wrong.ok()) {
          const OrderedJson answer = {
              {"line", record.line}, {"error", std::string(wrong.message())}};
          return WriteStdout(JsonWithId(record, answer) + "\n");
        }
        OrderedJson vector = OrderedJson::array();
        for (const float x : TextVector(hidden, options.how)) vector.push_back(Decimal(x));
        return WriteStdout(absl::StrCat("{\"id\": ", record.id.empty() ? "null" : record.id,
            ", \"vector\": ", ToJsonLine(vector), "}\n"));
      });
}

// Sets the pooling as a folder of sentence-transformers does, else the mean.
absl::Status SetDefaultPool(EncodeOptions* options) {
  ASSIGN_OR_RETURN(
      auto vectors, VectorsOf(options->infer.model, "--pool chooses a pooling instead"));
  const bool normalize = options->how.normalize;
  ASSIGN_OR_RETURN(options->how, FolderPooling(std::move(vectors), options->prompt));
  options->how.normalize |= normalize;
  return absl::OkStatus();
}

absl::Status EncodeInput(EncodeOptions options) {
  const std::string& out = options.infer.out;
  const bool npy = absl::EndsWithIgnoreCase(out, ".npy"), print = out == "-";
  if (!options.how.pool.empty() && !options.prompt.empty())
    return UsageError("--prompt: of the folder's own vectors: expected no --pool with it");
  if (npy || print || options.type != "f32" || !options.prompt.empty())
    RETURN_IF_ERROR(options.how.pool.empty() ? SetDefaultPool(&options) : absl::OkStatus());
  if (options.how.pool.empty()) options.how.pool = "none";
  if (options.how.pool == "none" && options.how.normalize)
    return UsageError("--normalize: expected --pool class, mean or max with it");
  if ((npy || print) && (options.how.pool == "none" || options.all_layers)) {
    return UsageError(
        "--out: hidden states of tokens and layers need a .safetensors file: expected --pool "
        "class, mean or max");
  }
  const bool matrix = options.how.pool != "none" && !options.all_layers;
  if (options.type != "f32" && (npy || print || !matrix)) {
    return UsageError(absl::StrCat("--type ", options.type,
        ": expected --pool and a .safetensors file, whose vectors can have it"));
  }
  if (options.all_layers && options.infer.on_error == "line")
    return UsageError("--on-error line: not with --all-layers");
  if (out.empty()) return UsageError("--out: expected a file, or -");
  RETURN_IF_ERROR(CheckExtension(out, {"npy", "safetensors"}, ", or - for JSON lines"));
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options.infer));
  options.columns = ColumnsOf(options.how, session->config().hidden);
  InputOptions& input = options.infer.input;
  if (!input.text_field.empty() && input.text_pair_field.empty())
    input.data.clear_text_pair_field();  // the run's pair
  if (!print) {
    RETURN_IF_ERROR(CheckOutput(out, options.infer.force));
    StopOnSignals();  // removes the temporary file
  }
  RETURN_IF_ERROR(print                   ? PrintVectors(options, *session)
                  : npy                   ? WriteNpy(options, *session)
                  : options.type != "f32" ? WriteNarrowMatrix(options, *session)
                  : matrix                ? WriteMatrix(options, *session)
                                          : WriteTensors(options, *session));
  return InvalidLines(
      QuoteInput(input.path), options.failed, print ? kSeeErrors : ", whose vectors are zero");
}

}  // namespace

void AddEncode(Command& app) {
  const auto declare = [](Command& command, EncodeOptions& options) {
    AddInferOptions(command, &options.infer);
    command.Add("--out", &options.infer.out,
        "File to write. NAME.npy: a matrix for NumPy, with NAME.npy.ids.json if the input has ids. "
        "-: JSON lines on standard output. NAME.safetensors or a name without extension: "
        "safetensors.",
        {.required = true});
    command.Add("--pool", &options.how.pool,
        "One vector per text, a row of the matrix \"vectors\" [texts, hidden]. class, cls: of the "
        "first token. mean, max: of all tokens. none: all tokens, a tensor [tokens, hidden] per "
        "text, named 0, 1, and so on. Default for .npy and -: as sentence-transformers would with "
        "this folder (modules.json: pooling, normalization, max_seq_length), else mean; for "
        "other files none.",
        {.choices = {"none", "class", "cls", "mean", "max"}});
    command.Add("--prompt", &options.prompt,
        "Put the folder's prompt for queries or for documents before each text, as `cloze search` "
        "and `evaluate` do, if it has one. Models such as E5 need it for documents.",
        {.choices = {"query", "document"}});
    command.Add("--type", &options.type,
        "Type of the vectors in a .safetensors file with --pool: int8 has a scale for each vector, "
        "in \"vectors_scale\". `cloze search` reads all three.",
        {.choices = {"f32", "bf16", "int8"}});
    command.Add("--normalize", &options.how.normalize, "Scale each vector to length 1.");
    command.Add("--all-layers", &options.all_layers,
        "Write all layers, as tensors named NUMBER.LAYER: texts are numbered from 0; layer 0 holds "
        "the embeddings.");
    command.Add("--force", &options.infer.force, "Replace an existing file.");
    AddOnError(command, &options.infer,
        "it gets a row of zeros and is named on standard error (with --out -, an object with "
        "\"error\"); not with --all-layers");
  };
  app.AddCommand<EncodeOptions>("encode",
      "Write embeddings of texts: one vector per text or one per token. Texts are lines "
      "or rows of a table.",
      "  cloze encode --model models/bert --pool mean --normalize --out vectors.npy new.csv\n"
      "  cloze encode --model models/bert --out tokens.safetensors < texts.txt",
      declare, EncodeInput);
}

}  // namespace cloze
