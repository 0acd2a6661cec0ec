//! The settings of a model, and a table of the configuration file that has those of one of several.
//!
//! ```toml
//! [[models]]
//! model = "Qwen3-0.6B-Q8_0.gguf"     # as --model
//! name = "small"                     # in requests; without it, the name of the file
//! aliases = ["gpt-4o-mini"]
//! adapter = "path/to/adapter"        # as --adapter
//! cache-memory = 512                 # and any flag of how a model runs
//! ```

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Arg, ArgAction, Args as _, Command, FromArgMatches as _};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cli::model::RunArgs;
use crate::grammars::tool_format::ToolFormatChoice;

/// How a served model runs.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ModelSettings {
    /// The format in which the model writes calls of tools: one of the formats of models that the
    /// documentation lists, any for all forms that the service knows, or auto for the format that the chat
    /// template shows, or else any
    #[arg(
        help_heading = "Model",
        long,
        env = "LEXIFORM_TOOL_FORMAT",
        default_value = "auto",
        value_name = "FORMAT"
    )]
    pub(super) tool_format: ToolFormatChoice,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

/// A model of several, with what it has of its own.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ModelTable {
    /// The value of --model.
    pub(super) model: PathBuf,
    /// Its name in requests.
    pub(super) name: Option<String>,
    /// Further names in requests.
    #[serde(default)]
    pub(super) aliases: Vec<String>,
    /// The folder of the adapter that is merged into it.
    pub(super) adapter: Option<PathBuf>,
    /// The values of flags.
    #[serde(flatten)]
    settings: Map<String, Value>,
}

impl FromStr for ModelTable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let table: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        table.command_line()?;
        Ok(table)
    }
}

impl ModelTable {
    /// Creates the table of a model without anything of its own.
    pub(super) fn plain(model: PathBuf) -> Self {
        Self {
            model,
            name: None,
            aliases: Vec::new(),
            adapter: None,
            settings: Map::new(),
        }
    }

    /// Replaces the settings that the table has.
    ///
    /// # Errors
    /// Fails if a value is not one of its flag.
    pub(super) fn apply(&self, settings: &mut ModelSettings) -> Result<(), String> {
        let command = Command::new("models").no_binary_name(true);
        let command = ModelSettings::augment_args_for_update(command).mut_args(only_given);
        let told = |error: clap::Error| {
            let model = self.model.display();
            format!(
                "[[models]], model '{model}': {}",
                error.to_string().trim_start_matches("error: ").trim_end()
            )
        };
        let mut matches = command.try_get_matches_from(self.command_line()?).map_err(told)?;
        settings.update_from_arg_matches_mut(&mut matches).map_err(told)
    }

    /// Returns the values as flags.
    fn command_line(&self) -> Result<Vec<String>, String> {
        let known = ModelSettings::augment_args(Command::new("models"));
        let mut flags = Vec::new();
        for (key, value) in &self.settings {
            let id = key.replace('-', "_");
            if !known.get_arguments().any(|arg| arg.get_id() == id.as_str()) {
                return Err(format!(
                    "there is no setting '{key}' of a model; there are model, name, aliases, adapter, and the flags of the \
                     model, its batches and memory, and its drafts"
                ));
            }
            let values = match value {
                Value::Array(values) => values.as_slice(),
                value => std::slice::from_ref(value),
            };
            let flag = key.replace('_', "-");
            flags.extend(values.iter().map(|value| match value {
                Value::String(text) => format!("--{flag}={text}"),
                value => format!("--{flag}={value}"),
            }));
        }
        Ok(flags)
    }
}

/// Changes a flag so that it has a value only if one is given, and a switch so that it can be turned off.
fn only_given(arg: Arg) -> Arg {
    let arg = arg.env(None).default_value(None);
    match arg.get_action() {
        ArgAction::SetTrue => arg
            .action(ArgAction::Set)
            .num_args(1)
            .value_parser(clap::value_parser!(bool)),
        _ => arg,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        settings: ModelSettings,
    }

    fn settings(flags: &[&str], table: &str) -> Result<ModelSettings, String> {
        let flags = Flags::try_parse_from([&["lexiform"], flags].concat()).expect("flags");
        let mut settings = flags.settings;
        table.parse::<ModelTable>()?.apply(&mut settings)?;
        Ok(settings)
    }

    #[test]
    fn a_model_has_the_flags_of_all_but_for_its_own_table() {
        let flags = ["--max-batch", "5", "--batch-invariant", "--cache-memory", "9"];
        let table = r#"{"model": "a", "cache-memory": 7, "batch_invariant": false, "share-prompts": true}"#;
        let run = settings(&flags, table).expect("a table").run;
        assert_eq!((run.max_batch, run.cache_memory, run.queue), (5, Some(7), 256));
        assert!(!run.batch_invariant && run.share_prompts && !run.no_kernels);
        let run = settings(&flags, r#"{"model": "a"}"#).expect("a table").run;
        assert!(run.batch_invariant && run.cache_memory == Some(9));
    }

    #[test]
    fn what_is_wrong_in_a_table_is_named() {
        for (table, word) in [
            (r#"{"name": "a"}"#, "model"),
            (r#"{"model": "a", "max-btach": 1}"#, "max-btach"),
            (r#"{"model": "a", "port": 1}"#, "port"),
            (r#"{"model": "a", "max-batch": "many"}"#, "max-batch"),
            (r#"{"model": "a", "aliases": "b"}"#, "sequence"),
            (r#"{"model": "a", "tool-format": "none"}"#, "tool-format"),
        ] {
            let error = settings(&[], table).expect_err(table);
            assert!(error.contains(word), "{error}");
        }
    }
}
