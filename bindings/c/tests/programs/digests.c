/* Prints a digest of the masks along a text of each schema: `digests TOKENIZER < SCHEMAS`, a schema a line. The rule is that
 * of tests/mask_digests.rs, whose record these digests must equal. */

#include "lexiform.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 24, LONGEST = 1 << 20 };

static char *whole(const char *path, size_t *len) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) exit(2);
  char *text = malloc(LONGEST);
  *len = fread(text, 1, LONGEST, file);
  fclose(file);
  return text;
}

static uint64_t along_a_text(const lexiform_grammar *grammar, uint32_t *words, size_t n) {
  uint64_t digest = UINT64_C(0xcbf29ce484222325), chance = 1;
  lexiform_session *session = lexiform_session_new(grammar, NULL, 0);
  lexiform_state state = lexiform_start(grammar);
  for (int step = 0; step < STEPS; step++) {
    /* By turns through states and through a session, which must agree. */
    lexiform_status status = step % 2 ? lexiform_mask(grammar, state, -1, words, n) : lexiform_session_fill(session, -1, words, n);
    if (status != LEXIFORM_OK) exit(3);
    uint64_t count = 0;
    for (size_t word = 0; word < n; word++) {
      for (int byte = 0; byte < 4; byte++) digest = (digest ^ (words[word] >> (8 * byte) & 255)) * UINT64_C(0x100000001b3);
      count += (uint64_t)__builtin_popcount(words[word]);
    }
    if (count == 0) break;
    chance = (chance * 1103515245 + 12345) % (UINT64_C(1) << 31);
    uint64_t left = chance / 65536 % count;
    uint32_t token = 0;
    while (!(words[token / 32] >> (token % 32) & 1) || left-- > 0) token++;
    state = lexiform_step(grammar, state, token);
    if (state == LEXIFORM_NONE || lexiform_session_accept(session, &token, 1) != LEXIFORM_OK) exit(4);
  }
  lexiform_session_free(session);
  return digest;
}

/* What the library compiles where nothing is said. */
static const char AS_SPECIFIED[] =
    "{\"whitespace\": \"flexible\", \"additional_properties\": \"open\", \"numbers\": \"any\"}";

int main(int count, char **args) {
  if (count != 2) return 2;
  size_t len;
  char *json = whole(args[1], &len), *error = NULL;
  uint32_t eos = 1;
  lexiform_vocabulary *vocabulary = lexiform_vocabulary_from_tokenizer_json(json, len, 0, &eos, 1, &error);
  if (vocabulary == NULL) return fprintf(stderr, "%s\n", error), 2;
  size_t n = (lexiform_vocabulary_len(vocabulary) + 31) / 32;
  uint32_t *words = malloc(n * sizeof *words);
  lexiform_compiler *compiler = lexiform_compiler_new(vocabulary, true);
  char *line = malloc(LONGEST);
  while (fgets(line, LONGEST, stdin) != NULL) {
    lexiform_grammar *grammar =
        lexiform_compile(compiler, LEXIFORM_JSON_SCHEMA, line, strcspn(line, "\n"), AS_SPECIFIED, &error);
    if (grammar == NULL) return fprintf(stderr, "%s%s\n", line, error), 1;
    printf("%016" PRIx64 "\n", along_a_text(grammar, words, n));
    lexiform_grammar_free(grammar);
  }
  lexiform_compiler_free(compiler);
  lexiform_vocabulary_free(vocabulary);
  free(words), free(line), free(json);
  return 0;
}
