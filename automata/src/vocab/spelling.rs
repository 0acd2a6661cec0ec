//! Converts the pieces of a tokenizer file to the bytes that they write.
//!
//! Files spell tokens as text, in one of two ways:
//!
//! ```text
//!   byte-level      "Ġhello"   one printable character per byte (the GPT-2 alphabet)    → " hello"
//!   SentencePiece   "▁hello"   '▁' is the space, "<0x0A>" is a single byte              → " hello", "\n"
//! ```
//!
//! The decoder of the file, a chain of rewriting steps, determines which one applies; a [`Spelling`] is that
//! chain, parsed once. Without a decoder, the steps *into* the model (pre-tokenizer, normalizer) determine
//! it.

use serde_json::Value;

use super::VocabularyError;

/// The way in which a tokenizer spells bytes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// One printable character for each byte, as in GPT-2.
    ByteLevel,
    /// Plain characters, a replacement for the space, and perhaps `<0xNN>` for single bytes.
    SentencePiece,
}

/// A rewriting step from a piece towards its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RewriteStep {
    Replace {
        from: String,
        to: String,
    },
    Strip {
        content: char,
        start: usize,
        stop: usize,
    },
    ByteFallback,
    ByteLevel,
}

/// The sequence of steps that converts a piece to bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spelling {
    steps: Vec<RewriteStep>,
}

/// The parts of a tokenizer file that determine the spelling.
pub(super) struct Clues<'a> {
    pub(super) normalizer: Option<&'a Value>,
    pub(super) pre_tokenizer: Option<&'a Value>,
    pub(super) decoder: Option<&'a Value>,
    pub(super) byte_fallback: bool,
}

impl Spelling {
    /// Reads the steps from the decoder, or without one from the other parts.
    pub(super) fn read(clues: &Clues<'_>) -> Result<Self, VocabularyError> {
        let mut steps = match clues.decoder {
            Some(decoder) => decoder_steps(decoder)?,
            None => steps_without_decoder(clues)?,
        };
        // A model that falls back to bytes writes bytes, whether or not its decoder combines them.
        if clues.byte_fallback
            && !steps.contains(&RewriteStep::ByteFallback)
            && !steps.contains(&RewriteStep::ByteLevel)
        {
            steps.push(RewriteStep::ByteFallback);
        }
        Ok(Spelling { steps })
    }

    pub(super) fn scheme(&self) -> Scheme {
        if self.steps.contains(&RewriteStep::ByteLevel) {
            Scheme::ByteLevel
        } else {
            Scheme::SentencePiece
        }
    }

    /// Returns the bytes that this piece writes.
    pub(super) fn bytes(&self, piece: &str) -> Vec<u8> {
        let mut text = piece.to_owned();
        for step in &self.steps {
            match step {
                RewriteStep::Replace { from, to } => text = text.replace(from.as_str(), to),
                RewriteStep::Strip { content, start, stop } => {
                    text = strip(&text, *content, *start, *stop).to_owned()
                }
                RewriteStep::ByteFallback => {
                    if let Some(byte) = fallback_byte(&text) {
                        return vec![byte];
                    }
                }
                RewriteStep::ByteLevel => return alphabet_bytes(&text),
            }
        }
        text.into_bytes()
    }
}

fn unsupported(place: &str, message: impl Into<String>) -> VocabularyError {
    VocabularyError::Unsupported {
        place: place.to_owned(),
        message: message.into(),
    }
}

fn malformed(place: &str, message: impl Into<String>) -> VocabularyError {
    VocabularyError::Malformed {
        place: place.to_owned(),
        message: message.into(),
    }
}

fn type_of<'a>(part: &'a Value, place: &str) -> Result<&'a str, VocabularyError> {
    part.get("type")
        .and_then(Value::as_str)
        .ok_or_else(|| malformed(place, "expected an object with a `type`"))
}

/// Returns the parts of a `Sequence`, nested ones included, each with its place. The JSON reader bounds the
/// nesting.
pub(super) fn parts<'a>(
    part: &'a Value,
    key: &str,
    place: &str,
) -> Result<Vec<(String, &'a Value)>, VocabularyError> {
    if type_of(part, place)? != "Sequence" {
        return Ok(vec![(place.to_owned(), part)]);
    }
    let list = part.get(key).and_then(Value::as_array);
    let list = list.ok_or_else(|| malformed(place, format!("expected an array `{key}`")))?;
    let mut all = Vec::new();
    for (at, inner) in list.iter().enumerate() {
        all.extend(parts(inner, key, &format!("{place}/{key}/{at}"))?);
    }
    Ok(all)
}

