//! Matrices and norms: what a layer is made of, by torch or, in f32 on the CPU, by the loops of [`fused`].

use super::fused::{self, floats, floats_mut};
use tch::{TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// A matrix, `[out, in]`, and perhaps a bias.
pub(crate) struct Linear {
    pub(crate) weight: Tensor,
    pub(crate) bias: Option<Tensor>,
}

impl Linear {
    pub(crate) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        x.f_linear(&self.weight, self.bias.as_ref())
    }

    /// `sum += after(apply(x))`, in one operation where there is neither norm nor bias.
    pub(crate) fn add_to(&self, sum: &mut Tensor, x: &Tensor, after: Option<&Norm>) -> Result<()> {
        let _ = match (&self.bias, after) {
            (None, None) => sum.f_addmm_(x, &self.weight.f_tr()?)?,
            (Some(_), None) => sum.f_add_(&self.apply(x)?)?,
            (_, Some(norm)) => sum.f_add_(&norm.apply(&self.apply(x)?)?)?,
        };
        Ok(())
    }
}

/// A norm over all numbers of a row: by the root of the mean of squares or, where there is a bias, by mean and variance.
pub(crate) struct Norm {
    pub(crate) scale: Tensor,
    pub(crate) bias: Option<Tensor>,
    pub(crate) eps: f64,
}

impl Norm {
    pub(crate) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let (size, scale) = (self.scale.numel() as i64, Some(&self.scale));
        match &self.bias {
            None => x.f_rms_norm(size, scale, self.eps),
            bias @ Some(_) => x.f_layer_norm(size, scale, bias.as_ref(), self.eps, false),
        }
    }

    /// The same by a loop, into `out`.
    pub(crate) fn by_loop(&self, x: &Tensor, out: &mut Tensor) {
        let (scale, eps) = (floats(&self.scale), self.eps as f32);
        match &self.bias {
            None => fused::norm(floats(x), scale, eps, floats_mut(out)),
            Some(bias) => fused::layer_norm(floats(x), (scale, floats(bias)), eps, floats_mut(out)),
        }
    }
}
