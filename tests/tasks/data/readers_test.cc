#include "tasks/data/readers.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "core/base/file.h"
#include "core/base/philox.h"
#include "core/base/text.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

using testing::ElementsAre;

class ReadersTest : public FilesTest {
 protected:
  // All documents; pieces joined.
  static absl::StatusOr<std::vector<std::string>> Documents(const DataSpec& spec) {
    ASSIGN_OR_RETURN(DocumentReader reader, DocumentReader::Open(spec));
    std::vector<std::string> documents;
    DocumentPiece piece;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, reader.Next(&piece));
      if (!more) return documents;
      EXPECT_LE(piece.text.size(), kPieceBytes);
      if (piece.first) documents.emplace_back();
      documents.back() += piece.text;
    }
  }
  // "text|pair|label@line" of all examples.
  static absl::StatusOr<std::vector<std::string>> Texts(
      const DataSpec& spec, Labels labels = Labels::kRequired) {
    ASSIGN_OR_RETURN(TextReader reader, TextReader::Open(spec, labels));
    std::vector<std::string> texts;
    TextExample e;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, reader.Next(&e));
      if (!more) return texts;
      texts.push_back(absl::StrCat(e.text, "|", e.text_pair, "|", e.label, "@", e.line));
    }
  }
  // "word/tag@line ..." of all sentences.
  static absl::StatusOr<std::vector<std::string>> Sentences(
      const DataSpec& spec, Labels labels = Labels::kRequired) {
    ASSIGN_OR_RETURN(TaggedReader reader, TaggedReader::Open(spec, labels));
    std::vector<std::string> out;
    TaggedSentence s;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, reader.Next(&s));
      if (!more) return out;
      std::string text;
      for (size_t i = 0; i < s.words.size(); ++i) {
        absl::StrAppend(&text, i > 0 ? " " : "", s.words[i], "/", s.tags.empty() ? "" : s.tags[i],
            "@", s.lines[i]);
      }
      out.push_back(text);
    }
  }
  // Samples of 100 to 129 bytes or more of a file have whole rows, which end with `end`.
  void ExpectWholeRows(const DataSpec& data, const std::string& end) {
    for (int64_t most = 100; most < 130; ++most) {
      const std::string folder = Path(absl::StrCat("sample", most));
      std::filesystem::create_directories(folder);
      const auto sample = SampleData(data, folder, most);
      ASSERT_TRUE(sample.ok()) << sample.status();
      EXPECT_THAT(Read(sample->data.files(0)), testing::EndsWith(end)) << most;
      EXPECT_TRUE(Texts(sample->data).ok()) << most;
    }
  }
};

TEST_F(ReadersTest, DocumentsEndAtBlankLines) {
  const auto documents =
      Documents(Data("a.txt", "\n\none\ntwo\n \t\nthree\r\nfour\r\n\r\n\r\nfive"));
  ASSERT_TRUE(documents.ok()) << documents.status();
  EXPECT_THAT(*documents, ElementsAre("one two", "three four", "five"));
}

TEST_F(ReadersTest, DocumentsEndAtFiles) {
  DataSpec spec = Data("a.txt", "\xEF\xBB\xBFone");
  spec.add_files(Write("b.txt", ""));
  spec.add_files(Write("c.txt", "\n \n"));
  spec.add_files(Write("d.txt", "two\n"));
  EXPECT_THAT(*Documents(spec), ElementsAre("one", "two"));
}

TEST_F(ReadersTest, LinesAreDocuments) {
  DataSpec spec = Data("a.txt", "one\ntwo\n\nthree");
  spec.set_documents(DataSpec::LINE);
  EXPECT_THAT(*Documents(spec), ElementsAre("one", "two", "three"));
}

TEST_F(ReadersTest, RowsAreDocuments) {
  EXPECT_THAT(*Documents(Data("a.tsv", "label\ttext\n1\tgood film\n0\tbad\n")),
      ElementsAre("good film", "bad"));
  EXPECT_THAT(*Documents(Data("a.csv", "text\n\"two\nlines\"\n")), ElementsAre("two\nlines"));
  EXPECT_THAT(*Documents(Data("a.jsonl",
                  "{\"text\": \"\\u00e9t\\u00e9\"}\n\n{\"x\": [1, {}], \"text\": \"b\"}\n")),
      ElementsAre("été", "b"));
  ExpectError(Documents(Data("a.conllu", "")).status(), Exit::kSpec,
      "a.conllu: format: is CONLLU: expected TEXT, TSV, CSV, JSONL, FASTTEXT or FOLDERS");
}

