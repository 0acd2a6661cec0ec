from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, final

from typing_extensions import Buffer, Unpack

__all__ = [
    "Assertion",
    "Chain",
    "Change",
    "ChatTokenizer",
    "Compiler",
    "Edit",
    "Event",
    "Explanation",
    "Grammar",
    "Masks",
    "Particles",
    "Problem",
    "RawProjection",
    "RawReader",
    "Remark",
    "Repair",
    "Sampler",
    "Session",
    "State",
    "Step",
    "Trie",
    "Vocabulary",
    "Way",
    "__version__",
    "fill_batch",
    "model_formats",
    "model_tag",
    "profile_names",
    "project_schema",
    "recognised_format",
    "schema_refusals",
    "set_threads",
    "thought_marks",
    "weighted_token",
]

class _Array(Protocol):
    """An array of numpy, which is a `Buffer` by its types since Python 3.12 alone."""

    @property
    def __array_interface__(self) -> Any: ...

class _Tensor(Protocol):
    """A tensor of torch on the CPU, by what is asked of it."""

    def numpy(self) -> Any: ...

# An array of int32 that shares its memory: of numpy, or a tensor of torch on the CPU; or `Masks`.
_Mask: TypeAlias = Buffer | _Array | _Tensor | Masks
# An array or a sequence of integers.
_Integers: TypeAlias = Buffer | _Array | _Tensor | Sequence[int]
# The type, where a method has its name.
_Bytes: TypeAlias = bytes
_Kind: TypeAlias = Literal["text", "special", "mark", "unused"]
_Row: TypeAlias = (
    tuple[Grammar, State, int]
    | tuple[Grammar, State, int, int | None]
    | tuple[Grammar, State, int, int | None, Iterable[int] | None]
    | tuple[Session, int]
    | tuple[Session, int, int | None]
)

# A constraint beside the grammar: another one, or a function of a text and of whether it is to end there. The function returns
# whether texts may begin like this (or end here), or the strings of which one comes next.
_Monitor: TypeAlias = Grammar | Callable[[str, bool], bool | Literal["open", "allowed", "forbidden"] | list[str] | tuple[str, ...]]

# The keywords that change the model's rows before they are drawn from.
class _Warping(TypedDict, total=False):
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    top_n_sigma: float | None
    epsilon_cutoff: float | None
    eta_cutoff: float | None
    bregman_lambda: float | None
    mirostat_mode: Literal[0, 1, 2] | None
    mirostat_tau: float | None
    mirostat_eta: float | None
    contrast_alpha: float | None
    contrast_beta: float | None
    repetition_penalty: float | None
    frequency_penalty: float | None
    presence_penalty: float | None
    logit_bias: Mapping[int, float] | None

__version__: str

@final
class ChatTokenizer:
    """A chat template with the tokenizer of its model; `lexiform.chat` is made of it."""

    def __new__(cls, template: str, tokenizer: str, constants: Sequence[tuple[str, str]]) -> ChatTokenizer: ...
    def encode(self, conversation: str, ending: str, now: int) -> list[int]: ...
    def render(self, conversation: str, ending: str, now: int) -> tuple[str, list[tuple[int, int, str | None]]]: ...

@final
class Vocabulary:
    @staticmethod
    def from_tokenizer(tokenizer: Any, *, rows: int | None = None, eos: Sequence[int] | None = None) -> Vocabulary: ...
    @staticmethod
    def from_json(text: str, *, eos: Sequence[int], rows: int | None = None) -> Vocabulary: ...
    @staticmethod
    def from_tokens(
        tokens: Sequence[bytes | str], *, eos: Sequence[int], kinds: Sequence[_Kind] | None = None
    ) -> Vocabulary: ...
    def __len__(self) -> int: ...
    @property
    def words(self) -> int: ...
    @property
    def eos(self) -> list[int]: ...
    def bytes(self, token: int) -> bytes: ...
    def kind(self, token: int) -> _Kind: ...
    def special(self, name: str) -> int | None: ...
    def heal(self, prompt: Sequence[int]) -> tuple[int, _Bytes]: ...

