/* Uses every function of lexiform.h, and misuses most of them. Ends with 0 if all is as it should be. */

#include "lexiform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);         \
      failures++;                                                     \
    }                                                                 \
  } while (0)

/* Tokens 0 to 5 are a, b, c, ab, <end> and one that is not used. */
static const uint8_t BYTES[] = "abcab<end>";
static const size_t LENGTHS[] = {1, 1, 1, 2, 5, 0};
static const uint8_t KINDS[] = {LEXIFORM_TEXT, LEXIFORM_TEXT, LEXIFORM_TEXT, LEXIFORM_TEXT, LEXIFORM_SPECIAL, LEXIFORM_UNUSED};
static const uint32_t EOS[] = {4};
enum { A, B, C, AB, END, TOKENS = 6 };

static lexiform_vocabulary *vocabulary(void) {
  char *error = NULL;
  lexiform_vocabulary *made = lexiform_vocabulary_new(BYTES, LENGTHS, KINDS, TOKENS, EOS, 1, &error);
  CHECK(made != NULL && error == NULL);
  return made;
}

static lexiform_grammar *compiled(const lexiform_compiler *compiler, int32_t kind, const char *text) {
  char *problems = NULL;
  lexiform_grammar *grammar = lexiform_compile(compiler, kind, text, strlen(text), NULL, &problems);
  if (grammar == NULL) fprintf(stderr, "%s: %s\n", text, problems ? problems : "no reason");
  lexiform_string_free(problems);
  CHECK(grammar != NULL);
  return grammar;
}

static bool says(char *text, const char *words) {
  bool found = text != NULL && strstr(text, words) != NULL;
  if (!found) fprintf(stderr, "%s is not in %s\n", words, text ? text : "nothing");
  lexiform_string_free(text);
  return found;
}

static void states(const lexiform_compiler *compiler) {
  lexiform_grammar *grammar = compiled(compiler, LEXIFORM_REGEX, "ab*c");
  lexiform_state start = lexiform_start(grammar);
  uint32_t words[2] = {7, 7};
  CHECK(lexiform_mask(grammar, start, -1, words, 2) == LEXIFORM_OK);
  CHECK(words[0] == (1u << A | 1u << AB) && words[1] == 0);
  lexiform_state after = lexiform_step(grammar, start, AB);
  CHECK(after != LEXIFORM_NONE && lexiform_step(grammar, start, A) == lexiform_step(grammar, start, A));
  CHECK(lexiform_mask(grammar, after, 2, words, 1) == LEXIFORM_OK && words[0] == 1u << C);
  CHECK(lexiform_step(grammar, start, C) == LEXIFORM_NONE);
  lexiform_state whole = lexiform_step(grammar, after, C);
  CHECK(lexiform_is_accepting(grammar, whole) && !lexiform_is_accepting(grammar, after));
  CHECK(lexiform_is_finished(grammar, lexiform_step(grammar, whole, END)) && !lexiform_is_finished(grammar, whole));
  uint8_t forced[4] = {0};
  CHECK(lexiform_forced(grammar, start, forced, 4) == 1 && forced[0] == 'a');
  CHECK(lexiform_forced(grammar, start, NULL, 0) == 1);

  lexiform_grammar *other = compiled(compiler, LEXIFORM_CHOICE, "[\"b\", \"cc\"]");
  uint32_t batch[4] = {9, 9, 9, 9};
  lexiform_row rows[] = {{grammar, start, 3, -1}, {NULL, 0, 1, -1}, {other, lexiform_start(other), 0, -1}};
  CHECK(lexiform_fill_batch(rows, 3, batch, 4, 1) == LEXIFORM_OK);
  CHECK(batch[0] == (1u << B | 1u << C) && batch[1] == UINT32_MAX && batch[2] == 9 && batch[3] == (1u << A | 1u << AB));
  rows[0].index = 4;
  CHECK(lexiform_fill_batch(rows, 3, batch, 4, 1) == LEXIFORM_INVALID);
  CHECK(lexiform_fill_batch(rows, 3, batch, SIZE_MAX, SIZE_MAX) == LEXIFORM_INVALID);

  /* Whatever is null, too short or strange is an error and no more. */
  CHECK(lexiform_mask(grammar, start, -1, words, 0) == LEXIFORM_INVALID);
  CHECK(lexiform_mask(grammar, start, -1, NULL, 2) == LEXIFORM_INVALID);
  CHECK(lexiform_mask(grammar, start, -1, words, SIZE_MAX) == LEXIFORM_INVALID);
  CHECK(lexiform_mask(grammar, 1000000, -1, words, 2) == LEXIFORM_INVALID);
  CHECK(lexiform_mask(grammar, LEXIFORM_NONE, -1, words, 2) == LEXIFORM_INVALID);
  CHECK(lexiform_mask(NULL, start, -1, words, 2) == LEXIFORM_INVALID);
  CHECK(lexiform_step(grammar, start, 1000000) == LEXIFORM_NONE && lexiform_step(grammar, 1000000, A) == LEXIFORM_NONE);
  CHECK(lexiform_start(NULL) == LEXIFORM_NONE && !lexiform_is_accepting(NULL, 0) && !lexiform_is_finished(NULL, 0));
  CHECK(lexiform_fill_batch(NULL, 3, batch, 4, 1) == LEXIFORM_INVALID);

  /* A copy outlives what it was made from. */
  lexiform_grammar *copy = lexiform_grammar_clone(grammar);
  lexiform_grammar_free(grammar);
  CHECK(lexiform_step(copy, start, A) != LEXIFORM_NONE);
  lexiform_grammar_free(copy);
  lexiform_grammar_free(other);
}

