// The C API over Engine. No exception and no C++ type leaves these functions.
#include "tools/library/cloze.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "core/base/system.h"
#include "core/base/text.h"
#include "tools/library/engine.h"
#include "tools/library/handles.h"

struct cloze_result {
  struct Text {
    cloze_status status = CLOZE_OK;
    std::string json;  // or what is wrong
  };
  std::vector<Text> texts;
  std::optional<cloze::Vectors> vectors;  // of cloze_embed, whose texts have no JSON

  absl::Status CheckIndex(int64_t i) const {
    if (i >= 0 && i < std::ssize(texts)) return absl::OkStatus();
    return cloze::Error(cloze::Exit::kUsage, "text ", i, ": the result has ", texts.size());
  }
};

namespace cloze {
namespace {

Handles<cloze_model, Engine>& Models() {
  static auto* const models = new Handles<cloze_model, Engine>(0);
  return *models;
}
Handles<cloze_result, const cloze_result>& AllResults() {
  static auto* const results = new Handles<cloze_result, const cloze_result>(1);
  return *results;
}

std::string& LastError() {
  thread_local std::string error;
  return error;
}

// Calls f, which neither throws nor returns more than a status; keeps its error for cloze_error.
template <typename F>
cloze_status Guarded(F f) noexcept {
  try {
    const absl::Status status = Caught(f, "less or shorter text at once");
    if (status.ok()) return CLOZE_OK;
    LastError() = std::string(status.message());
    std::replace(LastError().begin(), LastError().end(), '\n', ' ');
    return static_cast<cloze_status>(ExitOf(status));
  } catch (...) {
    LastError().clear();
    LastError() = "out of memory";  // in the string itself
    return CLOZE_LIMIT;
  }
}

// Runs Guarded(f) as one call, for which a fork waits.
template <typename F>
cloze_status Border(F f) noexcept {
  return Guarded([&]() -> absl::Status {
    const Call call;
    return f();
  });
}

// Copies the struct of a caller into *own. That of a later version is longer.
template <typename T>
absl::Status ReadStruct(const T* given, const char* name, T* own) {
  constexpr size_t kMax = 4096;
  if (given == nullptr) return absl::OkStatus();
  const size_t size = given->size;
  bool sound = size >= sizeof(T) && size <= kMax;
  for (size_t i = sizeof(T); sound && i < size; ++i)
    sound = reinterpret_cast<const char*>(given)[i] == 0;  // a setting of a later version
  if (!sound)
    return Error(Exit::kUsage, name, ".size: ", size, ": expected sizeof ", name, ", ", sizeof(T));
  std::memcpy(own, given, sizeof(T));
  return absl::OkStatus();
}

// Checks a pointer and a length, and copies the text. kData if it is not UTF-8.
absl::Status ReadText(const char* text, int64_t length, const char* name, std::string* out) {
  if (text == nullptr) return Error(Exit::kUsage, name, ": is NULL");
  constexpr int64_t kMax = 0x7FFFFFFF;
  if (length < 0 || length > kMax)
    return Error(Exit::kUsage, name, ": length ", length, ": expected 0 to ", kMax);
  out->assign(text, length);
  if (!IsUtf8(*out)) return Error(Exit::kData, name, ": not UTF-8: \"", Quote(*out, 40), "\"");
  return absl::OkStatus();
}

absl::StatusOr<Record> ReadRecord(const cloze_text& given) {
  Record record;
  RETURN_IF_ERROR(ReadText(given.text, given.length, "text", &record.text));
  if (given.pair != nullptr) {
    record.kind = Record::Kind::kPair;
    RETURN_IF_ERROR(ReadText(given.pair, given.pair_length, "pair", &record.text_pair));
  } else if (given.pair_length != 0) {
    return Error(Exit::kUsage, "pair: is NULL, with a length of ", given.pair_length);
  }
  if (given.adapter != nullptr) record.adapter = given.adapter;
  return record;
}

// A call with texts: its model, records and settings.
struct Texts {
  std::shared_ptr<Engine> engine;
  std::vector<Record> records;
  cloze_settings settings{};