@final
class Compiler:
    def __new__(
        cls,
        vocabulary: Vocabulary,
        *,
        primed: bool = True,
        cache_bytes: int = ...,
        limits: Mapping[str, int] | None = None,
    ) -> Compiler: ...
    def json_schema(
        self,
        schema: Any,
        *,
        whitespace: Literal["indented", "flexible", "compact"] = "indented",
        whitespace_pattern: str | None = None,
        key_order: Literal["schema", "any"] = "schema",
        additional_properties: Literal["closed", "open"] = "closed",
        numbers: Literal["double", "any"] = "double",
        escapes: Literal["minimal", "canonical", "any"] = "minimal",
        draft: Literal["4", "6", "7", "2019-09", "2020-12"] | None = None,
        formats: Literal["assert", "annotate"] = "assert",
        documents: Mapping[str, Any] | None = None,
        strict: bool = False,
        exact: bool = False,
        prefix: bytes | None = None,
        deadline: float | None = None,
    ) -> Grammar: ...
    def regex(
        self,
        pattern: str,
        *,
        dialect: Literal["python", "ecma", "rust"] = "python",
        prefix: bytes | None = None,
        deadline: float | None = None,
    ) -> Grammar: ...
    def ebnf(self, text: str, *, prefix: bytes | None = None, deadline: float | None = None) -> Grammar: ...
    def grammar(
        self,
        text: str,
        *,
        notation: str | None = None,
        start: str | None = None,
        imports: Mapping[str, str] | None = None,
        prefix: bytes | None = None,
        deadline: float | None = None,
    ) -> Grammar: ...
    def choice(self, texts: Sequence[str], *, prefix: bytes | None = None) -> Grammar: ...
    def any(self, *, prefix: bytes | None = None) -> Grammar: ...
    def structural_tag(
        self,
        tag: Any,
        *,
        dialect: Literal["python", "ecma", "rust"] = "python",
        additional_properties: Literal["closed", "open"] = "closed",
        numbers: Literal["double", "any"] = "double",
        prefix: bytes | None = None,
        deadline: float | None = None,
    ) -> Grammar: ...
    def clear(self) -> None: ...
    @property
    def cached(self) -> int: ...

@final
class Grammar:
    def start(self) -> State: ...
    def step(self, state: State, token: int, *, ends: Iterable[int] | None = None) -> State | None: ...
    def step_bytes(self, state: State, bytes: bytes) -> State | None: ...
    def walk(self, state: State, tokens: Sequence[int], *, ends: Iterable[int] | None = None) -> list[State]: ...
    def fill(
        self,
        state: State,
        mask: _Mask,
        row: int = 0,
        *,
        budget: int | None = None,
        ends: Iterable[int] | None = None,
    ) -> None: ...
    def fill_tree(
        self,
        state: State,
        child: _Integers,
        sibling: _Integers,
        tokens: _Integers,
        mask: _Mask,
        *,
        budget: int | None = None,
        ends: Iterable[int] | None = None,
    ) -> list[State | None]: ...
    def tokens(
        self, state: State, *, budget: int | None = None, ends: Iterable[int] | None = None
    ) -> list[int]: ...
    def is_accepting(self, state: State) -> bool: ...
    def is_finished(self, state: State) -> bool: ...
    def forced(self, state: State) -> bytes: ...
    def min_completion(self, state: State) -> int | None: ...
    def explain(self, state: State, most: int = 16) -> Explanation: ...
    def report(self) -> list[Assertion]: ...
    def repair(
        self,
        text: str,
        *,
        insert: int = 1,
        delete: int = 1,
        substitute: int = 1,
        nodes: int = ...,
        deadline: float | None = None,
    ) -> Repair: ...
    @property
    def findings(self) -> list[Problem]: ...
    @property
    def specials(self) -> list[int]: ...
    @property
    def memory(self) -> int: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def words(self) -> int: ...

@final
class Repair:
    @property
    def text(self) -> str: ...
    @property
    def cost(self) -> int: ...
    @property
    def edits(self) -> list[Edit]: ...
    @property
    def changes(self) -> list[Change]: ...

@final
class Change:
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def kind(self) -> Literal["around", "reordered", "dropped", "added", "respelled"]: ...
    @property
    def pointer(self) -> str: ...
    @property
    def text(self) -> str: ...

