// The models that a server answers with.
#ifndef CLOZE_TOOLS_SERVE_MODELS_H_
#define CLOZE_TOOLS_SERVE_MODELS_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/serve/batcher.h"

namespace cloze {

struct ServeLimits {
  int64_t body = 2'000'000;       // bytes of a request
  int64_t texts = 32;             // of a request
  int64_t batch_tokens = 16'384;  // that requests are joined to
  int64_t queue = 512;            // requests that wait for a model
};

// A model at the moment of a request; a reload does not change it.
struct ServedModel {
  std::string name;
  std::shared_ptr<Engine> engine;
  RequestBatcher* batcher;  // lives as long as the server
};

// Thread-safe.
class ServedModels {
 public:
  // Opens [NAME=]FOLDER `models` with `adapters`, [MODEL:]NAME=FOLDER; the name of a model is that
  // of its folder unless given. kUsage for names that are wrong, twice or unknown; errors of
  // Engine::Open.
  static absl::StatusOr<std::unique_ptr<ServedModels>> Open(const std::vector<std::string>& models,
      const std::vector<std::string>& adapters, const std::string& compute,
      const ServeLimits& limits, ServeMetrics* metrics);

  // Opens all folders anew. A model whose folder does not open stays as it is, which is reported on
  // stderr.
  void Reload();
  // Answers the requests that wait, and takes no more.
  void Finish();
  std::vector<ServedModel> All() const;
  // Returns the model `name`; or, for "", the only one of one of `kinds`, or the only one there is.
  // kData that lists the names if there is none.
  absl::StatusOr<ServedModel> Find(
      const std::string& name, absl::Span<const absl::string_view> kinds) const;

 private:
  struct Entry {
    std::string name;
    EngineOptions options;
    std::shared_ptr<Engine> engine;
    std::unique_ptr<RequestBatcher> batcher;
  };
  explicit ServedModels(ServeMetrics* metrics) : metrics_(metrics) {}
  absl::Status AddAdapter(const std::string& adapter);

  ServeMetrics* const metrics_;
  mutable std::mutex mutex_;    // of `engine` of the entries
  std::vector<Entry> entries_;  // fixed after Open
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_SERVE_MODELS_H_