  static absl::StatusOr<Texts> Read(
      cloze_model* model, const cloze_text* texts, int64_t count, const cloze_settings* settings) {
    Texts call;
    ASSIGN_OR_RETURN(call.engine, Models().Find(model));
    cloze_settings& own = call.settings;
    RETURN_IF_ERROR(ReadStruct(settings, "settings", &own));
    if (own.each < 0 || own.each > 1 || own.tokens < 0 || own.tokens > 1 || own.normalize < -1 ||
        own.normalize > 1)
      return Error(Exit::kUsage, "settings: each and tokens: expected 0 or 1; normalize: -1 to 1");
    if (count < 0 || (texts == nullptr && count > 0))
      return Error(Exit::kUsage, "texts: ", count < 0 ? "a negative count" : "are NULL");
    for (int64_t i = 0; i < count; ++i) {
      absl::StatusOr<Record> record = ReadRecord(texts[i]);
      if (!record.ok() && ExitOf(record.status()) != Exit::kData)
        return Annotate(record.status(), "texts[", i, "]");
      if (!record.ok()) call.records.emplace_back().wrong = record.status();
      if (record.ok()) call.records.push_back(*std::move(record));
    }
    return call;
  }
  // Adds the next text to *result. Unless each text has its own status, an error is that of the
  // call.
  absl::Status Add(const absl::Status& status, std::string json, cloze_result* result) const {
    if (settings.each == 0) RETURN_IF_ERROR(Annotate(status, "texts[", result->texts.size(), "]"));
    if (!status.ok()) json = std::string(status.message());
    result->texts.push_back({static_cast<cloze_status>(ExitOf(status)), std::move(json)});
    return absl::OkStatus();
  }
};

// Sets *result to a new result that fill(call, &result) has filled.
template <typename F>
cloze_status MakeResult(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result, F fill) noexcept {
  return Border([&]() -> absl::Status {
    if (result == nullptr) return Error(Exit::kUsage, "result: is NULL");
    *result = nullptr;
    ASSIGN_OR_RETURN(const Texts call, Texts::Read(model, texts, count, settings));
    auto own = std::make_shared<cloze_result>();
    RETURN_IF_ERROR(fill(call, own.get()));
    *result = AllResults().Add(std::move(own));
    return absl::OkStatus();
  });
}

// Sets *result to the texts of f(call), an answer for each record.
template <typename F>
cloze_status AnswerTexts(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result, F f) noexcept {
  const auto fill = [&](const Texts& call, cloze_result* own) -> absl::Status {
    const absl::StatusOr<Results<OrderedJson>> answers = f(call);
    RETURN_IF_ERROR(answers.status());
    for (const absl::StatusOr<OrderedJson>& answer : *answers)
      RETURN_IF_ERROR(call.Add(answer.status(), answer.ok() ? ToJsonLine(*answer) : "", own));
    return absl::OkStatus();
  };
  return MakeResult(model, texts, count, settings, result, fill);
}

// Returns the function that answers for the model.
const char* AnsweringFunction(const Engine& engine) {
  static constexpr std::pair<absl::string_view, const char*> kFunctions[] = {
      {"sequence_classification", "cloze_predict"}, {"question_answering", "cloze_predict"},
      {"token_tagging", "cloze_tag"}, {"masked_lm", "cloze_fill"},
      {"causal_lm", "the program, `cloze generate`"},
      {"sequence_to_sequence", "the program, `cloze generate`"}};
  for (const auto& [kind, function] : kFunctions)
    if (engine.kind() == kind) return function;
  return "cloze_embed";
}

// Answers texts by the function `name`; by any if it is null.
absl::StatusOr<Results<OrderedJson>> Answer(const Texts& call, const char* name) {
  const std::string fits = AnsweringFunction(*call.engine);
  if (name != nullptr && fits != name)
    return Error(
        Exit::kUsage, name, ": not for a model of ", call.engine->kind(), ": expected ", fits);
  return call.engine->Answer(call.records, call.settings.top == 0 ? 5 : call.settings.top);
}

OrderedJson TokensOf(const Engine& engine, const Record& record, const Encoding& encoding) {
  OrderedJson tokens = OrderedJson::array(), chars = tokens, bytes = tokens, words = tokens;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    tokens.push_back(engine.Token(encoding.ids[i]));
    chars.push_back({encoding.chars[i].begin, encoding.chars[i].end});
    bytes.push_back({encoding.bytes[i].begin, encoding.bytes[i].end});
    words.push_back(encoding.words[i] < 0 ? OrderedJson() : OrderedJson(encoding.words[i]));
  }
  OrderedJson json = InputMembers(record);
  json.update({{"ids", encoding.ids}, {"tokens", tokens}, {"offsets", chars},
      {"byte_offsets", bytes}, {"word_ids", words}});
  if (record.kind == Record::Kind::kPair) json["token_type_ids"] = encoding.types;
  return json;
}

absl::StatusOr<EngineOptions> EngineOptionsOf(const char* folder, const cloze_options& options) {
  if (options.threads < 0)
    return Error(Exit::kUsage, "threads: ", options.threads, ": expected 0 or more");
  if (options.adapters == nullptr && options.adapter_count > 0)
    return Error(Exit::kUsage, "adapters: are NULL");
  EngineOptions own{.folder = folder};
  if (options.compute != nullptr) own.compute = options.compute;
  for (size_t i = 0; i < options.adapter_count; ++i) {
    if (options.adapters[i] == nullptr) return Error(Exit::kUsage, "adapters[", i, "]: is NULL");
    own.adapters.push_back(NamedAdapter::Parse(options.adapters[i]));
  }
  return own;
}

}  // namespace

