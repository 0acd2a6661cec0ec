//! The schemas and the token sequences that all engines walk.

use std::path::Path;

use lexiform::vocab::Tokenizer;
use serde_json::Value;

use crate::Failure;
use crate::python_json::dumps;

/// A schema with the instances that are walked through it.
pub struct Case {
    /// The name of the schema in the collection.
    pub name: String,
    /// The schema as text, which Lexiform reads.
    pub text: String,
    /// The schema as a value, which llguidance reads.
    pub schema: Value,
    /// The instances as tokens.
    pub instances: Vec<Instance>,
}

/// One instance of a schema.
pub struct Instance {
    /// `true` if the collection says that the instance is valid.
    pub valid: bool,
    /// The tokens of the text that Python's `json.dumps(data, ensure_ascii=False)` writes, as in MaskBench.
    pub tokens: Vec<u32>,
}

/// The lines of the collection to read.
pub enum Choice {
    /// This many schemas, spread evenly over the file; the seed moves the first one.
    Spread { schemas: usize, seed: usize },
    /// This many schemas from the top of the file.
    First(usize),
}

/// Reads the chosen schemas.
///
/// # Errors
/// Fails if the file cannot be read, a line is not JSON, or an instance cannot be split into tokens.
pub fn read(path: &Path, choice: &Choice, tokenizer: &Tokenizer) -> Result<Vec<Case>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let case = |&index: &usize| {
        case(lines[index], tokenizer)
            .map_err(|error| format!("{}, line {}: {error}", path.display(), index + 1).into())
    };
    chosen(lines.len(), choice).iter().map(case).collect()
}

fn chosen(all: usize, choice: &Choice) -> Vec<usize> {
    match *choice {
        Choice::First(schemas) => (0..schemas.min(all)).collect(),
        Choice::Spread { schemas, seed } => {
            let wanted = schemas.clamp(1, all);
            let stride = all / wanted;
            (0..wanted).map(|it| it * all / wanted + seed % stride).collect()
        }
    }
}

fn case(line: &str, tokenizer: &Tokenizer) -> Result<Case, Failure> {
    let mut entry: Value = serde_json::from_str(line)?;
    let tests = entry["tests"].as_array().map_or(&[][..], Vec::as_slice);
    let instances = tests
        .iter()
        .map(|test| instance(test, tokenizer))
        .collect::<Result<_, _>>()?;
    Ok(Case {
        name: entry["name"].as_str().unwrap_or("").to_owned(),
        text: entry["schema"].to_string(),
        instances,
        schema: entry["schema"].take(),
    })
}

fn instance(test: &Value, tokenizer: &Tokenizer) -> Result<Instance, Failure> {
    Ok(Instance {
        valid: test["valid"] == Value::Bool(true),
        tokens: tokenizer.encode(&dumps(&test["data"]))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_covers_the_file_and_stays_inside_it() {
        let spread = |schemas, seed| chosen(10, &Choice::Spread { schemas, seed });
        assert_eq!(spread(5, 0), [0, 2, 4, 6, 8]);
        assert_eq!(spread(5, 3), [1, 3, 5, 7, 9]);
        assert_eq!(spread(3, 2), [2, 5, 8]);
        assert_eq!(spread(99, 7), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(chosen(10, &Choice::First(3)), [0, 1, 2]);
    }
}
