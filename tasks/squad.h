// Files and metrics of SQuAD 1.1 and 2.0.
#ifndef CLOZE_TASKS_SQUAD_H_
#define CLOZE_TASKS_SQUAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "proto/task.pb.h"

namespace cloze {

struct Question {
  struct Answer {
    std::string text;
    int64_t start = 0;  // in code points of the context
  };
  std::string question, context;
  std::string id;               // may be empty
  std::vector<Answer> answers;  // empty: the context has no answer
};

// Returns `data` with the format of JSON files, whose names need not end in .jsonl.
DataSpec AsJson(DataSpec data);

// Reads JSON files {"data": [{"paragraphs": [{"context", "qas": [{"question", "answers": [{"text",
// "answer_start"}], "is_impossible"}]}]}]}, at most max_examples questions. kData with the place of
// a member that is missing or wrong.
absl::StatusOr<std::vector<Question>> ReadQuestions(const DataSpec& data);

// Returns the number of answers whose text is not in the context at their start.
int64_t CountMisplaced(const std::vector<Question>& questions);

// Returns the words of normalize_answer of the SQuAD script: small letters (PythonLower) without
// ASCII punctuation and without the articles a, an and the, split at Python's white space. Answers
// match exactly if these are equal.
std::vector<std::string> SquadWords(absl::string_view text);

// Harmonic mean of precision and recall of the words; if one side is empty, 1 if both are, else 0.
double SquadF1(const std::vector<std::string>& predicted, const std::vector<std::string>& gold);

}  // namespace cloze

#endif  // CLOZE_TASKS_SQUAD_H_
