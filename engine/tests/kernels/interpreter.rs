//! The buffers of a model and its passes on the processor, and plans run over them.

use crate::launcher::OnProcessor;
use crate::memory::{Memory, narrow};
use lexiform_kernels::launcher::Launcher as _;
use lexiform_kernels::plan::{Buffer, Plan, Scratch, Shape};
use std::collections::HashMap;

/// The buffers of a model and of a pass.
pub(crate) struct Interpreter {
    pub(crate) buffers: HashMap<Buffer, Memory>,
}

impl Interpreter {
    /// Buffers for these weights, and a cache of so many slots. What nobody has written is not a number.
    pub(crate) fn new(weights: HashMap<Buffer, Memory>, shape: &Shape, slots: usize) -> Self {
        let mut buffers = weights;
        let nothing = Memory::bf16(&vec![narrow(f32::NAN); slots * shape.key_heads * shape.head_size]);
        for layer in 0..shape.windows.len() {
            buffers.insert(Buffer::Keys(layer), nothing.clone());
            buffers.insert(Buffer::Values(layer), nothing.clone());
        }
        Interpreter { buffers }
    }

    /// The buffers of the passes of a plan, as they are before the first.
    pub(crate) fn prepare(&mut self, plan: &Plan) {
        for &(part, bytes) in &plan.scratch {
            let memory = match part {
                Scratch::Arrived => Memory::zeros(bytes),
                _ => Memory::of_bytes(&vec![0xff; bytes]),
            };
            self.buffers.insert(Buffer::Scratch(part), memory);
        }
    }

    pub(crate) fn run(&mut self, plan: &Plan, inputs: &[u8]) -> Result<(), String> {
        self.buffers.insert(Buffer::Inputs, Memory::of_bytes(inputs));
        let addresses = self
            .buffers
            .iter_mut()
            .map(|(&buffer, memory)| (buffer, memory.address()));
        let addresses: HashMap<Buffer, u64> = addresses.collect();
        let steps = plan.at(|buffer| addresses.get(buffer).copied().unwrap_or(0));
        OnProcessor::new()
            .start(&steps)
            .map_err(|error| error.to_string())
    }
}
