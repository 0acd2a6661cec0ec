//! A card that launches nodes: it compiles and loads sources, manages memory, launches kernels, and measures
//! their time.
//!
//! # Why cudarc, and where its thin layer is called
//!
//! The crate `cudarc` opens the driver, NVRTC and cuBLAS at run time, so that a build needs nothing of CUDA.
//! Its safe types are used for contexts, modules, functions, events and graphs. Its thin layer is called
//! where these behave differently: its streams are not blocking ones, its launches have no attributes, which
//! dependent launch needs, an event of its pinned memory puts the waiting thread to sleep, and its cuBLAS
//! handle panics if a lost card keeps it from being destroyed. It also panics if a library or a function is
//! missing, so each library is opened and checked first (`library.rs`). It prefers a system library whose
//! name has no version (`libnvrtc.so`) to the one that comes with libtorch.
//!
//! This code has not been run on a card. [`Stream`](stream::Stream) runs passes with it;
//! `kernels/examples/kernels` checks and times the kernels where there is a card.

pub mod compiler;
mod library;
mod staging;
pub mod stream;

use self::compiler::{CompileError, Compiler};
use crate::launcher::LaunchError;
use crate::node::Node;
use crate::shapes::{KERNELS, MOST_SHARED};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{
    CUdevice_attribute, CUevent_flags, CUfunction_attribute, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchConfig, cuLaunchKernelEx,
};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream};
use cudarc::nvrtc::Ptx;
use std::collections::HashMap;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The functions called here that older drivers lack.
const FUNCTIONS: [&str; 3] = [
    "cuLaunchKernelEx",
    "cuGraphInstantiateWithFlags",
    "cuEventElapsedTime_v2",
];
/// The kernels use instructions of Hopper.
const LEAST_CAPABILITY: (i32, i32) = (9, 0);

/// The reason why a card cannot be used, or the call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// The driver could not be opened.
    #[error("there is no NVIDIA driver: {0}")]
    NoDriver(String),
    /// There is no card with this number.
    #[error("there is no card {number}: the driver has {count}")]
    NoCard {
        /// The number of the card.
        number: usize,
        /// The number of cards.
        count: usize,
    },
    /// The card is too old for the kernels.
    #[error("{name} has compute capability {major}.{minor}; the kernels need 9.0")]
    TooOld {
        /// The name of the card.
        name: String,
        /// The major number of its compute capability.
        major: i32,
        /// The minor number.
        minor: i32,
    },
    /// cuBLAS could not be opened.
    #[error("cuBLAS could not be opened: {0}")]
    NoBlas(String),
    /// A source could not be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A call failed.
    #[error("{call} failed: {message} ({code})")]
    Call {
        /// The function that was called.
        call: &'static str,
        /// The code that it returned.
        code: i32,
        /// The driver's description of the code.
        message: String,
    },
    /// A node names a kernel whose source was not loaded.
    #[error("the kernel {0} was not loaded")]
    NotLoaded(&'static str),
}

impl From<CardError> for LaunchError {
    fn from(error: CardError) -> Self {
        LaunchError(error.to_string())
    }
}

/// Returns a function that converts an error of this function of the driver.
fn called(call: &'static str) -> impl Fn(DriverError) -> CardError {
    move |error| {
        let message = error
            .error_string()
            .map(|text| text.to_string_lossy().into_owned());
        CardError::Call {
            call,
            code: error.0 as i32,
            message: message.unwrap_or_default(),
        }
    }
}

/// Memory of a card; freed with [`Card::free`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardMemory {
    /// The address at which it begins.
    pub address: u64,
    /// Its length.
    pub bytes: usize,
}

/// A card with its loaded kernels. Any thread may use it.
pub struct Card {
    context: Arc<CudaContext>,
    name: String,
    capability: (i32, i32),
    multiprocessors: usize,
    functions: HashMap<&'static str, CudaFunction>,
    /// `true` if a kernel may start before the end of the one ahead.
    launches_ahead: bool,
}

