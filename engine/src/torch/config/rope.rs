//! Reads how queries and keys are rotated: from `rope_parameters` of transformers 5, or `rope_theta` and
//! `rope_scaling` of transformers 4.

use super::family::{Family, Turned};
use super::frequencies::{Rope, Scaling, Yarn, yarn_attention};
use super::read::{LAYER_TYPES, Reader};
use crate::error::LoadError;
use serde_json::Value;

const ROPES: &str = "default, linear, dynamic, llama3, yarn, longrope";
/// The description of a rope, and the properties of its model.
struct RopeSource<'a> {
    from: &'a Value,
    head_dim: i64,
    theta: f64,
    /// `true` if a part of a head may be rotated alone.
    in_part: bool,
    max_positions: f64,
}

impl Reader<'_> {
    /// Returns the ropes, with that of windowed layers last if they have a separate one, and the number of
    /// positions.
    pub(super) fn ropes(&self, family: &Family, head_dim: i64) -> Result<(Vec<Rope>, usize), LoadError> {
        let usual = family.defaults.sizes.map(|sizes| sizes.positions);
        let max_positions = self.size_or_usual(family.fields.positions, usual)? as usize;
        if family.turned == Turned::Nothing {
            return Ok((Vec::new(), max_positions));
        }
        let none = Value::Object(serde_json::Map::new());
        let given = |name: &str| self.root.get(name).filter(|value| !value.is_null());
        let described = given("rope_parameters")
            .or_else(|| given("rope_scaling"))
            .unwrap_or(&none);
        if !described.is_object() {
            return Err(self.wrong("rope_scaling", "an object"));
        }
        let of = |kind: &str| described.get(kind).filter(|value| value.is_object());
        let [full, local] = LAYER_TYPES;
        let theta = self.number(self.root, "rope_theta")?;
        let source = RopeSource {
            from: of(full).unwrap_or(described),
            head_dim,
            theta: theta.unwrap_or(family.defaults.theta),
            in_part: family.turned == Turned::Part,
            max_positions: max_positions as f64,
        };
        let mut ropes = vec![self.rope(&source)?];
        if let Some(usual) = family.defaults.local_theta {
            let theta = self.number(self.root, "rope_local_base_freq")?;
            ropes.push(self.rope(&RopeSource {
                // The scaling of the other layers does not apply to windowed ones.
                from: of(local).unwrap_or(&none),
                theta: theta.unwrap_or(usual),
                ..source
            })?);
        }
        let bounds = ropes.iter().filter_map(Rope::max_positions);
        let max_positions = bounds.fold(max_positions, usize::min);
        Ok((ropes, max_positions))
    }

    fn rope(&self, source: &RopeSource<'_>) -> Result<Rope, LoadError> {
        let theta = self.number(source.from, "rope_theta")?.unwrap_or(source.theta);
        if theta <= 1.0 {
            return Err(self.wrong("rope_theta", "a number above 1"));
        }
        let part = match self.number(source.from, "partial_rotary_factor")? {
            Some(part) => part,
            None => self.number(self.root, "partial_rotary_factor")?.unwrap_or(1.0),
        };
        if part != 1.0 && !source.in_part {
            return Err(self.wrong("partial_rotary_factor", "1, or absent"));
        }
        let width = (source.head_dim as f64 * part) as i64;
        if !(0.0..=1.0).contains(&part) || width < 2 || width % 2 != 0 {
            let expected = "a part of head_dim that is an even number";
            return Err(self.wrong("partial_rotary_factor", expected));
        }
        let width = width as usize;
        Ok(Rope {
            theta,
            width,
            scaling: self.scaling(source.from, source.max_positions, width)?,
        })
    }

    fn scaling(&self, from: &Value, max_positions: f64, width: usize) -> Result<Scaling, LoadError> {
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
            // Configurations of Phi-3 that were written before the method was named use these names.
            Some("yarn" | "su") if from.get("short_factor").is_some() => {
                self.longrope(from, max_positions, width)
            }
            Some("longrope") => self.longrope(from, max_positions, width),
            Some("yarn") => self.yarn(from, original, max_positions).map(Scaling::Yarn),
            Some(_) => Err(self.unsupported("rope_type", kind.unwrap_or(&Value::Null), ROPES)),
        }
    }

    /// See [`Scaling::Long`].
    fn longrope(&self, from: &Value, max_positions: f64, width: usize) -> Result<Scaling, LoadError> {
        const ORIGINAL: &str = "original_max_position_embeddings";
        let original = match from.get(ORIGINAL) {
            Some(_) => self.positive(from, ORIGINAL)?,
            None => self.positive(self.root, ORIGINAL)?,
        };
        if original < 2.0 {
            return Err(self.wrong(ORIGINAL, "2 or more"));
        }
        let factors = from.get("short_factor").and_then(Value::as_array);
        let positive = |factor: &Value| {
            factor
                .as_f64()
                .filter(|&factor| factor > 0.0 && factor.is_finite())
        };
        let factors: Option<Vec<f64>> = factors.and_then(|factors| factors.iter().map(positive).collect());
        let Some(factors) = factors.filter(|factors| factors.len() == width / 2) else {
            let expected = format!("a list of {} positive numbers", width / 2);
            return Err(self.wrong("short_factor", &expected));
        };
        let stretch = self.number(from, "factor")?.unwrap_or(max_positions / original);
        let attention = match self.number(from, "attention_factor")? {
            Some(attention) => attention,
            None if stretch <= 1.0 => 1.0,
            None => (1.0 + stretch.ln() / original.ln()).sqrt(),
        };
        Ok(Scaling::Long {
            factors,
            attention,
            original: original as usize,
        })
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
}
