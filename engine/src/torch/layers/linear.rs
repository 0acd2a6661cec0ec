//! Matrices and norms, the parts of a layer: by torch or, in f32 on the CPU, by the engine's own loops
//! ([`fused`], [`product`](crate::torch::loops::product)).

use crate::torch::crew::Crew;
use crate::torch::loops::fused::{self, floats, floats_mut};
use crate::torch::loops::matrix::Matrix;
use crate::torch::loops::product::product;
use std::sync::Arc;
use tch::{TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// A matrix, `[out, in]`, with an optional bias.
pub(crate) struct Linear {
    pub(crate) by: Multiplier,
    pub(crate) bias: Option<Tensor>,
}

/// The maker of a product, with its matrix.
pub(crate) enum Multiplier {
    Torch(Matrix),
    Crew(Arc<Crew>, Matrix),
}

impl Linear {
    /// Returns a copy that shares the numbers.
    pub(crate) fn share(&self) -> Self {
        Linear {
            by: match &self.by {
                Multiplier::Torch(matrix) => Multiplier::Torch(matrix.share()),
                Multiplier::Crew(crew, matrix) => Multiplier::Crew(crew.clone(), matrix.share()),
            },
            bias: self.bias.as_ref().map(Tensor::shallow_clone),
        }
    }

    /// Returns the matrix, if torch multiplies with it.
    pub(crate) fn matrix(&self) -> Option<&Matrix> {
        match &self.by {
            Multiplier::Torch(matrix) => Some(matrix),
            Multiplier::Crew(..) => None,
        }
    }

    pub(crate) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let mut found = match &self.by {
            Multiplier::Torch(Matrix::Stored(weight)) => return x.f_linear(weight, self.bias.as_ref()),
            Multiplier::Torch(Matrix::Rounded(rounded)) => rounded.apply(x)?,
            // Torch has no product for blocks. The matrices that it multiplies with are widened when they are
            // loaded, so this applies only to parts of several kinds.
            Multiplier::Torch(matrix) => return x.f_linear(&matrix.widened(x.kind())?, self.bias.as_ref()),
            Multiplier::Crew(crew, matrix) => product(crew, x, matrix)?,
        };
        match &self.bias {
            Some(bias) => found.f_add_(bias),
            None => Ok(found),
        }
    }

    /// Computes `sum += after(apply(x))`, in one operation if there is neither norm nor bias.
    pub(crate) fn add_to(&self, sum: &mut Tensor, x: &Tensor, after: Option<&Norm>) -> Result<()> {
        let _ = match (&self.by, &self.bias, after) {
            (Multiplier::Torch(Matrix::Stored(weight)), None, None) => sum.f_addmm_(x, &weight.f_tr()?)?,
            (_, _, None) => sum.f_add_(&self.apply(x)?)?,
            (_, _, Some(norm)) => sum.f_add_(&norm.apply(&self.apply(x)?)?)?,
        };
        Ok(())
    }
}

/// A norm over all numbers of a row: by the root of the mean of squares or, if there is a bias, by mean and
/// variance.
pub(crate) struct Norm {
    pub(crate) scale: Tensor,
    pub(crate) bias: Option<Tensor>,
    pub(crate) eps: f64,
}

impl Norm {
    /// Returns a copy that shares the numbers.
    pub(crate) fn share(&self) -> Self {
        Norm {
            scale: self.scale.shallow_clone(),
            bias: self.bias.as_ref().map(Tensor::shallow_clone),
            eps: self.eps,
        }
    }

    pub(crate) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let (size, scale) = (self.scale.numel() as i64, Some(&self.scale));
        match &self.bias {
            None => x.f_rms_norm(size, scale, self.eps),
            bias @ Some(_) => x.f_layer_norm(size, scale, bias.as_ref(), self.eps, false),
        }
    }

    /// Computes the norm by a loop, into `out`.
    pub(crate) fn by_loop(&self, x: &Tensor, out: &mut Tensor) {
        let (scale, eps) = (floats(&self.scale), self.eps as f32);
        match &self.bias {
            None => fused::norm(floats(x), scale, eps, floats_mut(out)),
            Some(bias) => fused::layer_norm(floats(x), (scale, floats(bias)), eps, floats_mut(out)),
        }
    }
}
