//! Commands that send HTTP requests to a running service: many clients at once, some of which request several
//! texts, heavy clients beside a light one, and hostile ones.
//!
//! ```text
//!   options ─► load, crowd, fair, attack ─► driver (clients, their turns and times) ─► http ─► service
//! ```

pub(crate) mod attack;
pub(crate) mod crowd;
mod driver;
pub(crate) mod fair;
pub(crate) mod load;

use crate::http::ask;
use crate::process::Failure;
use std::collections::BTreeMap;
use std::time::Duration;

/// The time after which an answer is given up: no service of a test lets a request take as long.
const PATIENCE: Duration = Duration::from_secs(300);

/// The arguments of a command.
struct Options {
    usage: &'static str,
    flags: BTreeMap<String, String>,
    /// The arguments that are no flags.
    names: Vec<String>,
}

impl Options {
    /// Reads the arguments that the usage names: `[--flag N]` is followed by a number, `[--flag WORD]` by any
    /// text, and `[NAME...]` stands for names. Returns `None` if the user asks for the usage, which is printed.
    fn read(args: &[String], usage: &'static str) -> Result<Option<Self>, Failure> {
        let (flags, names) = (BTreeMap::new(), Vec::new());
        let mut options = Self { usage, flags, names };
        let mut args = args.iter();
        while let Some(name) = args.next() {
            if name == "--help" {
                println!("{usage}");
                return Ok(None);
            }
            if !name.starts_with("--") && usage.contains("[NAME...]") {
                options.names.push(name.clone());
                continue;
            }
            let kind = usage
                .split_once(&format!("[{name} "))
                .and_then(|(_, rest)| rest.split_once(']'));
            let (Some((kind, _)), Some(value)) = (kind, args.next()) else {
                return Err(options.wrong(name));
            };
            if ["N", "MB", "PID"].contains(&kind) && value.parse::<u32>().is_err() {
                return Err(options.wrong(name));
            }
            options.flags.insert(name.clone(), value.clone());
        }
        Ok(Some(options))
    }

    fn wrong(&self, name: &str) -> Failure {
        Failure::new(format!("{name} is not understood\n\n{}", self.usage))
    }

    fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.flags.get(name).map_or(default, String::as_str)
    }

    fn number(&self, name: &str, default: usize) -> usize {
        self.flags
            .get(name)
            .and_then(|value| value.parse().ok())
            .unwrap_or(default)
    }

    fn seconds(&self, default: usize) -> Duration {
        Duration::from_secs(self.number("--seconds", default) as u64)
    }

    /// Returns the address of the service.
    fn address(&self) -> &str {
        self.text("--address", "127.0.0.1:8000")
    }

    /// Returns the resident memory of the process of `--pid`, in KiB.
    fn memory(&self) -> Option<u64> {
        let pid = self.flags.get("--pid")?.parse().ok()?;
        Some(resident(pid)? >> 10)
    }
}

/// Returns the resident memory of a process, in bytes.
fn resident(pid: u32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// Returns the page of a running service.
fn page(address: &str, path: &str) -> Result<String, Failure> {
    let answer = ask(address, "GET", path, Duration::from_secs(60));
    let why = match answer.broken {
        None if answer.status == 200 => return Ok(answer.body),
        None => format!("status {}", answer.status),
        Some(error) => error.to_string(),
    };
    Err(Failure::new(format!("no service answers at {address}: {why}")))
}

/// Returns the name of the model that a running service has.
fn model(address: &str) -> Result<String, Failure> {
    let list = page(address, "/v1/models")?;
    let list: serde_json::Value = serde_json::from_str(&list)
        .map_err(|error| Failure::new(format!("what answers at {address} lists no models: {error}")))?;
    Ok(list["data"][0]["id"].as_str().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_says_which_arguments_are_understood() {
        let usage = "Usage: x [--address HOST:PORT] [--clients N] [NAME...]";
        let read = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            Options::read(&args, usage)
        };
        let options = read(&["a", "--clients", "7", "b"]).unwrap().unwrap();
        assert_eq!(
            (options.number("--clients", 1), options.number("--rounds", 2)),
            (7, 2)
        );
        assert_eq!(options.address(), "127.0.0.1:8000");
        assert_eq!(options.names, ["a", "b"]);
        assert!(read(&["--clients", "7", "--help"]).unwrap().is_none());
        for wrong in [&["--rounds", "7"][..], &["--clients"], &["--clients", "x"]] {
            let message = read(wrong).err().unwrap().to_string();
            assert_eq!(message, format!("{} is not understood\n\n{usage}", wrong[0]));
        }
    }
}
