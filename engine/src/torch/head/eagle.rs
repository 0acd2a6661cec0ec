//! EAGLE ([Li et al. 2024](https://arxiv.org/abs/2401.15077),
//! [EAGLE-2](https://arxiv.org/abs/2406.16858), [EAGLE-3](https://arxiv.org/abs/2503.01840)): one layer over
//! tokens and hidden states.

use super::kind::HeadKind;
use super::own_config::{self, CONFIG};
use crate::error::{EngineError, LoadError};
use crate::model::Feed;
use crate::model::head::{Head, HeadFeed, HeadRows};
use crate::model::logits::Logits;
use crate::model::tree::{check_all, check_copies};
use crate::torch::checkpoint::Checkpoint;
use crate::torch::checkpoint::files::ModelFiles;
use crate::torch::config::Config;
use crate::torch::decoder::states::StatesRead;
use crate::torch::decoder::weights::Weights;
use crate::torch::decoder::{Decoder, Lent};
use crate::torch::layers::attention::Plan;
use crate::torch::layers::cache::{self, Cache};
use crate::torch::layers::layer::{Layer, Turns};
use crate::torch::layers::linear::{Linear, Norm};
use crate::torch::loops::matrix::Matrix;
use crate::torch::options::WeightFormat;
use serde_json::Value;
use tch::{Device, Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

const EMBEDDING: &str = "embed_tokens.weight";
const OUTPUT: &str = "lm_head.weight";
/// The tensors of all heads, and those that only EAGLE-3 has.
const OF_ALL: [&str; 3] = [EMBEDDING, "fc.weight", "fc.bias"];
const OF_THIRD: [&str; 4] = [OUTPUT, "norm.weight", "d2t", "t2d"];
/// The tensors of the layer of all heads, and those that only the layer of EAGLE-3 has. The frequencies are
/// those that config.json gives.
const OF_LAYER: [&str; 9] = [
    "self_attn.q_proj.weight",
    "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",
    "self_attn.o_proj.weight",
    "self_attn.rotary_emb.inv_freq",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "mlp.down_proj.weight",
    "post_attention_layernorm.weight",
];
const OF_LAYER_OF_THIRD: [&str; 2] = ["hidden_norm.weight", "input_layernorm.weight"];

/// A head with its cache.
pub(super) struct Eagle {
    config: Config,
    lent: Lent,
    embedding: Matrix,
    fc: Linear,
    layer: Layer,
    turns: Vec<Turns>,
    output: Linear,
    third: Option<Third>,
    /// The numbers of hidden states of the model that it reads for a token.
    states_width: usize,
    cache: Option<Cache>,
    block_size: usize,
}

/// What EAGLE-3 has beyond EAGLE-1.
struct Third {
    token_norm: Norm,
    state_norm: Norm,
    norm: Norm,
    /// The token of each column of a row, if the head knows fewer tokens than the model.
    tokens: Option<Vec<u32>>,
}

impl Eagle {
    pub(super) fn load(
        (files, checkpoint): (&ModelFiles, &Checkpoint<'_>),
        kind: HeadKind,
        model: &Decoder,
        format: WeightFormat,
    ) -> std::result::Result<(Self, StatesRead), LoadError> {
        let own = own_config::json(files)?;
        own_config::check_fixed(files, &own)?;
        let lent = model.lend();
        let config = Config {
            // Heads were trained on short texts, and read on as far as the model does.
            max_positions: lent.config.max_positions,
            ..Config::read(files)?
        };
        let has_own_size = matches!(kind, HeadKind::Eagle3 { .. }) && checkpoint.has(EMBEDDING);
        check(files, &config, &lent, has_own_size)?;
        let read = match kind {
            HeadKind::Eagle3 { .. } => {
                StatesRead::Inputs(own_config::layers_read(files, &own, lent.config.layers.len())?)
            }
            _ => StatesRead::Last,
        };
        let states = match &read {
            StatesRead::Inputs(layers) => lent.config.hidden * layers.len() as i64,
            StatesRead::Last => lent.config.hidden,
        };
        let weights = Weights::new(checkpoint, &config, lent.place, (lent.crew.clone(), format)).of_head();
        let (prefix, layer_inputs, fc_inputs) = match kind {
            HeadKind::Eagle3 { layer } => (layer, 2 * config.hidden, states),
            _ => ("layers.0", config.hidden, config.hidden + states),
        };
        check_names(
            (files, checkpoint),
            &config,
            prefix,
            matches!(kind, HeadKind::Eagle3 { .. }),
        )?;
        let layer = weights.layer_at(prefix, 0, layer_inputs)?;
        let fc = weights.own_matrix("fc.weight", [config.hidden, fc_inputs])?;
        let bias = checkpoint
            .has("fc.bias")
            .then(|| weights.own("fc.bias", &[config.hidden]));
        let fc = weights.linear(vec![fc], bias.transpose()?)?;
        let embedding = match checkpoint.has(EMBEDDING) {
            true => weights.matrix(EMBEDDING, [lent.config.vocab, config.hidden])?,
            false => lent.embedding.share(),
        };
        let (output, third) = match kind {
            HeadKind::Eagle3 { layer } => {
                let (output, third) =
                    Third::load((files, checkpoint, &own), &weights, (&config, &lent), layer)?;
                (output, Some(third))
            }
            _ => (lent.output.share(), None),
        };
        let turns = config.ropes.iter().map(|rope| weights.turns(rope));
        let turns = turns.collect::<std::result::Result<_, _>>()?;
        let eagle = Eagle {
            states_width: states as usize,
            cache: None,
            block_size: 1,
            embedding,
            fc,
            layer,
            turns,
            output,
            third,
            lent,
            config,
        };
        Ok((eagle, read))
    }

    fn pass(&mut self, feeds: &[HeadFeed<'_>], plain: &[Feed<'_>]) -> Result<HeadRows> {
        let layout = self.lent.layout(&self.config, self.block_size);
        let plan = Plan::new(plain, layout)?;
        let kind = self.lent.place.kind;
        let tokens = self.embedding.rows(&plan.tokens)?.f_to_kind(kind)?;
        let states = self.states(feeds)?;
        let mut x = match &self.third {
            None => self.fc.apply(&Tensor::f_cat(&[&tokens, &states], 1)?)?,
            Some(_) => states,
        };
        self.run_layer(&plan, &tokens, &mut x)?;
        if let Some(wanted) = &plan.wanted {
            x = x.f_index_select(0, wanted)?;
        }
        if x.size()[0] == 0 {
            return Ok(HeadRows::default());
        }
        let logits = match &self.third {
            None => self.lent.capped(self.output.apply(&x)?)?,
            Some(third) => self.output.apply(&third.norm.apply(&x)?)?,
        };
        let vocab = self.lent.config.vocab as usize;
        let tokens = self.third.as_ref().and_then(|third| third.tokens.as_ref());
        let logits = match tokens {
            None => host(&logits)?,
            Some(tokens) => spread(&host(&logits)?, tokens, vocab),
        };
        Ok(HeadRows {
            logits: Logits::new(logits, vocab),
            own: host(&x)?,
        })
    }

    /// Returns the states before all fed tokens, `[tokens, hidden]`.
    fn states(&self, feeds: &[HeadFeed<'_>]) -> Result<Tensor> {
        let hidden = self.config.hidden;
        let rows = |values: Vec<f32>, width: i64| {
            Tensor::f_from_slice(&values)?
                .f_view([-1, width])?
                .f_to_device(self.lent.place.device)?
                .f_to_kind(self.lent.place.kind)
        };
        let kept: Vec<f32> = feeds.iter().flat_map(|feed| feed.kept).copied().collect();
        let own: Vec<f32> = feeds.iter().flat_map(|feed| feed.own).copied().collect();
        let (mut next_kept, mut next_own) = (0, (kept.len() / self.states_width) as i64);
        let mut order = Vec::new();
        for feed in feeds {
            let kept = (feed.kept.len() / self.states_width) as i64;
            let own = feed.own.len() as i64 / hidden;
            order.extend(next_kept..next_kept + kept);
            order.extend(next_own..next_own + own);
            (next_kept, next_own) = (next_kept + kept, next_own + own);
        }
        let mut parts = Vec::new();
        if !kept.is_empty() {
            let kept = rows(kept, self.states_width as i64)?;
            parts.push(match &self.third {
                None => kept,
                Some(_) => self.fc.apply(&kept)?,
            });
        }
        if !own.is_empty() {
            parts.push(rows(own, hidden)?);
        }
        let order = Tensor::f_from_slice(&order)?.f_to_device(self.lent.place.device)?;
        Tensor::f_cat(&parts, 0)?.f_index_select(0, &order)
    }

    fn run_layer(&mut self, plan: &Plan, tokens: &Tensor, x: &mut Tensor) -> Result<()> {
        let both = match &self.third {
            None => None,
            Some(third) => {
                let parts = [third.token_norm.apply(tokens)?, third.state_norm.apply(x)?];
                Some(Tensor::f_cat(&parts, 1)?)
            }
        };
        let Some(cache) = &mut self.cache else {
            return Err(TchError::Convert("a head without a cache".to_owned()));
        };
        let input = both.as_ref().unwrap_or(&*x);
        match &self.lent.crew {
            Some(crew) => {
                let attended = self
                    .layer
                    .attend_by_loops(crew, input, cache, plan, &self.turns)?;
                let mut scratch = x.f_empty_like()?;
                self.layer.add_by_loops(x, &attended, &mut scratch)
            }
            None => {
                let turns = self.turns.iter().map(|turns| turns.at(&plan.positions));
                let turns = turns.collect::<Result<Vec<_>>>()?;
                let attended = self.layer.attend(input, cache, plan, &turns)?;
                self.layer.add_by_torch(x, &attended)
            }
        }
    }
}

impl Third {
    fn load(
        (files, checkpoint, own): (&ModelFiles, &Checkpoint<'_>, &Value),
        weights: &Weights<'_>,
        (config, lent): (&Config, &Lent),
        layer: &str,
    ) -> std::result::Result<(Linear, Self), LoadError> {
        let hidden = config.hidden;
        let stored = checkpoint.shape(OUTPUT).and_then(|shape| shape.first().copied());
        let named = own_config::size(files, own, "draft_vocab_size")?;
        let columns = named.or(stored).unwrap_or(lent.config.vocab);
        let tokens = match checkpoint.has("d2t") {
            true => Some(tokens(
                files,
                &checkpoint.integers("d2t", columns)?,
                lent.config.vocab,
            )?),
            false if columns == lent.config.vocab => None,
            false => {
                let message = format!(
                    "there is no tensor \"d2t\", which says what the {columns} tokens of the head are of \
                     the {} of the model",
                    lent.config.vocab
                );
                return Err(files.malformed("model.safetensors", message));
            }
        };
        let output = weights.multiplied(OUTPUT, [columns, hidden])?;
        let third = Third {
            token_norm: weights.norm(&format!("{layer}.input_layernorm"), hidden)?,
            state_norm: weights.norm(&format!("{layer}.hidden_norm"), hidden)?,
            norm: weights.norm("norm", hidden)?,
            tokens,
        };
        Ok((weights.linear(vec![output], None)?, third))
    }
}

/// Checks that a head fits the model, as far as sizes tell.
fn check(
    files: &ModelFiles,
    config: &Config,
    lent: &Lent,
    has_own_size: bool,
) -> std::result::Result<(), LoadError> {
    let wrong = |message: String| Err(files.malformed(CONFIG, message));
    if config.hidden != lent.config.hidden && !has_own_size {
        return wrong(format!(
            "hidden_size is {}, and that of the model {}: the head was trained for another model",
            config.hidden, lent.config.hidden
        ));
    }
    if config.vocab != lent.config.vocab {
        return wrong(format!(
            "vocab_size is {}, and that of the model {}: the head was trained for another model",
            config.vocab, lent.config.vocab
        ));
    }
    if config.layers.len() != 1 {
        return wrong(format!(
            "num_hidden_layers is {}; expected 1",
            config.layers.len()
        ));
    }
    Ok(())
}

/// Checks that no tensor is there that would not be read.
fn check_names(
    (files, checkpoint): (&ModelFiles, &Checkpoint<'_>),
    config: &Config,
    layer: &str,
    is_third: bool,
) -> std::result::Result<(), LoadError> {
    let is_bias = |name: &str| match name.rsplit_once('.') {
        Some((name, "bias")) if name.starts_with("self_attn.o_") => config.attention.out_bias,
        Some((name, "bias")) if name.starts_with("self_attn.") => config.attention.qkv_bias,
        Some((name, "bias")) => config.mlp_bias && name.starts_with("mlp."),
        _ => false,
    };
    let is_of_layer = |name: &str| {
        OF_LAYER.contains(&name) || is_third && OF_LAYER_OF_THIRD.contains(&name) || is_bias(name)
    };
    let is_known = |name: &&str| {
        let of_layer = name.strip_prefix(layer).and_then(|name| name.strip_prefix('.'));
        OF_ALL.contains(name) || is_third && OF_THIRD.contains(name) || of_layer.is_some_and(is_of_layer)
    };
    let mut unknown: Vec<&str> = checkpoint.names().filter(|name| !is_known(name)).collect();
    unknown.sort_unstable();
    match unknown.first() {
        None => Ok(()),
        Some(name) => Err(files.malformed(
            "model.safetensors",
            format!("tensor {name:?} belongs to no head that is known"),
        )),
    }
}

/// Returns the token of each column, from how far its number is above that of the column.
fn tokens(files: &ModelFiles, above: &[i64], vocab: i64) -> std::result::Result<Vec<u32>, LoadError> {
    let token = |(column, above): (i64, &i64)| {
        let token = column.saturating_add(*above);
        match (0..vocab).contains(&token) {
            true => Ok(token as u32),
            false => Err(files.malformed(
                "model.safetensors",
                format!("tensor \"d2t\": column {column} is token {token}, and the model has {vocab}"),
            )),
        }
    };
    (0..).zip(above).map(token).collect()
}

/// Returns rows over the tokens of the model: tokens that the head lacks cannot be drawn.
fn spread(rows: &[f32], tokens: &[u32], vocab: usize) -> Vec<f32> {
    let count = rows.len() / tokens.len().max(1);
    let mut found = vec![f32::NEG_INFINITY; count * vocab];
    for (row, found) in rows.chunks(tokens.len().max(1)).zip(found.chunks_mut(vocab)) {
        for (&logit, &token) in row.iter().zip(tokens) {
            found[token as usize] = logit;
        }
    }
    found
}

/// Returns the numbers of a tensor, row by row.
pub(super) fn host(x: &Tensor) -> Result<Vec<f32>> {
    let x = x.f_to_kind(Kind::Float)?.f_to_device(Device::Cpu)?;
    Vec::<f32>::try_from(&x.f_contiguous()?.f_view([-1])?)
}

impl Head for Eagle {
    fn kind(&self) -> &'static str {
        match &self.third {
            None => "EAGLE",
            Some(_) => "EAGLE-3",
        }
    }

    fn states_width(&self) -> usize {
        self.states_width
    }

    fn own_width(&self) -> usize {
        self.config.hidden as usize
    }

    fn vocab_size(&self) -> usize {
        self.lent.config.vocab as usize
    }

    fn max_positions(&self) -> usize {
        self.config.max_positions
    }

    fn create_cache(&mut self, blocks: usize, block_size: usize) -> std::result::Result<(), EngineError> {
        self.cache = None;
        let heads = self.config.attention.heads();
        let slots = (blocks * block_size) as i64;
        let cache = Cache::new(slots, heads.keys * heads.size, self.lent.place);
        let describe = |error| {
            EngineError::Config(format!(
                "no memory for a head's cache of {slots} positions: {error}"
            ))
        };
        self.cache = Some(cache.map_err(describe)?);
        self.block_size = block_size;
        Ok(())
    }

    fn run(&mut self, feeds: &[HeadFeed<'_>]) -> std::result::Result<HeadRows, EngineError> {
        let plain: Vec<Feed<'_>> = feeds.iter().map(|feed| feed.feed).collect();
        check_all("feed", &plain, |feed| {
            feed.check(self.block_size, self.config.max_positions)
        })?;
        let has_states = |feed: &HeadFeed<'_>| {
            let (kept, own) = (feed.kept.len(), feed.own.len());
            let tokens = kept / self.states_width + own / self.own_width();
            kept % self.states_width + own % self.own_width() == 0 && tokens == feed.feed.tokens.len()
        };
        if feeds.is_empty() || !feeds.iter().all(has_states) {
            return Err(EngineError::Model(
                "a head was fed tokens without their states".to_owned(),
            ));
        }
        let _no_grad = tch::no_grad_guard();
        self.lent.set_threads();
        self.pass(feeds, &plain)
            .map_err(|error| EngineError::Model(error.to_string()))
    }

    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> std::result::Result<(), EngineError> {
        let Some(cache) = &self.cache else {
            return Ok(());
        };
        check_copies(pairs, cache.keys.size()[0] as usize / self.block_size)?;
        let pairs: Vec<(usize, usize)> = pairs
            .iter()
            .map(|&(from, to)| (from as usize, to as usize))
            .collect();
        cache::copy(
            std::slice::from_ref(cache),
            None,
            (self.block_size, &pairs),
            self.lent.place,
        )
        .map_err(|error| EngineError::Model(error.to_string()))
    }
}