extern "C" {

CLOZE_API const char* cloze_version() { return CLOZE_VERSION; }

CLOZE_API const char* cloze_error() { return LastError().c_str(); }

CLOZE_API cloze_status cloze_open(
    const char* folder, const cloze_options* options, cloze_model** model) {
  return Guarded([&]() -> absl::Status {
    if (model == nullptr) return Error(Exit::kUsage, "model: is NULL");
    *model = nullptr;
    if (folder == nullptr) return Error(Exit::kUsage, "folder: is NULL");
    cloze_options own{};
    RETURN_IF_ERROR(ReadStruct(options, "options", &own));
    ASSIGN_OR_RETURN(const EngineOptions how, EngineOptionsOf(folder, own));
    static std::atomic<bool> chosen = false;
    if (!chosen.exchange(true) || own.threads > 0) Engine::UseThreads(own.threads);
    const Call call;
    ASSIGN_OR_RETURN(std::shared_ptr<Engine> engine, Engine::Open(how));
    *model = Models().Add(std::move(engine));
    return absl::OkStatus();
  });
}

CLOZE_API cloze_status cloze_close(cloze_model* model) {
  if (model == nullptr) return CLOZE_OK;
  return Border([&] { return Models().Remove(model).status(); });
}

CLOZE_API cloze_status cloze_info(cloze_model* model, cloze_result** result) {
  const cloze_text none = {"", 0, nullptr, 0, nullptr};
  return AnswerTexts(model, &none, 1, nullptr, result, [](const Texts& call) {
    const Engine& engine = *call.engine;
    const OrderedJson info = {{"kind", engine.kind()}, {"labels", engine.config().labels},
        {"adapters", engine.adapters()}, {"compute", engine.compute()},
        {"max_tokens", engine.max_tokens()}, {"dimensions", engine.dimensions()}};
    return Results<OrderedJson>{info};
  });
}

CLOZE_API cloze_status cloze_predict(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result) {
  return AnswerTexts(model, texts, count, settings, result,
      [](const Texts& call) { return Answer(call, "cloze_predict"); });
}

CLOZE_API cloze_status cloze_tag(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result) {
  return AnswerTexts(model, texts, count, settings, result,
      [](const Texts& call) { return Answer(call, "cloze_tag"); });
}

CLOZE_API cloze_status cloze_fill(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result) {
  return AnswerTexts(model, texts, count, settings, result,
      [](const Texts& call) { return Answer(call, "cloze_fill"); });
}

CLOZE_API cloze_status cloze_score(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result) {
  return AnswerTexts(model, texts, count, settings, result, [](const Texts& call) {
    return call.engine->Score(call.records, call.settings.tokens != 0);
  });
}

CLOZE_API cloze_status cloze_tokenize(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result) {
  return AnswerTexts(model, texts, count, settings, result, [](const Texts& call) {
    Results<OrderedJson> tokens;
    for (const Record& record : call.records) {
      const auto encoding = call.engine->Tokenize(record);
      if (encoding.ok()) tokens.emplace_back(TokensOf(*call.engine, record, *encoding));
      if (!encoding.ok()) tokens.emplace_back(encoding.status());
    }
    return tokens;
  });
}

CLOZE_API cloze_status cloze_embed(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result) {
  const auto fill = [](const Texts& call, cloze_result* own) -> absl::Status {
    const cloze_settings& given = call.settings;
    EmbedOptions how = {.dimensions = given.dimensions, .tokens = given.tokens != 0};
    if (given.pool != nullptr) how.pool = given.pool;
    if (given.prompt != nullptr) how.prompt = given.prompt;
    if (given.normalize != 0) how.normalize = given.normalize > 0;
    ASSIGN_OR_RETURN(own->vectors, call.engine->Embed(call.records, how));
    for (const absl::Status& status : own->vectors->status)
      RETURN_IF_ERROR(call.Add(status, "", own));
    return absl::OkStatus();
  };
  return MakeResult(model, texts, count, settings, result, fill);
}

CLOZE_API cloze_status cloze_answer(
    cloze_model* model, const char* text, int64_t length, cloze_result** result) {
  const cloze_text one = {text, length, nullptr, 0, nullptr};
  return AnswerTexts(
      model, &one, 1, nullptr, result, [](const Texts& call) { return Answer(call, nullptr); });
}

CLOZE_API int64_t cloze_count(const cloze_result* result) {
  int64_t count = -1;
  Border([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto own, AllResults().Find(result));
    count = std::ssize(own->texts);
    return absl::OkStatus();
  });
  return count;
}

