//! The characters of a source: blanks, comments, names, numbers, quoted texts and regular expressions.

/// A source and the place that was read so far.
#[derive(Debug)]
pub(super) struct Scanner<'t> {
    text: &'t str,
    pub(super) at: usize,
    /// The number of open brackets, in which line ends mean nothing.
    pub(super) open: usize,
}

/// A problem with its offset.
pub(super) type Bad = (usize, String);

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Scanner<'t> {
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Scanner { text, at, open: 0 }
    }

    /// Returns what is left of the source.
    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Reads this text if it comes next, and returns whether it did.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let is_there = self.rest().starts_with(text);
        if is_there {
            self.at += text.len();
        }
        is_there
    }

    /// Reads this text after blanks, if it comes next.
    pub(super) fn eat_after_blanks(&mut self, text: &str) -> bool {
        self.blanks();
        self.eat(text)
    }

    /// Skips blanks and comments, and line ends within brackets or before a `|`.
    pub(super) fn blanks(&mut self) {
        loop {
            self.blanks_of_line();
            if !self.rest().starts_with(['\r', '\n']) {
                return;
            }
            let line_end = self.at;
            self.lines();
            if self.open == 0 && !self.is_bar() {
                self.at = line_end;
                return;
            }
        }
    }

    /// Skips blanks, comments and line ends.
    pub(super) fn lines(&mut self) {
        while self.rest().starts_with(['\r', '\n', ' ', '\t', '\x0c', '#']) || self.rest().starts_with("//") {
            self.at += self.rest().len() - self.rest().trim_start_matches(['\r', '\n']).len();
            self.blanks_of_line();
        }
    }

    fn is_bar(&self) -> bool {
        self.rest().starts_with('|')
    }

    fn blanks_of_line(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\x0c']).len();
        if self.rest().starts_with('#') || self.rest().starts_with("//") {
            self.skip_line();
        }
    }

    /// Skips to the end of the line.
    pub(super) fn skip_line(&mut self) {
        let rest = self.rest();
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    /// Returns `true` at the end of the source, or of a line outside of brackets.
    pub(super) fn is_line_end(&self) -> bool {
        self.rest().is_empty() || self.rest().starts_with(['\r', '\n'])
    }

    /// Skips to the next line that begins with a name or a directive, after a problem.
    pub(super) fn skip_item(&mut self) {
        self.open = 0;
        loop {
            self.skip_line();
            if self.rest().is_empty() {
                return;
            }
            self.at += 1;
            let starts = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '?' | '!' | '%');
            if self.rest().trim_start_matches([' ', '\t']).starts_with(starts) {
                return;
            }
        }
    }

    /// Reads a name: a letter or an underscore, and letters, digits, underscores and hyphens after it.
    pub(super) fn name(&mut self) -> Option<&'t str> {
        let rest = self.rest();
        rest.chars().next().filter(|&c| c == '_' || c.is_alphabetic())?;
        let end = rest.find(|c: char| !(c == '_' || c == '-' || c.is_alphanumeric()));
        let mut name = &rest[..end.unwrap_or(rest.len())];
        // `a->b` is an alias of `a`.
        if rest[name.len()..].starts_with('>') && name.ends_with('-') {
            name = &name[..name.len() - 1];
        }
        self.at += name.len();
        Some(name)
    }

    /// Reads decimal digits.
    pub(super) fn digits(&mut self) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Reads a text in double quotes, without its flag, and resolves its escapes.
    pub(super) fn string(&mut self) -> Result<String, Bad> {
        let start = self.at;
        let never_closed = || (start, "this `\"` is never closed on its line".to_owned());
        let mut text = String::new();
        self.at += 1;
        loop {
            let at = self.at;
            let c = self.peek().filter(|&c| c != '\n').ok_or_else(never_closed)?;
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(text),
                '\\' => text.push(self.escape(at)?),
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self, at: usize) -> Result<char, Bad> {
        let c = self.peek().unwrap_or('\n');
        self.at += c.len_utf8();
        let digits = match c {
            'n' => return Ok('\n'),
            't' => return Ok('\t'),
            'r' => return Ok('\r'),
            'f' => return Ok('\x0c'),
            'v' => return Ok('\x0b'),
            'b' => return Ok('\x08'),
            '0' => return Ok('\0'),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            c if c.is_ascii_punctuation() => return Ok(c),
            c => return Err((at, format!("`\\{}` is no escape", c.escape_default()))),
        };
        let mut code = self.hexadecimal(digits, at)?;
        // Two escapes may be the halves of one character.
        if (0xd800..0xdc00).contains(&code) && self.eat("\\u") {
            let low = self.hexadecimal(4, at)?;
            code = 0x1_0000 + ((code - 0xd800) << 10) + low.wrapping_sub(0xdc00) % 0x400;
        }
        char::from_u32(code).ok_or_else(|| (at, "this escape is not a Unicode character".to_owned()))
    }

    fn hexadecimal(&mut self, count: usize, at: usize) -> Result<u32, Bad> {
        let digits = self.rest().get(..count);
        let value = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let value = value.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += if value.is_some() { count } else { 0 };
        value.ok_or_else(|| (at, format!("{count} hexadecimal digits follow here")))
    }

    /// Reads a regular expression between slashes and returns it without them, with its place.
    pub(super) fn expression(&mut self) -> Result<(&'t str, usize), Bad> {
        let start = self.at;
        let mut is_escaped = false;
        for (offset, c) in self.rest().char_indices().skip(1) {
            match c {
                '\n' => break,
                '\\' => is_escaped = !is_escaped,
                '/' if !is_escaped => {
                    let body = &self.rest()[1..offset];
                    self.at += offset + 1;
                    return Ok((body, start + 1));
                }
                _ => is_escaped = false,
            }
        }
        Err((start, "this `/` is never closed on its line".to_owned()))
    }

    /// Reads the letters that follow a text or an expression at once.
    pub(super) fn flags(&mut self) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c: char| !"imslux".contains(c)).unwrap_or(rest.len());
        // A longer word is the next part.
        let is_word = rest[length..].starts_with(|c: char| c == '_' || c.is_alphanumeric());
        let length = if is_word { 0 } else { length };
        self.at += length;
        &rest[..length]
    }

    /// Reads a JSON value, and returns its text.
    pub(super) fn json(&mut self) -> Result<&'t str, Bad> {
        self.blanks();
        let start = self.at;
        let rest = self.rest();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde_json::Value>();
        match values.next() {
            Some(Ok(_)) => {
                let length = values.byte_offset();
                self.at += length;
                Ok(&rest[..length])
            }
            Some(Err(error)) => Err((start, format!("invalid JSON: {error}"))),
            None => Err((start, "expected a JSON value".to_owned())),
        }
    }
}
