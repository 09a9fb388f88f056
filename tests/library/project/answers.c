/* answers MODEL [CALLS]: answers the lines of standard input, as `cloze predict` does. CALLS:
 * instead answers the first line that often, and prints the seconds of a call and by how many pages
 * the process grew after the first tenth. */
#define _POSIX_C_SOURCE 200809L
#include <cloze.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 1000

static void fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, cloze_error());
  exit(1);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static long pages(void) {
  long size = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &size, &resident) != 2) exit(1);
  fclose(file);
  return resident;
}

static void repeat(cloze_model* model, const cloze_text* text, long calls) {
  double began = 0;
  long i, before = 0;
  for (i = 0; i < calls; ++i) {
    cloze_result* result = NULL;
    if (i == calls / 10) before = pages(), began = seconds();
    if (cloze_answer(model, text->text, text->length, &result) != CLOZE_OK) fail("answer");
    cloze_free(result);
  }
  printf("{\"seconds\": %.3e, \"pages\": %ld}\n",
      (seconds() - began) / (double)(calls - calls / 10), pages() - before);
}

int main(int argc, char** argv) {
  static char line[1 << 16];
  static cloze_text texts[MOST];
  cloze_options options = {.size = sizeof(cloze_options)};
  cloze_model* model = NULL;
  cloze_result* result = NULL;
  int64_t count = 0, i;
  if (argc < 2 || setlocale(LC_ALL, "") == NULL) return 2;
  while (count < MOST && fgets(line, sizeof line, stdin) != NULL) {
    size_t length = strlen(line);
    if (length > 0 && line[length - 1] == '\n') line[--length] = 0;
    texts[count].text = strdup(line);
    texts[count++].length = (int64_t)length;
  }
  if (cloze_open(argv[1], &options, &model) != CLOZE_OK) fail("open");
  if (argc > 2) {
    repeat(model, &texts[0], atol(argv[2]));
    return 0;
  }
  if (cloze_predict(model, texts, count, NULL, &result) != CLOZE_OK) fail("predict");
  for (i = 0; i < cloze_count(result); ++i) {
    const char* json = NULL;
    if (cloze_json(result, i, &json, NULL) != CLOZE_OK) fail("json");
    puts(json);
  }
  if (cloze_free(result) != CLOZE_OK || cloze_close(model) != CLOZE_OK) fail("close");
  if (cloze_tag(model, texts, count, NULL, &result) != CLOZE_USAGE) return 3;
  return 0;
}
