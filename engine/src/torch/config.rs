//! What a model's config.json says, checked.
//!
//! The reader takes what `transformers` 4 and 5 write. A value that would change the computation and is not understood
//! is an error: a model that runs with a wrong idea of itself writes plausible nonsense.

use super::files::ModelFiles;
use super::rope::{Rope, Scaling, Yarn, yarn_attention};
use crate::error::LoadError;
use serde_json::Value;

const FILE: &str = "config.json";
const FAMILIES: &str = "llama, mistral, qwen2, qwen3";
const ROPES: &str = "default, linear, dynamic, llama3, yarn";
/// No dimension of a real model is larger; keeps products within 64 bits.
const MAX_DIMENSION: u64 = 1 << 24;

/// Everything that the decoder needs to know.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) hidden: i64,
    pub(crate) ffn: i64,
    pub(crate) layers: usize,
    pub(crate) heads: i64,
    pub(crate) kv_heads: i64,
    pub(crate) head_dim: i64,
    pub(crate) vocab: i64,
    pub(crate) max_positions: usize,
    pub(crate) eps: f64,
    pub(crate) rope: Rope,
    pub(crate) tied: bool,
    pub(crate) qkv_bias: bool,
    pub(crate) o_bias: bool,
    pub(crate) mlp_bias: bool,
    pub(crate) qk_norm: bool,
    /// How far back attention looks in layers that do not look back all the way.
    pub(crate) window: Option<i64>,
    /// Which layers use the window.
    pub(crate) windowed: Vec<bool>,
    pub(crate) eos: Vec<u32>,
    pub(crate) family: String,
}

impl Config {
    pub(crate) fn read(files: &ModelFiles) -> Result<Self, LoadError> {
        let text = files.text(FILE)?;
        let root: Value = serde_json::from_str(&text)
            .map_err(|error| files.malformed(FILE, format!("not JSON: {error}")))?;
        if !root.is_object() {
            return Err(files.malformed(FILE, "expected a JSON object"));
        }
        Reader { files, root: &root }.config()
    }
}

/// Reads fields and names them when they are wrong.
struct Reader<'a> {
    files: &'a ModelFiles,
    root: &'a Value,
}