TEST_F(ReadersTest, LongRowComesInPieces) {
  std::string text;
  for (int i = 0; text.size() < 3 * kPieceBytes; ++i) text += "word" + std::to_string(i) + " ";
  const auto documents = Documents(Data("a.tsv", "text\n" + text + "\nb\n"));
  ASSERT_TRUE(documents.ok()) << documents.status();
  EXPECT_THAT(*documents, ElementsAre(text, "b"));
}

// Most memory this process has had, in bytes.
int64_t PeakMemory() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

TEST_F(ReadersTest, LongLineNeedsLittleMemory) {
  constexpr int64_t kLine = 20 << 20;
  const std::string path = Path("long.txt");
  {
    std::ofstream out(path, std::ios::binary);
    for (int64_t i = 0; i < kLine / 8; ++i) out << "pa\xC3\xA4rd. ";
    out << "\n";
    for (int64_t i = 0; i < kLine / 4; ++i) out << "\xF0\x9F\x98\x80";  // no white space at all
  }
  DataSpec spec;
  spec.add_files(path);
  const int64_t before = PeakMemory();
  auto reader = DocumentReader::Open(spec);
  ASSERT_TRUE(reader.ok());
  DocumentPiece piece;
  int64_t bytes = 0, pieces = 0, last = 0;
  while (true) {
    const auto more = reader->Next(&piece);
    ASSERT_TRUE(more.ok()) << more.status();
    if (!*more) break;
    ASSERT_LE(piece.text.size(), kPieceBytes);
    EXPECT_NE(piece.text[0] & 0xC0, 0x80) << "piece " << pieces << " begins inside a character";
    EXPECT_EQ(piece.first, pieces == 0);
    bytes += piece.text.size(), ++pieces, last += piece.last;
  }
  EXPECT_EQ(bytes, 2 * kLine + 1);
  EXPECT_GE(pieces, 40);
  EXPECT_EQ(last, 1);
  EXPECT_LT(PeakMemory() - before, 12 << 20);
}

TEST_F(ReadersTest, Tsv) {
  DataSpec spec = Data("a.tsv", "\xEF\xBB\xBFsentence\tlabel\r\n\"quoted \t1\r\n\r\n it 's  \t0");
  spec.set_text_field("sentence");
  const auto texts = Texts(spec);
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_THAT(*texts, ElementsAre("\"quoted ||1@2", " it 's  ||0@4"));
}

TEST_F(ReadersTest, TsvByNumber) {
  DataSpec spec = Data("a.tsv", "1\tyes\tfoo\n2\tno\tbar\n");
  spec.set_header(false);
  spec.set_label_field("2");
  spec.set_text_field("3");
  spec.set_text_pair_field("1");
  EXPECT_THAT(*Texts(spec), ElementsAre("foo|1|yes@1", "bar|2|no@2"));
  spec.set_text_field("text");
  ExpectError(Texts(spec).status(), Exit::kData,
      "a.tsv:1: text_field: \"text\" is a name, but header is false: expected a number from 1 to "
      "3");
  spec.set_text_field("4");
  ExpectError(Texts(spec).status(), Exit::kData, "a.tsv:1: text_field: no column 4; there are 3");
}

TEST_F(ReadersTest, SeveralFilesMayOrderColumnsDifferently) {
  DataSpec spec = Data("a.tsv", "text\tlabel\na\t1\n");
  spec.add_files(Write("b.csv", "label,text\n0,b\n"));
  spec.add_files(Write("empty.tsv", ""));
  spec.add_files(
      Write("c.jsonl", "{\"label\": 1, \"text\": \"c\"}\n{\"label\": true, \"text\": \"d\"}"));
  EXPECT_THAT(*Texts(spec), ElementsAre("a||1@2", "b||0@2", "c||1@1", "d||true@2"));
  spec.set_max_examples(3);
  EXPECT_THAT(*Texts(spec), ElementsAre("a||1@2", "b||0@2", "c||1@1"));
}

