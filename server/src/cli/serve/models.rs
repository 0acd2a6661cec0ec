//! The flags of the models that are served, and the registry that they describe.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lexiform_cli::failure::Failure;
use lexiform_engine::ModelFiles;

use super::table::{ModelSettings, ModelTable};
use crate::cli::model::Chosen;
use crate::grammars::store::Shelf;
use crate::model::limits::RequestLimits;
use crate::model::registry::{Bounds, Load, Offer, Registry, Weigh};
use crate::model::source::Wanted;
use crate::operate::callbacks::Callbacks;

/// The file that the folder of each adapter has.
const ADAPTER_CONFIG: &str = "adapter_config.json";

/// The models that are served, and when they are in memory.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ModelsArgs {
    /// A GGUF file, a Hugging Face folder, OWNER/NAME or OWNER/NAME:FILE from the Hugging Face cache,
    /// ollama:NAME or ollama:NAME:TAG, or demo, which is built in; may be given several times, and requests
    /// choose by name. Nothing is downloaded; `lexiform models` lists the available models. By default the
    /// model that `cargo xtask serve` has fetched, or else demo
    #[arg(help_heading = "Model", long, env = "LEXIFORM_MODEL", value_name = "MODEL")]
    model: Vec<PathBuf>,
    /// The tables [[models]] of the file that --config names, as JSON.
    #[arg(long, hide = true, value_name = "TABLE")]
    models: Vec<ModelTable>,
    /// A further name of a model in requests; may be given several times
    #[arg(
        help_heading = "Model",
        long,
        env = "LEXIFORM_ALIAS",
        value_name = "NAME=MODEL",
        value_delimiter = ',',
        value_parser = alias
    )]
    alias: Vec<Named>,
    /// A further model: the first one with the adapter of this folder merged into it (LoRA, as PEFT saves
    /// it); may be given several times. A whole copy of the model is in memory for each
    #[arg(
        help_heading = "Model",
        long,
        env = "LEXIFORM_ADAPTER",
        value_name = "NAME=FOLDER",
        value_delimiter = ',',
        value_parser = adapter
    )]
    adapter: Vec<Named>,
    /// When models are loaded
    #[arg(
        help_heading = "Model",
        long,
        env = "LEXIFORM_LOAD_MODELS",
        default_value = "start",
        value_name = "WHEN"
    )]
    load_models: When,
    /// Models that may be in memory at a time, by default all. A request for another one unloads the one that
    /// was not used for the longest time, once that is idle
    #[arg(
        help_heading = "Model",
        long,
        env = "LEXIFORM_MODELS_LOADED",
        value_name = "N"
    )]
    models_loaded: Option<NonZeroUsize>,
    /// Memory for the weights of the models that are loaded at a time, in MiB, by default any. A request for
    /// a model that finds no room unloads the ones that were not used for the longest time, once they are
    /// idle; a model that is larger by itself is refused at the start. Caches and grammars are not counted
    #[arg(
        help_heading = "Model",
        long,
        env = "LEXIFORM_MODELS_MEMORY",
        value_name = "MIB"
    )]
    models_memory: Option<NonZeroUsize>,
    /// Seconds after which an idle model is unloaded, by default never; the next request loads it again
    #[arg(
        help_heading = "Model",
        long,
        env = "LEXIFORM_IDLE_UNLOAD_SECONDS",
        value_name = "N"
    )]
    idle_unload_seconds: Option<u64>,
    #[command(flatten)]
    settings: ModelSettings,
}

/// When models are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum When {
    /// At the start, in their order, as many as may be in memory; others when they are first used.
    Start,
    /// When they are first used.
    Use,
}

/// A name and what it stands for: the name of a model, or the folder of an adapter.
#[derive(Clone, Debug)]
struct Named {
    name: String,
    of: String,
}

fn alias(text: &str) -> Result<Named, String> {
    named(text, "the name of a model")
}

fn adapter(text: &str) -> Result<Named, String> {
    named(text, "the folder of an adapter")
}

