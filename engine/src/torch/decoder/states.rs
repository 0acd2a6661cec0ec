//! The hidden states that a head reads: a row for every slot of the cache, written by every pass.
//!
//! ```text
//!   x ─ layer 0 ─ layer 1 ─ … ─ norm ─► head            EAGLE-1 and Medusa read the input of the head,
//!      └───────┴──────────┴─────────┴─► row of the slot    EAGLE-3 the inputs of three layers
//! ```
//!
//! The rows lie beside the keys and values, so that texts that share a beginning share them, and a text that
//! was rewound or preempted has them wherever it has its keys.
//!
//! Tests: `engine/tests/engine/head_states.rs`.

use crate::torch::layers::attention::Plan;
use crate::torch::layers::cache::SlotRows;
use crate::torch::layers::layout::Place;
use std::ops::Range;
use tch::{Device, Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The hidden states of a token that a head reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatesRead {
    /// The input of the output layer.
    Last,
    /// The inputs of these layers, one after another; the number of all layers stands for the output of the
    /// last one.
    Inputs(Vec<usize>),
}

/// The rows of all slots.
pub(super) struct States {
    read: StatesRead,
    width: i64,
    rows: Option<SlotRows>,
}

impl States {
    /// Returns no rows yet, of a model with this hidden size.
    pub(super) fn new(read: StatesRead, hidden: i64) -> Self {
        let width = match &read {
            StatesRead::Last => hidden,
            StatesRead::Inputs(layers) => hidden * layers.len() as i64,
        };
        States {
            read,
            width,
            rows: None,
        }
    }

    /// Returns the numbers of a row.
    pub(super) fn width(&self) -> usize {
        self.width as usize
    }

    /// Returns `true` if the input of the output layer is read.
    pub(super) fn reads_last(&self) -> bool {
        self.read == StatesRead::Last
    }

    pub(super) fn rows(&self) -> Option<&SlotRows> {
        self.rows.as_ref()
    }

    /// Creates the rows of all slots.
    pub(super) fn create(&mut self, slots: i64, place: Place) -> Result<()> {
        self.rows = Some(SlotRows::new(slots, self.width, place)?);
        Ok(())
    }

    /// Writes the rows of the fed tokens: what was taken, or `last` if the input of the output layer is read.
    pub(super) fn keep(&self, plan: &Plan, taken: Taken, last: &Tensor) -> Result<()> {
        let states = match &self.read {
            StatesRead::Last => last.shallow_clone(),
            StatesRead::Inputs(layers) => taken.joined(layers)?,
        };
        let Some(rows) = &self.rows else {
            return Ok(());
        };
        let _ = rows.rows.shallow_clone().f_index_copy_(0, &plan.slots, &states)?;
        Ok(())
    }

    /// Returns the rows of these slots.
    pub(super) fn read(&self, table: &[u32], slots: Range<usize>, block_size: usize) -> Result<Vec<f32>> {
        let Some(rows) = &self.rows else {
            return Ok(Vec::new());
        };
        if slots.end > table.len() * block_size {
            return Err(TchError::Convert(
                "a table that does not cover its slots".to_owned(),
            ));
        }
        let row = |slot: usize| {
            i64::from(table[slot / block_size]) * block_size as i64 + (slot % block_size) as i64
        };
        let numbers: Vec<i64> = slots.map(row).collect();
        let numbers = Tensor::f_from_slice(&numbers)?.f_to_device(rows.rows.device())?;
        let found = rows.rows.f_index_select(0, &numbers)?;
        Vec::<f32>::try_from(
            &found
                .f_to_kind(Kind::Float)?
                .f_to_device(Device::Cpu)?
                .f_contiguous()?
                .f_view([-1])?,
        )
    }
}

/// The inputs of the layers that are read, taken during a pass.
pub(super) struct Taken {
    layers: Vec<usize>,
    found: Vec<(usize, Tensor)>,
}

impl Taken {
    pub(super) fn of(states: Option<&States>) -> Self {
        let layers = match states.map(|states| &states.read) {
            Some(StatesRead::Inputs(layers)) => layers.clone(),
            _ => Vec::new(),
        };
        Taken {
            layers,
            found: Vec::new(),
        }
    }

    /// Copies the input of a layer if it is read: the layer overwrites it.
    pub(super) fn before(&mut self, layer: usize, x: &Tensor) -> Result<()> {
        if self.layers.contains(&layer) {
            let mut copy = x.f_empty_like()?;
            copy.f_copy_(x)?;
            self.found.push((layer, copy));
        }
        Ok(())
    }

    fn joined(self, layers: &[usize]) -> Result<Tensor> {
        let of = |layer: &usize| self.found.iter().find(|(number, _)| number == layer);
        let inputs: Vec<&Tensor> = layers.iter().filter_map(of).map(|(_, x)| x).collect();
        Tensor::f_cat(&inputs, 1)
    }
}