TEST_F(ReadersTest, TableErrors) {
  ExpectError(Texts(Data("a.tsv", "sentence\tlabel\nx\t1\n")).status(), Exit::kData,
      "a.tsv:1: text_field: no column \"text\"; there are \"sentence\", \"label\"");
  ExpectError(Texts(Data("a.tsv", "text\tlabel\tlabel\n")).status(), Exit::kData,
      "a.tsv:1: label_field: column \"label\" occurs twice, in columns 2 and 3");
  ExpectError(Texts(Data("a.tsv", "text\tlabel\nx\t1\nx\n")).status(), Exit::kData,
      "a.tsv:3: 1 column: expected 2 (tab-separated, no quoting)");
  ExpectError(Texts(Data("a.tsv", "text\tlabel\nx\t\n")).status(), Exit::kData,
      "a.tsv:2: label_field: an empty label");
  ExpectError(
      Texts(Data("a.tsv", "text\tlabel\n" + std::string(kRowBytes + 1, 'x') + "\t1\n")).status(),
      Exit::kData, "a.tsv:2: the line is longer than 16777216 bytes");
  ExpectError(Texts(Data("a.tsv", "text\tlabel\n" + std::string(1000000, '\t'))).status(),
      Exit::kData, "a.tsv:2: more than 100000 columns");
  ExpectError(Texts(Data("a.txt", "x")).status(), Exit::kData,
      "a.txt:1: 0 labels in the line: expected __label__NAME TEXT");
  std::string header = "c0";
  for (int i = 1; i < 30; ++i) header += "\tc" + std::to_string(i);
  ExpectError(Texts(Data("a.tsv", header)).status(), Exit::kData, "\"c19\", ... (30)");
}

TEST_F(ReadersTest, FileErrors) {
  DataSpec spec;
  ExpectError(Texts(spec).status(), Exit::kSpec, "files: none: expected at least one file");
  spec.add_files(Path("gone.tsv"));
  ExpectError(
      Texts(spec).status(), Exit::kNoInput, "gone.tsv: cannot open: No such file or directory");
  spec.set_files(0, folder_);
  spec.set_format(DataSpec::TSV);
  ExpectError(Texts(spec).status(), Exit::kNoInput, "a folder without data files");
  std::filesystem::create_directories(Path("only/folders"));
  spec.set_files(0, Path("only/*"));
  ExpectError(Texts(spec).status(), Exit::kNoInput, "no file matches this pattern");
  DataSpec pairs = Data("a.ft", "__label__x a\n");
  pairs.set_text_pair_field("other");
  ExpectError(Texts(pairs).status(), Exit::kSpec, "holds one text per line: expected TSV");
  ExpectError(Documents(Data("a.md", "x")).status(), Exit::kSpec,
      "a.md: format: the name does not end in .txt, .tsv, .csv, .jsonl, .json, .conllu, .conll or "
      ".ft; set format in the spec");
  ExpectError(Documents(Data("a.txt.bz2", "x")).status(), Exit::kSpec, "unpack it first");
  ExpectError(Documents(Data("a.txt",
                            "\x1F\x8B"
                            "abcdefgh"))
                  .status(),
      Exit::kData, "a.txt: gzip data: unknown compression method: expected a sound archive");
  ExpectError(Texts(Data("a.tsv", std::string("t\0e\0", 4))).status(), Exit::kData,
      "a.tsv: is UTF-16 text");
}

TEST_F(ReadersTest, Csv) {
  const auto texts = Texts(Data("a.csv",
      "label,text\r\n1,plain\r\n2,\"a \"\"word\"\", b\"\r\n\r\n3,\"two\r\nlines\n\nand "
      "\"\"\"\n\"4\",\"\"\n5,in\"side\n6,"));
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_THAT(*texts, ElementsAre("plain||1@2", "a \"word\", b||2@3", "two\nlines\n\nand \"||3@5",
                          "||4@9", "in\"side||5@10", "||6@11"));
}

TEST_F(ReadersTest, ASampleOfCsvEndsOutsideOfQuotes) {
  std::string csv = "text,label\n";
  for (int i = 0; i < 100; ++i) csv += "\"one\ntwo\nthree\nfour\nfive\",a\n";
  ExpectWholeRows(Data("a.csv", csv), "\",a\n");
}

