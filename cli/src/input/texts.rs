//! The texts of a command: given in the call, in files, or on standard input.

use std::path::Path;

use crate::failure::Failure;
use crate::input::stdin;

/// The texts to process.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Texts {
    /// A text; may be given several times
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    text: Vec<String>,
    /// Files, each one text, and `-` for standard input. A line break at the very end is not part of the text
    #[arg(value_name = "FILE")]
    files: Vec<String>,
}

/// One text, or the reason why it cannot be read.
#[derive(Debug)]
pub struct Text {
    /// Its name in the output.
    pub name: String,
    /// Its bytes.
    pub bytes: Result<Vec<u8>, Failure>,
}

impl Texts {
    /// Reads all texts; one that cannot be read does not hide the others. If none is named and standard input
    /// is a pipe or a file, that is the text, unless it is empty.
    pub fn read(&self) -> Vec<Text> {
        let given = self.text.iter().enumerate().map(|(index, text)| Text {
            name: format!("text {}", index + 1),
            bytes: Ok(text.clone().into_bytes()),
        });
        let mut texts: Vec<Text> = given.chain(self.files.iter().map(|file| read(file))).collect();
        if texts.is_empty() && stdin::is_handed_over() {
            let handed = read(stdin::DASH);
            texts.extend((!matches!(&handed.bytes, Ok(bytes) if bytes.is_empty())).then_some(handed));
        }
        texts
    }
}

fn read(file: &str) -> Text {
    let (name, bytes) = match file {
        stdin::DASH => ("standard input", stdin::bytes("FILE")),
        file => {
            let read = std::fs::read(file).map_err(|source| Failure::Read {
                path: Path::new(file).to_owned(),
                source,
            });
            (file, read)
        }
    };
    Text {
        name: name.to_owned(),
        bytes: bytes.map(without_last_line_break),
    }
}

fn without_last_line_break(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    bytes
}