static void sessions(const lexiform_compiler *compiler) {
  lexiform_grammar *grammar = compiled(compiler, LEXIFORM_EBNF, "root ::= \"a\" root | \"c\"");
  lexiform_session *session = lexiform_session_new(grammar, NULL, 0);
  lexiform_grammar_free(grammar);
  uint32_t drafts[] = {A, A, B};
  CHECK(lexiform_session_validate(session, drafts, 3) == 2);
  CHECK(lexiform_session_accept(session, drafts, 3) == LEXIFORM_NOT_ALLOWED && lexiform_session_len(session) == 0);
  CHECK(lexiform_session_accept(session, drafts, 2) == LEXIFORM_OK && lexiform_session_len(session) == 2);
  lexiform_session *copy = lexiform_session_clone(session);
  CHECK(lexiform_session_rollback(session, 3) == LEXIFORM_INVALID && lexiform_session_rollback(session, 1) == LEXIFORM_OK);
  CHECK(lexiform_session_len(session) == 1 && lexiform_session_len(copy) == 2);
  uint32_t whole[] = {C, END};
  CHECK(lexiform_session_accept(copy, whole, 1) == LEXIFORM_OK && lexiform_session_is_accepting(copy));
  CHECK(lexiform_session_accept(copy, whole + 1, 1) == LEXIFORM_OK && lexiform_session_is_terminated(copy));
  CHECK(lexiform_session_accept(copy, whole, 1) == LEXIFORM_NOT_ALLOWED);
  uint32_t words[1];
  CHECK(lexiform_session_fill(session, -1, words, 1) == LEXIFORM_OK && words[0] == (1u << A | 1u << C));
  CHECK(lexiform_session_fill(session, 2, words, 1) == LEXIFORM_OK && words[0] == 1u << C);
  CHECK(lexiform_session_fill(session, -1, words, 0) == LEXIFORM_INVALID);
  CHECK(lexiform_session_reset(copy) == LEXIFORM_OK && lexiform_session_len(copy) == 0);
  lexiform_session_free(session);
  lexiform_session_free(copy);
  CHECK(lexiform_session_accept(NULL, whole, 1) == LEXIFORM_INVALID && lexiform_session_validate(NULL, whole, 1) == 0);
  CHECK(lexiform_session_fill(NULL, -1, words, 1) == LEXIFORM_INVALID && lexiform_session_len(NULL) == 0);
  CHECK(lexiform_session_rollback(NULL, 0) == LEXIFORM_INVALID && lexiform_session_reset(NULL) == LEXIFORM_INVALID);
  CHECK(lexiform_session_clone(NULL) == NULL && lexiform_session_new(NULL, NULL, 0) == NULL);
  CHECK(!lexiform_session_is_accepting(NULL) && !lexiform_session_is_terminated(NULL));
  lexiform_session_free(NULL);
}

static void ends_of_a_request(const lexiform_compiler *compiler) {
  lexiform_grammar *grammar = compiled(compiler, LEXIFORM_REGEX, "a+");
  uint32_t ends[] = {C}, strange[] = {77}, words[1];
  lexiform_session *session = lexiform_session_new(grammar, ends, 1);
  CHECK(lexiform_session_accept(session, (uint32_t[]){A}, 1) == LEXIFORM_OK);
  CHECK(lexiform_session_fill(session, -1, words, 1) == LEXIFORM_OK && words[0] == (1u << A | 1u << C));
  CHECK(lexiform_session_new(grammar, strange, 1) == NULL);
  lexiform_session_free(session);
  lexiform_grammar_free(grammar);
}