TEST_F(ReadersTest, ASampleOfCsvTakesQuotesInsideOfCells) {
  std::string csv = "text;label\n5\" disk;a\n";
  for (int i = 0; i < 100; ++i) csv += "\"one \"\"two\"\"\nthree\";a\n";
  DataSpec data = Data("a.csv", csv);
  data.set_delimiter(";");
  ExpectWholeRows(data, ";a\n");
}

TEST_F(ReadersTest, PackedFiles) {
  // printf 'text,label\na,x\nb,y\n' | gzip -n
  const std::string packed(
      "\x1F\x8B\x08\x00\x00\x00\x00\x00\x00\x03\x2B\x49\xAD\x28\xD1\xC9\x49\x4C\x4A"
      "\xCD\xE1\x4A\xD4\xA9\xE0\x4A\xD2\xA9\xE4\x02\x00\x3A\x51\xC3\xC5\x13\x00\x00\x00",
      39);
  const DataSpec data = Data("a.CSV.gz", packed);
  const auto texts = Texts(data);
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_THAT(*texts, ElementsAre("a||x@2", "b||y@3"));
  std::filesystem::create_directories(Path("sample"));
  const auto sample = SampleData(data, Path("sample"), 16);
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(Read(sample->data.files(0)), "text,label\na,x\n");
  EXPECT_EQ(sample->bytes, 39);
  EXPECT_EQ(sample->read, 39 * 15 / 19) << "the scale is that of the stored bytes";
  EXPECT_EQ(Texts(sample->data)->size(), 1);
}

TEST_F(ReadersTest, CsvErrors) {
  ExpectError(Texts(Data("a.csv", "text,label\na,1\n\"b,1\nc,1\n")).status(), Exit::kData,
      "a.csv:3: column 1: the quote opened here is not closed before the end of the file");
  ExpectError(Texts(Data("a.csv", "text,label\na,1\n\"b\"x,1\n")).status(), Exit::kData,
      "a.csv:3: column 1: expected a comma or the end");
  ExpectError(Texts(Data("a.csv", "text,label\na\n")).status(), Exit::kData,
      "a.csv:2: 1 column: expected 2");
  std::string endless = "text,label\n\"";
  for (int i = 0; i < 20; ++i) endless.append(1 << 20, 'x').append("\n");
  ExpectError(Texts(Data("a.csv", endless)).status(), Exit::kData,
      "a.csv:2: column 1: the quote opened here is not closed within 16777216 bytes");
}

TEST_F(ReadersTest, FastText) {
  const std::string text = "__label__a  the cat \n\n__label__b\n";
  for (const char* name : {"a.txt", "a.ft", "a.ft.txt"})
    EXPECT_THAT(*Texts(Data(name, text)), ElementsAre("the cat ||a@1", "||b@3"));
  ExpectError(Texts(Data("a.ft", "__label__a x\n__label__a __label__b x\n")).status(), Exit::kData,
      "a.ft:2: 2 labels in the line: expected one (kind: MULTI_LABEL");
  ExpectError(Texts(Data("a.ft", "__label__ x\n")).status(), Exit::kData, "a.ft:1: an empty label");
  EXPECT_THAT(*Texts(Data("a.ft", "x y __label__a\nx __label__b  y\n")),
      ElementsAre("x y||a@1", "x y||b@2"));
  TextReader reader =
      *TextReader::Open(Data("a.ft", "__label__a __label__b\tx y\nz\n"), Labels::kSeveral);
  TextExample example;
  ASSERT_TRUE(*reader.Next(&example));
  EXPECT_EQ(example.text, "x y");
  EXPECT_THAT(*example.list, ElementsAre("a", "b"));
  ASSERT_TRUE(*reader.Next(&example));
  EXPECT_EQ(example.text, "z");
  EXPECT_THAT(*example.list, testing::IsEmpty());
}

