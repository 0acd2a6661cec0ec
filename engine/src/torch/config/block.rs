//! Reads the properties that differ from layer to layer: windows, rotary positions, experts.

use super::description::{Block, Mlp};
use super::family::{ExpertFields, Family, Turned, Windows};
use super::read::Reader;
use crate::error::LoadError;
use serde_json::Value;
use std::collections::BTreeSet;

impl Reader<'_> {
    /// Reads the window and all layers.
    pub(super) fn layers(
        &self,
        family: &Family,
        hidden: i64,
        count: usize,
    ) -> Result<(Option<i64>, Vec<Block>), LoadError> {
        let turned = self.turned_layers(family, count)?;
        let (window, windowed) = self.windows(family, &turned)?;
        let mlps = self.mlps(family, hidden, count)?;
        let local = usize::from(family.defaults.local_theta.is_some());
        let layers = turned.into_iter().zip(&windowed).zip(mlps);
        let layers = layers.map(|((turned, &windowed), mlp)| Block {
            windowed,
            rope: turned.then_some(if windowed { local } else { 0 }),
            mlp,
        });
        Ok((window, layers.collect()))
    }

    /// Returns which layers rotate queries and keys.
    fn turned_layers(&self, family: &Family, count: usize) -> Result<Vec<bool>, LoadError> {
        const LIST: &str = "no_rope_layers";
        if family.windows != Windows::UnturnedIfUsed {
            return Ok(vec![family.turned != Turned::Nothing; count]);
        }
        // Despite its name, the list has 1 for a layer that rotates.
        match self.root.get(LIST) {
            Some(Value::Array(turned)) if turned.len() >= count => {
                let turned = turned.iter().take(count).map(|turned| match turned.as_u64() {
                    Some(0) => Ok(false),
                    Some(1) => Ok(true),
                    _ => Err(self.wrong(LIST, "a list of 0 and 1")),
                });
                turned.collect()
            }
            None | Some(Value::Null) => {
                let interval = self.size_or("no_rope_layer_interval", 4)? as usize;
                Ok((1..=count).map(|number| number % interval != 0).collect())
            }
            Some(_) => Err(self.wrong(LIST, "a list with one entry for each hidden layer")),
        }
    }

    /// Returns the window and the layers that use it.
    fn windows(&self, family: &Family, turned: &[bool]) -> Result<(Option<i64>, Vec<bool>), LoadError> {
        let count = turned.len();
        let used = match family.windows {
            Windows::Never => false,
            Windows::All | Windows::AllButEvery(_) => true,
            Windows::AllIfUsed | Windows::LastIfUsed | Windows::UnturnedIfUsed => {
                self.flag("use_sliding_window", false)?
            }
        };
        let given = match (self.root.get("sliding_window"), family.defaults.window) {
            (None, usual) => usual,
            // Without a window, it would be unclear which layers rotate like windowed ones.
            (Some(Value::Null), _) if family.defaults.local_theta.is_none() => None,
            (Some(_), _) if !used => None,
            (Some(_), _) => Some(self.size("sliding_window")?),
        };
        let Some(window) = given.filter(|_| used) else {
            return Ok((None, vec![false; count]));
        };
        let windowed = match self.root.get("layer_types") {
            Some(Value::Array(kinds)) => self.windowed_layers(kinds, count)?,
            _ => self.usually_windowed(family, turned)?,
        };
        Ok((Some(window), windowed))
    }

    /// Returns which layers use a window if they are not listed.
    fn usually_windowed(&self, family: &Family, turned: &[bool]) -> Result<Vec<bool>, LoadError> {
        let count = turned.len();
        Ok(match family.windows {
            Windows::Never => vec![false; count],
            Windows::All | Windows::AllIfUsed => vec![true; count],
            Windows::LastIfUsed => {
                let first = self.size_or("max_window_layers", 0)? as usize;
                (0..count).map(|layer| layer >= first).collect()
            }
            Windows::UnturnedIfUsed => turned.iter().map(|turned| !turned).collect(),
            Windows::AllButEvery(usual) => {
                let pattern = self.size_or("sliding_window_pattern", usual)? as usize;
                (1..=count).map(|number| number % pattern != 0).collect()
            }
        })
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

    fn mlps(&self, family: &Family, hidden: i64, count: usize) -> Result<Vec<Mlp>, LoadError> {
        let Some(fields) = &family.experts else {
            let width = match family.defaults.width_factor {
                Some(factor) => self.size_or(family.fields.width, factor * hidden)?,
                None => self.size(family.fields.width)?,
            };
            return Ok(vec![Mlp::Dense { width }; count]);
        };
        let experts = self.experts(fields)?;
        let step = self.size_or("decoder_sparse_step", 1)? as usize;
        let dense = self.dense_layers()?;
        let of = |layer: usize| match dense.contains(&(layer as u64)) || !(layer + 1).is_multiple_of(step) {
            true => Ok(Mlp::Dense {
                width: self.size(family.fields.width)?,
            }),
            false => Ok(experts.clone()),
        };
        (0..count).map(of).collect()
    }

    fn experts(&self, fields: &ExpertFields) -> Result<Mlp, LoadError> {
        let is_there = |name: &&str| self.root.get(name).is_some_and(|value| !value.is_null());
        let named = fields.count.into_iter().find(is_there);
        let count = self.size(named.unwrap_or(fields.count[0]))?;
        let chosen = self.size("num_experts_per_tok")?;
        if chosen > count {
            return Err(self.wrong("num_experts_per_tok", "at most as many as there are experts"));
        }
        Ok(Mlp::Experts {
            count,
            chosen,
            width: self.size(fields.width)?,
            normalised: self.is(fields.normalised)?,
        })
    }

    /// Returns the layers without experts in a model with experts.
    fn dense_layers(&self) -> Result<BTreeSet<u64>, LoadError> {
        const LIST: &str = "mlp_only_layers";
        let layers = match self.root.get(LIST) {
            None | Some(Value::Null) => Some(BTreeSet::new()),
            Some(Value::Array(layers)) => layers.iter().map(Value::as_u64).collect(),
            Some(_) => None,
        };
        layers.ok_or_else(|| self.wrong(LIST, "a list of layers"))
    }
}
