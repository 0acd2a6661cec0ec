/* Lexiform for C: which tokens of a model may come next, so that its text obeys a JSON Schema, a regular expression, a
 * grammar or a structural tag.
 *
 *   tokens - vocabulary - compiler - compile -> grammar - start, step, mask -> words
 *                                                  `----- session: accept, validate, rollback, fill
 *
 * Handles are made by a `new` or by `lexiform_compile`, and freed once by their `free`, in any order: each keeps what it
 * needs. Vocabularies, compilers and grammars may be used by several threads at a time; a session by one. A null handle or
 * buffer is an error of the call, and freeing null does nothing.
 *
 * A mask has a bit for each token, bit t % 32 of word t / 32; it is set where the token may come next. Buffers need
 * (tokens + 31) / 32 words; words beyond that are cleared. A budget is the number of tokens that the text may still take:
 * the mask then leaves only what can be completed in time. It is negative where there is none. */

#ifndef LEXIFORM_H
#define LEXIFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lexiform_vocabulary lexiform_vocabulary;
typedef struct lexiform_compiler lexiform_compiler;
typedef struct lexiform_grammar lexiform_grammar;
typedef struct lexiform_session lexiform_session;
typedef struct lexiform_projection lexiform_projection;
typedef struct lexiform_answer_reader lexiform_answer_reader;

/* A state of one grammar. States are values: they may be copied and kept, and equal ones have equal futures. */
typedef uint32_t lexiform_state;
/* No state. */
#define LEXIFORM_NONE UINT32_MAX

/* What a call came to. */
typedef int32_t lexiform_status;
#define LEXIFORM_OK 0
/* A token may not come next; nothing has changed. */
#define LEXIFORM_NOT_ALLOWED 1
/* The answer would have cost more than the limits of the grammar allow. The mask is cleared. */
#define LEXIFORM_EXHAUSTED 2
/* A null pointer, a state that the grammar does not have, or a buffer that is too short. */
#define LEXIFORM_INVALID 3
/* A mistake of the library. Nothing can be said of the handles that the call was given. */
#define LEXIFORM_PANIC 4

/* Kinds of tokens: text, a special token whose bytes are its name, and a number that is not used. */
#define LEXIFORM_TEXT 0
#define LEXIFORM_SPECIAL 1
#define LEXIFORM_UNUSED 2

/* Kinds of sources. A choice is a JSON array of strings, one of which is the whole text. */
#define LEXIFORM_JSON_SCHEMA 0
#define LEXIFORM_REGEX 1
#define LEXIFORM_EBNF 2
#define LEXIFORM_STRUCTURAL_TAG 3
#define LEXIFORM_CHOICE 4

/* A sequence of a batch. */
typedef struct lexiform_row {
  /* Its grammar; null for a sequence without one, which may take every token. */
  const lexiform_grammar *grammar;
  /* Where it stands. */
  lexiform_state state;
  /* The row of the buffer that its mask goes to. */
  size_t index;
  /* Its budget of tokens; negative for none. */
  int64_t budget;
} lexiform_row;

/* The version, as "0.1.0". Never freed. */
const char *lexiform_version(void);

/* Frees a string that this library handed out. */
void lexiform_string_free(char *string);

/* A vocabulary of `n` tokens: their bytes one after another, the length and the kind of each, and the `n_eos` tokens that
 * end a text. Where something is wrong, the result is null, and `*error` says what unless `error` is null. */
lexiform_vocabulary *lexiform_vocabulary_new(const uint8_t *bytes, const size_t *lengths, const uint8_t *kinds, size_t n, const uint32_t *eos, size_t n_eos, char **error);

/* The vocabulary of a tokenizer.json of `len` bytes. Where the model has another number of rows than the file has tokens,
 * `rows` says it; else it is 0. */
lexiform_vocabulary *lexiform_vocabulary_from_tokenizer_json(const char *json, size_t len, size_t rows, const uint32_t *eos, size_t n_eos, char **error);

/* How many tokens a vocabulary has. */
size_t lexiform_vocabulary_len(const lexiform_vocabulary *vocabulary);

void lexiform_vocabulary_free(lexiform_vocabulary *vocabulary);

/* A compiler. A primed one takes a fraction of a second to make, and finds the first masks of schemas sooner. */
lexiform_compiler *lexiform_compiler_new(const lexiform_vocabulary *vocabulary, bool primed);

void lexiform_compiler_free(lexiform_compiler *compiler);

/* Compiles a source of `len` bytes. `options` is null or a JSON object with any of
 *   "whitespace": "indented" | "flexible" | "compact"      "key_order": "schema" | "any"
 *   "refuse": "nothing" | "ineffective" | "inexact"   schemas with keywords that have no effect and were meant to have one, such as
 *                                                     misspelled ones; also those that are enforced narrower than they say
 *   "dialect": "rust" | "ecma" | "python"     of a regular expression
 *   "notation": "lark" | "llguidance" | ...   of a grammar of kind 5; recognised if there is none
 *   "start": "file_input"                     the rule that derives whole texts, if it is not "start" in Lark
 *   "additional_properties": "closed" | "open"  of objects that list properties and say nothing of others; closed by default
 *   "numbers": "double" | "any"               double by default: integers in digits, others in 17 digits at most
 * Where the source does not compile, the result is null, and `*problems` gets all problems, unless `problems` is null:
 *   {"problems": [{"kind": "invalid", "pointer": "/type", "message": "..."}]}
 * The place of a problem is a "pointer", a "line" and a "column", or a "rule". */
lexiform_grammar *lexiform_compile(const lexiform_compiler *compiler, int32_t kind, const char *text, size_t len, const char *options, char **problems);