TEST_F(ReadersTest, JsonArrays) {
  const std::string a = R"({"text": "a ]}\\\"", "label": 1})", b = R"({"text": "b", "label": [2]})";
  EXPECT_THAT(*Texts(Data("a.json", a + "\n" + R"({"text": "b", "label": 2})")),
      ElementsAre("a ]}\\\"||1@1", "b||2@2"));
  EXPECT_THAT(*Texts(Data("a.json", "\n [\n" + a + ",\n{\"text\":\n\"b\",\"label\":2} ]\n\n")),
      ElementsAre("a ]}\\\"||1@3", "b||2@4"));
  EXPECT_THAT(*Texts(Data("a.json", "[]")), testing::IsEmpty());
  const auto error = [&](const std::string& text, const std::string& part) {
    ExpectError(Texts(Data("a.json", text)).status(), Exit::kData, part);
  };
  error("[" + a, "a.json:1: the array that begins the file is not closed");
  error("[" + a + ",\n", "is not closed");
  error("[\n" + a + "\n" + a + "]", "a.json:3: expected an array of objects");
  error("[" + a + ",]", "expected an array of objects");
  error("[" + a + "]\n" + a, "a.json:2: expected an array of objects");
  error("[1]", "expected an array of objects");
  error("[{\"text\": 1]]}]", "a.json:1: not valid JSON");
  error("[\n" + a + ",\n" + b + "]", "a.json:3: label_field: \"label\" is not a string");
  error("[{\"text\": \"" + std::string(kRowBytes, 'x'), "a.json:1: the line is longer than");
}

TEST_F(ReadersTest, JsonlErrors) {
  const auto error = [&](const std::string& line, const std::string& part) {
    ExpectError(
        Texts(Data("a.jsonl", "\n" + line + "\n")).status(), Exit::kData, "a.jsonl:2: " + part);
  };
  error("{\"text\": \"a\"}", "label_field: no field \"label\"; there are \"text\"");
  error("{\"text\": 1, \"label\": 1}", "text_field: \"text\" is not a string");
  error("{\"text\": null, \"label\": 1}", "text_field: \"text\" is not a string");
  error("{\"text\": \"a\", \"label\": [1]}",
      "label_field: \"label\" is not a string, number or boolean");
  error("{\"text\": \"a\", \"text\": \"b\", \"label\": 1}", "member \"text\" is given twice");
  error("{\"text\": \"a\", \"label\"}", "not valid JSON at byte 22");
  error("{\"text\": \"a\xFF\", \"label\": 1}", "not valid JSON at byte 12");
  error("{\"text\": \"a\", \"label\": \"\"}", "label_field: an empty label");
  error("[1]", "expected an array of objects");
  error("7", "expected a JSON object");
  error("{}", "text_field: no field \"text\"; there are none");
  error("{\"text\": 1e999}", "a number is out of range");
  error("{\"x\": " + std::string(100000, '['), "nested deeper than 64");
}

TEST_F(ReadersTest, UnlabelledTexts) {
  EXPECT_THAT(*Texts(Data("a.tsv", "text\nx\n"), Labels::kIgnored), ElementsAre("x||@2"));
  EXPECT_THAT(
      *Texts(Data("a.txt", "x\ny\n\nz\n"), Labels::kIgnored), ElementsAre("x y||@1", "z||@4"));
  EXPECT_THAT(*Texts(Data("a.jsonl", ""), Labels::kIgnored), ElementsAre());
}

TEST_F(ReadersTest, StandardInput) {
  const std::string path = Write("in", "text\tlabel\nx\t1\ny\n");
  const int saved = ::dup(0), file = ::open(path.c_str(), O_RDONLY);
  ::dup2(file, 0);
  DataSpec spec;
  spec.add_files("-");
  ExpectError(
      Texts(spec).status(), Exit::kSpec, "standard input: format: the name does not end in");
  spec.set_format(DataSpec::TSV);
  ExpectError(Texts(spec).status(), Exit::kData, "standard input:3: 1 column: expected 2");
  ::dup2(saved, 0);
  ::close(saved);
  ::close(file);
}

constexpr char kConllu[] =
    "# text = vámonos al mar\n"
    "1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tvamos\tir\tVERB\tV\t_\t0\troot\t_\t_\n"
    "2\tnos\tnosotros\tPRON\tP\t_\t1\tobj\t_\t_\n"
    "2.1\tghost\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "\n"
    "# only a comment\n"
    "\n"
    "1\ta b\ta\tX\tY\t_\t0\troot\t_\t_\n";

