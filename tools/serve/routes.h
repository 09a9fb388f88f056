// The routes of the server: from a request to records for a model, and from results to a body.
#ifndef CLOZE_TOOLS_SERVE_ROUTES_H_
#define CLOZE_TOOLS_SERVE_ROUTES_H_

#include <functional>
#include <string>
#include <vector>

#include "tools/serve/models.h"
#include "tools/serve/reply.h"

namespace cloze {

// The parts of the server that routes read.
struct ServeContext {
  const ServedModels* models;
  const ServeMetrics* metrics;
  ServeLimits limits;
  std::string version, commit;  // of the program
};

// The work that a request asks for.
struct Work {
  ServedModel model;
  Operation operation;
  std::vector<Record> records;  // none: `format` needs no model
  // Returns the body from the results of the records. Errors as ReplyOf takes them.
  std::function<absl::StatusOr<std::string>(const std::vector<Outcome>&)> format;
  const char* type = "application/json";
};

struct Route {
  const char *method, *path;
  bool open;    // needs no key
  bool openai;  // errors in OpenAI's form
  // Reads the body: an object, or null for GET. Errors as ReplyOf takes them.
  absl::StatusOr<Work> (*read)(const ServeContext& context, const Json& body);
};

// Returns the methods of a path: "GET, POST"; "" for an unknown path.
std::string MethodsOf(absl::string_view path);
// Returns the route; kPath or kMethod of Refusal if there is none. "HEAD" is like "GET".
absl::StatusOr<const Route*> FindRoute(absl::string_view method, absl::string_view path);

// Returns the work for the body of a request; `model`, if not empty, is the default of the member
// "model". Errors as ReplyOf takes them.
absl::StatusOr<Work> ReadRequest(const Route& route, const ServeContext& context,
    absl::string_view body, const std::string& model = "");

// Each reads the body of its route.
absl::StatusOr<Work> ReadEmbed(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadEmbedAll(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadSimilarity(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadPredict(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadRerank(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadTokenize(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadEmbeddings(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadModels(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadTag(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadFillMask(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadByKind(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadInfo(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadHealth(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadMetrics(const ServeContext& context, const Json& body);
absl::StatusOr<Work> ReadPage(const ServeContext& context, const Json& body);

}  // namespace cloze

#endif  // CLOZE_TOOLS_SERVE_ROUTES_H_
