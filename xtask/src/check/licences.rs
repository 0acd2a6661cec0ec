//! Checks that dependencies come only from crates.io, and only under licences that `deny.toml` lists.
//!
//! If cargo-deny is installed, it decides, using the same file. Building it takes longer than all tests of
//! this project, so where it is missing the two most important rules are checked here from `cargo metadata`.

use crate::process::{Failure, cargo, quiet_output, root, succeeds};
use serde_json::Value;
use std::fs;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The workspace, and the fuzz targets, which are a separate package.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

const METADATA: [&str; 7] = [
    "metadata",
    "--format-version",
    "1",
    "--locked",
    "--all-features",
    "--filter-platform",
    "x86_64-unknown-linux-gnu",
];

pub(crate) fn check() -> Result<bool, Failure> {
    let denies = quiet_output(&mut cargo(["deny", "--version"])).is_some();
    if !denies {
        eprintln!("xtask: cargo-deny is not installed; checking licences and sources from cargo metadata");
    }
    let mut passed = true;
    for manifest in MANIFESTS {
        passed &= if denies {
            denied_nothing(manifest)?
        } else {
            checked(manifest)?
        };
    }
    Ok(passed)
}

fn denied_nothing(manifest: &str) -> Result<bool, Failure> {
    let mut command = cargo(["deny", "--workspace", "--manifest-path", manifest]);
    succeeds(command.args(["check", "--config", "deny.toml", "licenses", "bans", "sources"]))
}

fn checked(manifest: &str) -> Result<bool, Failure> {
    let rules = Rules::read()?;
    let metadata = quiet_output(cargo(METADATA).args(["--manifest-path", manifest]))
        .and_then(|text| serde_json::from_str::<Value>(&text).ok())
        .ok_or_else(|| {
            let what = format!("cargo metadata --locked gave nothing to read of {manifest}");
            Failure::new(what + "; is its Cargo.lock up to date?")
        })?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let problems: Vec<String> = packages
        .iter()
        .filter_map(|package| problem(package, &rules))
        .collect();
    problems.iter().for_each(|it| eprintln!("xtask: {it}"));
    Ok(problems.is_empty() && !packages.is_empty())
}

/// The content of `[licenses]` in `deny.toml`, so that both checks read one file.
struct Rules {
    allowed: Vec<String>,
    /// Pairs of a package and the licence that only this package may have.
    exceptions: Vec<(String, String)>,
}

impl Rules {
    fn read() -> Result<Self, Failure> {
        let path = root().join("deny.toml");
        let text = fs::read_to_string(&path).map_err(|error| Failure::io("could not read", &path, &error))?;
        Self::parse(&text)
            .ok_or_else(|| Failure::new("deny.toml has no list `allow = [...]` under [licenses]"))
    }

    /// Parses the few relevant lines; cargo-deny reads the whole file.
    fn parse(text: &str) -> Option<Self> {
        let section = text.split_once("\n[licenses]\n")?.1;
        let section = section.split_once("\n[").map_or(section, |(section, _)| section);
        let (_, list) = section.split_once("allow = [")?;
        let allowed = quoted(list.split_once(']')?.0);
        let exceptions = section.split("{ crate = ").skip(1).filter_map(|entry| {
            let mut words = quoted(entry.split_once(']')?.0).into_iter();
            Some((words.next()?, words.next()?))
        });
        Some(Self {
            allowed,
            exceptions: exceptions.collect(),
        })
    }

    fn allowed_for(&self, package: &str) -> Vec<String> {
        let exceptions = self
            .exceptions
            .iter()
            .filter(|(name, _)| name == package)
            .map(|(_, licence)| licence);
        self.allowed.iter().chain(exceptions).cloned().collect()
    }
}

fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn problem(package: &Value, rules: &Rules) -> Option<String> {
    let name = format!("{} {}", package["name"].as_str()?, package["version"].as_str()?);
    // Packages of this workspace have no source.
    if let Some(source) = package["source"].as_str().filter(|source| *source != CRATES_IO) {
        return Some(format!("{name} comes from {source}"));
    }
    match package["license"].as_str() {
        Some(expression) if is_allowed(expression, &rules.allowed_for(package["name"].as_str()?)) => None,
        Some(expression) => Some(format!(
            "{name} is under {expression}, which deny.toml does not allow"
        )),
        None => Some(format!("{name} states no licence")),
    }
}

/// Returns `true` if an SPDX expression can be satisfied with allowed licences alone. The old spelling
/// `MIT/Apache-2.0` means `OR`.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let holds = any_of(&mut words, allowed);
    holds == Some(true) && words.next().is_none()
}

type LicenceWords<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

/// Evaluates alternatives. `None` here and below is an expression that does not parse.
fn any_of(words: &mut LicenceWords<'_>, allowed: &[String]) -> Option<bool> {
    let mut holds = all_of(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        holds |= all_of(words, allowed)?;
    }
    Some(holds)
}

fn all_of(words: &mut LicenceWords<'_>, allowed: &[String]) -> Option<bool> {
    let mut holds = one(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        holds &= one(words, allowed)?;
    }
    Some(holds)
}

fn one(words: &mut LicenceWords<'_>, allowed: &[String]) -> Option<bool> {
    let licence = words.next()?;
    if licence == "(" {
        let holds = any_of(words, allowed)?;
        return words.next_if_eq(&")").map(|_| holds);
    }
    let exception = words.next_if_eq(&"WITH").and_then(|_| words.next());
    let whole = exception.map_or_else(|| licence.to_owned(), |it| format!("{licence} WITH {it}"));
    Some(allowed.contains(&whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(expression: &str) -> bool {
        let list = [
            "MIT",
            "Apache-2.0",
            "Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ]
        .map(str::to_owned);
        is_allowed(expression, &list)
    }

    #[test]
    fn expressions_are_read_as_spdx_says() {
        assert!(allowed("MIT"));
        assert!(allowed("GPL-3.0 OR MIT"));
        assert!(allowed("MIT/Apache-2.0"));
        assert!(allowed("(MIT OR GPL-2.0) AND Unicode-3.0"));
        assert!(allowed("Apache-2.0 WITH LLVM-exception"));
        assert!(!allowed("GPL-3.0"));
        assert!(!allowed("MIT AND GPL-3.0"));
        assert!(!allowed("(MIT OR GPL-2.0) AND GPL-3.0"));
        assert!(!allowed("GPL-2.0 WITH Classpath-exception-2.0"));
        assert!(!allowed("MIT OR"), "half an expression is no expression");
    }

    #[test]
    fn the_file_is_read_with_its_exceptions() {
        let text = "[graph]\n\n[licenses]\nallow = [\n    \"MIT\",\n    \"ISC\",\n]\n\
                    exceptions = [{ crate = \"x\", allow = [\"CC0-1.0\"] }]\n\n[bans]\nallow = [\"y\"]\n";
        let rules = Rules::parse(text).unwrap();
        assert_eq!(rules.allowed_for("x"), ["MIT", "ISC", "CC0-1.0"]);
        assert_eq!(rules.allowed_for("y"), ["MIT", "ISC"]);
    }

    #[test]
    fn a_package_from_elsewhere_is_named() {
        let source = "git+https://example.org/x";
        let package =
            serde_json::json!({"name": "x", "version": "1.0.0", "source": source, "license": "MIT"});
        let rules = Rules {
            allowed: vec!["MIT".to_owned()],
            exceptions: Vec::new(),
        };
        assert_eq!(
            problem(&package, &rules).unwrap(),
            "x 1.0.0 comes from git+https://example.org/x"
        );
    }
}