TEST_F(ReadersTest, Conllu) {
  DataSpec spec = Data("a.conllu", kConllu);
  EXPECT_THAT(*Sentences(spec), ElementsAre("vamos/VERB@3 nos/PRON@4", "a b/X@9"));
  spec.set_tags_field("XPOS");
  spec.set_words_field("3");
  EXPECT_THAT(*Sentences(spec), ElementsAre("ir/V@3 nosotros/P@4", "a/Y@9"));
  spec.set_max_examples(1);
  EXPECT_THAT(*Sentences(spec), ElementsAre("ir/V@3 nosotros/P@4"));
  spec.set_tags_field("POS");
  ExpectError(Sentences(spec).status(), Exit::kData,
      "tags_field: no column \"POS\": expected ID, FORM, LEMMA, UPOS, XPOS, ... or a number from 1 "
      "to 10");
}

TEST_F(ReadersTest, ConlluErrors) {
  ExpectError(Sentences(Data("a.conllu", "# c\n1\tx\tx\n")).status(), Exit::kData,
      "a.conllu:2: 3 columns: expected 10 (CoNLL-U, tab-separated)");
  ExpectError(Sentences(Data("a.conllu", "x\tx\t_\tX\t_\t_\t_\t_\t_\t_\n")).status(), Exit::kData,
      "a.conllu:1: ID: is \"x\": expected a number, 3-4 or 8.1");
  ExpectError(Sentences(Data("a.conllu", "1-x\tx\t_\tX\t_\t_\t_\t_\t_\t_\n")).status(), Exit::kData,
      "a.conllu:1: ID: is \"1-x\": expected a number, 3-4 or 8.1");
  ExpectError(Sentences(Data("a.conllu", "1\t\t_\tX\t_\t_\t_\t_\t_\t_\n")).status(), Exit::kData,
      "a.conllu:1: words_field: an empty word");
  ExpectError(Sentences(Data("a.conllu", "1\tx\t_\t\t_\t_\t_\t_\t_\t_\n")).status(), Exit::kData,
      "a.conllu:1: tags_field: an empty tag");
}

TEST_F(ReadersTest, Conll) {
  DataSpec spec = Data("a.conll",
      "-DOCSTART- -X- O O\n\nEU NNP I-NP  B-ORG\r\nrejects VBZ I-VP O\n-DOCSTART- -X- -X- O\n#tag "
      "NN X O\n \n\n");
  EXPECT_THAT(*Sentences(spec), ElementsAre("EU/B-ORG@3 rejects/O@4", "#tag/O@6"));
  spec.set_tags_field("2");
  EXPECT_THAT(*Sentences(spec), ElementsAre("EU/NNP@3 rejects/VBZ@4", "#tag/NN@6"));
  spec.set_tags_field("5");
  ExpectError(Sentences(spec).status(), Exit::kData,
      "a.conll:3: tags_field: no column \"5\": expected a number from 1 to 4");
}

TEST_F(ReadersTest, ConllErrors) {
  ExpectError(Sentences(Data("a.conll", "a\tO\nb\n")).status(), Exit::kData,
      "a.conll:2: 1 column: expected 2 as in the file's first row");
  ExpectError(Sentences(Data("a.conll", "a\nb\n")).status(), Exit::kData,
      "a.conll:1: tags_field: column 1 holds the words; there are 1 columns");
  ExpectError(Sentences(Data("a.conll", "\tO\n")).status(), Exit::kData,
      "a.conll:1: words_field: an empty word");
  ExpectError(Sentences(Data("a.txt", "a O\n")).status(), Exit::kSpec,
      "a.txt: format: is TEXT: expected JSONL, CONLLU or CONLL");
}

