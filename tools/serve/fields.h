// Members of the bodies of requests.
#ifndef CLOZE_TOOLS_SERVE_FIELDS_H_
#define CLOZE_TOOLS_SERVE_FIELDS_H_

#include <string>
#include <vector>

#include "tools/serve/routes.h"

namespace cloze {

// Kinds of models that a route prefers.
inline constexpr absl::string_view kEmbedding[] = {"sentence_embedding", "encoder"};
inline constexpr absl::string_view kClassifier[] = {"sequence_classification"};
inline constexpr absl::string_view kTagger[] = {"token_tagging"};
inline constexpr absl::string_view kMaskedLm[] = {"masked_lm"};

// Return a member: `fallback` if it is missing or null; kData for another type.
absl::StatusOr<bool> BoolField(const Json& body, const char* name, bool fallback);
absl::StatusOr<std::string> StringField(const Json& body, const char* name);
// The same in the range low ... high.
absl::StatusOr<int64_t> IntegerField(
    const Json& body, const char* name, int64_t fallback, int64_t low, int64_t high);

// Returns the texts of the member `name`: a text, or a list of texts, which sets *list. kData for
// another type or more than the limit; kEmpty for an empty list.
absl::StatusOr<std::vector<std::string>> TextsField(
    const ServeContext& context, const Json& body, const char* name, bool* list = nullptr);

// Returns the model that the member "model" names, or the only one of `kinds`. With `only`, kData
// if the model is of none of them; the kind of an adapter is seen by CheckAnswers.
absl::StatusOr<ServedModel> ModelField(const ServeContext& context, const Json& body,
    absl::Span<const absl::string_view> kinds, bool only = false);

// kData unless each answer has one of these members.
absl::Status CheckAnswers(
    const std::vector<Outcome>& outcomes, absl::Span<const absl::string_view> members);
// kData for more texts than the limit.
absl::Status CheckCount(const ServeContext& context, const char* name, size_t count);

// Returns records of `texts`, which the member `name` held, or pairs of `query` with each if it is
// not null. With the member "adapter". kEmpty for a text without content; unless the member
// "truncate" is true, kData for a text that is longer than the model.
absl::StatusOr<std::vector<Record>> RecordsOf(const ServedModel& model, const Json& body,
    const char* name, std::vector<std::string> texts, const std::string* query = nullptr);
// Adds a record as RecordsOf does; `number` is that of the text.
absl::Status AddRecord(const ServedModel& model, const Json& body, const char* name, size_t number,
    Record record, std::vector<Record>* records);

// Returns work that needs no model: the body is `text`.
Work Immediate(std::string text, const char* type = "application/json");

// Return the vectors of an outcome as [[...], ...], and one vector as [...].
std::string JsonOfVectors(const Outcome& outcome);
std::string JsonOfVector(absl::Span<const float> values);

}  // namespace cloze

#endif  // CLOZE_TOOLS_SERVE_FIELDS_H_
