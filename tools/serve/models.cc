#include "tools/serve/models.h"

#include <cstdio>

#include "absl/algorithm/container.h"
#include "core/base/file.h"
#include "core/base/text.h"

namespace cloze {

absl::StatusOr<std::unique_ptr<ServedModels>> ServedModels::Open(
    const std::vector<std::string>& models, const std::vector<std::string>& adapters,
    const std::string& compute, const ServeLimits& limits, ServeMetrics* metrics) {
  if (models.empty()) return Error(Exit::kUsage, "--model: missing: expected [NAME=]FOLDER");
  std::unique_ptr<ServedModels> out(new ServedModels(metrics));
  for (const std::string& word : models) {
    auto [name, folder] = NamedAdapter::Parse(word);
    if (name.empty()) name = BaseName(AbsolutePath(folder));  // of "./" and "a/" too
    for (const Entry& entry : out->entries_) {
      if (entry.name == name)
        return Error(Exit::kUsage, "--model: two models have the name \"", Quote(name),
            "\": expected another name (NAME=FOLDER)");
    }
    out->entries_.push_back({name, {.folder = folder, .compute = compute}, nullptr, nullptr});
  }
  for (const std::string& adapter : adapters) RETURN_IF_ERROR(out->AddAdapter(adapter));
  for (Entry& entry : out->entries_) {
    ASSIGN_OR_RETURN(entry.engine, Engine::Open(entry.options));
    entry.batcher = std::make_unique<RequestBatcher>(limits.batch_tokens, limits.queue, metrics);
  }
  return out;
}

absl::Status ServedModels::AddAdapter(const std::string& adapter) {
  auto [name, folder] = NamedAdapter::Parse(adapter);
  const size_t colon = name.find(':');
  const std::string model = colon == name.npos ? "" : name.substr(0, colon);
  if (colon != name.npos) name.erase(0, colon + 1);
  std::vector<std::string> names;
  for (Entry& entry : entries_) {
    names.push_back(entry.name);
    if (entry.name != model && (colon != std::string::npos || entries_.size() > 1)) continue;
    entry.options.adapters.push_back({name, folder});
    return absl::OkStatus();
  }
  return Error(Exit::kUsage, "--adapter ", Quote(adapter), ": ",
      model.empty() ? "of which model: expected MODEL:NAME=FOLDER" : "unknown model",
      ", with one of ", ListNames(names));
}

void ServedModels::Reload() {
  for (Entry& entry : entries_) {
    absl::StatusOr<std::shared_ptr<Engine>> engine = Engine::Open(entry.options);
    if (!engine.ok()) {
      ++metrics_->failed_reloads;
      std::fprintf(stderr, "cloze-serve: %s: not loaded, the old one stays: %s\n",
          Quote(entry.name).c_str(), std::string(engine.status().message()).c_str());
      continue;
    }
    ++metrics_->reloads;
    const std::lock_guard lock(mutex_);
    entry.engine.swap(*engine);  // the old one ends outside the lock
  }
}

void ServedModels::Finish() {
  for (Entry& entry : entries_) entry.batcher->Finish();
}

std::vector<ServedModel> ServedModels::All() const {
  const std::lock_guard lock(mutex_);
  std::vector<ServedModel> all;
  for (const Entry& entry : entries_)
    all.push_back({entry.name, entry.engine, entry.batcher.get()});
  return all;
}

absl::StatusOr<ServedModel> ServedModels::Find(
    const std::string& name, absl::Span<const absl::string_view> kinds) const {
  const std::vector<ServedModel> all = All();
  std::vector<ServedModel> fitting;
  std::vector<std::string> names;
  for (const ServedModel& model : all) {
    names.push_back(model.name);
    if (name.empty() ? absl::c_linear_search(kinds, model.engine->kind()) : model.name == name)
      fitting.push_back(model);
  }
  if (name.empty() && fitting.empty() && all.size() == 1) fitting = all;
  if (fitting.size() == 1) return fitting[0];
  return Error(Exit::kData,
      "model: ", name.empty() ? "missing" : absl::StrCat("unknown, \"", Quote(name), "\""),
      ": expected one of ", ListNames(names));
}

}  // namespace cloze
