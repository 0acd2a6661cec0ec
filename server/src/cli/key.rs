//! `lexiform key`: a new API key, and the entry that lets its owner in.

use std::io::Read as _;
use std::process::ExitCode;

use crate::cli::failure::{Failure, Outcome};
use crate::operate::keys::hashed;

/// Bytes of a key, before they are spelled.
const BYTES: usize = 32;

/// Make an API key: the key for its owner, and the entry for the file that `serve --api-keys` reads.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Whose key it is; logs show this name
    name: String,
}

/// Runs `lexiform key`.
///
/// # Errors
/// The system has no random bytes.
pub fn run(args: Args) -> Outcome {
    let mut bytes = [0; BYTES];
    let random = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    random.map_err(|error| Failure::message(format!("no random bytes: {error}")))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let key = format!("lx-{digits}");
    eprintln!("The key, which is shown only now: {key}\n");
    println!("[[keys]]\nname = {:?}\nsha256 = \"{}\"", args.name, hashed(&key));
    Ok(ExitCode::SUCCESS)
}
