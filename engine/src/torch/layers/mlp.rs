//! The second half of a layer: one network, or experts of which each token uses a few.
//!
//! ```text
//!   x ─► gate, up ─► act(gate) · up ─► down ─►             dense; without a gate: up ─► act ─► down
//!   x ─► router ─► softmax ─► the largest few ─┐
//!   x ─► tokens of expert 0 ─► dense ─► · share ┴► +       an expert sees the tokens that chose it, together
//! ```

use super::linear::{Linear, Multiplier, Norm};
use super::upload::Upload;
use crate::torch::config::Activation;
use crate::torch::loops::fused::{self, floats, floats_mut};
use crate::torch::loops::matrix::Matrix;
use tch::{Device, Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// A network of one hidden layer.
pub(crate) struct Dense {
    /// Gates and ups one below the other, or a matrix without gates.
    pub(crate) up: Linear,
    pub(crate) down: Linear,
    /// The width of the hidden layer.
    pub(crate) width: i64,
    pub(crate) gated: bool,
    pub(crate) activation: Activation,
}

/// Networks of which each token uses a few.
pub(crate) struct Experts {
    pub(crate) router: Linear,
    pub(crate) networks: Vec<Dense>,
    /// `[experts, 2 · width, in]` and `[experts, out, width]`, if the matrices of the networks are parts of
    /// these tensors.
    pub(crate) stacked: Option<[Tensor; 2]>,
    pub(crate) chosen: i64,
    /// `true` if the shares of the chosen ones are normalised to sum to one.
    pub(crate) normalised: bool,
}

/// The second half of a layer, between its norms.
pub(crate) enum Mlp {
    Dense(Dense),
    Experts(Experts),
}

impl Mlp {
    /// Returns a copy that shares the numbers.
    pub(crate) fn share(&self) -> Self {
        match self {
            Mlp::Dense(dense) => Mlp::Dense(dense.share()),
            Mlp::Experts(experts) => Mlp::Experts(Experts {
                router: experts.router.share(),
                networks: experts.networks.iter().map(Dense::share).collect(),
                stacked: experts
                    .stacked
                    .as_ref()
                    .map(|stacked| stacked.each_ref().map(Tensor::shallow_clone)),
                ..*experts
            }),
        }
    }

    /// Computes `sum += after(apply(x))`.
    pub(crate) fn add_to(&self, sum: &mut Tensor, x: &Tensor, after: Option<&Norm>) -> Result<()> {
        let out = match self {
            Mlp::Dense(dense) => return dense.down.add_to(sum, &dense.inner(&dense.up.apply(x)?)?, after),
            Mlp::Experts(experts) => experts.apply(x, (route_by_torch, Dense::inner))?,
        };
        let _ = match after {
            None => sum.f_add_(&out)?,
            Some(norm) => sum.f_add_(&norm.apply(&out)?)?,
        };
        Ok(())
    }

    /// Computes the output without the sum, by the engine's own loops where they exist.
    pub(crate) fn by_loops(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Mlp::Dense(dense) => dense.down.apply(&dense.inner_by_loops(&dense.up.apply(x)?)?),
            Mlp::Experts(experts) => experts.apply(x, (route_by_loop, Dense::inner_by_loops)),
        }
    }
}

fn activate(x: &mut Tensor, activation: Activation) -> Result<Tensor> {
    match activation {
        Activation::Silu => x.f_silu_(),
        Activation::Gelu => x.f_gelu_("none"),
        Activation::GeluTanh => x.f_gelu_("tanh"),
        Activation::Relu => x.f_relu_(),
    }
}

fn in_place(mut x: Tensor, change: fn(&mut [f32])) -> Tensor {
    change(floats_mut(&mut x));
    x
}

impl Dense {
    fn share(&self) -> Self {
        Dense {
            up: self.up.share(),
            down: self.down.share(),
            ..*self
        }
    }

    /// Returns the input of `down`.
    fn inner(&self, up: &Tensor) -> Result<Tensor> {
        if !self.gated {
            return activate(&mut up.shallow_clone(), self.activation);
        }
        let gate = up.f_narrow(1, 0, self.width)?;
        let mut gate = match self.activation {
            Activation::Silu => gate.f_silu()?,
            Activation::Gelu => gate.f_gelu("none")?,
            Activation::GeluTanh => gate.f_gelu("tanh")?,
            Activation::Relu => gate.f_relu()?,
        };
        gate.f_mul_(&up.f_narrow(1, self.width, self.width)?)
    }

    fn inner_by_loops(&self, up: &Tensor) -> Result<Tensor> {
        let gate = match (self.gated, self.activation) {
            (true, Activation::Silu) => fused::gated,
            (true, Activation::GeluTanh) => fused::gated_by_gelu,
            (false, Activation::Silu) => return Ok(in_place(up.shallow_clone(), fused::silu)),
            (false, Activation::GeluTanh) => return Ok(in_place(up.shallow_clone(), fused::gelu)),
            (_, Activation::Relu) => return self.inner(up),
            (_, Activation::Gelu) => return self.inner_of_each_row(up),
        };
        let mut gated = Tensor::f_empty([up.size()[0], self.width], (Kind::Float, Device::Cpu))?;
        gate(floats(up), self.width as usize, floats_mut(&mut gated));
        Ok(gated)
    }

