//! Medusa ([Cai et al. 2024](https://arxiv.org/abs/2401.10774)): a small network for each of the next tokens.

use super::eagle::host;
use super::own_config::{self, CONFIG};
use crate::error::{EngineError, LoadError};
use crate::model::head::{Head, HeadFeed, HeadRows};
use crate::model::logits::Logits;
use crate::torch::checkpoint::Checkpoint;
use crate::torch::checkpoint::files::ModelFiles;
use crate::torch::decoder::weights::Weights;
use crate::torch::decoder::{Decoder, Lent};
use crate::torch::layers::linear::Linear;
use crate::torch::options::WeightFormat;
use tch::{TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The networks.
pub(super) struct Medusa {
    lent: Lent,
    networks: Vec<Network>,
}

/// The network of one of the next tokens.
struct Network {
    /// Blocks that add the SiLU of a linear map to their input.
    blocks: Vec<Linear>,
    output: Linear,
}

impl Medusa {
    pub(super) fn load(
        (files, checkpoint, prefix): (&ModelFiles, &Checkpoint<'_>, &str),
        model: &Decoder,
        format: WeightFormat,
    ) -> std::result::Result<Self, LoadError> {
        let own = own_config::json(files)?;
        let lent = model.lend();
        let config = lent.config.clone();
        let weights = Weights::new(checkpoint, &config, lent.place, (lent.crew.clone(), format)).of_head();
        let block_name = |network: usize, block: usize| format!("{prefix}{network}.{block}.linear");
        let count_while = |has: &dyn Fn(usize) -> bool| (0..).take_while(|&number| has(number)).count();
        let count = count_while(&|network| checkpoint.has(&format!("{}.weight", block_name(network, 0))));
        if let Some(named) = own_config::size(files, &own, "medusa_num_heads")?
            && named as usize != count
        {
            let message = format!("medusa_num_heads is {named}, and there are tensors of {count} networks");
            return Err(files.malformed(CONFIG, message));
        }
        let hidden = config.hidden;
        let network = |network: usize| {
            let blocks =
                count_while(&|block| checkpoint.has(&format!("{}.weight", block_name(network, block))));
            let output = format!("{prefix}{network}.{blocks}.weight");
            let block = |block: usize| {
                let name = block_name(network, block);
                let weight = weights.own_matrix(&format!("{name}.weight"), [hidden, hidden])?;
                let bias = weights.own(&format!("{name}.bias"), &[hidden])?;
                weights.linear(vec![weight], Some(bias))
            };
            Ok(Network {
                blocks: (0..blocks)
                    .map(block)
                    .collect::<std::result::Result<_, LoadError>>()?,
                output: match checkpoint.has(&output) {
                    true => {
                        weights.linear(vec![weights.own_matrix(&output, [config.vocab, hidden])?], None)?
                    }
                    // Some networks end in the output layer of the model.
                    false => lent.output.share(),
                },
            })
        };
        let networks = (0..count)
            .map(network)
            .collect::<std::result::Result<_, LoadError>>()?;
        Ok(Medusa { lent, networks })
    }

    fn pass(&self, states: &[f32]) -> Result<Vec<f32>> {
        let hidden = self.lent.config.hidden;
        let x = Tensor::f_from_slice(states)?
            .f_view([-1, hidden])?
            .f_to_device(self.lent.place.device)?
            .f_to_kind(self.lent.place.kind)?;
        let rows = self.networks.iter().map(|network| {
            let mut y = x.shallow_clone();
            for block in &network.blocks {
                y = y.f_add(&block.apply(&y)?.f_silu()?)?;
            }
            network.output.apply(&y)
        });
        // A text's rows one after another.
        host(&Tensor::f_stack(&rows.collect::<Result<Vec<_>>>()?, 1)?)
    }
}

impl Head for Medusa {
    fn kind(&self) -> &'static str {
        "Medusa"
    }

    fn states_width(&self) -> usize {
        self.lent.config.hidden as usize
    }

    fn own_width(&self) -> usize {
        0
    }

    fn ahead(&self) -> usize {
        self.networks.len()
    }

    fn vocab_size(&self) -> usize {
        self.lent.config.vocab as usize
    }

    fn max_positions(&self) -> usize {
        self.lent.config.max_positions
    }

    fn create_cache(&mut self, _blocks: usize, _block_size: usize) -> std::result::Result<(), EngineError> {
        Ok(())
    }

    fn run(&mut self, feeds: &[HeadFeed<'_>]) -> std::result::Result<HeadRows, EngineError> {
        let states: Vec<f32> = feeds.iter().flat_map(|feed| feed.kept).copied().collect();
        if states.len() != feeds.len() * self.states_width() || states.is_empty() {
            return Err(EngineError::Model(
                "a head was fed tokens without their states".to_owned(),
            ));
        }
        let _no_grad = tch::no_grad_guard();
        self.lent.set_threads();
        let rows = self
            .pass(&states)
            .map_err(|error| EngineError::Model(error.to_string()))?;
        Ok(HeadRows {
            logits: Logits::new(rows, self.vocab_size()),
            own: Vec::new(),
        })
    }

    fn copy_blocks(&mut self, _pairs: &[(u32, u32)]) -> std::result::Result<(), EngineError> {
        Ok(())
    }
}
