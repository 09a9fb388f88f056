#include "tasks/retrieval_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "tasks/embedding_groups.h"
#include "tasks/store_builder.h"

namespace cloze {
namespace {

struct CollectionText {
  const std::string* text = nullptr;
  const Judgements* judged = nullptr;  // of a query
};

std::vector<int32_t> LabelsOf(const CollectionText& item) {
  if (item.judged == nullptr) return {LabelOf(GroupRole::kDocument)};
  std::vector<int32_t> labels = {LabelOf(GroupRole::kQuery)};
  for (const auto& [document, grade] : *item.judged) {
    labels.push_back(static_cast<int32_t>(document + 1));  // 0: the corpus lacks it
    labels.push_back(static_cast<int32_t>(std::clamp<int64_t>(grade, 0, kMostGrade)));
  }
  return labels;
}

}  // namespace

Judgements JudgementsOf(absl::Span<const int32_t> labels) {
  Judgements judged;
  for (size_t i = 1; i + 1 < labels.size(); i += 2)
    judged.emplace_back(labels[i] - 1, labels[i + 1]);
  return judged;
}

absl::StatusOr<BuiltStore> BuildRetrievalStore(const std::string& folder, StoreKind kind,
    const EmbeddingSpec& spec, const Tokenizer& tokenizer, const BuildOptions& options) {
  DataSpec files;
  files.set_format(DataSpec::TEXT);
  for (const std::string& path : RetrievalFiles(folder)) files.add_files(path);
  std::vector<std::string> notes;
  ASSIGN_OR_RETURN(BuiltStore built,
      OpenOrBuild(files, std::move(kind), tokenizer, options,
          [&](ExampleStoreWriter* writer, DataStats* stats) -> absl::Status {
            ASSIGN_OR_RETURN(RetrievalData data, ReadRetrieval(folder));
            notes = data.notes;
            std::vector<CollectionText> items;
            for (const std::string& text : data.corpus.texts) items.push_back({&text});
            for (size_t q = 0; q < data.judged.size(); ++q)
              items.push_back({&data.queries.texts[q], &data.judged[q]});
            size_t next = 0;
            const auto read = [&](CollectionText* item, int64_t* bytes) -> absl::StatusOr<bool> {
              if (next == items.size()) return false;
              *item = items[next++];
              *bytes += std::ssize(*item->text);
              return true;
            };
            const auto encode = [&](const CollectionText& item, EncodedText* out) {
              const bool query = item.judged != nullptr;
              *out = EncodePrompted(query ? spec.query_prompt() : spec.document_prompt(),
                  *item.text, spec, tokenizer);
              Example& example = out->windows[0];
              example.labels = LabelsOf(item);
              example.rows.assign(example.labels.size(), 0);
            };
            return FillWithTexts<CollectionText>(
                read, encode, [&] { return CheckStop(options); }, writer, stats);
          }));
  for (const std::string& note : notes) built.AddNote(note);
  return built;
}

}  // namespace cloze