    /// Computes [`inner`](Self::inner) row by row: torch computes the numbers at the end of a tensor, which
    /// do not fill a vector, by other instructions, so the place of a number would show in its last digits.
    fn inner_of_each_row(&self, up: &Tensor) -> Result<Tensor> {
        let rows = (0..up.size()[0]).map(|row| self.inner(&up.f_narrow(0, row, 1)?));
        Tensor::f_cat(&rows.collect::<Result<Vec<_>>>()?, 0)
    }
}

/// A function that returns, from the router's scores of all experts, the chosen experts of each token and the
/// share of each use, `[uses, 1]`.
type Route = fn(&Experts, &Tensor) -> Result<(Vec<i64>, Tensor)>;

fn route_by_torch(experts: &Experts, scores: &Tensor) -> Result<(Vec<i64>, Tensor)> {
    let shares = scores.f_softmax(-1, Kind::Float)?;
    let (mut shares, chosen) = shares.f_topk(experts.chosen, -1, true, true)?;
    if experts.normalised {
        shares = shares.f_div(&shares.f_sum_dim_intlist(-1, true, None)?)?;
    }
    // The host must know which tokens go to which expert, as each expert is a separate product.
    let chosen: Vec<i64> = Vec::try_from(chosen.f_view([-1])?.f_to_device(Device::Cpu)?)?;
    Ok((chosen, shares.f_view([-1, 1])?))
}

/// Routes token by token, so that the result does not depend on the number of tokens.
fn route_by_loop(experts: &Experts, scores: &Tensor) -> Result<(Vec<i64>, Tensor)> {
    let (mut all_chosen, mut all_shares) = (Vec::new(), Vec::new());
    for scores in floats(scores).chunks_exact(experts.networks.len()) {
        let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f32> = scores.iter().map(|score| (score - most).exp()).collect();
        let mut chosen: Vec<usize> = (0..weights.len()).collect();
        // Of equal scores, the lowest expert number wins.
        chosen.sort_by(|&one, &other| scores[other].total_cmp(&scores[one]));
        chosen.truncate(experts.chosen as usize);
        let whole: f32 = match experts.normalised {
            true => chosen.iter().map(|&expert| weights[expert]).sum(),
            false => weights.iter().sum(),
        };
        all_shares.extend(chosen.iter().map(|&expert| weights[expert] / whole));
        all_chosen.extend(chosen.iter().map(|&expert| expert as i64));
    }
    Ok((all_chosen, Tensor::f_from_slice(&all_shares)?.f_view([-1, 1])?))
}

/// A function that an expert's network computes between its two products.
type Inner = fn(&Dense, &Tensor) -> Result<Tensor>;

/// Moves these matrices into one tensor, of which they become parts. Returns `None`, and does nothing, if
/// torch does not multiply with all of them, or if they are kept in fewer bits.
fn stack<'a>(matrices: impl Iterator<Item = &'a mut Linear>) -> Result<Option<Tensor>> {
    let mut matrices: Vec<&mut Linear> = matrices.collect();
    let weights = matrices.iter().map(|linear| match linear.matrix()? {
        Matrix::Stored(weight) => Some(weight),
        Matrix::Rounded(_) | Matrix::Blocks(_) | Matrix::Stacked(_) => None,
    });
    let Some(weights) = weights.collect::<Option<Vec<&Tensor>>>() else {
        return Ok(None);
    };
    let stacked = Tensor::f_stack(&weights, 0)?;
    for (matrix, number) in matrices.iter_mut().zip(0..) {
        matrix.by = Multiplier::Torch(Matrix::Stored(stacked.f_select(0, number)?));
    }
    Ok(Some(stacked))
}

impl Experts {
    /// Moves the matrices of all networks into one tensor each for ups and downs, as kernels need them that
    /// do not know in advance which experts are used. For a moment this takes as much additional memory as
    /// those of one layer.
    pub(crate) fn stacking(mut self) -> Result<Self> {
        let ups = stack(self.networks.iter_mut().map(|network| &mut network.up))?;
        let downs = stack(self.networks.iter_mut().map(|network| &mut network.down))?;
        self.stacked = ups.zip(downs).map(|(ups, downs)| [ups, downs]);
        Ok(self)
    }

    fn apply(&self, x: &Tensor, (route, inner): (Route, Inner)) -> Result<Tensor> {
        let (chosen, shares) = route(self, &self.router.apply(x)?)?;
        let shares = shares.f_to_kind(x.kind())?;
        let mut uses = vec![Vec::new(); self.networks.len()];
        for (use_, &expert) in chosen.iter().enumerate() {
            uses[expert as usize].push(use_ as i64);
        }
        let mut upload = Upload::default();
        let mut asked = Vec::new();
        for (network, uses) in self
            .networks
            .iter()
            .zip(uses)
            .filter(|(_, uses)| !uses.is_empty())
        {
            let tokens = uses.iter().map(|use_| use_ / self.chosen).collect();
            asked.push((network, upload.push(tokens), upload.push(uses)));
        }
        let sent = upload.send(x.device())?;
        let mut sum = x.f_zeros_like()?;
        for (network, tokens, uses) in asked {
            let (tokens, uses) = (sent.get(&tokens)?, sent.get(&uses)?);
            let own = x.f_index_select(0, &tokens)?;
            let out = network
                .down
                .apply(&inner(network, &network.up.apply(&own)?)?)?
                .f_mul_(&shares.f_index_select(0, &uses)?)?;
            let _ = sum.f_index_add_(0, &tokens, &out)?;
        }
        Ok(sum)
    }
}
