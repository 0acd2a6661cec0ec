//! A table of how tokenizers cut a text into words before they merge bytes, by the name that a GGUF file has
//! for it.
//!
//! A file has only the name. The patterns here are from the tokenizer.json of the models for which each name
//! was made.

/// The way in which the words of a text are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cutting {
    /// Patterns that cut one after the other; the matches of each one, and the text between them, are pieces.
    pub(super) patterns: &'static [&'static str],
    /// `true` if a word that is a token is not merged from its bytes.
    pub(super) whole_words: bool,
    /// `true` if the text is first brought to the normal form C.
    pub(super) composed: bool,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The patterns of DeepSeek V3: numbers, then words of Chinese and Japanese, then the rest.
const DEEPSEEK_V3: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥\u{3040}-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];

const fn cut(patterns: &'static [&'static str]) -> Cutting {
    Cutting {
        patterns,
        whole_words: false,
        composed: false,
    }
}

const WHOLE_TEXT: Cutting = Cutting {
    whole_words: true,
    ..cut(&[CL100K])
};

/// The names with their patterns.
const NAMES: [(&[&str], Cutting); 10] = [
    (
        &["gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion"],
        cut(&[GPT2]),
    ),
    (
        &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
        ],
        cut(&[r"\p{N}", GPT2]),
    ),
    (
        &["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"],
        WHOLE_TEXT,
    ),
    (&["dbrx", "smaug-bpe", "chatglm-bpe", "glm4"], cut(&[CL100K])),
    (
        &["qwen2", "deepseek-r1-qwen", "megrez"],
        Cutting {
            composed: true,
            ..cut(&[QWEN2])
        },
    ),
    (&["stablelm2", "hunyuan"], cut(&[QWEN2])),
    (&["gpt-4o"], cut(&[O200K])),
    (
        &["llama4"],
        Cutting {
            whole_words: true,
            ..cut(&[O200K])
        },
    ),
    (
        &["tekken"],
        Cutting {
            whole_words: true,
            ..cut(&[TEKKEN])
        },
    ),
    (&["deepseek-v3", "hunyuan-dense"], cut(&DEEPSEEK_V3)),
];

/// All names, for a message.
pub(super) const KNOWN_NAMES: &str = "gpt-2, smollm, llama-bpe, dbrx, qwen2, stablelm2, gpt-4o, llama4, tekken, deepseek-v3 and others of these kinds";

/// Returns how the tokenizer with this name cuts.
pub(super) fn of(name: &str) -> Option<Cutting> {
    let found = NAMES.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, cutting)| *cutting)
}
