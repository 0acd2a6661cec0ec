//! Who runs steps: a card, or in tests the kernels that were compiled for the processor.
//!
//! ```text
//!   plan ─ addresses ─► steps ─┬─ start            one after another
//!                              └─ record ─► graph ─ replay          all at once, as often as there are passes
//! ```

use super::node::Node;
use super::step::{Product, Step};
use std::sync::{Arc, Mutex};

/// Why something was not run, in the words of who was to run it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LaunchError(pub String);

/// A graph that a launcher keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph(pub usize);

/// A copy to the host that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel(pub usize);

/// Runs steps in the order in which they are started, on memory that others hold: tensors of the device that
/// it launches on. All addresses are those of such memory, large enough for what a step reads and writes.
///
/// What goes wrong in a step that was started may be an error of any later call.
pub trait Launcher: Send {
    /// What runs the steps, for people.
    fn name(&self) -> String;

    /// How many multiprocessors it has: the blocks of products of our own.
    fn multiprocessors(&self) -> usize;

    /// Whether so many bytes more may be taken of its memory, for all that it knows. Who asks then takes them
    /// elsewhere, and may be refused there.
    fn has_room(&self, _bytes: usize) -> bool {
        true
    }

    /// Starts a kernel.
    ///
    /// # Errors
    /// The launch is refused, or a step before it failed.
    fn launch(&mut self, node: &Node<u64>) -> Result<(), LaunchError>;

    /// Starts a product.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    fn multiply(&mut self, product: &Product<u64>) -> Result<(), LaunchError>;

    /// Starts steps one after another.
    ///
    /// # Errors
    /// As [`launch`](Self::launch); the steps before the one that failed were started.
    fn start(&mut self, steps: &[Step<u64>]) -> Result<(), LaunchError> {
        steps.iter().try_for_each(|step| match step {
            Step::Launch(node) => self.launch(node),
            Step::Product(product) => self.multiply(product),
        })
    }

    /// Makes one graph of steps, and starts nothing.
    ///
    /// # Errors
    /// The steps cannot be captured, or there is no room for the graph. The launcher is as before.
    fn record(&mut self, steps: &[Step<u64>]) -> Result<Graph, LaunchError>;

    /// Starts the steps of a graph.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    fn replay(&mut self, graph: Graph) -> Result<(), LaunchError>;

    /// Drops all graphs: what they read and write may be freed afterwards.
    fn forget(&mut self);

    /// Overwrites memory, behind the steps that were started. The bytes may be dropped at once.
    ///
    /// # Errors
    /// The copy is refused, or a step before it failed.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), LaunchError>;

    /// Starts a copy of so many bytes to the host, behind the steps that were started, and waits for nothing.
    ///
    /// # Errors
    /// The copy is refused, or a step before it failed.
    fn send(&mut self, address: u64, bytes: usize) -> Result<Parcel, LaunchError>;

    /// Waits for a copy that was started, and not for the steps that were started behind it. A parcel comes
    /// once.
    ///
    /// # Errors
    /// A step before the copy failed, or there is no such parcel.
    fn receive(&mut self, parcel: Parcel, bytes: &mut [u8]) -> Result<(), LaunchError>;

    /// Nobody will receive this parcel.
    fn discard(&mut self, parcel: Parcel);

    /// Reads memory, once all steps are over.
    ///
    /// # Errors
    /// The copy is refused, or a step failed.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), LaunchError>;
}

/// A launcher that passes and the flights that they leave share.
pub type SharedLauncher = Arc<Mutex<Box<dyn Launcher>>>;