fn decoder_steps(decoder: &Value) -> Result<Vec<RewriteStep>, VocabularyError> {
    let mut steps = Vec::new();
    let mut fused = false;
    for (place, part) in parts(decoder, "decoders", "/decoder")? {
        match type_of(part, &place)? {
            "ByteLevel" => steps.push(RewriteStep::ByteLevel),
            "ByteFallback" => steps.push(RewriteStep::ByteFallback),
            "Metaspace" => steps.push(space_for(replacement(part))),
            "Fuse" => fused = true,
            "Replace" => steps.push(replace_step(part, &place, fused)?),
            // After the tokens are fused, stripping affects only the ends of the whole text: the dummy space.
            "Strip" if fused => {}
            "Strip" => steps.push(strip_step(part, &place)?),
            other => {
                return Err(unsupported(
                    &place,
                    format!("a `{other}` decoder does not spell exact bytes"),
                ));
            }
        }
    }
    Ok(steps)
}

fn steps_without_decoder(clues: &Clues<'_>) -> Result<Vec<RewriteStep>, VocabularyError> {
    if let Some(pre_tokenizer) = clues.pre_tokenizer {
        for (place, part) in parts(pre_tokenizer, "pretokenizers", "/pre_tokenizer")? {
            match type_of(part, &place)? {
                "ByteLevel" => return Ok(vec![RewriteStep::ByteLevel]),
                "Metaspace" => return Ok(vec![space_for(replacement(part))]),
                _ => {}
            }
        }
    }
    if let Some(normalizer) = clues.normalizer {
        for (_, part) in parts(normalizer, "normalizers", "/normalizer")? {
            let from = part.pointer("/pattern/String").and_then(Value::as_str);
            if let (Some(" "), Some(to)) = (from, part.get("content").and_then(Value::as_str)) {
                return Ok(vec![space_for(to)]);
            }
        }
    }
    Err(unsupported(
        "/decoder",
        "there is no decoder, and neither the pre-tokenizer nor the normalizer defines how bytes are spelled",
    ))
}

fn replacement(metaspace: &Value) -> &str {
    metaspace
        .get("replacement")
        .and_then(Value::as_str)
        .unwrap_or("\u{2581}")
}

fn space_for(stand_in: &str) -> RewriteStep {
    RewriteStep::Replace {
        from: stand_in.to_owned(),
        to: " ".to_owned(),
    }
}

fn replace_step(part: &Value, place: &str, fused: bool) -> Result<RewriteStep, VocabularyError> {
    let from = part.pointer("/pattern/String").and_then(Value::as_str);
    let from = from.ok_or_else(|| unsupported(place, "expected a `Replace` whose pattern is a `String`"))?;
    let to = part.get("content").and_then(Value::as_str);
    let to = to.ok_or_else(|| malformed(place, "expected a string `content`"))?;
    // A longer pattern could match across tokens once they are fused, and then no token has fixed bytes.
    if from.is_empty() || (fused && from.chars().count() > 1) {
        return Err(unsupported(
            place,
            "a `Replace` that may match across tokens does not spell exact bytes",
        ));
    }
    Ok(RewriteStep::Replace {
        from: from.to_owned(),
        to: to.to_owned(),
    })
}

fn strip_step(part: &Value, place: &str) -> Result<RewriteStep, VocabularyError> {
    let count = |key: &str| {
        part.get(key)
            .and_then(Value::as_u64)
            .and_then(|n| usize::try_from(n).ok())
    };
    let content = part
        .get("content")
        .and_then(Value::as_str)
        .and_then(|text| text.chars().next());
    match (content, count("start"), count("stop")) {
        (Some(content), Some(start), Some(stop)) => Ok(RewriteStep::Strip { content, start, stop }),
        _ => Err(malformed(place, "expected `content`, `start` and `stop`")),
    }
}