/// Parses `NAME=VALUE`; `what` says what the value is.
fn named(text: &str, what: &str) -> Result<Named, String> {
    match text.split_once('=') {
        Some((name, of)) if !name.is_empty() && !of.is_empty() => Ok(Named {
            name: name.to_owned(),
            of: of.to_owned(),
        }),
        _ => Err(format!("expected a name, '=' and {what}")),
    }
}

/// What a model has of its own, besides the settings of its table.
#[derive(Clone, Copy, Default)]
struct Own<'a> {
    /// Its name in requests.
    name: Option<&'a str>,
    /// Its adapter.
    adapter: Option<&'a Path>,
}

impl ModelsArgs {
    /// Creates the registry, and loads the models that are to be loaded at the start. `name` is the name of
    /// the model in requests, if there is one model.
    ///
    /// # Errors
    /// Fails if names do not fit together, a model does not exist, or one cannot be loaded.
    pub(super) fn open(
        &self,
        name: Option<&str>,
        callbacks: &Arc<Callbacks>,
        limits: RequestLimits,
        shelf: Arc<Shelf>,
    ) -> Result<Registry, Failure> {
        let mut offers = self.offers(name, callbacks)?;
        self.add_aliases(&mut offers)?;
        let bounds = Bounds {
            loaded: self.models_loaded.map_or(usize::MAX, NonZeroUsize::get),
            memory: self
                .models_memory
                .map(|mib| (mib.get() as u64).saturating_mul(1 << 20)),
            idle: self.idle_unload_seconds.map(Duration::from_secs),
        };
        let registry = Registry::new(offers, bounds, limits, shelf);
        let registry = registry.map_err(|error| Failure::message(error.to_string()))?;
        if self.load_models == When::Start {
            let loaded = registry.load_first();
            loaded.map_err(|error| Failure::message(error.to_string()))?;
        }
        Ok(registry)
    }

    /// Returns the models: those of --model, then those of the file, and the first with each --adapter.
    fn offers(&self, name: Option<&str>, callbacks: &Arc<Callbacks>) -> Result<Vec<Offer>, Failure> {
        let plain = |model: &PathBuf| ModelTable::plain(model.clone());
        let mut tables: Vec<ModelTable> = self.model.iter().map(plain).collect();
        tables.extend(self.models.iter().cloned());
        let words = tables.iter().map(Some);
        let words: Vec<_> = words.chain(tables.is_empty().then_some(None)).collect();
        if name.is_some() && words.len() > 1 {
            return Err(Failure::message(
                "--served-model-name names one model, and there are several; name each in the file that --config \
                 names: [[models]], name = \"…\"",
            ));
        }
        let is_one = words.len() == 1 && self.adapter.is_empty();
        let models = words.iter().map(|table| {
            let own = Own {
                name: table.and_then(|table| table.name.as_deref()).or(name),
                adapter: table.and_then(|table| table.adapter.as_deref()),
            };
            (*table, own)
        });
        let adapted = self.adapter.iter().map(|adapter| {
            let own = Own {
                name: Some(&adapter.name),
                adapter: Some(Path::new(&adapter.of)),
            };
            (words[0], own)
        });
        let offers = models.chain(adapted);
        offers
            .map(|(table, own)| self.offer(table, own, is_one, callbacks))
            .collect()
    }

