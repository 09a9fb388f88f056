// The routes of the server: from a request to records for a model, and from results to a body.
#ifndef CLOZE_TOOLS_SERVE_ROUTES_H_
#define CLOZE_TOOLS_SERVE_ROUTES_H_

#include <functional>
#include <string>
#include <vector>

#include "tools/serve/models.h"

namespace cloze {

struct Reply {
  int status = 200;  // of HTTP
  std::string body;
  const char* type = "application/json";
  const char* error = "";  // the reason of a refusal
};

// Reasons beside the errors of the tree: kData and kUsage refuse the content of a request (422),
// all others mean that the model failed (424).
enum class Refusal { kEmpty, kSyntax, kKey, kPath, kMethod, kBody, kTooMany, kUnavailable };

absl::Status MakeRefusal(Refusal refusal, absl::string_view message);
// Returns an error for ReplyOf. `parts`, joined by absl::StrCat, have the form of Error.
template <typename... Parts>
absl::Status Refuse(Refusal refusal, const Parts&... parts) {
  return MakeRefusal(refusal, absl::StrCat(parts...));
}

// Returns the reply for an error: {"error", "error_type"} as text-embeddings-inference writes it
// or, with `openai`, {"error": {"message", "type", "param", "code"}}.
Reply ReplyOf(const absl::Status& status, bool openai);

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

// Reads the body of a request: an object, or null for GET. Errors as ReplyOf takes them.
using BodyReader = absl::StatusOr<Work>(const ServeContext& context, const Json& body);
BodyReader ReadEmbed, ReadEmbedAll, ReadSimilarity, ReadPredict, ReadRerank, ReadTokenize,
    ReadEmbeddings, ReadModels, ReadTag, ReadFillMask, ReadByKind, ReadInfo, ReadHealth,
    ReadMetrics, ReadPage;

struct Route {
  const char *method, *path;
  bool open;    // needs no key
  bool openai;  // errors in OpenAI's form
  BodyReader* read;
};

// Returns the methods of a path: "GET, POST"; "" for an unknown path.
std::string MethodsOf(absl::string_view path);
// Returns the route; kPath or kMethod of Refusal if there is none. "HEAD" is like "GET".
absl::StatusOr<const Route*> FindRoute(absl::string_view method, absl::string_view path);

// Returns the work for the body of a request; `model`, if not empty, is the default of the member
// "model". Errors as ReplyOf takes them.
absl::StatusOr<Work> ReadRequest(const Route& route, const ServeContext& context,
    absl::string_view body, const std::string& model = "");

}  // namespace cloze

#endif  // CLOZE_TOOLS_SERVE_ROUTES_H_
