// answers MODEL: answers the lines of standard input, as `cloze predict` does, in the locale of the
// environment.
#include <cloze.hpp>
#include <iostream>
#include <locale>

int main(int argc, char** argv) try {
  if (argc < 2) return 2;
  std::locale::global(std::locale(""));
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
  const cloze::Model model(argv[1]);
  const std::vector<std::string> answers = model.Predict({lines.begin(), lines.end()});
  for (const std::string& answer : answers) std::cout << answer << "\n";
  const cloze::Vectors vectors = model.Embed({lines[0], {lines[0], lines[1]}});
  if (vectors.rows() != 2 || vectors.begin().back() != 2) return 3;
  if (model.Answer(lines[0]) != answers[0] || model.Info().find("labels") == std::string::npos)
    return 4;
  try {
    model.Tag({lines[0]});
    return 5;
  } catch (const cloze::Error& error) {
    return error.status() == CLOZE_USAGE ? 0 : 6;
  }
} catch (const cloze::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
