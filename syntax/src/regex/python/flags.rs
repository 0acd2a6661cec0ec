//! The flags of Python's patterns.

/// The flags of a pattern that change what it matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// `i`: letters match in either case.
    pub(crate) ignore_case: bool,
    /// `m`: `^` and `$` match at line feeds, too.
    pub(crate) multi_line: bool,
    /// `s`: `.` matches line feeds, too.
    pub(crate) dot_all: bool,
    /// `x`: white space and comments in the pattern mean nothing.
    pub(crate) verbose: bool,
}

impl Flags {
    /// Sets the flag with this letter; returns `false` for letters that do not change what is matched here.
    pub(crate) fn set(&mut self, letter: char, on: bool) -> bool {
        let flag = match letter {
            'i' => &mut self.ignore_case,
            'm' => &mut self.multi_line,
            's' => &mut self.dot_all,
            'x' => &mut self.verbose,
            _ => return false,
        };
        *flag = on;
        true
    }
}
