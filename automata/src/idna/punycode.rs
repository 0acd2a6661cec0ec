//! Punycode (RFC 3492), which writes characters as letters, digits and hyphens.
//!
//! ```text
//!   bücher  =  bcher  -  kva
//!              the ASCII ones   how far to count, through places and characters, to the next insertion
//! ```
//!
//! Numbers are written in digits whose weights vary with their place, and the bias of the places adapts to
//! the size of the preceding numbers.

const BASE: u32 = 36;
const LEAST_THRESHOLD: u32 = 1;
const GREATEST_THRESHOLD: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const FIRST_BIAS: u32 = 72;
const FIRST_CODE: u32 = 0x80;

/// Returns how many values a digit has in a place before the number continues in the next one.
fn threshold(place: u32, bias: u32) -> u32 {
    let units = BASE * (place + 1);
    units
        .saturating_sub(bias)
        .clamp(LEAST_THRESHOLD, GREATEST_THRESHOLD)
}

/// Returns the bias after a number with which the text has `length` characters.
fn adapted(delta: u32, length: u32, is_first: bool) -> u32 {
    let mut delta = if is_first { delta / DAMP } else { delta / 2 };
    delta += delta / length;
    let mut bias = 0;
    while delta > (BASE - LEAST_THRESHOLD) * GREATEST_THRESHOLD / 2 {
        delta /= BASE - LEAST_THRESHOLD;
        bias += BASE;
    }
    bias + (BASE - LEAST_THRESHOLD + 1) * delta / (delta + SKEW)
}

fn value(digit: u8) -> Option<u32> {
    match digit {
        b'a'..=b'z' => Some(u32::from(digit - b'a')),
        b'0'..=b'9' => Some(u32::from(digit - b'0') + 26),
        _ => None,
    }
}

fn digit(value: u32) -> u8 {
    match value {
        0..26 => b'a' + value as u8,
        _ => b'0' + (value - 26) as u8,
    }
}

/// Reads a number and advances `digits` past it.
fn read(digits: &mut &[u8], bias: u32) -> Option<u32> {
    let (mut number, mut weight) = (0u32, 1u32);
    for place in 0.. {
        let (&first, rest) = digits.split_first()?;
        *digits = rest;
        let (value, threshold) = (value(first)?, threshold(place, bias));
        number = number.checked_add(value.checked_mul(weight)?)?;
        if value < threshold {
            break;
        }
        weight = weight.checked_mul(BASE - threshold)?;
    }
    Some(number)
}

fn write(mut number: u32, bias: u32, into: &mut Vec<u8>) {
    for place in 0.. {
        let threshold = threshold(place, bias);
        if number < threshold {
            break;
        }
        into.push(digit(threshold + (number - threshold) % (BASE - threshold)));
        number = (number - threshold) / (BASE - threshold);
    }
    into.push(digit(number));
}

/// Decodes a text of lower-case letters, digits and hyphens; returns `None` if it is not Punycode.
/// O(length²).
pub(super) fn decode(text: &[u8]) -> Option<Vec<char>> {
    let (plain, mut digits) = match text.iter().rposition(|&byte| byte == b'-') {
        Some(hyphen) => (&text[..hyphen], &text[hyphen + 1..]),
        None => (&text[..0], text),
    };
    let mut label: Vec<char> = plain.iter().copied().map(char::from).collect();
    let (mut code, mut place, mut bias) = (FIRST_CODE, 0u32, FIRST_BIAS);
    let mut is_first = true;
    while !digits.is_empty() {
        let delta = read(&mut digits, bias)?;
        let length = label.len() as u32 + 1;
        bias = adapted(delta, length, std::mem::replace(&mut is_first, false));
        place = place.checked_add(delta)?;
        code = code.checked_add(place / length)?;
        place %= length;
        label.insert(place as usize, char::from_u32(code)?);
        place += 1;
    }
    Some(label)
}

/// Returns the Punycode of the characters of a label, which are few. O(length²).
pub(super) fn encode(label: &[char]) -> Vec<u8> {
    let mut text: Vec<u8> = label.iter().filter(|c| c.is_ascii()).map(|&c| c as u8).collect();
    let mut written = text.len() as u32;
    if written > 0 {
        text.push(b'-');
    }
    let mut codes: Vec<u32> = label
        .iter()
        .filter(|c| !c.is_ascii())
        .map(|&c| u32::from(c))
        .collect();
    codes.sort_unstable();
    codes.dedup();
    let (mut next, mut delta, mut bias, mut is_first) = (FIRST_CODE, 0u32, FIRST_BIAS, true);
    for code in codes {
        delta += (code - next) * (written + 1);
        for &c in label {
            if u32::from(c) < code {
                delta += 1;
            }
            if u32::from(c) == code {
                write(delta, bias, &mut text);
                bias = adapted(delta, written + 1, std::mem::replace(&mut is_first, false));
                delta = 0;
                written += 1;
            }
        }
        delta += 1;
        next = code + 1;
    }
    text
}