/* A compiler for a vocabulary of all bytes and an end. */
static lexiform_compiler *of_bytes(void) {
  uint8_t bytes[257], kinds[257];
  size_t lengths[257];
  for (int token = 0; token < 257; token++) {
    bytes[token] = (uint8_t)token;
    kinds[token] = token == 256 ? LEXIFORM_SPECIAL : LEXIFORM_TEXT;
    lengths[token] = 1;
  }
  uint32_t end[] = {256};
  lexiform_vocabulary *words = lexiform_vocabulary_new(bytes, lengths, kinds, 257, end, 1, NULL);
  CHECK(words != NULL);
  lexiform_compiler *compiler = lexiform_compiler_new(words, false);
  lexiform_vocabulary_free(words);
  return compiler;
}

static void problems(const lexiform_compiler *compiler) {
  char *told = NULL;
  const char *wrong = "{\"type\": \"objct\", \"minLength\": -1}";
  CHECK(lexiform_compile(compiler, LEXIFORM_JSON_SCHEMA, wrong, strlen(wrong), NULL, &told) == NULL);
  CHECK(strstr(told, "\"pointer\":\"/type\"") != NULL && says(told, "\"pointer\":\"/minLength\""));
  CHECK(lexiform_compile(compiler, LEXIFORM_JSON_SCHEMA, wrong, strlen(wrong), NULL, NULL) == NULL);
  CHECK(lexiform_compile(compiler, 9, "", 0, NULL, &told) == NULL && says(told, "no kind 9"));
  CHECK(lexiform_compile(compiler, LEXIFORM_REGEX, "a", 1, "{\"dialct\": \"ecma\"}", &told) == NULL && says(told, "did you mean `dialect`"));
  CHECK(lexiform_compile(compiler, LEXIFORM_REGEX, "a", 1, "[]", &told) == NULL && says(told, "object"));
  CHECK(lexiform_compile(compiler, LEXIFORM_REGEX, "\xff", 1, NULL, &told) == NULL && says(told, "utf-8"));
  CHECK(lexiform_compile(compiler, LEXIFORM_REGEX, NULL, 1, NULL, &told) == NULL && says(told, "null"));
  CHECK(lexiform_compile(NULL, LEXIFORM_REGEX, "a", 1, NULL, &told) == NULL && says(told, "null"));
  CHECK(lexiform_compile(compiler, LEXIFORM_CHOICE, "[1]", 3, NULL, &told) == NULL && says(told, "array of strings"));
  CHECK(lexiform_compile(compiler, LEXIFORM_STRUCTURAL_TAG, "{}", 2, NULL, &told) == NULL && says(told, "/structures"));

  /* Nothing in this vocabulary writes a quote. */
  const char *text = "{\"const\": \"a\", \"minContain\": 1}";
  const char *options = "{\"whitespace\": \"compact\", \"key_order\": \"any\", \"refuse\": \"nothing\"}";
  CHECK(lexiform_compile(compiler, LEXIFORM_JSON_SCHEMA, text, strlen(text), options, &told) == NULL
        && says(told, "the tokens of the vocabulary"));
  lexiform_compiler *bytes = of_bytes();
  compiler = bytes;
  lexiform_grammar *grammar = lexiform_compile(compiler, LEXIFORM_JSON_SCHEMA, text, strlen(text), options, &told);
  CHECK(grammar != NULL && says(lexiform_grammar_findings(grammar), "did you mean `minContains`"));
  lexiform_grammar_free(grammar);

  /* An object that lists its properties is closed, unless the options say otherwise. */
  text = "{\"properties\": {\"a\": {}}}";
  grammar = lexiform_compile(compiler, LEXIFORM_JSON_SCHEMA, text, strlen(text), NULL, &told);
  CHECK(grammar != NULL && says(lexiform_grammar_findings(grammar), "\"closed\""));
  lexiform_grammar_free(grammar);
  grammar = lexiform_compile(compiler, LEXIFORM_JSON_SCHEMA, text, strlen(text),
                             "{\"additional_properties\": \"open\", \"numbers\": \"any\", \"whitespace\": \"indented\"}", &told);
  CHECK(grammar != NULL && says(lexiform_grammar_findings(grammar), "[]"));
  lexiform_grammar_free(grammar);
  CHECK(lexiform_compile(compiler, LEXIFORM_JSON_SCHEMA, text, strlen(text), "{\"numbers\": 1}", &told) == NULL && says(told, "double"));
  lexiform_compiler_free(bytes);

  char *error = NULL;
  CHECK(lexiform_vocabulary_new(NULL, LENGTHS, KINDS, TOKENS, EOS, 1, &error) == NULL && says(error, "null"));
  uint8_t kinds[TOKENS] = {5};
  CHECK(lexiform_vocabulary_new(BYTES, LENGTHS, kinds, TOKENS, EOS, 1, &error) == NULL && says(error, "kind 5"));
  size_t huge[TOKENS] = {SIZE_MAX, SIZE_MAX};
  CHECK(lexiform_vocabulary_new(BYTES, huge, KINDS, TOKENS, EOS, 1, NULL) == NULL);
  CHECK(lexiform_vocabulary_from_tokenizer_json("{", 1, 0, EOS, 1, &error) == NULL);
  lexiform_string_free(error);
  CHECK(lexiform_vocabulary_from_tokenizer_json(NULL, 4, 0, EOS, 1, NULL) == NULL);
  CHECK(lexiform_vocabulary_len(NULL) == 0 && lexiform_compiler_new(NULL, true) == NULL);
  CHECK(lexiform_grammar_findings(NULL) == NULL && lexiform_grammar_clone(NULL) == NULL);
}

