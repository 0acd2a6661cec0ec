"""Chat completions by `transformers.generate` with the processor of one engine: `python transformers_server.py MODEL ENGINE PORT`.

It answers what `lexiform eval generate` asks, one request at a time, so that engines can be compared within one loop of decoding that is
none of theirs. Each engine is used as its own documentation uses it with `transformers`; llguidance and outlines-core have functions
for masks and no processor, which is three lines.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LogitsProcessor, TextIteratorStreamer


class Masked(LogitsProcessor):
    """A processor for engines that fill a row of bits: `step` reads a token, and `apply` changes the scores."""

    def __init__(self, step, apply):
        self.step, self.apply, self.begun = step, apply, False

    def __call__(self, ids, scores):
        if self.begun:
            self.step(int(ids[0, -1]))
        self.begun = True
        self.apply(scores)
        return scores


class Lexiform:
    def __init__(self, model, tokenizer):
        import lexiform
        from lexiform.hf import LogitsProcessor

        vocabulary = lexiform.Vocabulary.from_tokenizer(tokenizer, rows=model.config.vocab_size, eos=[tokenizer.eos_token_id])
        self.compiler, self.processor = lexiform.Compiler(vocabulary), LogitsProcessor

    def arguments(self, schema):
        return {"logits_processor": [self.processor(self.compiler.json_schema(schema))]}


class XGrammar:
    def __init__(self, model, tokenizer):
        import xgrammar
        from xgrammar.contrib.hf import LogitsProcessor

        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=model.config.vocab_size)
        self.compiler, self.processor = xgrammar.GrammarCompiler(info), LogitsProcessor

    def arguments(self, schema):
        return {"logits_processor": [self.processor(self.compiler.compile_json_schema(json.dumps(schema)))]}


class LLGuidance:
    def __init__(self, model, tokenizer):
        import llguidance
        import llguidance.hf
        import llguidance.torch

        self.llguidance = llguidance
        self.tokenizer = llguidance.hf.from_tokenizer(tokenizer, n_vocab=model.config.vocab_size)
        self.row = llguidance.torch.allocate_token_bitmask(1, model.config.vocab_size)

    def arguments(self, schema):
        grammar = self.llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
        matcher = self.llguidance.LLMatcher(self.tokenizer, grammar)
        if matcher.is_error():
            raise ValueError(matcher.get_error())

        def apply(scores):
            self.llguidance.torch.fill_next_token_bitmask(matcher, self.row, 0)
            self.llguidance.torch.apply_token_bitmask_inplace(scores, self.row)

        return {"logits_processor": [Masked(matcher.consume_token, apply)]}


class OutlinesCore:
    def __init__(self, model, tokenizer):
        import outlines_core
        import outlines_core.kernels.torch as kernels
        from outlines_core.json_schema import build_regex_from_schema

        self.core, self.kernels, self.regex = outlines_core, kernels, build_regex_from_schema
        ids = {}
        for token in range(len(tokenizer)):
            if token not in tokenizer.all_special_ids:
                ids.setdefault(tokenizer.decode([token]), []).append(token)
        self.vocabulary = outlines_core.Vocabulary(tokenizer.eos_token_id, ids)
        self.row = kernels.allocate_token_bitmask(model.config.vocab_size)

    def arguments(self, schema):
        guide = self.core.Guide(self.core.Index(self.regex(json.dumps(schema)), self.vocabulary))

        def apply(scores):
            self.kernels.fill_next_token_bitmask(guide, self.row)
            self.kernels.apply_token_bitmask_inplace(scores, self.row)

        return {"logits_processor": [Masked(lambda token: guide.advance(token, return_tokens=False), apply)]}


class LMFormatEnforcer:
    """Its module for transformers imports what transformers 5 no longer has, so that its core is asked itself."""

    def __init__(self, model, tokenizer):
        import lmformatenforcer

        self.enforcer = lmformatenforcer
        ordinary = [token for token in range(len(tokenizer)) if token not in tokenizer.all_special_ids]
        # A space at the beginning of a text is lost when a token is decoded alone.
        first = tokenizer.encode("0", add_special_tokens=False)[-1]
        texts = [(token, tokenizer.decode([first, token])[1:]) for token in ordinary]
        tokens = [(token, text, len(text) > len(tokenizer.decode([token]))) for token, text in texts]
        self.data = lmformatenforcer.TokenEnforcerTokenizerData(
            tokens, lambda ids: tokenizer.decode(ids).rstrip("\ufffd"), tokenizer.eos_token_id, False, model.config.vocab_size
        )

    def arguments(self, schema):
        enforcer = self.enforcer.TokenEnforcer(self.data, self.enforcer.JsonSchemaParser(schema))
        return {"prefix_allowed_tokens_fn": lambda _, ids: enforcer.get_allowed_tokens(ids.tolist()).allowed_tokens}


ENGINES = {
    "lexiform": Lexiform,
    "xgrammar": XGrammar,
    "llguidance": LLGuidance,
    "outlines-core": OutlinesCore,
    "lm-format-enforcer": LMFormatEnforcer,
}


class Service:
    """A model with one engine."""

    def __init__(self, folder, engine):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.engine = ENGINES[engine](self.model, self.tokenizer)
        self.one_at_a_time = threading.Lock()

    def answer(self, asked, say):
        """Writes an answer: `say` gets each piece of text. Returns why it ended and its usage."""
        arguments = self.arguments(asked)
        prompt = self.tokenizer.apply_chat_template(
            asked["messages"], add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        streamer = TextIteratorStreamer(self.tokenizer, skip_prompt=True, skip_special_tokens=True)
        done = {}

        def generate():
            try:
                done["ids"] = self.model.generate(**prompt, streamer=streamer, **arguments)[0]
            except Exception as error:  # an engine may raise anything in the middle of an answer
                done["error"] = error
                streamer.end()

        torch.manual_seed(asked.get("seed", 0))
        thread = threading.Thread(target=generate)
        thread.start()
        for piece in streamer:
            say(piece)
        thread.join()
        if "error" in done:
            raise done["error"]
        read = prompt["input_ids"].shape[1]
        written = done["ids"][read:].tolist()
        ended = bool(written) and written[-1] == self.tokenizer.eos_token_id
        usage = {"prompt_tokens": read, "completion_tokens": len(written), "total_tokens": read + len(written)}
        return ("stop" if ended else "length"), usage

    def arguments(self, asked):
        """The arguments of `generate`, with the engine's if there is a schema."""
        temperature = asked.get("temperature", 1.0)
        drawn = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
        schema = asked.get("response_format", {}).get("json_schema", {}).get("schema")
        more = {} if schema is None else self.engine.arguments(schema)
        return {"max_new_tokens": asked["max_tokens"], "pad_token_id": self.tokenizer.pad_token_id} | drawn | more


class Handler(BaseHTTPRequestHandler):
    service = None

    def do_GET(self):
        self.reply(200, {"data": [{"id": "smollm2"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.begun = False
        with self.service.one_at_a_time:
            try:
                reason, usage = self.service.answer(asked, lambda text: self.event({"delta": {"content": text}}))
            except Exception as error:  # told to the client, whatever it is
                message = {"error": {"message": f"{type(error).__name__}: {error}", "code": 400}}
                return self.send(message) if self.begun else self.reply(400, message)
        self.event({"delta": {}, "finish_reason": reason})
        self.send({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, choice):
        if choice["delta"].get("content") != "":
            self.send({"choices": [{"index": 0, **choice}]})

    def send(self, event):
        if not self.begun:
            self.begun = True
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def reply(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def main():
    folder, engine, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    Handler.service = Service(folder, engine)
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
