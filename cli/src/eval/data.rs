//! `lexiform eval data`: the collections, where people get them, and what of them lies in a folder.

mod kind;
mod scan;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::failure::{Code, EXIT_CODES, Failure, Outcome};
use crate::report::quoted;
use crate::shown::output::Output;
use crate::shown::paint::{bad, dim, good};
use kind::Kind;
use scan::{Found, Part};

/// The broken places that are shown at most; `--json` has all.
const LISTED: usize = 50;

/// The arguments of `lexiform eval data`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    /// The file or folder to look at; without it, all collections are listed
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

impl Args {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }
}

/// Runs `lexiform eval data`.
///
/// # Errors
/// The file or folder cannot be read.
pub fn run(args: &Args) -> Outcome {
    let Some(path) = &args.path else {
        args.output.print(catalogue_json, catalogue, String::new)?;
        return Ok(Code::Fine);
    };
    let found = scan::scan(path)?;
    args.output
        .print(|| json_of(&found), || text_of(path, &found), String::new)?;
    Ok(match found.broken.is_empty() && !found.parts.is_empty() {
        true => Code::Fine,
        false => Code::No,
    })
}

/// Returns what lies in a file or folder, as `--json` prints it.
///
/// # Errors
/// It cannot be read.
pub fn found(path: &Path) -> Result<Value, Failure> {
    Ok(json_of(&scan::scan(path)?))
}

/// Describes all collections.
fn catalogue() -> String {
    let lines = Kind::ALL.iter().map(|kind| {
        let facts = kind.facts();
        let commands: Vec<String> = facts
            .commands
            .iter()
            .map(|it| format!("lexiform eval {it}"))
            .collect();
        format!(
            "{}\n  {}\n  licence  {}\n  from     {}\n  for      {}\n",
            good(facts.name),
            facts.what,
            facts.license,
            facts.address,
            commands.join(" · ")
        )
    });
    let lines: Vec<String> = lines.collect();
    format!(
        "{}\n{}\n",
        lines.join("\n"),
        dim(
            "Nothing is downloaded. Get a collection from its address; `lexiform eval data PATH` says whether it is whole."
        )
    )
}

fn catalogue_json() -> Value {
    let collections = Kind::ALL.iter().map(|kind| {
        let facts = kind.facts();
        json!({
            "id": facts.id,
            "name": facts.name,
            "what": facts.what,
            "licence": facts.license,
            "from": facts.address,
            "commands": facts.commands,
        })
    });
    json!({"collections": collections.collect::<Vec<_>>()})
}

/// Returns the commands with which a part can be used.
fn commands(part: &Part) -> Vec<String> {
    let (path, draft) = match part.kind {
        // A draft is named by a flag, and the folder is that of the whole suite.
        Kind::Suite => {
            let suite = part.path.ancestors().nth(2).unwrap_or(&part.path);
            let name = part.path.file_name().unwrap_or_default().to_string_lossy();
            (
                suite.display().to_string(),
                name.trim_start_matches("draft").to_owned(),
            )
        }
        _ => (part.path.display().to_string(), String::new()),
    };
    let commands = part.kind.facts().commands.iter();
    let full = commands.map(|command| {
        format!(
            "lexiform eval {}",
            command.replace("DATA", &quoted(&path)).replace("2020-12", &draft)
        )
    });
    full.collect()
}

fn json_of(found: &Found) -> Value {
    let parts = found.parts.iter().map(|part| {
        json!({
            "path": part.path,
            "collection": part.kind.facts().id,
            "files": part.files,
            "records": part.records,
            "cases": part.cases,
            "commands": commands(part),
        })
    });
    json!({
        "found": parts.collect::<Vec<_>>(),
        "broken": found.broken,
        "unread": found.unread,
    })
}

fn text_of(path: &Path, found: &Found) -> String {
    let mut text = String::new();
    for part in &found.parts {
        let facts = part.kind.facts();
        let cases = match part.cases == part.records {
            true => String::new(),
            false => format!(", cases: {}", part.cases),
        };
        text += &format!(
            "{}: {} ({}: {}{cases})\n",
            part.path.display(),
            good(facts.name),
            facts.records,
            part.records
        );
        text.extend(commands(part).iter().map(|command| format!("  {command}\n")));
    }
    if found.parts.is_empty() {
        text += &format!("{}: {}\n", path.display(), bad("nothing that is known"));
    }
    for (places, paint) in [(&found.broken, bad("broken")), (&found.unread, dim("not read"))] {
        text.extend(
            places
                .iter()
                .take(LISTED)
                .map(|place| format!("{paint}  {place}\n")),
        );
        if places.len() > LISTED {
            text += &format!("{paint}  {} more; --json has all\n", places.len() - LISTED);
        }
    }
    text
}
