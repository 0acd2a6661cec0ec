//! Reads tiktoken rank files, which have one token per line: its bytes in base64, a space, and its rank,
//! which is its id.

use super::tokenizer_file::TokenTable;
use super::{ReadLimits, Scheme, TokenKind, TokenizerFile, VocabularyError};

/// Reads the text of a rank file. Rank files do not list special tokens, so the caller passes their names and
/// ids.
pub fn from_tiktoken(
    text: &str,
    special: &[(&str, u32)],
    limits: &ReadLimits,
) -> Result<TokenizerFile, VocabularyError> {
    let mut table = TokenTable::new(limits);
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let place = format!("line {}", at + 1);
        let (bytes, rank) = read_line(line).map_err(|message| malformed(&place, message))?;
        table.insert(rank, (TokenKind::Text, bytes), &place)?;
    }
    for (name, id) in special {
        let place = format!("special token {name:?}");
        table.insert(
            u64::from(*id),
            (TokenKind::Special, name.as_bytes().to_vec()),
            &place,
        )?;
    }
    Ok(TokenizerFile::new(table, Scheme::ByteLevel))
}

fn malformed(place: &str, message: &str) -> VocabularyError {
    VocabularyError::Malformed {
        place: place.to_owned(),
        message: message.to_owned(),
    }
}

fn read_line(line: &str) -> Result<(Vec<u8>, u64), &'static str> {
    let mut fields = line.split_ascii_whitespace();
    let (Some(token), Some(rank), None) = (fields.next(), fields.next(), fields.next()) else {
        return Err("expected a token in base64, a space and a rank");
    };
    let bytes = base64(token).ok_or("the token is not base64")?;
    if bytes.is_empty() {
        return Err("the token has no bytes");
    }
    let rank = rank.parse().map_err(|_| "the rank is not a whole number")?;
    Ok((bytes, rank))
}

/// Decodes padded base64 in the standard alphabet; the unused bits of the last character must be zero.
fn base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let body = text
        .strip_suffix("==")
        .or_else(|| text.strip_suffix('='))
        .unwrap_or(text);
    let mut bytes = Vec::with_capacity(body.len() * 3 / 4);
    let (mut bits, mut held) = (0u32, 0u32);
    for character in body.bytes() {
        bits = bits << 6 | u32::from(sextet(character)?);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    // Six bits left over would mean a character that contributes to no byte.
    (bits == 0 && held < 6).then_some(bytes)
}

fn sextet(character: u8) -> Option<u8> {
    match character {
        b'A'..=b'Z' => Some(character - b'A'),
        b'a'..=b'z' => Some(character - b'a' + 26),
        b'0'..=b'9' => Some(character - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_strict() {
        let cases: [(&str, Option<&[u8]>); 9] = [
            ("", Some(b"")),
            ("IQ==", Some(b"!")),
            ("ISI=", Some(b"!\"")),
            ("ISIj", Some(b"!\"#")),
            ("////", Some(&[255, 255, 255])),
            ("IR==", None),
            ("I===", None),
            ("IQ", None),
            ("I-==", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(base64(text).as_deref(), bytes, "{text}");
        }
    }
}
