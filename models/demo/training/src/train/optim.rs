//! The optimisers: Muon for matrices, Adam for the embedding and the norms.
//!
//! Muon steps along the momentum made orthogonal: with all its singular values pushed to one, a rare
//! direction moves as far as a common one, so that a matrix learns more from each token than with Adam. The
//! orthogonal matrix comes from a few steps of a polynomial iteration (Newton and Schulz), matrices of one
//! size all at once.

use crate::model::Model;
use tch::{Kind, Tensor};

const MOMENTUM: f64 = 0.95;
const BETAS: (f64, f64) = (0.9, 0.95);
const EPSILON: f64 = 1e-8;
/// The odd polynomial `a x + b x³ + c x⁵` that drives singular values towards one: steep at zero, and stable.
const QUINTIC: (f64, f64, f64) = (3.4445, -4.7750, 2.0315);
const ITERATIONS: usize = 4;

/// How far one step goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    /// Of Muon.
    pub(crate) muon: f64,
    /// Of Adam.
    pub(crate) adam: f64,
    /// The share of a matrix that decays in one step, as a multiple of the rate.
    pub(crate) decay: f64,
}

/// Which weights share one run of the iteration: all of one size, tall ones turned on their side.
struct WeightGroup {
    members: Vec<usize>,
    momentum: Tensor,
}

/// The state of both optimisers for one model.
pub(crate) struct Optimizer {
    groups: Vec<WeightGroup>,
    others: Vec<(usize, Tensor, Tensor)>,
    steps: i32,
}

impl Optimizer {
    /// A fresh optimiser for `model`, whose weights it makes trainable.
    pub(crate) fn new(model: &mut Model) -> Self {
        let mut optimizer = Self {
            groups: Vec::new(),
            others: Vec::new(),
            steps: 0,
        };
        for index in 0..model.weights.len() {
            model.weights[index] = model.weights[index].set_requires_grad(true);
            let weight = &model.weights[index];
            if index == 0 || weight.dim() == 1 {
                optimizer
                    .others
                    .push((index, weight.zeros_like().detach(), weight.zeros_like().detach()));
            } else {
                optimizer.enlist(index, &model.weights);
            }
        }
        for group in &mut optimizer.groups {
            let size = wide(&model.weights[group.members[0]]).size();
            group.momentum = Tensor::zeros(
                [group.members.len() as i64, size[0], size[1]],
                (Kind::Float, tch::Device::Cpu),
            );
        }
        optimizer
    }

    fn enlist(&mut self, index: usize, weights: &[Tensor]) {
        let size = |index: usize| wide(&weights[index]).size();
        match self
            .groups
            .iter_mut()
            .find(|group| size(group.members[0]) == size(index))
        {
            Some(group) => group.members.push(index),
            None => self.groups.push(WeightGroup {
                members: vec![index],
                momentum: Tensor::new(),
            }),
        }
    }

    /// Moves the weights against their gradients and clears those. Gives the norm of all gradients together.
    pub(crate) fn step(&mut self, model: &mut Model, rates: Rates) -> f64 {
        self.steps += 1;
        tch::no_grad(|| {
            let squares: Vec<Tensor> = model
                .weights
                .iter()
                .map(|weight| weight.grad().square().sum(Kind::Float))
                .collect();
            let norm = Tensor::stack(&squares, 0)
                .sum(Kind::Float)
                .sqrt()
                .double_value(&[]);
            // Rare bursts would poison the second moments of Adam for many steps; Muon does not see lengths
            // at all.
            let scale = if norm > 1.0 { 1.0 / norm } else { 1.0 };
            for group in &mut self.groups {
                muon(group, &mut model.weights, rates);
            }
            for (index, mean, square) in &mut self.others {
                let weight = &mut model.weights[*index];
                adam(weight, mean, square, self.steps, rates.adam, scale);
            }
            for weight in &mut model.weights {
                weight.zero_grad();
            }
            norm
        })
    }
}

fn wide(weight: &Tensor) -> Tensor {
    let size = weight.size();
    if size[0] > size[1] {
        weight.tr()
    } else {
        weight.shallow_clone()
    }
}

fn muon(group: &mut WeightGroup, weights: &mut [Tensor], rates: Rates) {
    let gradients: Vec<Tensor> = group
        .members
        .iter()
        .map(|&index| wide(&weights[index].grad()))
        .collect();
    let gradients = Tensor::stack(&gradients, 0);
    group.momentum = &group.momentum * MOMENTUM + &gradients * (1.0 - MOMENTUM);
    let ahead = &group.momentum * MOMENTUM + gradients * (1.0 - MOMENTUM);
    let update = orthogonal(&ahead);
    for (&index, update) in group.members.iter().zip(update.unbind(0)) {
        let weight = &mut weights[index];
        let size = weight.size();
        // A tall matrix of orthogonal columns is short in each row; this makes up for it.
        let stretch = (size[0] as f64 / size[1] as f64).max(1.0).sqrt();
        let update = if size[0] > size[1] { update.tr() } else { update };
        let _ = weight.g_mul_scalar_(1.0 - rates.muon * rates.decay);
        let _ = weight.g_sub_(&(update * (rates.muon * stretch)));
    }
}

/// For each wide matrix of a `[count, rows, columns]` tensor, nearly the nearest one with orthonormal rows.
fn orthogonal(matrices: &Tensor) -> Tensor {
    let (a, b, c) = QUINTIC;
    let norms = matrices
        .square()
        .sum_dim_intlist([1i64, 2].as_slice(), true, Kind::Float)
        .sqrt()
        + 1e-7;
    let mut x = matrices / norms;
    for _ in 0..ITERATIONS {
        let square = x.bmm(&x.transpose(1, 2));
        let both = &square * b + square.bmm(&square) * c;
        x = &x * a + both.bmm(&x);
    }
    x
}

fn adam(weight: &mut Tensor, mean: &mut Tensor, square: &mut Tensor, steps: i32, rate: f64, scale: f64) {
    let gradient = weight.grad() * scale;
    *mean = &*mean * BETAS.0 + &gradient * (1.0 - BETAS.0);
    *square = &*square * BETAS.1 + gradient.square() * (1.0 - BETAS.1);
    let first = &*mean / (1.0 - BETAS.0.powi(steps));
    let second = (&*square / (1.0 - BETAS.1.powi(steps))).sqrt() + EPSILON;
    let _ = weight.g_sub_(&(first / second * rate));
}

#[cfg(test)]
mod tests {
    use super::orthogonal;
    use tch::Tensor;

    #[test]
    fn rows_become_nearly_orthonormal() {
        tch::set_num_threads(1);
        let values: Vec<f32> = (0..2 * 6 * 16)
            .map(|i| ((i * 37 % 101) as f32 / 50.0 - 1.0).sin())
            .collect();
        let matrices = Tensor::from_slice(&values).view([2, 6, 16]);
        let rows = orthogonal(&matrices);
        let (_, singular, _) = rows.svd(true, false);
        let (low, high) = (singular.min().double_value(&[]), singular.max().double_value(&[]));
        assert!(low > 0.6 && high < 1.3, "singular values from {low} to {high}");
    }
}
