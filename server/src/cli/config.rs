//! Values of flags from a file: they replace the defaults, so flags and environment variables take
//! precedence.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};
use figment::Figment;
use figment::providers::{Format as _, Toml};
use figment::value::{Dict, Value};

use lexiform_cli::failure::{Failure, read_text};

/// Returns the command line with the values for one subcommand from the file that `--config` or
/// `LEXIFORM_CONFIG` names.
///
/// # Errors
/// Fails if the file cannot be read, or names a flag that the subcommand does not have.
pub fn with_file(command: Command, subcommand: &str, args: &[String]) -> Result<Command, Failure> {
    if args.get(1).map(String::as_str) != Some(subcommand) {
        return Ok(command);
    }
    let Some(path) = path(args) else {
        return Ok(command);
    };
    let named = |message: String| Failure::message(format!("{}: {message}", path.display()));
    let text = read_text(&path)?;
    let values: Dict = Figment::from(Toml::string(&text))
        .extract()
        .map_err(|error| named(format!("not TOML: {}", error.kind)))?;
    let mut problems = Vec::new();
    let command = command.mut_subcommand(subcommand, |mut sub| {
        for (key, value) in values {
            match set(sub.clone(), &key, value) {
                Ok(changed) => sub = changed,
                Err(problem) => problems.push(problem),
            }
        }
        sub
    });
    if problems.is_empty() {
        Ok(command)
    } else {
        Err(named(problems.join("; ")))
    }
}

fn path(args: &[String]) -> Option<PathBuf> {
    let flag = args
        .iter()
        .enumerate()
        .find_map(|(place, arg)| match arg.as_str() {
            "--config" => args.get(place + 1).map(PathBuf::from),
            arg => arg.strip_prefix("--config=").map(PathBuf::from),
        });
    flag.or_else(|| std::env::var_os("LEXIFORM_CONFIG").map(PathBuf::from))
}

fn set(command: Command, key: &str, value: Value) -> Result<Command, String> {
    let id = key.replace('-', "_");
    let known = |arg: &Arg| arg.get_id() == id.as_str() && id != "config";
    let Some(arg) = command.get_arguments().find(|arg| known(arg)) else {
        return Err(format!("there is no flag '{key}'"));
    };
    let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
    let texts =
        texts(&value).ok_or_else(|| format!("'{key}' is neither a text, a number, a switch nor a list"))?;
    if is_switch && !matches!(texts.as_slice(), [one] if one == "true" || one == "false") {
        return Err(format!("'{key}' is a switch: true or false"));
    }
    Ok(command.mut_arg(id, |arg| arg.default_values(texts)))
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(_, text) => Some(vec![text.clone()]),
        Value::Bool(_, flag) => Some(vec![flag.to_string()]),
        Value::Num(_, number) => number
            .to_i128()
            .map(|number| vec![number.to_string()])
            .or_else(|| Some(vec![number.to_f64()?.to_string()])),
        Value::Array(_, items) => {
            let texts: Option<Vec<Vec<String>>> = items.iter().map(texts).collect();
            Some(texts?.into_iter().flatten().collect())
        }
        // A flag that takes tables reads each from JSON.
        Value::Dict(..) => serde_json::to_string(value).ok().map(|table| vec![table]),
        Value::Empty(..) | Value::Char(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexiform_cli::program;

    fn parse(file: &str, more: &[&str]) -> Result<clap::ArgMatches, String> {
        let name = format!("lexiform-config-{}-{}.toml", std::process::id(), file.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, file).expect("a file");
        let mut args = vec![
            "lexiform".to_owned(),
            "serve".to_owned(),
            format!("--config={}", path.display()),
        ];
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        let command = with_file(program::definition::<crate::cli::Command>(), "serve", &args)
            .map_err(|error| error.to_string());
        let matches = command.and_then(|command| {
            command
                .try_get_matches_from(&args)
                .map_err(|error| error.to_string())
        });
        std::fs::remove_file(&path).expect("the file");
        matches
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let file =
            "port = 1234\nmax-batch = 5\nno-pages = true\ncors_origin = [\"https://a\", \"https://b\"]";
        let matches = parse(file, &["--port", "99"]).expect("a valid file");
        let serve = matches.subcommand_matches("serve").expect("serve");
        assert_eq!(serve.get_one::<u16>("port"), Some(&99));
        assert_eq!(serve.get_one::<usize>("max_batch"), Some(&5));
        assert!(serve.get_flag("no_pages"));
        assert_eq!(
            serve.get_many::<String>("cors_origin").map(Iterator::count),
            Some(2)
        );
    }

    #[test]
    fn what_is_wrong_in_the_file_is_named() {
        for (file, word) in [
            ("prot = 1", "prot"),
            ("port = \"many\"", "port"),
            ("port = [", "toml"),
            ("no-pages = 3", "no-pages"),
        ] {
            let error = parse(file, &[]).expect_err(file).to_lowercase();
            assert!(error.contains(word), "{error}");
        }
    }
}
