//! The arguments of a command, as its usage names them.

use crate::process::Failure;
use std::collections::BTreeMap;
use std::time::Duration;

/// The arguments of a command.
pub(crate) struct Options {
    usage: &'static str,
    flags: BTreeMap<String, String>,
    /// The arguments that are no flags.
    pub(crate) names: Vec<String>,
}

impl Options {
    /// Reads the arguments that the first line of the usage names: `[--flag N]` is followed by a number,
    /// `[--flag WORD]` by any text, `[--flag]` by nothing, and `[NAME...]` stands for names. Returns `None`
    /// if the user asks for the usage, which is printed.
    pub(crate) fn read(args: &[String], usage: &'static str) -> Result<Option<Self>, Failure> {
        let line = usage.lines().next().unwrap_or_default();
        let words: Vec<&str> = line.split([' ', '[', ']']).collect();
        let (flags, names) = (BTreeMap::new(), Vec::new());
        let mut options = Self { usage, flags, names };
        let mut args = args.iter();
        while let Some(name) = args.next() {
            if name == "--help" {
                println!("{usage}");
                return Ok(None);
            }
            if !name.starts_with("--") && line.contains("...") {
                options.names.push(name.clone());
                continue;
            }
            let wrong = || options.wrong(name);
            let pair = words
                .windows(2)
                .find(|pair| pair[0] == name && name.starts_with("--"));
            let value = match pair.ok_or_else(wrong)?[1] {
                "" => String::new(),
                kind => {
                    let value = args.next().ok_or_else(wrong)?;
                    if ["N", "MB", "PID"].contains(&kind) && value.parse::<u32>().is_err() {
                        return Err(wrong());
                    }
                    value.clone()
                }
            };
            options.flags.insert(name.clone(), value);
        }
        Ok(Some(options))
    }

    /// Returns the failure of an argument that is not understood.
    pub(crate) fn wrong(&self, name: &str) -> Failure {
        Failure::new(format!("{name} is not understood\n\n{}", self.usage))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.flags.get(name).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str, default: usize) -> usize {
        self.get(name)
            .and_then(|value| value.parse().ok())
            .unwrap_or(default)
    }

    pub(crate) fn seconds(&self, default: usize) -> Duration {
        Duration::from_secs(self.number("--seconds", default) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_says_which_arguments_are_understood() {
        let usage = "Usage: x [--word WORD] [--clients N | --quick] [NAME...]\n\n  Or [--rounds N].";
        let read = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            Options::read(&args, usage)
        };
        let options = read(&["a", "--clients", "7", "b", "--word", "--quick"])
            .unwrap()
            .unwrap();
        assert_eq!(
            (options.number("--clients", 1), options.number("--rounds", 2)),
            (7, 2)
        );
        assert_eq!(
            (options.get("--word"), options.get("--quick")),
            (Some("--quick"), None)
        );
        assert_eq!(read(&["--quick"]).unwrap().unwrap().get("--quick"), Some(""));
        assert_eq!(options.names, ["a", "b"]);
        assert!(read(&["--clients", "7", "--help"]).unwrap().is_none());
        for wrong in [&["--rounds", "7"][..], &["--clients"], &["--clients", "x"]] {
            let message = read(wrong).err().unwrap().to_string();
            assert_eq!(message, format!("{} is not understood\n\n{usage}", wrong[0]));
        }
    }
}
