//! The interface that runs steps: a card, or in tests the kernels compiled for the processor.
//!
//! ```text
//!   plan ─ addresses ─► steps ─┬─ start            one after another
//!                              └─ record ─► graph ─ replay          all at once, as often as there are passes
//! ```

use super::node::Node;
use super::step::{Product, Step};
use std::sync::{Arc, Mutex};

/// The reason why something was not run, in the words of the launcher.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LaunchError(pub String);

/// A graph that a launcher keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph(pub usize);

/// A copy to the host that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel(pub usize);

/// Runs steps in the order in which they are started, on memory that others own: tensors on the launcher's
/// device. All addresses point into such memory, which must be large enough for the reads and writes of a
/// step.
///
/// A failure of a started step may be reported as an error of any later call.
pub trait Launcher: Send {
    /// Returns a description of the launcher, for people.
    fn name(&self) -> String;

    /// Returns the number of multiprocessors, which is the number of blocks of this crate's products.
    fn multiprocessors(&self) -> usize;

    /// Returns `true` if `bytes` more bytes of its memory seem to be free. The caller then allocates them
    /// elsewhere, where the allocation may still fail.
    fn has_room(&self, _bytes: usize) -> bool {
        true
    }

    /// Launches a kernel.
    ///
    /// # Errors
    /// The launch is refused, or a step before it failed.
    fn launch(&mut self, node: &Node<u64>) -> Result<(), LaunchError>;

    /// Starts a matrix product.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    fn multiply(&mut self, product: &Product<u64>) -> Result<(), LaunchError>;

    /// Starts steps one after another.
    ///
    /// # Errors
    /// As [`launch`](Self::launch); the steps before the one that failed have been started.
    fn start(&mut self, steps: &[Step<u64>]) -> Result<(), LaunchError> {
        steps.iter().try_for_each(|step| match step {
            Step::Launch(node) => self.launch(node),
            Step::Product(product) => self.multiply(product),
        })
    }

    /// Records steps as a graph, without starting any.
    ///
    /// # Errors
    /// The steps cannot be captured, or there is no room for the graph. The launcher is unchanged.
    fn record(&mut self, steps: &[Step<u64>]) -> Result<Graph, LaunchError>;

    /// Starts the steps of a graph.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    fn replay(&mut self, graph: Graph) -> Result<(), LaunchError>;

    /// Drops all graphs: the memory that they read and write may be freed afterwards.
    fn forget(&mut self);

    /// Overwrites memory, after the steps that were started. The caller may drop the bytes at once.
    ///
    /// # Errors
    /// The copy is refused, or a step before it failed.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), LaunchError>;

    /// Starts a copy of `bytes` bytes to the host, after the steps that were started, without waiting.
    ///
    /// # Errors
    /// The copy is refused, or a step before it failed.
    fn send(&mut self, address: u64, bytes: usize) -> Result<Parcel, LaunchError>;

    /// Waits for a copy that was started, but not for steps that were started after it. A parcel can be
    /// received once.
    ///
    /// # Errors
    /// A step before the copy failed, or there is no such parcel.
    fn receive(&mut self, parcel: Parcel, bytes: &mut [u8]) -> Result<(), LaunchError>;

    /// Drops a parcel that will not be received.
    fn discard(&mut self, parcel: Parcel);

    /// Reads memory, once all steps are over.
    ///
    /// # Errors
    /// The copy is refused, or a step failed.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), LaunchError>;
}

/// A launcher shared by passes and the flights that they leave behind.
pub type SharedLauncher = Arc<Mutex<Box<dyn Launcher>>>;
