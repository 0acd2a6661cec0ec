/* Calls as llama.cpp's sampler does: its thirteen functions, in its order, with the declarations of llguidance.h 1.0.1. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct LlgMatcher LlgMatcher;
typedef struct LlgTokenizer LlgTokenizer;
typedef struct {
  size_t max_items_in_row;
  uint64_t initial_lexer_fuel, step_lexer_fuel;
  size_t step_max_items, max_lexer_states, max_grammar_size;
  bool precompute_large_lexemes;
} LlgParserLimits;
typedef struct {
  const LlgTokenizer *tokenizer;
  uint32_t log_buffer_level, log_stderr_level;
  bool ff_tokens_ok, backtrack_ok;
  LlgParserLimits limits;
} LlgConstraintInit;
typedef size_t (*LlgTokenizeFn)(const void *, const uint8_t *, size_t, uint32_t *, size_t);
typedef struct {
  uint32_t vocab_size, tok_eos;
  const uint32_t *token_lens;
  const uint8_t *token_bytes;
  const char *tokenizer_json;
  bool tokenize_assumes_string;
  LlgTokenizeFn tokenize_fn;
  bool use_approximate_greedy_tokenize_fn;
  const void *tokenize_user_data;
  const char *const *slices;
} LlgTokenizerInit;

void llg_constraint_init_set_defaults(LlgConstraintInit *, const LlgTokenizer *);
LlgTokenizer *llg_new_tokenizer(const LlgTokenizerInit *, char *, size_t);
LlgTokenizer *llg_clone_tokenizer(const LlgTokenizer *);
void llg_free_tokenizer(LlgTokenizer *);
LlgMatcher *llg_new_matcher(const LlgConstraintInit *, const char *, const char *);
const char *llg_matcher_get_error(LlgMatcher *);
size_t llg_matcher_get_mask_byte_size(LlgMatcher *);
const uint32_t *llg_matcher_get_mask(LlgMatcher *);
int32_t llg_matcher_compute_mask(LlgMatcher *);
int32_t llg_matcher_consume_token(LlgMatcher *, uint32_t);
int32_t llg_matcher_reset(LlgMatcher *);
LlgMatcher *llg_clone_matcher(const LlgMatcher *);
void llg_free_matcher(LlgMatcher *);

static int failures = 0;

#define CHECK(condition)                                      \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      failures++;                                             \
    }                                                         \
  } while (0)

static size_t tokenize(const void *data, const uint8_t *bytes, size_t len, uint32_t *out, size_t room) {
  (void)data, (void)bytes, (void)len, (void)out, (void)room;
  CHECK(!"no mask needs a tokenizer");
  return 0;
}

/* Tokens 0 to 5 are {, }, 1, {}, a token that is not used, and <eos>, whose bytes begin with 0xFF. */
static const uint32_t LENGTHS[] = {1, 1, 1, 2, 0, 6};
static const uint8_t BYTES[] = "{}1{}\xff<eos>";
enum { OPEN, CLOSE, ONE, BOTH, UNUSED, END, TOKENS };

static bool allows(LlgMatcher *matcher, uint32_t token) {
  if (llg_matcher_get_mask(matcher) == NULL) CHECK(llg_matcher_compute_mask(matcher) == 0);
  return llg_matcher_get_mask(matcher)[token / 32] >> (token % 32) & 1;
}

static LlgMatcher *matcher(const LlgTokenizer *tokenizer, const char *kind, const char *grammar) {
  LlgConstraintInit init;
  llg_constraint_init_set_defaults(&init, tokenizer);
  return llg_new_matcher(&init, kind, grammar);
}

int main(void) {
  char error[128] = "";
  LlgTokenizerInit init = {TOKENS, END, LENGTHS, BYTES, NULL, false, tokenize, false, NULL, NULL};
  LlgTokenizer *first = llg_new_tokenizer(&init, error, sizeof error);
  CHECK(first != NULL);
  LlgTokenizer *tokenizer = llg_clone_tokenizer(first);
  llg_free_tokenizer(first);

  LlgMatcher *object = matcher(tokenizer, "lark", "%llguidance {}\nstart: %json {\"type\": \"object\", \"additionalProperties\": false}");
  CHECK(llg_matcher_get_error(object) == NULL);
  CHECK(llg_matcher_get_mask_byte_size(object) == 4);
  CHECK(llg_matcher_get_mask(object) == NULL);
  CHECK(allows(object, OPEN) && allows(object, BOTH) && !allows(object, CLOSE) && !allows(object, END) && !allows(object, UNUSED));
  LlgMatcher *copy = llg_clone_matcher(object);
  CHECK(llg_matcher_consume_token(object, OPEN) == 0 && llg_matcher_get_mask(object) == NULL);
  CHECK(allows(object, CLOSE) && !allows(object, ONE) && allows(copy, OPEN));
  CHECK(llg_matcher_consume_token(object, CLOSE) == 0 && allows(object, END));
  CHECK(llg_matcher_consume_token(object, END) == 0 && allows(object, END) && !allows(object, OPEN));
  CHECK(llg_matcher_reset(object) == 0 && allows(object, OPEN));
  CHECK(llg_matcher_consume_token(object, ONE) == -1 && llg_matcher_get_error(object) != NULL);
  CHECK(llg_matcher_compute_mask(object) == -1 && llg_matcher_get_mask(object) == NULL && llg_matcher_reset(object) == -1);
  llg_free_matcher(object);
  llg_free_matcher(copy);

  LlgMatcher *regex = matcher(tokenizer, "regex", "1+");
  CHECK(llg_matcher_get_error(regex) == NULL && allows(regex, ONE) && !allows(regex, OPEN));
  llg_free_matcher(regex);

  const char *wrong[][3] = {{"lark", "start: b", "rule `b` is not defined"}, {"json", "{\"type\": \"objct\"}", "objct"}, {"bnf", "", "bnf"}};
  for (int i = 0; i < 3; i++) {
    LlgMatcher *failed = matcher(tokenizer, wrong[i][0], wrong[i][1]);
    const char *told = failed ? llg_matcher_get_error(failed) : NULL;
    CHECK(told != NULL && strstr(told, wrong[i][2]) != NULL);
    CHECK(llg_matcher_compute_mask(failed) == -1);
    llg_free_matcher(failed);
  }
  LlgMatcher *nothing = matcher(NULL, "json", "{}");
  CHECK(nothing != NULL && llg_matcher_get_error(nothing) != NULL);
  llg_free_matcher(nothing);
  llg_free_tokenizer(tokenizer);

  init.tok_eos = 77;
  char small[8];
  CHECK(llg_new_tokenizer(&init, small, sizeof small) == NULL && strlen(small) == 7);
  CHECK(llg_new_tokenizer(NULL, error, sizeof error) == NULL && strlen(error) > 0);
  if (failures == 0) puts("all is well");
  return failures != 0;
}