fn strip(mut text: &str, content: char, start: usize, stop: usize) -> &str {
    // The text bounds the loops: the counts in a malicious file may be arbitrarily large.
    for _ in 0..start.min(text.len()) {
        text = text.strip_prefix(content).unwrap_or(text);
    }
    for _ in 0..stop.min(text.len()) {
        text = text.strip_suffix(content).unwrap_or(text);
    }
    text
}

fn fallback_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    let exact = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if exact {
        u8::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

/// Returns the bytes of a piece in the GPT-2 alphabet. A piece with a character outside the alphabet is taken
/// literally: files contain runs of real spaces and the like that were added to the model by hand.
fn alphabet_bytes(piece: &str) -> Vec<u8> {
    let bytes: Option<Vec<u8>> = piece.chars().map(alphabet_byte).collect();
    bytes.unwrap_or_else(|| piece.as_bytes().to_vec())
}

/// Returns the byte of a character: printable Latin-1 maps to itself, and the 68 other bytes follow in order
/// from U+0100.
///
/// ```text
///   00..=20  →  U+0100..=U+0120        7F..=A0  →  U+0121..=U+0142        AD  →  U+0143
/// ```
fn alphabet_byte(character: char) -> Option<u8> {
    match u32::from(character) {
        code @ (0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) => Some(code as u8),
        code @ 0x100..=0x120 => Some((code - 0x100) as u8),
        code @ 0x121..=0x142 => Some((code - 0x121 + 0x7F) as u8),
        0x143 => Some(0xAD),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spelling(decoder: Value) -> Result<Spelling, VocabularyError> {
        Spelling::read(&Clues {
            normalizer: None,
            pre_tokenizer: None,
            decoder: Some(&decoder),
            byte_fallback: false,
        })
    }

    #[test]
    fn the_alphabet_has_every_byte_once() {
        let mut bytes: Vec<u8> = (0..=0x143)
            .filter_map(char::from_u32)
            .filter_map(alphabet_byte)
            .collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(alphabet_bytes("Ġhi"), b" hi");
        assert_eq!(
            alphabet_bytes("  "),
            b"  ",
            "a real space is outside the alphabet"
        );
    }

    #[test]
    fn sentencepiece_chains_are_followed() {
        let chain = spelling(json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}));
        let chain = chain.expect("the chain of Llama 2");
        assert_eq!(chain.scheme(), Scheme::SentencePiece);
        assert_eq!(chain.bytes("▁a▁b"), b" a b");
        assert_eq!(chain.bytes("<0xfF>"), [0xFF]);
        assert_eq!(chain.bytes("<0x+1>"), b"<0x+1>");
    }

    #[test]
    fn stripping_before_fusing_concerns_each_token() {
        let strip = json!({"type": "Strip", "content": "_", "start": 9_999_999_999u64, "stop": 1});
        assert_eq!(spelling(strip).expect("a strip").bytes("__a__"), b"a_");
    }

    #[test]
    fn without_a_decoder_the_way_in_tells() {
        let byte_level =
            json!({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]});
        let metaspace = json!({"type": "Metaspace", "replacement": "_"});
        let normalizer = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
        let read = |pre_tokenizer, normalizer| {
            Spelling::read(&Clues {
                normalizer,
                pre_tokenizer,
                decoder: None,
                byte_fallback: true,
            })
        };
        assert_eq!(
            read(Some(&byte_level), None)
                .expect("byte-level")
                .bytes("Ġ<0x41>"),
            b" <0x41>"
        );
        assert_eq!(
            read(Some(&metaspace), None).expect("metaspace").bytes("_a"),
            b" a"
        );
        assert_eq!(
            read(None, Some(&normalizer)).expect("normalizer").bytes("<0x41>"),
            b"A"
        );
        assert!(
            matches!(read(None, None), Err(VocabularyError::Unsupported { place, .. }) if place == "/decoder")
        );
    }

    #[test]
    fn decoders_without_exact_bytes_are_refused_at_their_place() {
        let chain = json!({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "WordPiece"}]});
        let error = spelling(chain).expect_err("not exact");
        assert!(
            matches!(&error, VocabularyError::Unsupported { place, .. } if place == "/decoder/decoders/1")
        );
        let regex = json!({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""});
        assert!(matches!(
            spelling(regex),
            Err(VocabularyError::Unsupported { .. })
        ));
        assert!(matches!(
            spelling(json!(5)),
            Err(VocabularyError::Malformed { .. })
        ));
    }
}
