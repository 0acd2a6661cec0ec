//! Command lines, as people can repeat them: quoted for a shell, and without secrets.

use std::fmt;

/// The flags whose values are never shown. Each stands for all flags that begin with it.
const SECRET: [&str; 1] = ["--api-key"];

/// A command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine(Vec<String>);

impl CommandLine {
    /// Returns the command line of this process, with the name of the program in place of its path.
    pub fn of_this_run() -> Self {
        let mut words: Vec<String> = std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        if let Some(program) = words.first_mut() {
            let name = program.rsplit('/').next().unwrap_or_default();
            // `lexiform` becomes this program for the commands that run a model.
            *program = name.replace("lexiform-server", "lexiform");
        }
        Self(words)
    }

    /// Removes flags that have no value.
    #[must_use]
    pub fn without_switches(self, names: &[&str]) -> Self {
        Self(
            self.0
                .into_iter()
                .filter(|word| !names.contains(&word.as_str()))
                .collect(),
        )
    }

    /// Removes flags together with their values.
    #[must_use]
    pub fn without(self, names: &[&str]) -> Self {
        let mut words = Vec::new();
        let mut all = self.0.into_iter();
        while let Some(word) = all.next() {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            if !names.contains(&name) {
                words.push(word);
            } else if name.len() == word.len() {
                // The value is the next word.
                all.next();
            }
        }
        Self(words)
    }

    /// Adds a flag with its value.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        // A value that begins with a dash would be read as a flag.
        match value.starts_with('-') {
            true => self.0.push(format!("{name}={value}")),
            false => self.0.extend([name.to_owned(), value.to_owned()]),
        }
        self
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_secret = false;
        for (index, word) in self.0.iter().enumerate() {
            let gap = if index > 0 { " " } else { "" };
            let hidden = if is_secret { "…".to_owned() } else { shown(word) };
            write!(f, "{gap}{}", quoted(&hidden))?;
            is_secret = !is_secret && is_secret_flag(word) && !word.contains('=');
        }
        Ok(())
    }
}

fn is_secret_flag(word: &str) -> bool {
    SECRET.iter().any(|flag| word.starts_with(flag))
}

/// Returns a word without the value of a secret flag, and without the password of an address.
fn shown(word: &str) -> String {
    if let Some((name, _)) = word.split_once('=').filter(|_| is_secret_flag(word)) {
        return format!("{name}=…");
    }
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match host.rsplit_once('@') {
        Some((user, _)) => format!("{scheme}://…{}", &rest[user.len()..]),
        None => word.to_owned(),
    }
}

/// Quotes a word for a shell, if it needs quotes.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@…".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> CommandLine {
        CommandLine(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn secrets_are_not_shown() {
        let words = [
            "lexiform",
            "eval",
            "--api-key",
            "s3cret",
            "--api-key=s3cret",
            "--api-keys=s3cret",
            "--seed",
            "1",
        ];
        let shown = line(&words).to_string();
        assert_eq!(
            shown,
            "lexiform eval --api-key … --api-key=… --api-keys=… --seed 1"
        );
        let address = line(&["a", "http://me:s3cret@host:80/v1?q=@", "--url=http://host/@x"]).to_string();
        assert_eq!(address, "a 'http://…@host:80/v1?q=@' --url=http://host/@x");
        // A secret that looks like a secret flag hides nothing but itself.
        assert_eq!(
            line(&["--api-key", "--api-key", "b"]).to_string(),
            "--api-key … b"
        );
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(
            line(&["a b", "it's", "", "x=1"]).to_string(),
            r"'a b' 'it'\''s' '' x=1"
        );
    }

    #[test]
    fn one_case_is_run_again_with_the_flags_that_matter() {
        let words = [
            "lexiform",
            "eval",
            "maskbench",
            "d.jsonl",
            "--json",
            "--out",
            "o",
            "--html=h",
            "--eos",
            "x",
        ];
        let again = line(&words)
            .without_switches(&["--json"])
            .without(&["--out", "--html"])
            .with("--only", "a b");
        assert_eq!(
            again.to_string(),
            "lexiform eval maskbench d.jsonl --eos x --only 'a b'"
        );
        assert_eq!(line(&["a"]).with("--only", "-x").to_string(), "a --only=-x");
    }
}
