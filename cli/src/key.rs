//! `lexiform key`: creates an API key, and the entry that admits its owner.

use std::io::Read as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::failure::{Code, EXIT_CODES, Failure, Outcome};
use crate::shown::output::{self, Output};

/// The number of bytes of a key, before it is spelled as text.
const BYTES: usize = 32;

/// Make an API key: the key for its owner, on standard error, and the entry for the file that `serve
/// --api-keys` reads, on standard output. With --json both are in one object.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    /// The owner of the key; logs show this name
    #[arg(value_parser = name)]
    name: String,
    #[command(flatten)]
    output: Output,
}

impl Args {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }
}

fn name(text: &str) -> Result<String, &'static str> {
    match text.trim() {
        "" => Err("a key needs a name: logs show whose requests they were by it"),
        name => Ok(name.to_owned()),
    }
}

/// Runs `lexiform key`.
///
/// # Errors
/// The system has no random bytes.
pub fn run(args: Args) -> Outcome {
    let mut bytes = [0; BYTES];
    let random = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    random.map_err(|error| Failure::Unable(format!("no random bytes: {error}")))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let key = format!("lx-{digits}");
    let hash = hashed(&key);
    match (args.output.json, args.output.quiet) {
        (true, _) => {}
        (_, true) => output::err(&format!("{key}\n")),
        _ => output::err(&format!("Store this key now; it is not shown again: {key}\n\n")),
    }
    // A JSON string is also a TOML string.
    let entry = || {
        format!(
            "[[keys]]\nname = {}\nsha256 = \"{hash}\"\n",
            Value::from(args.name.as_str())
        )
    };
    args.output.print(
        || json!({"ok": true, "exit": 0, "key": key, "name": args.name, "sha256": hash}),
        entry,
        entry,
    )?;
    Ok(Code::Fine)
}

/// Returns the hash of a key, in the format of the key file: SHA-256 in hexadecimal digits.
fn hashed(key: &str) -> String {
    let digest = Sha256::digest(key.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
