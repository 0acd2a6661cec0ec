//! Reads the fields of config.json, and reports those that are wrong.

use super::description::{Attention, Config, FILE};
use super::family::{FAMILIES, Family, Flag, NAMES};
use super::kinds::Activation;
use crate::error::LoadError;
use crate::torch::checkpoint::files::ModelFiles;
use serde_json::Value;

const ACTIVATIONS: &str = "silu, swish, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu";
/// The largest dimension. No real model has a larger one, and products stay within 64 bits.
const MAX_DIMENSION: u64 = 1 << 24;
/// The most layers. Each layer is described separately, which takes memory before there is any weight.
const MAX_LAYERS: i64 = 1 << 16;

/// The kinds of layers that may rotate in different ways.
pub(super) const LAYER_TYPES: [&str; 2] = ["full_attention", "sliding_attention"];

/// A reader of a config.json.
pub(super) struct Reader<'a> {
    pub(super) files: &'a ModelFiles,
    /// The object that describes the decoder.
    pub(super) root: &'a Value,
    /// The whole of config.json.
    pub(super) top: &'a Value,
    pub(super) nested: Option<&'static str>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(files: &'a ModelFiles, top: &'a Value) -> Self {
        Reader {
            files,
            root: top,
            top,
            nested: None,
        }
    }

    pub(super) fn config(&self) -> Result<Config, LoadError> {
        let family = self.family()?;
        let Some(nested) = family.nested else {
            return self.decoder(family);
        };
        match self.top.get(nested).filter(|root| root.is_object()) {
            Some(root) => Reader {
                root,
                nested: Some(nested),
                ..*self
            }
            .decoder(family),
            None => Err(self.wrong(nested, "an object")),
        }
    }

    fn decoder(&self, family: &'static Family) -> Result<Config, LoadError> {
        let (fields, defaults) = (&family.fields, &family.defaults);
        for &(name, usual) in family.fixed {
            if self.flag(name, usual)? != usual {
                return Err(self.wrong(name, &format!("{usual}, or absent")));
            }
        }
        let hidden = self.size(fields.hidden)?;
        let attention = self.attention(family, hidden)?;
        let layers = self.size(fields.layers)?;
        if layers > MAX_LAYERS {
            return Err(self.wrong(fields.layers, "an integer from 1 to 65536"));
        }
        let activation = self.activation(family)?;
        let (ropes, max_positions) = self.ropes(family, attention.head_dim)?;
        let (window, layers) = self.layers(family, hidden, layers as usize)?;
        Ok(Config {
            vocab: self.size_or_usual("vocab_size", defaults.sizes.map(|sizes| sizes.vocab))?,
            hidden,
            max_positions,
            embedding_scale: family.scaled_embedding.then(|| (hidden as f64).sqrt()),
            eps: self.number(self.root, fields.eps)?.unwrap_or(defaults.eps),
            attention,
            window,
            ropes,
            activation,
            mlp_bias: self.is(family.mlp_bias)?,
            layers,
            logit_cap: self.cap("final_logit_softcapping", defaults.caps.and_then(|[_, cap]| cap))?,
            tied: self.flag("tie_word_embeddings", defaults.tied)?,
            eos: self.eos()?,
            family,
        })
    }

    fn family(&self) -> Result<&'static Family, LoadError> {
        let found = self.root.get("model_type").unwrap_or(&Value::Null);
        let named = |family: &&Family| found.as_str() == Some(family.name);
        let family = FAMILIES.iter().find(named);
        family.ok_or_else(|| self.unsupported("model_type", found, NAMES))
    }

    fn attention(&self, family: &Family, hidden: i64) -> Result<Attention, LoadError> {
        let (fields, defaults) = (&family.fields, &family.defaults);
        let heads = self.size_or_usual(fields.heads, defaults.sizes.map(|sizes| sizes.heads))?;
        let kv_heads = defaults.sizes.map_or(heads, |sizes| sizes.kv_heads);
        let kv_heads = self.size_or("num_key_value_heads", kv_heads)?;
        let head_dim = self.size_or("head_dim", defaults.head_dim.unwrap_or(hidden / heads))?;
        if heads % kv_heads != 0 {
            return Err(self.wrong("num_key_value_heads", "a divisor of num_attention_heads"));
        }
        if head_dim == 0 || head_dim % 2 != 0 {
            return Err(self.wrong(
                "head_dim",
                "an even number, or absent for a share of the hidden size",
            ));
        }
        Ok(Attention {
            heads,
            kv_heads,
            head_dim,
            qkv_bias: self.is(family.qkv_bias)?,
            out_bias: self.is(family.out_bias)?,
            scale: self.scale(defaults.query_scalar)?,
            cap: self.attention_cap(family)?,
        })
    }

    /// Returns the scale of attention, in families that give it by a number whose inverse root it is; `usual`
    /// is the default number.
    fn scale(&self, usual: Option<f64>) -> Result<Option<f64>, LoadError> {
        const FIELD: &str = "query_pre_attn_scalar";
        let Some(usual) = usual else {
            return Ok(None);
        };
        let scalar = match self.root.get(FIELD) {
            None | Some(Value::Null) => usual,
            Some(_) => self.positive(self.root, FIELD)?,
        };
        Ok(Some(1.0 / scalar.sqrt()))
    }

    fn attention_cap(&self, family: &Family) -> Result<Option<f64>, LoadError> {
        const FIELD: &str = "attn_logit_softcapping";
        match family.defaults.caps {
            Some([usual @ Some(_), _]) => self.cap(FIELD, usual),
            // `transformers` reads this and does not apply it: it is unclear what such a model should
            // compute.
            Some([None, _]) if self.root.get(FIELD).is_some_and(|value| !value.is_null()) => {
                Err(self.wrong(FIELD, "null, or absent"))
            }
            _ => Ok(None),
        }
    }

    /// Returns a cap, which null switches off and which is `usual` if the field is missing.
    fn cap(&self, name: &'static str, usual: Option<f64>) -> Result<Option<f64>, LoadError> {
        match self.root.get(name) {
            None => Ok(usual),
            Some(Value::Null) => Ok(None),
            Some(_) => self.positive(self.root, name).map(Some),
        }
    }

    fn activation(&self, family: &Family) -> Result<Activation, LoadError> {
        let field = family.fields.activation;
        // Gemma's first configurations have the wrong activation in `hidden_act` and none in
        // `hidden_activation`.
        let found = self.root.get(field).filter(|found| !found.is_null());
        match found.map_or(Some(family.defaults.activation), Value::as_str) {
            Some("silu" | "swish") => Ok(Activation::Silu),
            Some("gelu") => Ok(Activation::Gelu),
            Some("gelu_new" | "gelu_fast" | "gelu_pytorch_tanh") => Ok(Activation::GeluTanh),
            Some("relu") => Ok(Activation::Relu),
            _ => Err(self.unsupported(field, found.unwrap_or(&Value::Null), ACTIVATIONS)),
        }
    }

    fn eos(&self) -> Result<Vec<u32>, LoadError> {
        let token = |value: &Value| value.as_u64().and_then(|token| u32::try_from(token).ok());
        let top = self.top.get("eos_token_id");
        let named = top.or_else(|| self.root.get("eos_token_id"));
        let tokens = match named {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(Value::Array(values)) => values.iter().map(token).collect(),
            Some(value) => token(value).map(|token| vec![token]),
        };
        tokens.ok_or_else(|| self.wrong("eos_token_id", "a token or a list of tokens"))
    }

    pub(super) fn size(&self, name: &'static str) -> Result<i64, LoadError> {
        let size = self.root.get(name).and_then(Value::as_u64);
        let size = size.filter(|size| (1..=MAX_DIMENSION).contains(size));
        size.map(|size| size as i64)
            .ok_or_else(|| self.wrong(name, "an integer from 1 to 16777216"))
    }

    pub(super) fn size_or(&self, name: &'static str, default: i64) -> Result<i64, LoadError> {
        match self.root.get(name) {
            None | Some(Value::Null) => Ok(default),
            Some(_) => self.size(name),
        }
    }

    /// Reads a size, which is required unless the family has a usual one.
    pub(super) fn size_or_usual(&self, name: &'static str, usual: Option<i64>) -> Result<i64, LoadError> {
        match (usual, self.root.get(name)) {
            (Some(usual), None) => Ok(usual),
            _ => self.size(name),
        }
    }

    pub(super) fn is(&self, flag: Flag) -> Result<bool, LoadError> {
        match flag {
            Flag::Is(is) => Ok(is),
            Flag::Field(name) => self.flag(name, false),
        }
    }

    pub(super) fn flag(&self, name: &'static str, default: bool) -> Result<bool, LoadError> {
        match self.root.get(name) {
            None | Some(Value::Null) => Ok(default),
            Some(value) => value.as_bool().ok_or_else(|| self.wrong(name, "true or false")),
        }
    }

    pub(super) fn number(&self, object: &Value, name: &'static str) -> Result<Option<f64>, LoadError> {
        match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64().filter(|number| number.is_finite()) {
                Some(number) => Ok(Some(number)),
                None => Err(self.wrong(name, "a number")),
            },
        }
    }

    pub(super) fn positive(&self, object: &Value, name: &'static str) -> Result<f64, LoadError> {
        let number = self.number(object, name)?.filter(|&number| number > 0.0);
        number.ok_or_else(|| self.wrong(name, "a positive number"))
    }

    /// Returns the error for a field. The value found is looked up in the decoder's object, then in the
    /// descriptions of ropes, then at the top.
    pub(super) fn wrong(&self, name: &str, expected: &str) -> LoadError {
        let ropes = ["rope_parameters", "rope_scaling"]
            .into_iter()
            .filter_map(|place| self.root.get(place));
        let nested = ropes.flat_map(|rope| {
            let kinds = LAYER_TYPES.into_iter().filter_map(|kind| rope.get(kind));
            std::iter::once(rope).chain(kinds)
        });
        let found = std::iter::once(self.root)
            .chain(nested)
            .chain([self.top])
            .find_map(|object| object.get(name));
        let within = self.nested.map_or(String::new(), |nested| format!("{nested}: "));
        let found = found.map_or("is missing".to_string(), |value| format!("is {value}"));
        self.files
            .malformed(FILE, format!("{within}{name} {found}; expected {expected}"))
    }

    pub(super) fn unsupported(
        &self,
        what: &'static str,
        found: &Value,
        supported: &'static str,
    ) -> LoadError {
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