impl Card {
    /// Opens the card with this number, in the context that libtorch uses as well.
    ///
    /// # Errors
    /// There is no driver or no such card, or the card is older than Hopper.
    pub fn open(number: usize) -> Result<Self, CardError> {
        library::open(Path::new(library::DRIVER), &FUNCTIONS).map_err(CardError::NoDriver)?;
        result::init().map_err(called("cuInit"))?;
        let count = result::device::get_count().map_err(called("cuDeviceGetCount"))? as usize;
        if number >= count {
            return Err(CardError::NoCard { number, count });
        }
        let context = CudaContext::new(number).map_err(called("cuDevicePrimaryCtxRetain"))?;
        let name = context.name().map_err(called("cuDeviceGetName"))?;
        let attribute = called("cuDeviceGetAttribute");
        let capability = context.compute_capability().map_err(&attribute)?;
        if capability < LEAST_CAPABILITY {
            let (major, minor) = capability;
            return Err(CardError::TooOld { name, major, minor });
        }
        let multiprocessors = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let multiprocessors = context.attribute(multiprocessors).map_err(attribute)? as usize;
        Ok(Card {
            context,
            name,
            capability,
            multiprocessors,
            functions: HashMap::new(),
            launches_ahead: true,
        })
    }

    /// Makes the card's context current on this thread.
    fn bind(&self) -> Result<(), CardError> {
        self.context.bind_to_thread().map_err(called("cuCtxSetCurrent"))
    }

    /// Returns this card with dependent launch enabled or disabled. With dependent launch, which is the
    /// default, a kernel may start before the end of the one ahead, as far as its reads do not depend on it
    /// (every kernel waits by `griddepcontrol.wait` before it reads anything else). Disable it to measure its
    /// gain, or to rule it out as the cause of a fault.
    #[must_use]
    pub fn launching_ahead(self, launches_ahead: bool) -> Self {
        Card {
            launches_ahead,
            ..self
        }
    }

    /// Returns the name of the card.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of multiprocessors, which is the number of blocks of this crate's products.
    pub fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    /// Compiles sources for this card in parallel, and loads their kernels. Returns how long each took to
    /// compile.
    ///
    /// # Errors
    /// A source does not compile, or the driver refuses the compiled code.
    pub fn load(
        &mut self,
        compiler: &Compiler,
        sources: &[&'static str],
    ) -> Result<Vec<(&'static str, Duration)>, CardError> {
        let (major, minor) = self.capability;
        let architecture = &format!("sm_{major}{minor}");
        let compile = |source: &str| {
            let begin = Instant::now();
            (compiler.compile(source, architecture), begin.elapsed())
        };
        let compiled: Vec<_> = std::thread::scope(|scope| {
            let threads = sources.iter().map(|&source| scope.spawn(move || compile(source)));
            let threads: Vec<_> = threads.collect();
            threads
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join)
                .collect()
        });
        let mut times = Vec::new();
        for (source, compiled) in sources.iter().zip(compiled) {
            let (code, time) = compiled.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.load_code(source, code?)?;
            times.push((*source, time));
        }
        Ok(times)
    }

    fn load_code(&mut self, source: &str, code: Vec<u8>) -> Result<(), CardError> {
        let module = self.context.load_module(Ptx::from_binary(code));
        let module = module.map_err(called("cuModuleLoadData"))?;
        for kernel in KERNELS.iter().filter(|kernel| kernel.source == source) {
            let function = module.load_function(kernel.name);
            let function = function.map_err(called("cuModuleGetFunction"))?;
            for (attribute, value) in [
                (
                    CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    MOST_SHARED as i32,
                ),
                (
                    CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                    100,
                ),
            ] {
                let set = function.set_attribute(attribute, value);
                set.map_err(called("cuFuncSetAttribute"))?;
            }
            self.functions.insert(kernel.name, function);
        }
        Ok(())
    }

    /// Allocates memory and fills it with these bytes.
    ///
    /// # Errors
    /// There is no room, or the copy failed.
    pub fn upload(&self, bytes: &[u8]) -> Result<CardMemory, CardError> {
        self.bind()?;
        // SAFETY: the memory is written below, before anything else uses it.
        let address = unsafe { result::malloc_sync(bytes.len().max(16)) };
        let memory = CardMemory {
            address: address.map_err(called("cuMemAlloc"))?,
            bytes: bytes.len(),
        };
        self.write(memory, bytes).map(|()| memory)
    }

    /// Overwrites memory.
    ///
    /// # Errors
    /// The copy failed.
    pub fn write(&self, memory: CardMemory, bytes: &[u8]) -> Result<(), CardError> {
        self.bind()?;
        let bytes = &bytes[..bytes.len().min(memory.bytes)];
        // SAFETY: no more bytes are copied than there are on either side.
        unsafe { result::memcpy_htod_sync(memory.address, bytes) }.map_err(called("cuMemcpyHtoD"))
    }

