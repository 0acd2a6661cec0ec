//! An adapter of low rank (LoRA) in the form of Hugging Face's PEFT: `adapter_config.json` and
//! `adapter_model.safetensors`.
//!
//! For some matrices W of a model it has two thin ones. They are merged when the model is loaded:
//!
//! ```text
//!   W + s·B·A      A: [rank, in], B: [out, rank], s = alpha / rank, or alpha / √rank with use_rslora
//! ```
//!
//! The sum is computed in 64 bits and rounded once, to 32 bits. What is not understood is refused: an adapter
//! that is applied in part is another model.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};
use tch::{Kind, TchError, Tensor};

use super::files::ModelFiles;
use super::safetensors::Safetensors;
use crate::error::{LoadError, in_one_line};

/// The file of the settings.
const CONFIG: &str = "adapter_config.json";
/// The file of the matrices.
const WEIGHTS: &str = "adapter_model.safetensors";
/// The beginning of the names of all tensors, before the name that the module has in the model.
const PREFIX: &str = "base_model.model.";
const A: &str = ".lora_A.weight";
const B: &str = ".lora_B.weight";
/// The matrix that takes the place of the model's, which PEFT stores with adapters of embeddings.
const BASE: &str = ".base_layer.weight";

/// Settings without any effect on what the adapter computes, or whose effect the tensors show.
const WITHOUT_EFFECT: [&str; 16] = [
    "auto_mapping",
    "base_model_name_or_path",
    "eva_config",
    "exclude_modules",
    "inference_mode",
    "layers_pattern",
    "layers_to_transform",
    "lora_dropout",
    "megatron_core",
    "peft_version",
    "revision",
    "runtime_config",
    "target_modules",
    "task_type",
    "ensure_weight_tying",
    "qalora_group_size",
];

/// Settings that are read.
const READ: [&str; 5] = ["peft_type", "r", "lora_alpha", "use_rslora", "init_lora_weights"];

/// The ways to begin a training that leave the matrices of the model as they were.
const BEGINNINGS: [&str; 3] = ["gaussian", "eva", "orthogonal"];

/// An adapter, whose matrices are read when they are merged.
pub(crate) struct Adapter<'a> {
    files: &'a ModelFiles,
    stored: Safetensors<'a>,
    rank: i64,
    scale: f64,
    /// The modules that have not been merged yet.
    left: RefCell<BTreeSet<String>>,
}

impl<'a> Adapter<'a> {
    pub(crate) fn open(files: &'a ModelFiles) -> Result<Self, LoadError> {
        let settings: Value = serde_json::from_str(&files.text(CONFIG)?)
            .map_err(|error| files.malformed(CONFIG, format!("not JSON: {error}")))?;
        let settings = settings.as_object();
        let settings = settings.ok_or_else(|| files.malformed(CONFIG, "expected an object"))?;
        let (rank, scale) = read(files, settings)?;
        let stored = Safetensors::of(files, WEIGHTS, BTreeSet::from([WEIGHTS.to_owned()]))?;
        let left = modules(files, &stored)?;
        Ok(Self {
            files,
            stored,
            rank,
            scale,
            left: RefCell::new(left),
        })
    }

    /// Returns `true` if the adapter changes the tensor with this name.
    pub(crate) fn changes(&self, name: &str) -> bool {
        let module = name.strip_suffix(".weight");
        module.is_some_and(|module| self.stored.entries.contains_key(&format!("{PREFIX}{module}{A}")))
    }

    /// Returns a tensor of the model with what the adapter adds to it.
    pub(crate) fn merge(&self, name: &str, tensor: Tensor) -> Result<Tensor, LoadError> {
        let module = name.strip_suffix(".weight").unwrap_or(name);
        let &[outputs, inputs] = tensor.size().as_slice() else {
            let message = format!("{module} is no matrix in the model");
            return Err(self.files.malformed(WEIGHTS, message));
        };
        let read = |end: &str, shape: [i64; 2]| self.stored.tensor(&format!("{PREFIX}{module}{end}"), &shape);
        let (a, b) = (read(A, [self.rank, inputs])?, read(B, [outputs, self.rank])?);
        let base = format!("{PREFIX}{module}{BASE}");
        let tensor = match self.stored.entries.contains_key(&base) {
            true => read(BASE, [outputs, inputs])?,
            false => tensor,
        };
        let merged = merged(&tensor, &a, &b, self.scale).map_err(|error| {
            let message = format!("{module}: {}", in_one_line(&error));
            self.files.malformed(WEIGHTS, message)
        })?;
        self.left.borrow_mut().remove(module);
        Ok(merged)
    }

