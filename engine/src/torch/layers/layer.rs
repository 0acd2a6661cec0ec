//! One layer, by torch, or with the engine's own loops between the products.
//!
//! The steps are data: a step that a family does not have is absent, and costs nothing.

use super::attention::Plan;
use super::cache::Cache;
use super::linear::{Linear, Norm};
use super::mlp::Mlp;
use crate::torch::config::{Heads, QkNorm};
use crate::torch::crew::Crew;
use crate::torch::loops::fused::{self, HeadNorm, Turning, floats, floats_mut};
use tch::{TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// A layer's weights.
pub(crate) struct Layer {
    pub(crate) heads: Heads,
    pub(crate) before_attention: Option<Norm>,
    pub(crate) qkv: Linear,
    pub(crate) qk_norm: Option<QkScales>,
    pub(crate) out: Linear,
    pub(crate) after_attention: Option<Norm>,
    pub(crate) before_mlp: Option<Norm>,
    pub(crate) mlp: Mlp,
    pub(crate) after_mlp: Option<Norm>,
    pub(crate) windowed: bool,
    /// The index of the model's rope that rotates queries and keys.
    pub(crate) rope: Option<usize>,
}

/// The norms of queries and keys.
pub(crate) struct QkScales {
    /// One row per head, those of queries first.
    pub(crate) scales: Tensor,
    pub(crate) over: QkNorm,
    pub(crate) eps: f64,
}

/// Cosines and sines, with the sines of the first half negated: of all positions, `[positions, width]`, or of
/// the fed ones, `[tokens, 1, width]`.
pub(crate) struct Turns {
    pub(crate) cosines: Tensor,
    pub(crate) sines: Tensor,
}

impl Turns {
    /// Returns a copy that shares the numbers.
    pub(crate) fn share(&self) -> Self {
        Turns {
            cosines: self.cosines.shallow_clone(),
            sines: self.sines.shallow_clone(),
        }
    }

    /// Returns the cosines and sines of these positions.
    pub(crate) fn at(&self, positions: &Tensor) -> Result<Turns> {
        let at = |of: &Tensor| of.f_index_select(0, positions)?.f_unsqueeze(1);
        Ok(Turns {
            cosines: at(&self.cosines)?,
            sines: at(&self.sines)?,
        })
    }

    /// Rotates every pair as x·cos + swap(x)·sin, where `swap` swaps the halves and the sines are signed.
    fn turn(&self, heads: &Tensor) -> Result<Tensor> {
        let (size, width) = (heads.size()[2], self.cosines.size()[2]);
        let turn = |x: &Tensor| {
            let swapped = x.f_roll(width / 2, 2)?;
            x.f_mul(&self.cosines)?.f_addcmul_(&swapped, &self.sines)
        };
        if width == size {
            return turn(heads);
        }
        let turned = turn(&heads.f_narrow(2, 0, width)?)?;
        Tensor::f_cat(&[turned, heads.f_narrow(2, width, size - width)?], 2)
    }
}

impl QkScales {
    fn share(&self) -> Self {
        QkScales {
            scales: self.scales.shallow_clone(),
            ..*self
        }
    }

    /// Normalises `[tokens, query and key heads, size]`.
    fn apply(&self, qk: &Tensor, heads: Heads) -> Result<Tensor> {
        let plain = |x: &Tensor, size: i64| x.f_rms_norm(size, None::<&Tensor>, self.eps);
        let normed = match self.over {
            QkNorm::Token => {
                let of = |first, count| {
                    let rows = qk.f_narrow(1, first, count)?;
                    let rows = rows.f_reshape([-1, count * heads.size])?;
                    plain(&rows, count * heads.size)?.f_view([-1, count, heads.size])
                };
                Tensor::f_cat(&[of(0, heads.queries)?, of(heads.queries, heads.keys)?], 1)?
            }
            QkNorm::Head | QkNorm::None => plain(qk, heads.size)?,
        };
        normed.f_mul(&self.scales)
    }
}

impl Layer {
    /// Returns a copy for another decoder that shares the numbers.
    pub(crate) fn share(&self) -> Self {
        let norm = |norm: &Option<Norm>| norm.as_ref().map(Norm::share);
        Layer {
            before_attention: norm(&self.before_attention),
            qkv: self.qkv.share(),
            qk_norm: self.qk_norm.as_ref().map(QkScales::share),
            out: self.out.share(),
            after_attention: norm(&self.after_attention),
            before_mlp: norm(&self.before_mlp),
            mlp: self.mlp.share(),
            after_mlp: norm(&self.after_mlp),
            ..*self
        }
    }

    /// Adds this layer's output to `x`; `turns` are those of the fed positions, one for each rope.
    pub(crate) fn by_torch(
        &self,
        x: &mut Tensor,
        cache: &mut Cache,
        plan: &Plan,
        turns: &[Turns],
    ) -> Result<()> {
        let normed = self
            .before_attention
            .as_ref()
            .map(|norm| norm.apply(x))
            .transpose()?;
        let attended = self.attend(normed.as_ref().unwrap_or(x), cache, plan, turns)?;
        self.add_by_torch(x, &attended)
    }

    /// Adds to `x` the output of attention and that of the second half of the layer.
    pub(crate) fn add_by_torch(&self, x: &mut Tensor, attended: &Tensor) -> Result<()> {
        self.out.add_to(x, attended, self.after_attention.as_ref())?;
        let after = self.after_mlp.as_ref();
        match &self.before_mlp {
            Some(norm) => {
                let normed = norm.apply(x)?;
                self.mlp.add_to(x, &normed, after)
            }
            // It is read completely before anything is added to it.
            None => {
                let whole = x.shallow_clone();
                self.mlp.add_to(x, &whole, after)
            }
        }
    }

    /// Returns what the queries of `x`, the input of the products, find.
    pub(crate) fn attend(
        &self,
        x: &Tensor,
        cache: &mut Cache,
        plan: &Plan,
        turns: &[Turns],
    ) -> Result<Tensor> {
        let Heads { queries, keys, size } = self.heads;
        let tokens = x.size()[0];
        let qkv = self.qkv.apply(x)?.f_view([tokens, queries + 2 * keys, size])?;
        let mut qk = qkv.f_narrow(1, 0, queries + keys)?;
        if let Some(norm) = &self.qk_norm {
            qk = norm.apply(&qk, self.heads)?;
        }
        if let Some(turns) = self.rope.and_then(|rope| turns.get(rope)) {
            qk = turns.turn(&qk)?;
        }
        let width = keys * size;
        let values = qkv
            .f_narrow(1, queries + keys, keys)?
            .f_reshape([tokens, width])?;
        let keys = qk.f_narrow(1, queries, keys)?.f_reshape([tokens, width])?;
        let queries = qk.f_narrow(1, 0, queries)?;
        plan.attend(cache, &queries, &keys, &values, self.windowed)
    }

    /// Does the same with the loops of [`fused`] and their crew; `turns` are those of all positions, and
    /// `scratch` is as large as `x`.
    pub(crate) fn by_loops(
        &self,
        crew: &Crew,
        x: &mut Tensor,
        cache: &mut Cache,
        plan: &Plan,
        turns: &[Turns],
        scratch: &mut Tensor,
    ) -> Result<()> {
        let input = read(x, self.before_attention.as_ref(), scratch);
        let attended = self.attend_by_loops(crew, input, cache, plan, turns)?;
        self.add_by_loops(x, &attended, scratch)
    }

    /// Returns what the queries of `x`, the input of the products, find, by the loops.
    pub(crate) fn attend_by_loops(
        &self,
        crew: &Crew,
        x: &Tensor,
        cache: &mut Cache,
        plan: &Plan,
        turns: &[Turns],
    ) -> Result<Tensor> {
        let mut rows = self.qkv.apply(x)?;
        self.turn_by_loop(&mut rows, plan, turns);
        plan.attend_fused(crew, cache, &rows, self.windowed)
    }

    /// Does the same as [`add_by_torch`](Self::add_by_torch), by the loops.
    pub(crate) fn add_by_loops(&self, x: &mut Tensor, attended: &Tensor, scratch: &mut Tensor) -> Result<()> {
        let attended = self.out.apply(attended)?;
        add(x, &attended, self.after_attention.as_ref(), scratch);
        let found = self.mlp.by_loops(read(x, self.before_mlp.as_ref(), scratch))?;
        add(x, &found, self.after_mlp.as_ref(), scratch);
        Ok(())
    }

    fn turn_by_loop(&self, rows: &mut Tensor, plan: &Plan, turns: &[Turns]) {
        let turns = self.rope.and_then(|rope| turns.get(rope));
        if turns.is_none() && self.qk_norm.is_none() {
            return;
        }
        let norm = self.qk_norm.as_ref().map(|norm| HeadNorm {
            scales: floats(&norm.scales),
            is_shared: norm.over == QkNorm::Token,
            eps: norm.eps as f32,
        });
        let turning = Turning {
            heads: self.heads,
            width: turns.map_or(0, |turns| turns.cosines.size()[1] as usize),
            cosines: turns.map_or(&[], |turns| floats(&turns.cosines)),
            sines: turns.map_or(&[], |turns| floats(&turns.sines)),
            positions: &plan.host_positions,
            norm,
        };
        fused::turn(floats_mut(rows), &turning);
    }
}

/// Returns the input of a product: `x`, normalised into `scratch` if there is a norm.
fn read<'a>(x: &'a Tensor, norm: Option<&Norm>, scratch: &'a mut Tensor) -> &'a Tensor {
    match norm {
        Some(norm) => {
            norm.by_loop(x, scratch);
            scratch
        }
        None => x,
    }
}

/// Computes `x += y`, with a norm before the sum if there is one.
fn add(x: &mut Tensor, y: &Tensor, norm: Option<&Norm>, scratch: &mut Tensor) {
    fused::add(floats_mut(x), floats(read(y, norm, scratch)));
}