    /// Returns the content of memory, once all launches are over.
    ///
    /// # Errors
    /// A launch or the copy failed.
    pub fn download(&self, memory: CardMemory) -> Result<Vec<u8>, CardError> {
        self.synchronize()?;
        let mut bytes = vec![0_u8; memory.bytes];
        // SAFETY: there is room for as many bytes as are copied.
        let copied = unsafe { result::memcpy_dtoh_sync(&mut bytes, memory.address) };
        copied.map_err(called("cuMemcpyDtoH")).map(|()| bytes)
    }

    /// Frees memory.
    ///
    /// # Errors
    /// The memory was already freed, or a launch failed.
    pub fn free(&self, memory: CardMemory) -> Result<(), CardError> {
        self.bind()?;
        // SAFETY: the driver refuses an address that is not the start of memory that it allocated.
        unsafe { result::free_sync(memory.address) }.map_err(called("cuMemFree"))
    }

    /// Waits for all launches.
    ///
    /// # Errors
    /// One of them failed.
    pub fn synchronize(&self) -> Result<(), CardError> {
        self.context.synchronize().map_err(called("cuCtxSynchronize"))
    }

    /// Launches a node whose buffers begin at these addresses, after all earlier launches.
    ///
    /// # Errors
    /// Its kernel was not loaded, or the driver refuses the launch. Later failures are errors of
    /// [`synchronize`](Self::synchronize).
    pub fn launch<B>(&self, node: &Node<B>, address: impl FnMut(&B) -> u64) -> Result<(), CardError> {
        self.launch_on(node, address, &self.context.default_stream())
    }

    /// Launches a node on a stream.
    fn launch_on<B>(
        &self,
        node: &Node<B>,
        address: impl FnMut(&B) -> u64,
        stream: &CudaStream,
    ) -> Result<(), CardError> {
        let name = node.kernel.name;
        let function = self.functions.get(name).ok_or(CardError::NotLoaded(name))?;
        self.bind()?;
        let mut arguments = node.pack(address);
        let mut parameters = [arguments.as_mut_ptr().cast()];
        let mut attribute = starts_ahead();
        let config = CUlaunchConfig {
            gridDimX: node.grid[0],
            gridDimY: node.grid[1],
            gridDimZ: node.grid[2],
            blockDimX: node.kernel.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: node.shared,
            hStream: stream.cu_stream(),
            attrs: &raw mut attribute,
            numAttrs: u32::from(self.launches_ahead),
        };
        // SAFETY: the kernel takes one struct, which `pack` lays out and the driver copies. The caller has to
        // ensure that its pointers belong to buffers that are large enough; a kernel that accesses other
        // memory ends the context, not the process.
        let launched = unsafe {
            cuLaunchKernelEx(
                &raw const config,
                function.cu_function(),
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        launched.result().map_err(called("cuLaunchKernelEx"))
    }

    /// Returns the milliseconds that some work takes on the card.
    ///
    /// # Errors
    /// The work or a call of the driver fails.
    pub fn time(&self, work: impl FnOnce() -> Result<(), CardError>) -> Result<f32, CardError> {
        let event = || {
            let event = self.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
            event.map_err(called("cuEventCreate"))
        };
        let (begin, end, stream) = (event()?, event()?, self.context.default_stream());
        begin.record(&stream).map_err(called("cuEventRecord"))?;
        work()?;
        end.record(&stream).map_err(called("cuEventRecord"))?;
        begin.elapsed_ms(&end).map_err(called("cuEventElapsedTime"))
    }
}

/// Returns the launch attribute by which the kernel may start before the end of the one ahead on its stream
/// (programmatic stream serialization).
fn starts_ahead() -> CUlaunchAttribute {
    let mut value = CUlaunchAttributeValue { pad: [0; 64] };
    value.programmaticStreamSerializationAllowed = 1;
    CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_that_is_not_there_is_an_error_with_a_reason() {
        match Card::open(99).err() {
            Some(CardError::NoDriver(reason)) => assert!(!reason.is_empty()),
            Some(CardError::NoCard { number, count }) => assert!(number == 99 && count < 99),
            // A driver without any card fails to initialise.
            Some(CardError::Call { call, .. }) => assert_eq!(call, "cuInit"),
            other => panic!("{other:?}"),
        }
    }
}
