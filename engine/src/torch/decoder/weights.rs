//! Reads a checkpoint's tensors to where they are needed, by the names that the family gives them.
//!
//! Matrices that read the same input are stacked one below the other, if they are not stored so, and one is
//! added to scales that are stored less one: the decoder then computes in one way, whatever the family.

use crate::error::{LoadError, in_one_line};
use crate::torch::checkpoint::{Checkpoint, StoredMatrix};
use crate::torch::config::frequencies::Rope;
use crate::torch::config::{self, Config, Heads, Names, NormKind, QkNorm};
use crate::torch::crew::Crew;
use crate::torch::layers::layer::{Layer, QkScales, Turns};
use crate::torch::layers::layout::Place;
use crate::torch::layers::linear::{Linear, Multiplier, Norm};
use crate::torch::layers::mlp::{Dense, Experts, Mlp};
use crate::torch::loops::block_matrix::Blocks;
use crate::torch::loops::matrix::{Matrix, Rounded, Rounding};
use crate::torch::options::WeightFormat;
use std::sync::Arc;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, LoadError>;

/// A checkpoint, and how its weights are to be kept.
pub(crate) struct Weights<'a> {
    checkpoint: &'a Checkpoint<'a>,
    config: &'a Config,
    place: Place,
    prefix: &'static str,
    names: Names,
    /// The threads that multiply with matrices, if torch does not.
    crew: Option<Arc<Crew>>,
    /// The format in which matrices are kept.
    format: WeightFormat,
}

/// Returns how matrices of this format are rounded, if they are.
fn rounding(format: WeightFormat) -> Option<Rounding> {
    match format {
        WeightFormat::Stored => None,
        WeightFormat::Int8 => Some(Rounding::Int8),
        WeightFormat::Fp8 => Some(Rounding::Fp8),
    }
}

/// Returns the embedding's name, and the prefix of the names in this checkpoint.
pub(crate) fn embedding(checkpoint: &Checkpoint<'_>, names: &Names) -> (String, &'static str) {
    let full = |prefix: &&'static str| (format!("{prefix}{}.weight", names.embedding), *prefix);
    let mut all = names.prefixes.iter().map(full);
    let first = all.clone().next().unwrap_or_default();
    all.find(|(name, _)| checkpoint.has(name)).unwrap_or(first)
}

impl<'a> Weights<'a> {
    pub(crate) fn new(
        checkpoint: &'a Checkpoint<'a>,
        config: &'a Config,
        place: Place,
        (crew, format): (Option<Arc<Crew>>, WeightFormat),
    ) -> Self {
        Weights {
            prefix: embedding(checkpoint, &config.family.names).1,
            names: config.family.names,
            checkpoint,
            config,
            place,
            crew,
            format,
        }
    }

    /// Returns the weights of a head, whose names have no prefix, and whose layer has no norm before
    /// attention.
    pub(crate) fn of_head(self) -> Self {
        Weights {
            prefix: "",
            names: Names {
                before_attention: None,
                ..self.names
            },
            ..self
        }
    }

    /// Reads a tensor by its full name.
    pub(crate) fn tensor(&self, name: &str, shape: &[i64]) -> Result<Tensor> {
        self.place(self.checkpoint.tensor(name, shape)?)
    }

    /// Reads a tensor of the model without its head.
    pub(crate) fn own(&self, name: &str, shape: &[i64]) -> Result<Tensor> {
        self.tensor(&format!("{}{name}", self.prefix), shape)
    }

    /// Reads a matrix by its full name, for looking up rows or for products: as it is stored if its readers
    /// can use that exactly, and otherwise in the number type of the model.
    pub(crate) fn matrix(&self, name: &str, shape: [i64; 2]) -> Result<Matrix> {
        match (&self.crew, self.checkpoint.matrix(name, &shape)?) {
            (Some(_), StoredMatrix::Numbers(stored)) => match stored.kind() {
                Kind::BFloat16 | Kind::Half => Ok(Matrix::Stored(stored)),
                _ => self.place(stored).map(Matrix::Stored),
            },
            (Some(_), StoredMatrix::Blocks(format, bytes)) => {
                self.held(Blocks::new(format, &bytes, shape)).map(Matrix::Blocks)
            }
            (None, StoredMatrix::Numbers(stored)) => self.place(stored).map(Matrix::Stored),
            (None, StoredMatrix::Blocks(format, bytes)) => {
                let widened = Blocks::new(format, &bytes, shape)
                    .and_then(|blocks| blocks.widened(0, shape[0], Kind::Float));
                self.place(self.held(widened)?).map(Matrix::Stored)
            }
        }
    }

    /// Reads a matrix for products. If it is to be rounded for a device, it is sent there afterwards.
    pub(crate) fn multiplied(&self, name: &str, shape: [i64; 2]) -> Result<Matrix> {
        match self.is_rounded_for_torch() {
            true => self.checkpoint.tensor(name, &shape).map(Matrix::Stored),
            false => self.matrix(name, shape),
        }
    }

    /// Returns `true` if matrices are rounded that torch, and the kernels of a GPU, multiply with.
    pub(crate) fn is_rounded_for_torch(&self) -> bool {
        self.crew.is_none() && rounding(self.format).is_some()
    }