    /// Returns the model of a table, or the usual one.
    fn offer(
        &self,
        table: Option<&ModelTable>,
        own: Own<'_>,
        is_one: bool,
        callbacks: &Arc<Callbacks>,
    ) -> Result<Offer, Failure> {
        let mut settings = self.settings.clone();
        if let Some(table) = table {
            table.apply(&mut settings).map_err(Failure::message)?;
        }
        let word = table.map(|table| table.model.clone());
        // Here, so that a model that does not exist is known at the start.
        let chosen = settings.run.choose(word.as_deref(), Wanted::ToAnswer);
        let chosen = chosen.map_err(|error| Failure::message(error.to_string()))?;
        let adapter = own.adapter.map(adapter_files).transpose()?;
        let name = own.name.unwrap_or(&chosen.located.name).to_owned();
        let folder = &mut settings.run.drafts.draft_folder;
        if !is_one && *folder == self.settings.run.drafts.draft_folder {
            // What one model has learned means nothing to another one.
            *folder = folder.as_ref().map(|all| all.join(file_name(&name)));
        }
        let (callbacks, served_name) = (callbacks.clone(), name.clone());
        let choice = Arc::new((settings, word));
        let weighed = choice.clone();
        let weigh: Weigh = Box::new(move || {
            let (settings, word) = &*weighed;
            let chosen = settings.run.choose(word.as_deref(), Wanted::ToAnswer)?;
            settings.run.weigh(&chosen.files, chosen.draft_files.as_ref())
        });
        let load: Load = Box::new(move |shelf| {
            let (settings, word) = &*choice;
            let chosen = Chosen {
                adapter: adapter.clone(),
                ..settings.run.choose(word.as_deref(), Wanted::ToAnswer)?
            };
            let loaded = settings.run.load(chosen)?;
            let name = Some(served_name.clone());
            let served = loaded.start_beside(shelf, &settings.run, name, &mut |_| {})?;
            let served = served.with_callbacks(callbacks.clone());
            Ok(served.with_tool_format(settings.tool_format))
        });
        // They are names of the model without another adapter.
        let aliases = table.filter(|table| own.adapter == table.adapter.as_deref());
        let aliases = aliases.map(|table| table.aliases.clone());
        Ok(Offer {
            name,
            aliases: aliases.unwrap_or_default(),
            load,
            weigh,
        })
    }

    fn add_aliases(&self, offers: &mut [Offer]) -> Result<(), Failure> {
        for alias in &self.alias {
            let names: Vec<&str> = offers.iter().map(|offer| offer.name.as_str()).collect();
            let Some(place) = names.iter().position(|name| *name == alias.of) else {
                let message = format!(
                    "--alias {}={}: there is no such model; there are {}",
                    alias.name,
                    alias.of,
                    names.join(", ")
                );
                return Err(Failure::message(message));
            };
            offers[place].aliases.push(alias.name.clone());
        }
        Ok(())
    }
}

/// Returns the files of an adapter, so that one that does not exist is known at the start.
fn adapter_files(folder: &Path) -> Result<ModelFiles, Failure> {
    let files = ModelFiles::folder(folder);
    match files.has(ADAPTER_CONFIG) {
        true => Ok(files),
        false => Err(Failure::message(format!(
            "{} is no adapter: it has no {ADAPTER_CONFIG}, which PEFT saves",
            folder.display()
        ))),
    }
}

/// Returns a file name for a model: its name, with what a file name may not have in hexadecimal digits.
fn file_name(model: &str) -> String {
    let is_plain =
        |(place, c): (usize, char)| c.is_alphanumeric() || "-_".contains(c) || (c == '.' && place > 0);
    let mut name = String::new();
    for (place, c) in model.char_indices() {
        match is_plain((place, c)) {
            true => name.push(c),
            false => name.push_str(&format!("%{:02X}", u32::from(c))),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_make_different_file_names() {
        let names = ["a/b", "a_b", "a%2Fb", "..", ".a", "Qwen3-0.6B:q8"].map(file_name);
        let expected = ["a%2Fb", "a_b", "a%252Fb", "%2E.", "%2Ea", "Qwen3-0.6B%3Aq8"];
        assert_eq!(names, expected);
    }

    #[test]
    fn an_alias_is_a_name_and_a_model() {
        let read = alias("gpt=a=b").expect("an alias");
        assert_eq!((read.name.as_str(), read.of.as_str()), ("gpt", "a=b"));
        for wrong in ["gpt", "=a", "gpt="] {
            assert!(alias(wrong).is_err(), "{wrong}");
        }
    }
}
