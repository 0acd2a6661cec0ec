//! The templates of `data/templates/`, each with what its first line says of it.

use std::fs;

use lexiform_chat::ChatTemplate;
use serde_json::Value;

/// A template in the manner of a family of models.
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) template: ChatTemplate,
    /// The texts of the added tokens.
    pub(crate) control: Vec<String>,
    /// Texts that the template looks for in contents.
    pub(crate) literals: Vec<String>,
    /// The special tokens that the template knows by name.
    pub(crate) constants: Vec<(String, String)>,
    /// `true` if the template takes a system message.
    pub(crate) takes_system: bool,
}

/// Returns all families, in the order of their names.
pub(crate) fn all() -> Vec<Family> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/templates");
    let files = fs::read_dir(folder).expect("the folder of templates");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let families: Vec<Family> = paths
        .iter()
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            read(name, fs::read_to_string(path).expect("a template"))
        })
        .collect();
    assert!(families.len() >= 30);
    families
}

fn read(name: String, source: String) -> Family {
    let head = source.strip_prefix("{#-").and_then(|rest| rest.split_once("-#}"));
    let head: Value = serde_json::from_str(head.expect("a comment").0).expect("JSON");
    let texts = |key: &str| -> Vec<String> {
        let texts = head[key].as_array().into_iter().flatten();
        texts.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let constants = [("bos_token", &head["bos"]), ("eos_token", &head["eos"])];
    let constants: Vec<(String, String)> = constants
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.as_str().unwrap_or_default().to_owned()))
        .collect();
    Family {
        template: ChatTemplate::new(&source, constants.clone()).expect("valid Jinja"),
        control: texts("control"),
        literals: texts("literals"),
        takes_system: head["system"] != Value::Bool(false),
        constants,
        name,
        source,
    }
}
