//! Describes in words what may come next.

use lexiform_automata::matcher::{Grammar, State};

/// The continuations of a prefix, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// `true` if the text may end here.
    pub end: bool,
    /// The bytes that may come next.
    pub bytes: Vec<u8>,
    /// The bytes that every completion begins with.
    pub forced: Vec<u8>,
}

impl Expected {
    /// Computes the continuations of a state.
    pub fn after(grammar: &Grammar, state: State) -> Self {
        let bytes = (0..=255)
            .filter(|byte| grammar.step_bytes(state, &[*byte]).is_some())
            .collect();
        Self {
            end: grammar.is_accepting(state),
            bytes,
            forced: grammar.forced(state),
        }
    }

    /// Returns a clause for a message: `"\"name\""`, or `digit, "-" or the end`.
    pub fn in_words(&self) -> String {
        let mut words = match String::from_utf8_lossy(&self.forced).into_owned() {
            forced if forced.is_empty() => self.byte_groups(),
            forced => vec![format!("{forced:?}")],
        };
        words.extend(self.end.then(|| "the end".to_owned()));
        match words.split_last() {
            None => "nothing".to_owned(),
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
        }
    }

    /// Returns the allowed bytes as characters, with runs merged.
    pub fn byte_groups(&self) -> Vec<String> {
        let mut groups = Vec::new();
        let printable: Vec<u8> = self
            .bytes
            .iter()
            .copied()
            .filter(|it| (b' '..0x7f).contains(it))
            .collect();
        let missing: Vec<u8> = (b' '..0x7f).filter(|it| !printable.contains(it)).collect();
        if missing.is_empty() {
            groups.push("any printable character".to_owned());
        } else if missing.len() <= LISTED_EXCEPTIONS {
            groups.push(format!(
                "any printable character except {}",
                runs(&missing).join(" ")
            ));
        } else {
            groups.extend(runs(&printable));
        }
        let controls: Vec<u8> = self
            .bytes
            .iter()
            .copied()
            .filter(|it| it.is_ascii_control())
            .collect();
        groups.extend(runs(&controls));
        groups.extend(
            self.bytes
                .iter()
                .any(|it| !it.is_ascii())
                .then(|| "a character beyond ASCII".to_owned()),
        );
        groups
    }
}

/// Up to this many exceptions are named one by one.
const LISTED_EXCEPTIONS: usize = 8;

/// Returns `a`–`z` for a run of at least three, single characters otherwise.
fn runs(bytes: &[u8]) -> Vec<String> {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for &byte in bytes {
        match runs.last_mut() {
            Some((_, last)) if u16::from(*last) + 1 == u16::from(byte) => *last = byte,
            _ => runs.push((byte, byte)),
        }
    }
    let shown = |byte: u8| format!("{:?}", char::from(byte));
    let written = runs.into_iter().flat_map(|(first, last)| match last - first {
        0 => vec![shown(first)],
        1 => vec![shown(first), shown(last)],
        _ => vec![format!("{}–{}", shown(first), shown(last))],
    });
    written.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(bytes: &[u8], forced: &str, end: bool) -> Expected {
        Expected {
            end,
            bytes: bytes.to_vec(),
            forced: forced.as_bytes().to_vec(),
        }
    }

    #[test]
    fn runs_are_drawn_together() {
        assert_eq!(
            expected(b"-0123456789ab", "", true).in_words(),
            "'-', '0'–'9', 'a', 'b' or the end"
        );
    }

    #[test]
    fn forced_text_says_it_all() {
        assert_eq!(expected(b"\"", "\"name\"", false).in_words(), "\"\\\"name\\\"\"");
    }

    #[test]
    fn what_is_missing_is_named_where_that_is_shorter() {
        let bytes: Vec<u8> = (b' '..=255).filter(|it| !b"\"\\\x7f".contains(it)).collect();
        let words = expected(&bytes, "", false).in_words();
        assert_eq!(
            words,
            "any printable character except '\"' '\\\\' or a character beyond ASCII"
        );
    }

    #[test]
    fn nothing_may_follow_a_finished_text_but_its_end() {
        assert_eq!(expected(b"", "", true).in_words(), "the end");
        assert_eq!(expected(b"", "", false).in_words(), "nothing");
    }
}