    pub(crate) fn own_matrix(&self, name: &str, shape: [i64; 2]) -> Result<Matrix> {
        self.multiplied(&format!("{}{name}", self.prefix), shape)
    }

    /// Returns a matrix for products, made of these parts, one below the other.
    pub(crate) fn linear(&self, parts: Vec<Matrix>, bias: Option<Tensor>) -> Result<Linear> {
        self.linear_in(self.format, parts, bias)
    }

    fn linear_in(&self, format: WeightFormat, parts: Vec<Matrix>, bias: Option<Tensor>) -> Result<Linear> {
        // Part by part, so that little more than one of them is in memory twice.
        let kept = parts.into_iter().map(|part| match rounding(format) {
            None => match (&self.crew, part) {
                (None, Matrix::Stored(part)) => self.place(part).map(Matrix::Stored),
                (_, part) => Ok(part),
            },
            Some(rounding) => {
                let rounded = part
                    .widened(Kind::Float)
                    .and_then(|part| Rounded::new(rounding, &part)?.on(self.place.device));
                self.held(rounded).map(Matrix::Rounded)
            }
        });
        let matrix = self.held(Matrix::stacked(kept.collect::<Result<_>>()?))?;
        let by = match &self.crew {
            None => Multiplier::Torch(matrix),
            Some(crew) => Multiplier::Crew(crew.clone(), matrix),
        };
        Ok(Linear { by, bias })
    }

    fn place(&self, tensor: Tensor) -> Result<Tensor> {
        self.held(
            tensor
                .f_to_device(self.place.device)
                .and_then(|tensor| tensor.f_to_kind(self.place.kind)),
        )
    }

    fn held<T>(&self, made: std::result::Result<T, TchError>) -> Result<T> {
        made.map_err(|error| LoadError::Device {
            device: format!("{:?}", self.place.device),
            message: in_one_line(&error),
        })
    }

    /// Reads the norm with this name over `size` numbers.
    pub(crate) fn norm(&self, name: &str, size: i64) -> Result<Norm> {
        Ok(Norm {
            scale: self.scale(name, size)?,
            bias: match self.config.family.norm {
                NormKind::Rms | NormKind::RmsPlusOne => None,
                NormKind::Layer => Some(self.own(&format!("{name}.bias"), &[size])?),
            },
            eps: self.config.eps,
        })
    }

    fn scale(&self, name: &str, size: i64) -> Result<Tensor> {
        let name = format!("{}{name}.weight", self.prefix);
        let stored = self.checkpoint.tensor(&name, &[size])?;
        match self.config.family.norm {
            NormKind::Rms | NormKind::Layer => self.place(stored),
            NormKind::RmsPlusOne => {
                // Added before the scale is rounded to fewer bits, which are more precise around zero.
                let whole = stored
                    .f_to_kind(Kind::Float)
                    .and_then(|stored| stored.f_add_scalar(1.0));
                self.place(self.held(whole)?)
            }
        }
    }

    /// Reads the matrices `names`, which all read `inputs` numbers, one below the other.
    fn stacked(&self, inputs: i64, names: &[(String, i64)], bias: bool) -> Result<Linear> {
        let parts = self.parts(inputs, names)?;
        if !bias {
            return self.linear(parts, None);
        }
        let biases = names
            .iter()
            .map(|(name, outputs)| self.own(&format!("{name}.bias"), &[*outputs]));
        let bias = self.stack(biases.collect::<Result<_>>()?)?;
        self.linear(parts, Some(bias))
    }

    fn parts(&self, inputs: i64, names: &[(String, i64)]) -> Result<Vec<Matrix>> {
        let is_transposed = self.names.transposed && !self.checkpoint.is_by_outputs();
        let weights = names.iter().map(|(name, outputs)| {
            let name = format!("{name}.weight");
            if !is_transposed {
                return self.own_matrix(&name, [*outputs, inputs]);
            }
            let stored = self.own_matrix(&name, [inputs, *outputs])?;
            let turned = stored
                .widened(self.place.kind)
                .and_then(|weight| weight.f_tr()?.f_contiguous());
            self.held(turned).map(Matrix::Stored)
        });
        weights.collect()
    }

    fn stack(&self, mut parts: Vec<Tensor>) -> Result<Tensor> {
        match parts.len() {
            1 => Ok(parts.remove(0)),
            _ => self.held(Tensor::f_cat(&parts, 0)),
        }
    }

    pub(crate) fn layer(&self, number: usize) -> Result<Layer> {
        let prefix = format!("{}.{number}", self.names.layers);
        self.layer_at(&prefix, number, self.config.hidden)
    }