CLOZE_API cloze_status cloze_json(
    const cloze_result* result, int64_t i, const char** text, int64_t* length) {
  if (text != nullptr) *text = "";
  if (length != nullptr) *length = 0;
  return Border([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto own, AllResults().Find(result));
    RETURN_IF_ERROR(own->CheckIndex(i));
    const auto& [status, json] = own->texts[i];
    if (text != nullptr) *text = json.c_str();
    if (length != nullptr) *length = std::ssize(json);
    return status == CLOZE_OK ? absl::OkStatus() : Error(static_cast<Exit>(status), json);
  });
}

CLOZE_API cloze_status cloze_vectors(
    const cloze_result* result, int64_t i, const float** values, int64_t* rows, int64_t* cols) {
  return Border([&]() -> absl::Status {
    if (values == nullptr || rows == nullptr || cols == nullptr)
      return Error(Exit::kUsage, "values, rows or cols: is NULL");
    *values = nullptr, *rows = *cols = 0;
    ASSIGN_OR_RETURN(const auto own, AllResults().Find(result));
    if (!own->vectors.has_value())
      return Error(Exit::kUsage, "result: has no vectors: expected one of cloze_embed");
    if (i != -1) RETURN_IF_ERROR(own->CheckIndex(i));
    const Vectors& vectors = *own->vectors;
    const int64_t begin = i < 0 ? 0 : vectors.begin[i];
    *rows = (i < 0 ? vectors.begin.back() : vectors.begin[i + 1]) - begin;
    *cols = vectors.dimensions;
    *values = vectors.values.data() + begin * vectors.dimensions;
    return absl::OkStatus();
  });
}

CLOZE_API cloze_status cloze_free(cloze_result* result) {
  if (result == nullptr) return CLOZE_OK;
  return Border([&] { return AllResults().Remove(result).status(); });
}

}  // extern "C"
}  // namespace cloze
