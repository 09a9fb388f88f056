// Cloze as a library: classifiers, taggers, encoders and masked language models on CPUs.
//
// Every function may be called from many threads, also after fork. None of them ends the process,
// prints, installs signal handlers or changes the locale. A call that is wrong returns a status,
// and cloze_error() says in one line what is wrong. See docs/library.md.
#ifndef CLOZE_TOOLS_LIBRARY_CLOZE_H_
#define CLOZE_TOOLS_LIBRARY_CLOZE_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CLOZE_API __attribute__((visibility("default")))
#else
#define CLOZE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// The results of calls; the values are the exit codes of the program `cloze`.
typedef enum cloze_status {
  CLOZE_OK = 0,
  CLOZE_USAGE = 2,      // the call is wrong, or the model cannot do it
  CLOZE_DATA = 65,      // a text or the content of a file is wrong
  CLOZE_NO_INPUT = 66,  // a file is missing or unreadable
  CLOZE_CPU = 69,       // this CPU lacks instructions that are needed
  CLOZE_INTERNAL = 70,  // a bug in Cloze
  CLOZE_IO = 74,        // reading failed
  CLOZE_MISMATCH = 76,  // files of the folder do not fit together, or are damaged
  CLOZE_LIMIT = 77      // out of memory, or over another limit of the system
} cloze_status;

typedef struct cloze_model cloze_model;
typedef struct cloze_result cloze_result;

// Structs of options begin with their size, by which later versions tell what the caller knows.
// Members that are zero have their defaults: cloze_options options = {.size = sizeof options};
typedef struct cloze_options {
  size_t size;
  const char* compute;          // "auto" (default), "f32", "bf16", "int8": as --compute
  const char* const* adapters;  // FOLDER or NAME=FOLDER, as --adapter
  size_t adapter_count;
  int threads;  // for all models of the process; 0: as they are, at first all cores
} cloze_options;

typedef struct cloze_settings {
  size_t size;
  int each;       // 1: a text that is wrong gets its status in the result; 0: it fails the call
  int top;        // cloze_fill: tokens for each mask, 1 to 1000; 0: 5
  int tokens;     // cloze_embed: 1: a vector for each token; cloze_score: 1: with those of tokens
  int normalize;  // cloze_embed: 1: to length 1; -1: not; 0: as the folder says
  const char* pool;    // cloze_embed: "cls", "mean", "max"; NULL: as the folder says, else mean
  const char* prompt;  // cloze_embed: "query" or "document": the folder's prompt, if it has one
  int64_t dimensions;  // cloze_embed: the first ones, before normalizing; 0: all
} cloze_settings;

// A text or a pair of texts, as UTF-8. They need no zero byte at the end, and may hold some.
typedef struct cloze_text {
  const char* text;
  int64_t length;    // in bytes
  const char* pair;  // the second text; NULL: none
  int64_t pair_length;
  const char* adapter;  // the NAME of an adapter; NULL: none
} cloze_text;

// Returns the version of the library, "0.2.0".
CLOZE_API const char* cloze_version(void);
// Returns what was wrong with the last call of this thread that failed; "" if none has. Valid until
// the next call.
CLOZE_API const char* cloze_error(void);

// Opens a model folder: a run, a Hugging Face folder or an adapter. `options` may be NULL. Models
// that are opened again with the same options share their weights.
CLOZE_API cloze_status cloze_open(
    const char* folder, const cloze_options* options, cloze_model** model);
// Closes a model, after the calls that are running. With the last one its threads end. NULL does
// nothing.
CLOZE_API cloze_status cloze_close(cloze_model* model);
// The result has one text, a JSON object: "kind" (of the model: "sequence_classification",
// "token_tagging", ...), "labels", "adapters", "compute", "max_tokens", "dimensions".
CLOZE_API cloze_status cloze_info(cloze_model* model, cloze_result** result);

// The calls below answer `count` texts. The text of the result for each one is the JSON object that
// `cloze predict`, `tag`, `fill-mask`, `score` and `tokenize` print. It does not depend on the
// other texts. `settings` may be NULL. After an error *result is NULL; otherwise the caller frees
// it.
CLOZE_API cloze_status cloze_predict(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result);
CLOZE_API cloze_status cloze_tag(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result);
CLOZE_API cloze_status cloze_fill(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result);
CLOZE_API cloze_status cloze_score(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result);
CLOZE_API cloze_status cloze_tokenize(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result);
// The result has vectors, as `cloze encode` writes them, and no texts.
CLOZE_API cloze_status cloze_embed(cloze_model* model, const cloze_text* texts, int64_t count,
    const cloze_settings* settings, cloze_result** result);
// Answers one text as cloze_predict, cloze_tag or cloze_fill, whichever fits the model.
CLOZE_API cloze_status cloze_answer(
    cloze_model* model, const char* text, int64_t length, cloze_result** result);

// Returns the number of texts that were answered; -1 if `result` is not a result.
CLOZE_API int64_t cloze_count(const cloze_result* result);
// Returns the status of text `i`, and its JSON text, which ends with a zero byte; after an error,
// what is wrong with it. `text` and `length` may be NULL. Valid until the result is freed.
CLOZE_API cloze_status cloze_json(
    const cloze_result* result, int64_t i, const char** text, int64_t* length);
// Returns the vectors of text `i`, or of all for -1: `rows` x `cols` floats, row by row. A text has
// one row, or with settings.tokens one for each token; after an error none. Valid until the result
// is freed.
CLOZE_API cloze_status cloze_vectors(
    const cloze_result* result, int64_t i, const float** values, int64_t* rows, int64_t* cols);
// NULL does nothing.
CLOZE_API cloze_status cloze_free(cloze_result* result);

#ifdef __cplusplus
}
#endif

#endif  // CLOZE_TOOLS_LIBRARY_CLOZE_H_