/* The findings that did not stop a compile, as a JSON array of problems: keywords without effect, for instance. */
char *lexiform_grammar_findings(const lexiform_grammar *grammar);

/* Another handle of the same grammar. */
lexiform_grammar *lexiform_grammar_clone(const lexiform_grammar *grammar);

void lexiform_grammar_free(lexiform_grammar *grammar);

/* The state before any token. */
lexiform_state lexiform_start(const lexiform_grammar *grammar);

/* The state after a token; LEXIFORM_NONE if it may not come next. */
lexiform_state lexiform_step(const lexiform_grammar *grammar, lexiform_state state, uint32_t token);

/* Writes the mask of a state. */
lexiform_status lexiform_mask(const lexiform_grammar *grammar, lexiform_state state, int64_t budget, uint32_t *words, size_t n_words);

/* Whether the text so far is complete. */
bool lexiform_is_accepting(const lexiform_grammar *grammar, lexiform_state state);

/* Whether a token that ends the text was taken. */
bool lexiform_is_finished(const lexiform_grammar *grammar, lexiform_state state);

/* Writes the bytes that every completion goes on with, as far as there is room, and returns how many there are. */
size_t lexiform_forced(const lexiform_grammar *grammar, lexiform_state state, uint8_t *out, size_t capacity);

/* Writes the masks of `n` sequences into a buffer of `n_rows` rows of `stride` words, on several threads where that pays.
 * Rows that no sequence names are left as they are. LEXIFORM_EXHAUSTED if some row was; it is cleared, the others are
 * right. */
lexiform_status lexiform_fill_batch(const lexiform_row *rows, size_t n, uint32_t *words, size_t n_rows, size_t stride);

/* A sequence at its beginning, which ends with one of the `n` tokens, or with those of the vocabulary where `n` is 0. */
lexiform_session *lexiform_session_new(const lexiform_grammar *grammar, const uint32_t *ends, size_t n);

/* A copy of a session, which goes its own way. */
lexiform_session *lexiform_session_clone(const lexiform_session *session);

void lexiform_session_free(lexiform_session *session);

/* Takes all of these tokens, or none. */
lexiform_status lexiform_session_accept(lexiform_session *session, const uint32_t *tokens, size_t n);

/* How many of these tokens could be taken one after the other; none is. */
size_t lexiform_session_validate(const lexiform_session *session, const uint32_t *tokens, size_t n);

/* Takes back the last `n` tokens, an end among them too. */
lexiform_status lexiform_session_rollback(lexiform_session *session, size_t n);

/* Takes back all tokens. */
lexiform_status lexiform_session_reset(lexiform_session *session);

/* Writes the mask of what may come next. */
lexiform_status lexiform_session_fill(const lexiform_session *session, int64_t budget, uint32_t *words, size_t n_words);

/* How many tokens were taken. */
size_t lexiform_session_len(const lexiform_session *session);

/* Whether the text so far is complete. */
bool lexiform_session_is_accepting(const lexiform_session *session);

/* Whether a token that ends the sequence was taken. */
bool lexiform_session_is_terminated(const lexiform_session *session);

/* Rewrites a JSON Schema of `len` bytes into the part of JSON Schema that a provider or engine takes: `profile` is
 * "openai-strict", "anthropic", "gemini", "llama.cpp", "xgrammar", "outlines", or the JSON of a profile. What the target cannot have is
 * dropped: a constraint, or with `narrower` the values that it is about. Where that fails, the result is null and `*problems` gets all
 * problems, as from lexiform_compile. */
lexiform_projection *lexiform_project(const char *schema, size_t len, const char *profile, size_t profile_len, bool narrower, char **problems);

void lexiform_projection_free(lexiform_projection *projection);

/* The schema that the target takes, as JSON. */
char *lexiform_projection_schema(const lexiform_projection *projection);

/* How it relates to the schema, as JSON: {"unchanged": false, "relation": "equal" | "wider" | "narrower" | "neither", "proven": true,
 * "losses": [{"pointer", "effect", "message"}], "recodings": [{"pointer", "message"}]}. */
char *lexiform_projection_report(const lexiform_projection *projection);

/* The value of the schema that an answer of the target stands for, or the nearest one, as JSON. Where there is none, the result is null and
 * `*message` gets a message that asks the model for another answer, unless `message` is null. */
char *lexiform_projection_receive(const lexiform_projection *projection, const char *answer, size_t len, char **message);

/* Reads the thoughts, the content and the calls of one answer, constrained or not, in the format of a model: the name of one, such as
 * "qwen_3", or "any". `tools` is a list of tools in JSON, as chats have them, or null; a call of another tool is read, too. `thought` is 0
 * where the answer has no thought, 1 where it may begin with one, 2 where the prompt has opened one. With `json_content` the content is
 * JSON, and its values have events. Where that fails, the result is null and `*problems` gets all problems. */
lexiform_answer_reader *lexiform_answer_reader_new(const char *format, size_t format_len, const char *tools, size_t tools_len, uint32_t thought, bool json_content, char **problems);

void lexiform_answer_reader_free(lexiform_answer_reader *reader);

/* Reads more text: whole characters of UTF-8, or the result is null. Returns its events as JSON, a list of
 * {"kind", "call", "span": [first byte, byte after the last]} with "text" (reasoning, content, arguments, value), "name" (call),
 * "pointer" (key, value, opened), "is_object" (opened); a call ends with a call_end. */
char *lexiform_answer_reader_push(const lexiform_answer_reader *reader, const char *more, size_t len);

/* Ends the answer: the events of what was held back. */
char *lexiform_answer_reader_finish(const lexiform_answer_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