TEST_F(ReadersTest, TaggedJsonl) {
  DataSpec spec = Data("a.jsonl",
      "{\"id\": 1, \"tokens\": [\"a\", \"b\"], \"tags\": [\"X\", \"Y\"]}\n{\"tokens\": [], "
      "\"tags\": []}\n");
  EXPECT_THAT(*Sentences(spec), ElementsAre("a/X@1 b/Y@1"));
  spec.set_words_field("words");
  ExpectError(Sentences(spec).status(), Exit::kData,
      "a.jsonl:1: words_field: no field \"words\"; there are \"id\", \"tokens\", \"tags\"");
  ExpectError(Sentences(Data("a.jsonl", "{\"tokens\": [\"a\"], \"tags\": []}")).status(),
      Exit::kData, "a.jsonl:1: tags_field: 0 tags for 1 words");
  ExpectError(Sentences(Data("a.jsonl", "{\"tokens\": [\"a\"], \"tags\": [1]}")).status(),
      Exit::kData, "a.jsonl:1: tags_field: \"tags\" is not a list of strings");
  ExpectError(Sentences(Data("a.jsonl", "{\"tokens\": [[\"a\"]], \"tags\": [\"X\"]}")).status(),
      Exit::kData, "a.jsonl:1: words_field: \"tokens\" is not a list of strings");
  ExpectError(Sentences(Data("a.jsonl", "{\"tokens\": [\"a\"], \"tags\": [\"\"]}")).status(),
      Exit::kData, "a.jsonl:1: tags_field: an empty tag");
  EXPECT_THAT(
      *Sentences(Data("a.jsonl", "{\"tokens\": [\"a\"]}"), Labels::kIgnored), ElementsAre("a/@1"));
}

// The file with each word's tag replaced by f(word, tag).
std::string Rewrite(const DataSpec& spec, Labels labels,
    const std::function<std::string(const std::string&, const std::string&)>& f) {
  auto reader = TaggedReader::Open(spec, labels, /*keep_lines=*/true);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::string out;
  TaggedSentence sentence;
  while (true) {
    const auto more = reader->Next(&sentence);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return out;
    std::vector<std::string> values;
    for (size_t i = 0; i < sentence.words.size(); ++i)
      values.push_back(f(sentence.words[i], sentence.tags.empty() ? "" : sentence.tags[i]));
    out += ReplaceTags(sentence, values);
  }
}

std::string Same(const std::string&, const std::string& tag) { return tag; }

TEST_F(ReadersTest, ConllIsWrittenBack) {
  const std::string conll =
      "\xEF\xBB\xBF-DOCSTART- -X- O\r\n\r\nEU   NNP  B-ORG \r\nx y O\n\n\n-DOCSTART- -X- O\n\n\n";
  for (const std::string end : {"", "\n", "\r", "\r\n", "\n\n", "\n# c"}) {
    const DataSpec conllu =
        Data("a.conllu", absl::StrCat("\n\n", kConllu, "\n1\ta\t_\tX\t_\t_\t_\t_\t_\tlast", end));
    EXPECT_EQ(Rewrite(conllu, Labels::kRequired, Same), Read(conllu.files(0)));
  }
  const DataSpec spec = Data("a.conll", conll + "a b c");
  EXPECT_EQ(Rewrite(spec, Labels::kRequired, Same), conll + "a b c");
  const std::string tagged = Rewrite(spec, Labels::kIgnored,
      [](const std::string& word, const std::string&) { return "<" + word + "\t>"; });
  EXPECT_EQ(tagged,
      "\xEF\xBB\xBF-DOCSTART- -X- O\r\n\r\nEU   NNP  <EU_> \r\nx y <x_>\n\n\n-DOCSTART- -X- "
      "O\n\n\na b <a_>");
}

TEST_F(ReadersTest, TagsAreAppendedToWords) {
  const auto tag = [](const std::string&, const std::string&) { return std::string("A B"); };
  EXPECT_EQ(Rewrite(Data("a.conll", "one\r\ntwo\n\nthree"), Labels::kIgnored, tag),
      "one\tA B\r\ntwo\tA B\n\nthree\tA B");
  DataSpec spec = Data("b.conll", "one 1\ntwo 2\n");
  spec.set_tags_field("3");
  EXPECT_EQ(Rewrite(spec, Labels::kIgnored, tag), "one 1 A_B\ntwo 2 A_B\n");
}

TEST_F(ReadersTest, ManyBlankLinesNeedLittleMemory) {
  const std::string text = std::string(1000000, '\n') + "a O\n";
  EXPECT_EQ(Rewrite(Data("a.conll", text), Labels::kRequired, Same), text);
  EXPECT_THAT(*Sentences(Data("a.conll", text)), ElementsAre("a/O@1000001"));
}

