//! The file of answers: a header line with what determines the answers, and a line for each answer.
//!
//! A run writes a line as soon as an answer is there, so that it can be stopped at any time. A later run
//! with the same file reads the lines and asks for the rest. Of several lines about the same item and arm,
//! the last counts.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::item::Arm;
use super::record::Record;
use super::wire::Sampling;
use crate::failure::{Failure, read_text};

/// The command that writes the files.
const COMMAND: &str = "eval generate";
/// The version of the format of the file.
const FORMAT: u32 = 1;

/// The first line of a file of answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    /// The command that writes such files.
    lexiform: String,
    format: u32,
    pub(super) endpoint: String,
    pub(super) model: String,
    /// The SHA-256 sum of the data.
    pub(super) data: String,
    pub(super) sampling: Sampling,
}

/// A file of answers that is open for more.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
}

/// The last record about each item and arm.
pub(super) type Records = HashMap<(String, Arm), Record>;

impl Header {
    pub(super) fn new(endpoint: &str, model: &str, data: &str, sampling: &Sampling) -> Self {
        Self {
            lexiform: COMMAND.to_owned(),
            format: FORMAT,
            endpoint: endpoint.to_owned(),
            model: model.to_owned(),
            data: data.to_owned(),
            sampling: sampling.clone(),
        }
    }

    /// Returns what differs, by the name of its flag, with the value of the file and ours.
    fn difference(&self, ours: &Self) -> Option<(&'static str, String, String)> {
        let fields = |it: &Self| {
            [
                ("--endpoint", it.endpoint.clone()),
                ("--model", it.model.clone()),
                ("--data", format!("a file with the sum {}", it.data)),
                ("--constraint", it.sampling.constraint.name()),
                ("--max-tokens", it.sampling.max_tokens.to_string()),
                ("--temperature", it.sampling.temperature.to_string()),
                ("--seed", it.sampling.seed.to_string()),
                ("--fields", json!(it.sampling.fields).to_string()),
            ]
        };
        let both = fields(self).into_iter().zip(fields(ours));
        both.into_iter()
            .find(|((_, theirs), (_, ours))| theirs != ours)
            .map(|((flag, theirs), (_, ours))| (flag, theirs, ours))
    }
}

impl Journal {
    /// Opens a file of answers, and returns the records in it. A file that does not exist is created.
    ///
    /// # Errors
    /// The file cannot be read or written, another run writes to it, it is no file of answers, or its answers
    /// were made with other settings.
    pub(super) fn open(path: &Path, header: &Header) -> Result<(Self, Records), Failure> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(write_failure(path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("{}: another run is writing to this file", path.display());
                return Err(Failure::message(message));
            }
            // Some file systems have no locks.
            Err(TryLockError::Error(_)) => {}
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|source| Failure::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut journal = Self {
            path: path.to_owned(),
            file,
        };
        let records = journal.resume(&text, header)?;
        Ok((journal, records))
    }

    /// Writes a record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn append(&mut self, record: &Record) -> Result<(), Failure> {
        self.write_line(record)
    }

    /// Reads what the file has, and places the end after the last complete line.
    fn resume(&mut self, text: &str, header: &Header) -> Result<Records, Failure> {
        // A run that was killed may have left half a line. Without its line break it was not complete.
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        self.file
            .set_len(complete as u64)
            .and_then(|()| self.file.seek(SeekFrom::End(0)))
            .map_err(write_failure(&self.path))?;
        let mut lines = text[..complete].lines().zip(1..);
        let Some((first, _)) = lines.next() else {
            self.write_line(header)?;
            return Ok(Records::new());
        };
        self.check_header(first, header)?;
        lines
            .map(|(line, number)| parse_record(&self.path, line, number))
            .collect()
    }

    fn check_header(&self, line: &str, ours: &Header) -> Result<(), Failure> {
        let path = self.path.display();
        let theirs = parse_header(&self.path, line, "name one that does not exist yet")?;
        let Some((flag, theirs, ours)) = theirs.difference(ours) else {
            return Ok(());
        };
        Err(Failure::message(format!(
            "{path} has answers of a run whose {flag} is {theirs} and not {ours}; give the same settings to go on \
             with it, or name another file"
        )))
    }

    fn write_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let line = serde_json::to_string(value).map_err(io::Error::from);
        line.and_then(|line| self.file.write_all(format!("{line}\n").as_bytes()))
            .map_err(write_failure(&self.path))
    }
}

/// Reads a file of answers that is complete, or as far as it is.
///
/// # Errors
/// The file cannot be read, is no file of answers, or was written by another version.
pub(super) fn read(path: &Path) -> Result<(Header, Records), Failure> {
    let text = read_text(path)?;
    let mut lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .zip(1..);
    let (first, _) = lines.next().unwrap_or(("", 1));
    let header = parse_header(path, first, "--answers of `eval generate` writes them")?;
    let records = lines.map(|(line, number)| parse_record(path, line, number));
    Ok((header, records.collect::<Result<_, _>>()?))
}

fn parse_header(path: &Path, line: &str, advice: &str) -> Result<Header, Failure> {
    let path = path.display();
    let header: Header = serde_json::from_str(line)
        .map_err(|_| Failure::message(format!("{path}, line 1: not a file of answers; {advice}")))?;
    if (header.lexiform.as_str(), header.format) != (COMMAND, FORMAT) {
        return Err(Failure::message(format!(
            "{path} was written by another version of the command; name another file"
        )));
    }
    Ok(header)
}

fn parse_record(path: &Path, line: &str, number: usize) -> Result<((String, Arm), Record), Failure> {
    let record: Record = serde_json::from_str(line).map_err(|error| {
        let place = format!("{}, line {number}", path.display());
        Failure::message(format!("{place}: not an answer of `eval generate`: {error}"))
    })?;
    Ok(((record.name.clone(), record.arm), record))
}

fn write_failure(path: &Path) -> impl FnOnce(io::Error) -> Failure {
    let path = path.to_owned();
    |source| Failure::Write { path, source }
}