    /// Returns the error for a model whose matrices are not laid out as those of the adapter.
    pub(crate) fn unfit(&self, found: &str) -> LoadError {
        LoadError::Unsupported {
            file: self.files.path(CONFIG),
            what: "the model of an adapter",
            found: found.to_owned(),
            supported: "safetensors, with matrices as [outputs, inputs]",
        }
    }

    /// Checks that all of the adapter was merged.
    ///
    /// # Errors
    /// A module of the adapter is none that the model multiplies with.
    pub(crate) fn check_merged(&self) -> Result<(), LoadError> {
        match self.left.borrow().first() {
            None => Ok(()),
            Some(module) => Err(self.files.malformed(
                WEIGHTS,
                format!("the adapter changes {module}, which is no matrix that this model is loaded with"),
            )),
        }
    }
}

/// Returns W + s·B·A in 32 bits.
fn merged(w: &Tensor, a: &Tensor, b: &Tensor, scale: f64) -> Result<Tensor, TchError> {
    let wide = |tensor: &Tensor| tensor.f_to_kind(Kind::Double);
    let change = wide(b)?.f_matmul(&wide(a)?)?.f_mul_scalar(scale)?;
    wide(w)?.f_add(&change)?.f_to_kind(Kind::Float)
}

/// Returns the rank and the scale.
fn read(files: &ModelFiles, settings: &Map<String, Value>) -> Result<(i64, f64), LoadError> {
    let unsupported = |what: &'static str, found: &Value, supported: &'static str| LoadError::Unsupported {
        file: files.path(CONFIG),
        what,
        found: found.to_string(),
        supported,
    };
    let kind = settings.get("peft_type").unwrap_or(&Value::Null);
    if kind != "LORA" {
        return Err(unsupported("peft_type", kind, "LORA"));
    }
    let beginning = settings.get("init_lora_weights").unwrap_or(&Value::Null);
    let is_plain = match beginning {
        Value::String(word) => BEGINNINGS.contains(&word.as_str()),
        Value::Null | Value::Bool(_) => true,
        _ => false,
    };
    if !is_plain {
        let supported = "true, false, gaussian, eva, orthogonal; others change the model itself, and have to be converted";
        return Err(unsupported("init_lora_weights", beginning, supported));
    }
    for (name, value) in settings {
        if WITHOUT_EFFECT.contains(&name.as_str()) || READ.contains(&name.as_str()) || is_neutral(value) {
            continue;
        }
        let message = format!("{name} is {value}, which is not supported; a plain adapter does not have it");
        return Err(files.malformed(CONFIG, message));
    }
    let rank = settings.get("r").and_then(Value::as_i64).filter(|rank| *rank > 0);
    let rank = rank.ok_or_else(|| files.malformed(CONFIG, "expected a rank \"r\" above 0"))?;
    let alpha = settings
        .get("lora_alpha")
        .and_then(Value::as_f64)
        .filter(|alpha| alpha.is_finite());
    let alpha = alpha.ok_or_else(|| files.malformed(CONFIG, "expected a number \"lora_alpha\""))?;
    let by = match settings.get("use_rslora") {
        Some(Value::Bool(true)) => (rank as f64).sqrt(),
        _ => rank as f64,
    };
    Ok((rank, alpha / by))
}

/// Returns `true` for a value by which a setting is as if it were absent.
fn is_neutral(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(word) => word == "none",
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// Returns the modules that the adapter changes, by the names that they have in the model.
fn modules(files: &ModelFiles, stored: &Safetensors<'_>) -> Result<BTreeSet<String>, LoadError> {
    let mut modules = BTreeSet::new();
    for name in stored.entries.keys() {
        let inner = name.strip_prefix(PREFIX);
        let module = inner.and_then(|inner| [A, B, BASE].iter().find_map(|end| inner.strip_suffix(end)));
        let Some(module) = module else {
            let message = format!(
                "tensor {name:?} is not supported; expected {PREFIX:?}, the name of a module, and {A:?} or {B:?}"
            );
            return Err(files.malformed(WEIGHTS, message));
        };
        modules.insert(module.to_owned());
    }
    for (module, end) in modules.iter().flat_map(|module| [(module, A), (module, B)]) {
        if !stored.entries.contains_key(&format!("{PREFIX}{module}{end}")) {
            return Err(files.malformed(WEIGHTS, format!("module {module} has no tensor {end:?}")));
        }
    }
    if modules.is_empty() {
        return Err(files.malformed(WEIGHTS, "the adapter has no tensors"));
    }
    Ok(modules)
}