    /// Reads the layer whose names begin with `prefix` and whose queries, keys and values read `inputs`
    /// numbers.
    pub(crate) fn layer_at(&self, prefix: &str, number: usize, inputs: i64) -> Result<Layer> {
        let (config, names) = (self.config, &self.names);
        let (hidden, heads) = (config.hidden, config.attention.heads());
        let norm = |name: Option<&str>| {
            let named = name.map(|name| self.norm(&format!("{prefix}.{name}"), hidden));
            named.transpose()
        };
        let [queries, keys] = [heads.queries * heads.size, heads.keys * heads.size];
        let qkv = rows(prefix, names.qkv, [queries, keys, keys]);
        let out = [(format!("{prefix}.{}", names.out), hidden)];
        Ok(Layer {
            heads,
            before_attention: norm(names.before_attention)?,
            qkv: self.stacked(inputs, &qkv, config.attention.qkv_bias)?,
            qk_norm: match config.family.qk_norm {
                QkNorm::None => None,
                over => Some(self.qk_norm(prefix, over, heads)?),
            },
            out: self.stacked(queries, &out, config.attention.out_bias)?,
            after_attention: norm(names.after_attention)?,
            before_mlp: norm(names.before_mlp)?,
            mlp: self.mlp(prefix, &config.layers[number].mlp)?,
            after_mlp: norm(names.after_mlp)?,
            windowed: config.layers[number].windowed,
            rope: config.layers[number].rope,
        })
    }

    fn qk_norm(&self, prefix: &str, over: QkNorm, heads: Heads) -> Result<QkScales> {
        let names = self.names.qk_norms;
        let rows = |name: &str, count: i64| {
            let stored = match over {
                QkNorm::Token => count * heads.size,
                QkNorm::Head | QkNorm::None => heads.size,
            };
            let scale = self.scale(&format!("{prefix}.{name}"), stored)?;
            let rows = scale
                .f_view([-1, heads.size])
                .and_then(|rows| rows.f_expand([count, heads.size], true));
            self.held(rows)
        };
        let parts = [rows(names[0], heads.queries)?, rows(names[1], heads.keys)?];
        Ok(QkScales {
            scales: self.held(Tensor::f_cat(&parts, 0))?,
            over,
            eps: self.config.eps,
        })
    }

    fn mlp(&self, prefix: &str, mlp: &config::Mlp) -> Result<Mlp> {
        let (names, hidden) = (&self.names, self.config.hidden);
        match *mlp {
            config::Mlp::Dense { width } => self.dense(prefix, (names.up, names.down), width).map(Mlp::Dense),
            config::Mlp::Experts {
                count,
                chosen,
                width,
                normalised,
            } => {
                let router = [(format!("{prefix}.{}", names.router), count)];
                // The router decides which weights are read, and is a thousandth of them: it stays as it is
                // stored.
                let router = self.parts(hidden, &router)?;
                let router = self.linear_in(WeightFormat::Stored, router, None)?;
                let expert = |number| {
                    let prefix = format!("{prefix}.{}.{number}", names.experts);
                    self.dense(&prefix, (names.expert_up, names.expert_down), width)
                };
                let experts = Experts {
                    router,
                    networks: (0..count).map(expert).collect::<Result<_>>()?,
                    stacked: None,
                    chosen,
                    normalised,
                };
                // Kernels read the experts only in bf16.
                match self.place.kind {
                    Kind::BFloat16 => self.held(experts.stacking()).map(Mlp::Experts),
                    _ => Ok(Mlp::Experts(experts)),
                }
            }
        }
    }

    fn dense(&self, prefix: &str, (up, down): (&[&str], &str), width: i64) -> Result<Dense> {
        let (config, gated) = (self.config, self.config.family.gated);
        let rows = match gated {
            true => rows(prefix, up, [width, width]),
            false => rows(prefix, up, [width]),
        };
        let down = [(format!("{prefix}.{down}"), config.hidden)];
        Ok(Dense {
            up: self.stacked(config.hidden, &rows, config.mlp_bias)?,
            down: self.stacked(width, &down, config.mlp_bias)?,
            width,
            gated,
            activation: config.activation,
        })
    }

    /// Returns the cosines and signed sines of every position.
    pub(crate) fn turns(&self, rope: &Rope) -> Result<Turns> {
        let (mut cosines, mut sines) = (Vec::new(), Vec::new());
        for row in rope
            .turns(self.config.max_positions)
            .chunks((rope.width / 2).max(1))
        {
            cosines.extend(row.iter().chain(row).map(|(_, cosine)| *cosine as f32));
            sines.extend(row.iter().map(|(sine, _)| -*sine as f32));
            sines.extend(row.iter().map(|(sine, _)| *sine as f32));
        }
        let shape = [self.config.max_positions as i64, rope.width as i64];
        let table = |values: &[f32]| Tensor::f_from_slice(values).and_then(|values| values.f_view(shape));
        Ok(Turns {
            cosines: self.place(self.held(table(&cosines))?)?,
            sines: self.place(self.held(table(&sines))?)?,
        })
    }
}

/// Returns the names with the rows of each, or with all rows if one tensor holds everything.
fn rows<const N: usize>(prefix: &str, names: &[&str], rows: [i64; N]) -> Vec<(String, i64)> {
    let named = |name: &&str, rows| (format!("{prefix}.{name}"), rows);
    match names {
        [all] => vec![named(all, rows.iter().sum())],
        _ => names
            .iter()
            .zip(rows)
            .map(|(name, rows)| named(name, rows))
            .collect(),
    }
}