impl Reader<'_> {
    fn config(&self) -> Result<Config, LoadError> {
        let family = self.family()?;
        let (hidden, heads) = (self.size("hidden_size")?, self.size("num_attention_heads")?);
        let kv_heads = self.size_or("num_key_value_heads", heads)?;
        let head_dim = self.size_or("head_dim", hidden / heads)?;
        if heads % kv_heads != 0 {
            return Err(self.wrong("num_key_value_heads", "a divisor of num_attention_heads"));
        }
        if head_dim % 2 != 0 {
            return Err(self.wrong("head_dim", "an even number"));
        }
        if let Some(act) = self
            .root
            .get("hidden_act")
            .filter(|act| act.as_str() != Some("silu"))
        {
            return Err(self.unsupported("hidden_act", act, "silu"));
        }
        let layers = self.size("num_hidden_layers")? as usize;
        let max_positions = self.size("max_position_embeddings")? as usize;
        let attention_bias = self.flag("attention_bias", false)?;
        let (window, windowed) = self.windows(&family, layers)?;
        Ok(Config {
            hidden,
            ffn: self.size("intermediate_size")?,
            layers,
            heads,
            kv_heads,
            head_dim,
            vocab: self.size("vocab_size")?,
            max_positions,
            eps: self.number(self.root, "rms_norm_eps")?.unwrap_or(1e-6),
            rope: self.rope(max_positions as f64)?,
            tied: self.flag("tie_word_embeddings", false)?,
            qkv_bias: attention_bias || family == "qwen2",
            o_bias: attention_bias && family != "qwen2",
            mlp_bias: self.flag("mlp_bias", false)?,
            qk_norm: family == "qwen3",
            window,
            windowed,
            eos: self.eos()?,
            family,
        })
    }

    fn family(&self) -> Result<String, LoadError> {
        let found = self.root.get("model_type").unwrap_or(&Value::Null);
        match found.as_str() {
            Some(family @ ("llama" | "mistral" | "qwen2" | "qwen3")) => Ok(family.to_string()),
            _ => Err(self.unsupported("model_type", found, FAMILIES)),
        }
    }

    fn eos(&self) -> Result<Vec<u32>, LoadError> {
        let token = |value: &Value| value.as_u64().and_then(|token| u32::try_from(token).ok());
        let tokens = match self.root.get("eos_token_id") {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(Value::Array(values)) => values.iter().map(token).collect(),
            Some(value) => token(value).map(|token| vec![token]),
        };
        tokens.ok_or_else(|| self.wrong("eos_token_id", "a token or a list of tokens"))
    }

    /// The window and the layers that use it.
    fn windows(&self, family: &str, layers: usize) -> Result<(Option<i64>, Vec<bool>), LoadError> {
        let none = (None, vec![false; layers]);
        let used = match family {
            "llama" => false,
            "mistral" => true,
            _ => self.flag("use_sliding_window", false)?,
        };
        if !used || self.root.get("sliding_window").is_none_or(Value::is_null) {
            return Ok(none);
        }
        let window = self.size("sliding_window")?;
        let windowed = match self.root.get("layer_types") {
            Some(Value::Array(kinds)) => self.windowed_layers(kinds, layers)?,
            _ if family == "mistral" => vec![true; layers],
            _ => {
                let first = self.size_or("max_window_layers", 0)? as usize;
                (0..layers).map(|layer| layer >= first).collect()
            }
        };
        Ok((Some(window), windowed))
    }

    fn windowed_layers(&self, kinds: &[Value], layers: usize) -> Result<Vec<bool>, LoadError> {
        let windowed = kinds.iter().map(|kind| match kind.as_str() {
            Some("sliding_attention") => Ok(true),
            Some("full_attention") => Ok(false),
            _ => Err(self.unsupported("layer_types", kind, "full_attention, sliding_attention")),
        });
        let windowed: Vec<bool> = windowed.collect::<Result<_, _>>()?;
        match windowed.len() == layers {
            true => Ok(windowed),
            false => Err(self.wrong("layer_types", "one entry for each hidden layer")),
        }
    }

    /// `rope_parameters` of transformers 5, or `rope_theta` and `rope_scaling` of 4.
    fn rope(&self, max_positions: f64) -> Result<Rope, LoadError> {
        let none = Value::Object(serde_json::Map::new());
        let given = |name: &str| self.root.get(name).filter(|value| !value.is_null());
        let scaling = given("rope_parameters")
            .or_else(|| given("rope_scaling"))
            .unwrap_or(&none);
        if !scaling.is_object() {
            return Err(self.wrong("rope_scaling", "an object"));
        }
        let theta = match self.number(scaling, "rope_theta")? {
            Some(theta) => theta,
            None => self.number(self.root, "rope_theta")?.unwrap_or(10_000.0),
        };
        if theta <= 1.0 {
            return Err(self.wrong("rope_theta", "a number above 1"));
        }
        if self
            .number(scaling, "partial_rotary_factor")?
            .is_some_and(|part| part != 1.0)
        {
            return Err(self.wrong("partial_rotary_factor", "1, or absent"));
        }
        Ok(Rope {
            theta,
            scaling: self.scaling(scaling, max_positions)?,
        })
    }

    fn scaling(&self, from: &Value, max_positions: f64) -> Result<Scaling, LoadError> {
        let kind = from.get("rope_type").or_else(|| from.get("type"));
        let factor = || self.positive(from, "factor");
        let original = match self.number(from, "original_max_position_embeddings")? {
            Some(original) => original,
            None => max_positions,
        };
        match kind.map(|kind| kind.as_str().unwrap_or_default()) {
            None | Some("default" | "dynamic") => Ok(Scaling::None),
            Some("linear") => Ok(Scaling::Linear { factor: factor()? }),
            Some("llama3") => Ok(Scaling::Llama3 {
                factor: factor()?,
                low: self.positive(from, "low_freq_factor")?,
                high: self.positive(from, "high_freq_factor")?,
                original: self.positive(from, "original_max_position_embeddings")?,
            }),
            Some("yarn") => self.yarn(from, original, max_positions).map(Scaling::Yarn),
            Some(_) => Err(self.unsupported("rope_type", kind.unwrap_or(&Value::Null), ROPES)),
        }
    }

    fn yarn(&self, from: &Value, original: f64, max_positions: f64) -> Result<Yarn, LoadError> {
        let factor = match self.number(from, "factor")? {
            Some(_) => self.positive(from, "factor")?,
            None => max_positions / original,
        };
        let mscale = |name| Ok(self.number(from, name)?.filter(|&scale| scale != 0.0));
        let attention = match (
            self.number(from, "attention_factor")?,
            mscale("mscale")?,
            mscale("mscale_all_dim")?,
        ) {
            (Some(attention), _, _) => attention,
            (None, Some(scale), Some(all)) => yarn_attention(factor, scale) / yarn_attention(factor, all),
            (None, _, _) => yarn_attention(factor, 1.0),
        };
        Ok(Yarn {
            factor,
            original,
            beta_fast: self.number(from, "beta_fast")?.unwrap_or(32.0),
            beta_slow: self.number(from, "beta_slow")?.unwrap_or(1.0),
            attention,
            truncate: from.get("truncate").and_then(Value::as_bool).unwrap_or(true),
        })
    }

    fn size(&self, name: &'static str) -> Result<i64, LoadError> {
        let size = self.root.get(name).and_then(Value::as_u64);
        let size = size.filter(|size| (1..=MAX_DIMENSION).contains(size));
        size.map(|size| size as i64)
            .ok_or_else(|| self.wrong(name, "an integer from 1 to 16777216"))
    }

    fn size_or(&self, name: &'static str, default: i64) -> Result<i64, LoadError> {
        match self.root.get(name) {
            None | Some(Value::Null) => Ok(default),
            Some(_) => self.size(name),
        }
    }

    fn flag(&self, name: &'static str, default: bool) -> Result<bool, LoadError> {
        match self.root.get(name) {
            None | Some(Value::Null) => Ok(default),
            Some(value) => value.as_bool().ok_or_else(|| self.wrong(name, "true or false")),
        }
    }

    fn number(&self, object: &Value, name: &'static str) -> Result<Option<f64>, LoadError> {
        match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64().filter(|number| number.is_finite()) {
                Some(number) => Ok(Some(number)),
                None => Err(self.wrong(name, "a number")),
            },
        }
    }

    fn positive(&self, object: &Value, name: &'static str) -> Result<f64, LoadError> {
        let number = self.number(object, name)?.filter(|&number| number > 0.0);
        number.ok_or_else(|| self.wrong(name, "a positive number"))
    }

    fn wrong(&self, name: &str, expected: &str) -> LoadError {
        let rope = ["rope_parameters", "rope_scaling"]
            .iter()
            .find_map(|place| self.root.get(place)?.get(name));
        let found = self
            .root
            .get(name)
            .or(rope)
            .map_or("is missing".to_string(), |value| format!("is {value}"));
        self.files
            .malformed(FILE, format!("{name} {found}; expected {expected}"))
    }

    fn unsupported(&self, what: &'static str, found: &Value, supported: &'static str) -> LoadError {
        let found = found
            .as_str()
            .map_or_else(|| found.to_string(), ToString::to_string);
        LoadError::Unsupported {
            file: self.files.path(FILE),
            what,
            found,
            supported,
        }
    }
}
