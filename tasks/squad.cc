#include "tasks/squad.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/base/hash_map.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/text/unicode/unicode.h"
#include "tasks/data/readers.h"

namespace cloze {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

class SquadReader {
 public:
  SquadReader(const std::string& path, const DataSpec& data, std::vector<Question>* out)
      : path_(path), data_(data), split_(data), out_(out) {}

  absl::Status Read() {
    ASSIGN_OR_RETURN(const std::string bytes, ReadInput(path_, kMaxFileBytes));
    std::string text;
    TextDecoder(Charset::kUtf8).Append(bytes, /*end=*/true, &text);
    ASSIGN_OR_RETURN(const Json file, ParseJson(text, path_));
    return ForEach(file, "data", "", [&](const Json& article, const std::string& in) {
      return ForEach(article, "paragraphs", in, [&](const Json& paragraph, const std::string& at) {
        std::string context;
        RETURN_IF_ERROR(String(paragraph, "context", at, &context));
        return ForEach(paragraph, "qas", at,
            [&](const Json& qa, const std::string& where) { return Add(qa, where, context); });
      });
    });
  }

 private:
  absl::Status Wrong(const std::string& where, absl::string_view field, absl::string_view what) {
    return Error(Exit::kData, QuotePath(path_), ": ", where, field, ": expected ", what);
  }
  absl::Status String(
      const Json& object, const char* field, const std::string& where, std::string* out) {
    const Json& value = JsonMember(object, field);
    if (!value.is_string()) return Wrong(where, field, "a string");
    *out = value.get<std::string>();
    return absl::OkStatus();
  }
  template <typename F>
  absl::Status ForEach(const Json& object, const char* field, const std::string& where, F f) {
    const Json& list = JsonMember(object, field);
    if (!list.is_array()) return Wrong(where, field, "a list");
    for (size_t i = 0; i < list.size(); ++i) {
      const int64_t most = data_.max_examples();
      if (most > 0 && static_cast<int64_t>(out_->size()) >= most) break;
      RETURN_IF_ERROR(f(list[i], absl::StrCat(where, field, "[", i, "].")));
    }
    return absl::OkStatus();
  }

  absl::Status Add(const Json& qa, const std::string& where, const std::string& context) {
    Question question;
    RETURN_IF_ERROR(String(qa, "question", where, &question.question));
    question.context = context;
    if (const Json& id = JsonMember(qa, "id"); !id.is_null())
      question.id = id.is_string() ? id.get<std::string>() : ToJsonLine(id);
    const Json& impossible = JsonMember(qa, "is_impossible");
    const Json& answers = JsonMember(qa, "answers");
    if (!answers.is_array()) return Wrong(where, "answers", "a list");
    for (size_t i = 0; i < answers.size() && impossible != true; ++i) {
      const std::string at = absl::StrCat(where, "answers[", i, "].");
      Question::Answer& answer = question.answers.emplace_back();
      RETURN_IF_ERROR(String(answers[i], "text", at, &answer.text));
      const Json& start = JsonMember(answers[i], "answer_start");
      const int64_t room = CountCodePoints(context) - CountCodePoints(answer.text);
      if (!start.is_number_unsigned() || room < 0 || start.get<uint64_t>() > uint64_t(room))
        return Wrong(at, "answer_start", "a place inside the context");
      answer.start = start.get<int64_t>();
    }
    if (split_.Reads({context})) out_->push_back(std::move(question));
    return absl::OkStatus();
  }

  const std::string& path_;
  const DataSpec& data_;
  const Split split_;
  std::vector<Question>* out_;
};

}  // namespace

DataSpec AsJson(DataSpec data) {
  data.set_format(DataSpec::JSONL);
  return data;
}

int64_t CountMisplaced(const std::vector<Question>& questions) {
  int64_t count = 0;
  for (const Question& question : questions) {
    for (const Question::Answer& answer : question.answers) {
      size_t at = 0;
      for (int64_t i = 0; i < answer.start; ++i) at += CodePointAt(question.context, at).size;
      count += !absl::StartsWith(absl::string_view(question.context).substr(at), answer.text);
    }
  }
  return count;
}

absl::StatusOr<std::vector<Question>> ReadQuestions(const DataSpec& data) {
  ASSIGN_OR_RETURN(const std::vector<DataFile> files, FilesOf(AsJson(data)));
  std::vector<Question> questions;
  for (const DataFile& file : files)
    RETURN_IF_ERROR(SquadReader(file.path, data, &questions).Read());
  return questions;
}

std::vector<std::string> SquadWords(absl::string_view text) {
  std::vector<std::string> words;
  std::string word, run;  // `run`: letters and digits since the last other character
  const auto end_run = [&] {
    if (run != "a" && run != "an" && run != "the") {
      word += run;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, ""));
    }
    run.clear();
  };
  const auto end_word = [&] {
    end_run();
    if (!word.empty()) words.push_back(std::exchange(word, ""));
  };
  for (const char32_t c : PythonLower(text)) {
    if (c < 0x80 && absl::ascii_ispunct(static_cast<unsigned char>(c))) continue;
    if (IsPythonSpace(c)) {
      end_word();
      continue;
    }
    const bool inside = IsLetter(c) || IsNumber(c);
    if (!inside) end_run();
    AppendUtf8(c, inside ? &run : &word);
  }
  end_word();
  return words;
}

double SquadF1(const std::vector<std::string>& predicted, const std::vector<std::string>& gold) {
  if (predicted.empty() || gold.empty()) return predicted == gold;
  HashMap<std::string, int64_t> counts;
  for (const std::string& word : gold) ++counts[word];
  double same = 0;
  for (const std::string& word : predicted) same += counts[word]-- > 0;
  return 2 * same / static_cast<double>(predicted.size() + gold.size());
}

}  // namespace cloze