TEST_F(ReadersTest, DamagedFilesAreReadOrRefused) {
  const struct {
    const char* name;
    std::string content;
  } files[] = {{"a.txt", "one\ntwo\n\nthr\xC3\xA4\n"}, {"a.tsv", "text\tlabel\na b\t1\nc\t2\n"},
      {"a.csv", "text,label\n\"a\"\"b\n\",1\nc,2\n"},
      {"a.jsonl",
          "{\"text\": \"a\\u00e4\", \"label\": 1.5e3, \"tokens\": [\"a\", \"b\"], \"tags\": "
          "[\"X\", \"Y\"]}\n"},
      {"a.conllu", kConllu}, {"a.conll", "-DOCSTART- O\n\na X\nb Y\n\nc X\n"}};
  constexpr absl::string_view kBytes("\0\t\n\r \"\\,{}[]:-.#0129aX\x80\xC3\xED\xFF", 26);
  Philox random(7, Purpose::kShuffle);
  int64_t errors = 0, total = 0;
  for (const auto& [name, content] : files) {
    for (int round = 0; round < 150; ++round) {
      std::string damaged = content;
      for (uint32_t k = 0; k < 1 + round % 4; ++k) {
        const Philox::Words r = random(round, k, name[2] + name[3] * 256);
        const size_t at = Philox::Below(r[0], damaged.size());
        const char byte = kBytes[Philox::Below(r[1], kBytes.size())];
        if (r[2] % 3 == 0) damaged.erase(at, 1 + r[3] % 3);
        if (r[2] % 3 == 1) damaged.insert(at, 1, byte);
        if (r[2] % 3 == 2) damaged[at] = byte;
      }
      const DataSpec spec = Data(absl::StrCat(round, name), damaged);
      for (const Labels labels : {Labels::kRequired, Labels::kIgnored}) {
        for (const absl::Status& status : {Documents(spec).status(), Texts(spec, labels).status(),
                 Sentences(spec, labels).status()}) {
          ++total, errors += !status.ok();
          if (status.ok() || ExitOf(status) == Exit::kSpec) continue;
          ASSERT_EQ(ExitOf(status), Exit::kData) << status.message();
          ASSERT_THAT(std::string(status.message()), testing::HasSubstr(name));
        }
      }
      if (name == std::string("a.conllu") || name == std::string("a.conll")) {
        // What a reader of columns or a terminal would trip over becomes "_" in a tag.
        const bool plain =
            IsUtf8(damaged) && std::none_of(damaged.begin(), damaged.end(), [](char c) {
              return (c >= 0 && c < 32 && c != '\n' && c != '\t') || c == 127;
            });
        const bool sound = plain && Sentences(spec).ok();
        if (sound) {
          ASSERT_EQ(Rewrite(spec, Labels::kRequired, Same), damaged);
        }
      }
    }
  }
  EXPECT_GT(errors, total / 10);
  EXPECT_LT(errors, total * 9 / 10);
}

TEST_F(ReadersTest, SharedTreebankIsWrittenBack) {
  for (const std::string name : {"tagging/ud_english_ewt/en_ewt-ud-dev.conllu",
           "tagging/wnut17/dev.conll", "tagging/wikiann_en/dev.conll"}) {
    DataSpec spec;
    spec.add_files(Shared(name));
    if (!PathExists(spec.files(0))) GTEST_SKIP() << "needs " << spec.files(0);
    EXPECT_TRUE(Rewrite(spec, Labels::kRequired, Same) == Read(spec.files(0))) << name;
  }
}

TEST_F(ReadersTest, SharedTreebankHasItsSentences) {
  DataSpec spec;
  spec.add_files(Shared("tagging/ud_english_ewt/en_ewt-ud-dev.conllu"));
  if (!PathExists(spec.files(0))) GTEST_SKIP() << "needs " << spec.files(0);
  const auto sentences = Sentences(spec);
  ASSERT_TRUE(sentences.ok()) << sentences.status();
  EXPECT_EQ(sentences->size(), 2001);
  EXPECT_THAT((*sentences)[0], testing::StartsWith("From/ADP@5 the/DET@6 AP/PROPN@7"));
}

TEST_F(ReadersTest, SharedReviews) {
  DataSpec spec;
  spec.add_files(Shared("sentiment/imdb/dev.tsv"));
  if (!PathExists(spec.files(0))) GTEST_SKIP() << "needs " << spec.files(0);
  EXPECT_EQ(Texts(spec)->size(), 2500);
  EXPECT_EQ(Documents(spec)->size(), 2500);
}

}  // namespace
}  // namespace cloze
