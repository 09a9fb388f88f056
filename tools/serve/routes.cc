#include "tools/serve/routes.h"

#include "core/base/text.h"

namespace cloze {
namespace {

constexpr Route kRoutes[] = {
    // As text-embeddings-inference has them.
    {"POST", "/embed", false, false, ReadEmbed},
    {"POST", "/embed_all", false, false, ReadEmbedAll},
    {"POST", "/similarity", false, false, ReadSimilarity},
    {"POST", "/predict", false, false, ReadPredict},
    {"POST", "/rerank", false, false, ReadRerank},
    {"POST", "/tokenize", false, false, ReadTokenize},
    {"GET", "/info", false, false, ReadInfo},
    {"GET", "/health", true, false, ReadHealth},
    {"GET", "/metrics", false, false, ReadMetrics},
    // As OpenAI has them.
    {"POST", "/v1/embeddings", false, true, ReadEmbeddings},
    {"GET", "/v1/models", false, true, ReadModels},
    // Our own, and what @huggingface/inference posts.
    {"POST", "/tag", false, false, ReadTag},
    {"POST", "/fill-mask", false, false, ReadFillMask},
    {"POST", "/", false, false, ReadByKind},
    {"GET", "/", false, false, ReadPage},
};

}  // namespace

std::string MethodsOf(absl::string_view path) {
  std::string methods;
  for (const Route& route : kRoutes)
    if (path == route.path) absl::StrAppend(&methods, methods.empty() ? "" : ", ", route.method);
  return methods;
}

absl::StatusOr<const Route*> FindRoute(absl::string_view method, absl::string_view path) {
  const absl::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : kRoutes)
    if (path == route.path && wanted == route.method) return &route;
  if (const std::string methods = MethodsOf(path); !methods.empty())
    return Refuse(Refusal::kMethod, Quote(method), " ", path, ": expected ", methods);
  return Refuse(Refusal::kPath, "no route ", Quote(path), " (GET / names the models)");
}

absl::StatusOr<Work> ReadRequest(const Route& route, const ServeContext& context,
    absl::string_view body, const std::string& model) {
  if (route.method == absl::string_view("GET")) return route.read(context, Json());
  if (body.empty()) return Refuse(Refusal::kSyntax, "the body is empty: expected a JSON object");
  if (!IsUtf8(body)) return Refuse(Refusal::kSyntax, "the body is not UTF-8");
  absl::StatusOr<Json> json = ParseJson(body, "body", 1'000'000);
  if (!json.ok()) return Refuse(Refusal::kSyntax, json.status().message());
  if (!model.empty() && JsonMember(*json, "model").is_null()) (*json)["model"] = model;
  return route.read(context, *json);
}

}  // namespace cloze