/* A schema as a provider takes it, and the value of an answer. */
static void answers(void) {
  char *text = NULL;
  const char *tools = "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}]";
  lexiform_answer_reader *reader = lexiform_answer_reader_new("qwen_3", 6, tools, strlen(tools), 1, false, &text);
  CHECK(reader != NULL && text == NULL);
  char *events = lexiform_answer_reader_push(reader, "Hi<tool_c", 9);
  CHECK(strstr(events, "\"text\":\"Hi\"") != NULL && strstr(events, "\"span\":[0,2]") != NULL);
  lexiform_string_free(events);
  const char *rest = "all>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>";
  events = lexiform_answer_reader_push(reader, rest, strlen(rest));
  CHECK(strstr(events, "\"kind\":\"call\"") != NULL && strstr(events, "\"name\":\"f\"") != NULL);
  CHECK(strstr(events, "\"pointer\":\"/a\"") != NULL && strstr(events, "\"kind\":\"call_end\"") != NULL);
  lexiform_string_free(events);
  CHECK(says(lexiform_answer_reader_finish(reader), "[]"));
  CHECK(lexiform_answer_reader_push(reader, "\xff", 1) == NULL);
  lexiform_answer_reader_free(reader);
  CHECK(lexiform_answer_reader_new("qwen", 4, NULL, 0, 1, false, &text) == NULL && strstr(text, "qwen_3") != NULL);
  lexiform_string_free(text);
  CHECK(lexiform_answer_reader_finish(NULL) == NULL);
}

static void projections(void) {
  const char *schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}";
  const char *profile = "openai-strict";
  char *text = NULL;
  lexiform_projection *projection = lexiform_project(schema, strlen(schema), profile, strlen(profile), false, &text);
  CHECK(projection != NULL && text == NULL);
  CHECK(says(lexiform_projection_schema(projection),
             "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":[\"integer\",\"null\"]}},\"required\":[\"a\"],"
             "\"additionalProperties\":false}"));
  char *report = lexiform_projection_report(projection);
  CHECK(strstr(report, "\"relation\":\"equal\",\"proven\":true") != NULL);
  lexiform_string_free(report);
  CHECK(says(lexiform_projection_receive(projection, "{\"a\":null}", 10, &text), "{}"));
  CHECK(lexiform_projection_receive(projection, "x", 1, &text) == NULL && strstr(text, "Answer again") != NULL);
  lexiform_string_free(text);
  lexiform_projection_free(projection);
  CHECK(lexiform_project(schema, strlen(schema), "open", 4, false, &text) == NULL && strstr(text, "no profile") != NULL);
  lexiform_string_free(text);
  CHECK(lexiform_projection_schema(NULL) == NULL);
}

int main(void) {
  CHECK(strchr(lexiform_version(), '.') != NULL);
  lexiform_vocabulary *words = vocabulary();
  CHECK(lexiform_vocabulary_len(words) == TOKENS);
  lexiform_compiler *compiler = lexiform_compiler_new(words, false);
  lexiform_vocabulary_free(words);
  lexiform_grammar *noted = compiled(compiler, LEXIFORM_REGEX, "a");
  CHECK(says(lexiform_grammar_findings(noted), "[]"));
  states(compiler);
  sessions(compiler);
  ends_of_a_request(compiler);
  problems(compiler);
  projections();
  answers();
  lexiform_compiler_free(compiler);
  CHECK(lexiform_step(noted, lexiform_start(noted), A) != LEXIFORM_NONE);
  lexiform_grammar_free(noted);
  lexiform_grammar_free(NULL);
  lexiform_compiler_free(NULL);
  lexiform_vocabulary_free(NULL);
  lexiform_string_free(NULL);
  if (failures == 0) puts("all is well");
  return failures != 0;
}