@final
class Edit:
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def offset(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def removed(self) -> str: ...
    @property
    def inserted(self) -> str: ...

@final
class State:
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Masks:
    def __new__(cls, array: Buffer | _Array | _Tensor) -> Masks: ...
    def __len__(self) -> int: ...
    @property
    def words(self) -> int: ...

@final
class Session:
    def __new__(
        cls, grammar: Grammar, *, state: State | None = None, ends: Iterable[int] | None = None
    ) -> Session: ...
    def accept(self, tokens: int | Sequence[int]) -> bool: ...
    def validate(self, tokens: Sequence[int]) -> int: ...
    def rollback(self, count: int) -> None: ...
    def reset(self) -> None: ...
    def fill(self, mask: _Mask, row: int = 0, *, budget: int | None = None) -> None: ...
    def copy(self) -> Session: ...
    @property
    def terminated(self) -> bool: ...
    @property
    def accepting(self) -> bool: ...
    @property
    def state(self) -> State: ...
    @property
    def tokens(self) -> list[int]: ...
    def read_events(self, reader: RawReader) -> list[Event]: ...

@final
class Event:
    @property
    def kind(
        self,
    ) -> Literal["reasoning", "content", "call", "arguments", "call_end", "opened", "key", "value"]: ...
    @property
    def call(self) -> int | None: ...
    @property
    def text(self) -> str: ...
    @property
    def pointer(self) -> str | None: ...
    @property
    def is_object(self) -> bool: ...
    @property
    def span(self) -> tuple[int, int]: ...

@final
class RawReader:
    def __new__(
        cls, format: str, tools: Sequence[tuple[str, str]], thought: str, json: bool, calls: bool
    ) -> RawReader: ...
    def push(self, text: str) -> list[Event]: ...
    def finish(self) -> list[Event]: ...

@final
class Trie:
    def __new__(
        cls, grammar: Grammar, *, max_tokens: int, ends: Iterable[int] | None = None, capacity: int = ...
    ) -> Trie: ...
    def __len__(self) -> int: ...

@final
class Sampler:
    def __new__(
        cls,
        grammar: Grammar,
        *,
        law: Literal["local", "global", "asap", "aprad"] = "local",
        seed: int = 0,
        sample: int = 0,
        trie: Trie | None = None,
        attempts: int | None = None,
        fallback: Literal["fail", "weighted", "mcmc"] | None = None,
        mcmc_steps: int | None = None,
        aprad_exponent: int | None = None,
        prompt: Sequence[int] | None = None,
        max_tokens: int | None = None,
        ends: Iterable[int] | None = None,
        monitors: Sequence[_Monitor] | None = None,
        **warping: Unpack[_Warping],
    ) -> Sampler: ...
    def next(self, logits: Any, *, amateur: Any = None) -> Step: ...
    @property
    def tokens(self) -> list[int]: ...
    @property
    def law(
        self,
    ) -> Literal[
        "local",
        "local-filtered",
        "greedy",
        "global-exact",
        "global-exact-filtered",
        "global-weighted",
        "global-weighted-filtered",
        "asap",
        "asap-filtered",
        "aprad",
        "aprad-filtered",
        "mcmc",
        "mcmc-filtered",
    ]: ...
    @property
    def log_probability(self) -> float: ...
    @property
    def log_weight(self) -> float | None: ...
    @property
    def failed_attempts(self) -> int: ...

@final
class Particles:
    def __new__(
        cls,
        grammar: Grammar,
        count: int,
        *,
        proposal: Literal["masked", "awrs", "twisted"] = "masked",
        resampling: Literal["systematic", "stratified", "residual", "multinomial"] = "systematic",
        ess_threshold: float = 0.5,
        seed: int = 0,
        trie: Trie | None = None,
        prompt: Sequence[int] | None = None,
        max_tokens: int | None = None,
        ends: Iterable[int] | None = None,
        monitors: Sequence[_Monitor] | None = None,
        **warping: Unpack[_Warping],
    ) -> Particles: ...
    def __len__(self) -> int: ...
    def next(self, logits: Any, *, amateur: Any = None) -> list[int | None]: ...
    def tilt(self, log_weights: Sequence[float]) -> None: ...
    def resample(self) -> list[int] | None: ...
    def pick(self, number: int = 0) -> int | None: ...
    def tokens(self, particle: int) -> list[int]: ...
    @property
    def active(self) -> list[int]: ...
    @property
    def texts(self) -> list[tuple[list[int], float]]: ...
    @property
    def log_weights(self) -> list[float]: ...
    @property
    def log_z(self) -> float: ...
    @property
    def effective_size(self) -> float: ...
    @property
    def law(self) -> Literal["smc", "smc-filtered", "sir", "sir-filtered"]: ...

@final
class Chain:
    def __new__(
        cls,
        grammar: Grammar,
        *,
        cuts: Literal["restart", "uniform", "priority"] = "restart",
        seed: int = 0,
        prompt: Sequence[int] | None = None,
        max_tokens: int | None = None,
        ends: Iterable[int] | None = None,
        **warping: Unpack[_Warping],
    ) -> Chain: ...
    def propose(self) -> int: ...
    def next(self, logits: Any, *, amateur: Any = None) -> Step: ...
    @property
    def text(self) -> list[int]: ...
    @property
    def accepted(self) -> bool | None: ...
    @property
    def steps(self) -> int: ...
    @property
    def moves(self) -> int: ...
    @property
    def log_probability(self) -> float | None: ...
    @property
    def law(self) -> Literal["mcmc", "mcmc-filtered"]: ...

@final
class Step:
    @property
    def kind(self) -> Literal["token", "end", "restart", "stuck"]: ...
    @property
    def token(self) -> int | None: ...
    @property
    def kept(self) -> int | None: ...
    @property
    def log_mass(self) -> float | None: ...
    @property
    def log_probability(self) -> float | None: ...
    @property
    def reason(self) -> str | None: ...

@final
class Problem:
    @property
    def kind(
        self,
    ) -> Literal[
        "syntax",
        "invalid",
        "unsupported",
        "narrowed",
        "closed",
        "reference",
        "unsatisfiable",
        "limit",
        "cancelled",
        "busy",
    ]: ...
    @property
    def place(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def pointer(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...
    @property
    def column(self) -> int | None: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Explanation:
    @property
    def may_end(self) -> bool: ...
    @property
    def forced(self) -> bytes: ...
    @property
    def ways(self) -> list[Way]: ...
    @property
    def readings(self) -> int: ...

@final
class Way:
    @property
    def expected(self) -> Literal["text", "bytes", "word", "key", "special"]: ...
    @property
    def text(self) -> bytes | None: ...
    @property
    def begun(self) -> bool: ...
    @property
    def bytes(self) -> list[tuple[int, int]]: ...
    @property
    def rules(self) -> list[str]: ...

@final
class Assertion:
    @property
    def pointer(self) -> str: ...
    @property
    def keyword(self) -> str: ...
    @property
    def enforced(self) -> Literal["exact", "spelled", "closed", "narrower"]: ...
    @property
    def note(self) -> str | None: ...

@final
class Remark:
    @property
    def pointer(self) -> str: ...
    @property
    def effect(self) -> str: ...
    @property
    def message(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class RawProjection:
    @property
    def schema(self) -> str: ...
    @property
    def restored_schema(self) -> str: ...
    @property
    def unchanged(self) -> bool: ...
    @property
    def relation(self) -> str: ...
    @property
    def proven(self) -> bool: ...
    @property
    def remarks(self) -> list[Remark]: ...
    def restore(self, answer: str) -> str: ...
    def receive(self, answer: str) -> tuple[str, int]: ...

def fill_batch(rows: Sequence[_Row], mask: _Mask) -> list[int]: ...
def set_threads(threads: int) -> None: ...
def model_tag(
    name: str,
    tools: Sequence[tuple[str, str]],
    required: bool,
    named: str | None,
    thinks: bool,
    parallel: bool,
) -> str: ...
def model_formats() -> list[str]: ...
def recognised_format(template: str) -> str | None: ...
def thought_marks(name: str) -> tuple[str, list[str]]: ...
def project_schema(schema: str, profile: str, narrower: bool) -> RawProjection: ...
def schema_refusals(schema: str, profile: str) -> list[Problem]: ...
def profile_names() -> list[str]: ...
def weighted_token(
    logits: Any,
    allows: Callable[[int], bool],
    *,
    seed: int = 0,
    sample: int = 0,
    position: int = 0,
    temperature: float = 1.0,
) -> tuple[int, float] | None: ...
