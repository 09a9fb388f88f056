// Bodies of requests to cloze-serve. The first byte chooses the route. Each body is refused in both
// forms of errors, or becomes records whose answers make a body that is JSON.
#include "tests/fuzz/input.h"
#include "tests/tools/library/models.h"
#include "tools/serve/routes.h"

namespace cloze {
namespace {

constexpr const char* kPaths[] = {"/embed", "/embed_all", "/similarity", "/predict", "/rerank",
    "/tokenize", "/v1/embeddings", "/tag", "/fill-mask", "/"};

// A model of each kind.
struct Served {
  Served() {
    const std::string path = folder.path() + "/";
    WriteModel(path + "classifier", HeadKind::kSequenceClassification);
    WriteModel(path + "tagger", HeadKind::kTokenTagging);
    WriteModel(path + "masked", HeadKind::kMaskedLm);
    WriteModel(path + "plain", HeadKind::kNone);
    auto opened =
        ServedModels::Open({path + "classifier", path + "tagger", path + "masked", path + "plain"},
            {}, "f32", {}, &metrics);
    CLOZE_CHECK(opened.ok());
    models = *std::move(opened);
  }
  fuzz::Folder folder;
  ServeMetrics metrics;
  std::unique_ptr<ServedModels> models;
};

// Made before main, so that no memory fails on purpose.
const Served* const served = new Served;

Outcome Compute(const Work& work, const Record& record) {
  Outcome outcome;
  if (work.operation.embed) {
    const auto vectors = work.model.engine->Embed({record}, work.operation.options);
    if (!vectors.ok()) return outcome;
    outcome.columns = vectors->dimensions;
    outcome.values = vectors->values;
    return outcome;
  }
  const auto answers = work.model.engine->Answer({record}, work.operation.top);
  if (answers.ok() && (*answers)[0].ok()) outcome.answer = *(*answers)[0];
  return outcome;
}

void Refused(const absl::Status& status) {
  for (const bool openai : {false, true}) {
    const Reply reply = ReplyOf(status, openai);
    CLOZE_CHECK(reply.status >= 400 && reply.body.find('\n') == std::string::npos);
    CLOZE_CHECK(Json::accept(reply.body) && reply.body.size() < 16384);
  }
}

void Check(const Work& work) {
  CLOZE_CHECK(work.records.size() <= ServeLimits().texts + 1u);
  std::vector<Outcome> outcomes;
  for (const Record& record : work.records) {
    outcomes.push_back(Compute(work, record));
    if (outcomes.back().answer.is_null() && outcomes.back().columns == 0) return;
  }
  const absl::StatusOr<std::string> body = work.format(outcomes);
  if (!body.ok()) return Refused(body.status());
  CLOZE_CHECK(Json::accept(*body));
}

}  // namespace
}  // namespace cloze

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cloze;
  fuzz::Input input(data, size);
  const auto route = FindRoute("POST", kPaths[input.Byte() % std::size(kPaths)]);
  const ServeContext context = {served->models.get(), &served->metrics, {}, "0", "0"};
  const absl::StatusOr<Work> work = ReadRequest(**route, context, input.Rest());
  work.ok() ? Check(*work) : Refused(work.status());
  return 0;
}
