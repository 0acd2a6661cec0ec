//! A card that launches nodes: sources compiled and loaded, memory, launches, and the time that they take.
//!
//! Nothing of this has run on a card. [`Stream`](stream::Stream) runs passes with it; `kernels/examples/kernels` checks and times
//! the kernels where there is a card.

pub mod compiler;
mod driver;
pub mod stream;

use self::compiler::{CompileError, Compiler};
use self::driver::{Code, Driver, Handle, LaunchAttribute, LaunchConfig};
use crate::launcher::LaunchError;
use crate::node::Node;
use crate::shapes::{KERNELS, MOST_SHARED};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int, c_uint};
use std::path::Path;
use std::time::{Duration, Instant};

/// Attributes of devices and functions, as `cuda.h` numbers them.
const MULTIPROCESSORS: c_int = 16;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
const MOST_DYNAMIC_SHARED: c_int = 8;
const SHARED_CARVEOUT: c_int = 9;
/// Instructions of the kernels are those of Hopper.
const LEAST_CAPABILITY: (i32, i32) = (9, 0);

/// Why a card cannot be used, or what it refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// The driver could not be opened.
    #[error("there is no NVIDIA driver: {0}")]
    NoDriver(String),
    /// There is no card of this number.
    #[error("there is no card {number}: the driver has {count}")]
    NoCard {
        /// Its number.
        number: usize,
        /// How many there are.
        count: usize,
    },
    /// The card is too old for the kernels.
    #[error("{name} has compute capability {major}.{minor}; the kernels need 9.0")]
    TooOld {
        /// The name of the card.
        name: String,
        /// Its compute capability.
        major: i32,
        /// What follows the point.
        minor: i32,
    },
    /// The library of products could not be opened.
    #[error("cuBLAS could not be opened: {0}")]
    NoBlas(String),
    /// A source was not compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A call failed.
    #[error("{call} failed: {message} ({code})")]
    Call {
        /// The function of the driver.
        call: &'static str,
        /// What it returned.
        code: i32,
        /// What the driver says of that.
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

/// Memory of a card; freed with [`Card::free`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardMemory {
    /// Where it begins.
    pub address: u64,
    /// How long it is.
    pub bytes: usize,
}

/// A card, with the kernels that were loaded. It belongs to the thread that opened it, or that [`bind`](Self::bind) was last called on.
pub struct Card {
    driver: Driver,
    context: Handle,
    name: String,
    capability: (i32, i32),
    multiprocessors: usize,
    functions: HashMap<&'static str, Handle>,
    /// Whether a kernel may start before the end of the one ahead.
    launches_ahead: bool,
}

impl Card {
    /// Opens the card of this number, in the context that libtorch uses as well.
    ///
    /// # Errors
    /// There is no driver, no such card, or it is older than Hopper.
    pub fn open(number: usize) -> Result<Self, CardError> {
        let library = driver::open(Path::new("libcuda.so.1")).map_err(CardError::NoDriver)?;
        let driver = Driver::of(library).map_err(|name| CardError::NoDriver(format!("it has no {name}")))?;
        let mut card = Card {
            driver,
            context: std::ptr::null_mut(),
            name: String::new(),
            capability: (0, 0),
            multiprocessors: 0,
            functions: HashMap::new(),
            launches_ahead: true,
        };
        card.begin(number)?;
        Ok(card)
    }

    fn begin(&mut self, number: usize) -> Result<(), CardError> {
        let driver = self.driver;
        let (mut count, mut device, mut context) = (0, 0, std::ptr::null_mut());
        // SAFETY: this is the first call of the driver.
        self.check("cuInit", unsafe { (driver.init)(0) })?;
        // SAFETY: the number is written to a place that lives through the call; so below.
        self.check("cuDeviceGetCount", unsafe {
            (driver.device_count)(&raw mut count)
        })?;
        if number >= count as usize {
            let count = count as usize;
            return Err(CardError::NoCard { number, count });
        }
        self.check("cuDeviceGet", unsafe {
            (driver.device)(&raw mut device, number as c_int)
        })?;
        let mut name = [0; 256];
        self.check("cuDeviceGetName", unsafe {
            (driver.device_name)(name.as_mut_ptr(), name.len() as c_int, device)
        })?;
        // SAFETY: the driver ends the name with a zero.
        self.name = unsafe { CStr::from_ptr(name.as_ptr()) }
            .to_string_lossy()
            .into_owned();
        let (major, minor) = (
            self.attribute(device, CAPABILITY_MAJOR)?,
            self.attribute(device, CAPABILITY_MINOR)?,
        );
        self.capability = (major, minor);
        if self.capability < LEAST_CAPABILITY {
            let name = self.name.clone();
            return Err(CardError::TooOld { name, major, minor });
        }
        self.multiprocessors = self.attribute(device, MULTIPROCESSORS)? as usize;
        self.check("cuDevicePrimaryCtxRetain", unsafe {
            (driver.primary_context)(&raw mut context, device)
        })?;
        self.context = context;
        self.bind()
    }

    /// Lets this thread use the card.
    ///
    /// # Errors
    /// The context of the card was destroyed.
    pub fn bind(&self) -> Result<(), CardError> {
        // SAFETY: the context was retained when the card was opened, and is never released.
        self.check("cuCtxSetCurrent", unsafe {
            (self.driver.use_context)(self.context)
        })
    }

    fn attribute(&self, device: c_int, attribute: c_int) -> Result<i32, CardError> {
        let mut value = 0;
        // SAFETY: the number is written to a place that lives through the call.
        let code = unsafe { (self.driver.device_attribute)(&raw mut value, attribute, device) };
        self.check("cuDeviceGetAttribute", code).map(|()| value)
    }

    fn check(&self, call: &'static str, code: Code) -> Result<(), CardError> {
        if code == 0 {
            return Ok(());
        }
        let mut text = std::ptr::null();
        // SAFETY: the text is a literal of the driver, or stays null.
        let message = unsafe {
            (self.driver.error_text)(code, &raw mut text);
            text.as_ref()
                .map(|first| CStr::from_ptr(first).to_string_lossy().into_owned())
        };
        Err(CardError::Call {
            call,
            code,
            message: message.unwrap_or_default(),
        })
    }

    /// Whether a kernel may start before the end of the one ahead, as far as what it reads does not depend on that (dependent launch;
    /// every kernel waits by `griddepcontrol.wait` before it reads anything else). So it is unless this says otherwise: for who
    /// wants to know what it gains, or suspects it.
    #[must_use]
    pub fn launching_ahead(self, launches_ahead: bool) -> Self {
        Card {
            launches_ahead,
            ..self
        }
    }

    /// What the card is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many multiprocessors it has: the blocks of products of our own.
    pub fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    /// Compiles sources for this card, side by side, and loads their kernels. How long each took to compile.
    ///
    /// # Errors
    /// A source does not compile, or the driver refuses what was made of it.
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
            self.load_code(source, &code?)?;
            times.push((*source, time));
        }
        Ok(times)
    }

    fn load_code(&mut self, source: &str, code: &[u8]) -> Result<(), CardError> {
        let (driver, mut module) = (self.driver, std::ptr::null_mut());
        // SAFETY: the code is a whole file of ELF, which the driver copies.
        self.check("cuModuleLoadData", unsafe {
            (driver.load_module)(&raw mut module, code.as_ptr().cast())
        })?;
        for kernel in KERNELS.iter().filter(|kernel| kernel.source == source) {
            let (name, mut function) = (
                CString::new(kernel.name).unwrap_or_default(),
                std::ptr::null_mut(),
            );
            // SAFETY: the module was loaded and is never unloaded; the name is a C string.
            self.check("cuModuleGetFunction", unsafe {
                (driver.function)(&raw mut function, module, name.as_ptr())
            })?;
            for (attribute, value) in [
                (MOST_DYNAMIC_SHARED, MOST_SHARED as c_int),
                (SHARED_CARVEOUT, 100),
            ] {
                // SAFETY: the function is one of the module.
                self.check("cuFuncSetAttribute", unsafe {
                    (driver.set_attribute)(function, attribute, value)
                })?;
            }
            self.functions.insert(kernel.name, function);
        }
        Ok(())
    }

    /// New memory with these bytes in it.
    ///
    /// # Errors
    /// There is no room, or the copy failed.
    pub fn upload(&self, bytes: &[u8]) -> Result<CardMemory, CardError> {
        let mut address = 0;
        // SAFETY: the address is written to a place that lives through the call.
        self.check("cuMemAlloc", unsafe {
            (self.driver.allocate)(&raw mut address, bytes.len().max(16))
        })?;
        let memory = CardMemory {
            address,
            bytes: bytes.len(),
        };
        self.write(memory, bytes).map(|()| memory)
    }

    /// Overwrites memory.
    ///
    /// # Errors
    /// The copy failed.
    pub fn write(&self, memory: CardMemory, bytes: &[u8]) -> Result<(), CardError> {
        let bytes = &bytes[..bytes.len().min(memory.bytes)];
        // SAFETY: no more bytes are copied than there are on either side.
        self.check("cuMemcpyHtoD", unsafe {
            (self.driver.upload)(memory.address, bytes.as_ptr().cast(), bytes.len())
        })
    }

    /// What is in memory, once all launches are over.
    ///
    /// # Errors
    /// A launch or the copy failed.
    pub fn download(&self, memory: CardMemory) -> Result<Vec<u8>, CardError> {
        self.synchronize()?;
        let mut bytes = vec![0; memory.bytes];
        // SAFETY: there is room for as many bytes as are copied.
        self.check("cuMemcpyDtoH", unsafe {
            (self.driver.download)(bytes.as_mut_ptr().cast(), memory.address, bytes.len())
        })?;
        Ok(bytes)
    }

    /// Gives memory back.
    ///
    /// # Errors
    /// It was given back before, or a launch failed.
    pub fn free(&self, memory: CardMemory) -> Result<(), CardError> {
        // SAFETY: the driver refuses an address that is not the start of memory that it gave.
        self.check("cuMemFree", unsafe { (self.driver.free)(memory.address) })
    }

    /// Waits for all launches.
    ///
    /// # Errors
    /// One of them failed.
    pub fn synchronize(&self) -> Result<(), CardError> {
        // SAFETY: a context is current.
        self.check("cuCtxSynchronize", unsafe { (self.driver.synchronize)() })
    }

    /// Starts a node whose buffers begin at these addresses, behind those that were started before.
    ///
    /// # Errors
    /// Its kernel was not loaded, or the driver refuses the launch. What fails later is an error of [`synchronize`](Self::synchronize).
    pub fn launch<B>(&self, node: &Node<B>, address: impl FnMut(&B) -> u64) -> Result<(), CardError> {
        self.launch_on(node, address, std::ptr::null_mut())
    }

    /// The same on a stream.
    pub(super) fn launch_on<B>(
        &self,
        node: &Node<B>,
        address: impl FnMut(&B) -> u64,
        stream: Handle,
    ) -> Result<(), CardError> {
        let name = node.kernel.name;
        let function = *self.functions.get(name).ok_or(CardError::NotLoaded(name))?;
        let mut arguments = node.pack(address);
        let mut parameters = [arguments.as_mut_ptr().cast()];
        let attribute = LaunchAttribute::DEPENDENT;
        let config = LaunchConfig {
            grid: node.grid,
            block: [node.kernel.threads, 1, 1],
            shared: node.shared,
            stream,
            attributes: &raw const attribute,
            attribute_count: c_uint::from(self.launches_ahead),
        };
        // SAFETY: the kernel takes one struct, which `pack` lays out and the driver copies. That its pointers are those of
        // buffers that are large enough is the caller's to see to; a kernel that goes astray ends the context, not the process.
        self.check("cuLaunchKernelEx", unsafe {
            (self.driver.launch)(
                &raw const config,
                function,
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }

    /// The milliseconds that some work takes on the card.
    ///
    /// # Errors
    /// The work fails, or a call of the driver.
    pub fn time(&self, work: impl FnOnce() -> Result<(), CardError>) -> Result<f32, CardError> {
        let (begin, end) = (self.event()?, self.event()?);
        let mut milliseconds = 0.0;
        let (driver, stream) = (self.driver, std::ptr::null_mut());
        // SAFETY: both events were made above and are destroyed below.
        self.check("cuEventRecord", unsafe { (driver.record)(begin, stream) })?;
        work()?;
        self.check("cuEventRecord", unsafe { (driver.record)(end, stream) })?;
        self.check("cuEventSynchronize", unsafe { (driver.await_event)(end) })?;
        self.check("cuEventElapsedTime", unsafe {
            (driver.elapsed)(&raw mut milliseconds, begin, end)
        })?;
        for event in [begin, end] {
            self.check("cuEventDestroy", unsafe { (driver.destroy_event)(event) })?;
        }
        Ok(milliseconds)
    }

    fn event(&self) -> Result<Handle, CardError> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the event is written to a place that lives through the call.
        let code = unsafe { (self.driver.create_event)(&raw mut event, 0) };
        self.check("cuEventCreate", code).map(|()| event)
    }
}

/// Memory of the host that the card can reach.
pub(super) struct Pinned {
    pub(super) memory: Handle,
    pub(super) bytes: usize,
    event: Handle,
}

/// What a [`Stream`](stream::Stream) does on a card: all of it behind what the stream was told before.
impl Card {
    /// A stream that waits for the default stream, which waits for it.
    pub(super) fn new_stream(&self) -> Result<Handle, CardError> {
        let mut stream = std::ptr::null_mut();
        // SAFETY: the stream is written to a place that lives through the call.
        let code = unsafe { (self.driver.create_stream)(&raw mut stream, 0) };
        self.check("cuStreamCreate", code).map(|()| stream)
    }

    pub(super) fn drop_stream(&self, stream: Handle) -> Result<(), CardError> {
        // SAFETY: the stream was made by `new_stream`, and is not used afterwards.
        self.check("cuStreamDestroy", unsafe { (self.driver.destroy_stream)(stream) })
    }

    /// Copies pinned memory to the card, some time later: until the event that is recorded behind it, nobody may write there.
    pub(super) fn send_on(
        &self,
        address: u64,
        from: &Pinned,
        bytes: usize,
        stream: Handle,
    ) -> Result<(), CardError> {
        // SAFETY: no more bytes are copied than there are. That there is room is the caller's to see to.
        self.check("cuMemcpyHtoDAsync", unsafe {
            (self.driver.upload_behind)(address, from.memory, bytes.min(from.bytes), stream)
        })
    }

    /// Copies memory of the card to pinned memory, some time later.
    pub(super) fn fetch_on(
        &self,
        address: u64,
        to: &Pinned,
        bytes: usize,
        stream: Handle,
    ) -> Result<(), CardError> {
        // SAFETY: there is room for as many bytes as are copied. That they are there is the caller's to see to.
        self.check("cuMemcpyDtoHAsync", unsafe {
            (self.driver.download_behind)(to.memory, address, bytes.min(to.bytes), stream)
        })
    }

    /// So many bytes of memory of the host that the card can reach, with an event for the last copy from or to it.
    pub(super) fn pin(&self, bytes: usize) -> Result<Pinned, CardError> {
        let (event, mut memory) = (self.event()?, std::ptr::null_mut());
        // SAFETY: the address is written to a place that lives through the call.
        let code = unsafe { (self.driver.allocate_host)(&raw mut memory, bytes) };
        self.check("cuMemAllocHost", code)?;
        Ok(Pinned { memory, bytes, event })
    }

    pub(super) fn unpin(&self, pinned: &Pinned) -> Result<(), CardError> {
        // SAFETY: both were made by `pin`, and are not used afterwards.
        unsafe {
            self.check("cuEventDestroy", (self.driver.destroy_event)(pinned.event))?;
            self.check("cuMemFreeHost", (self.driver.free_host)(pinned.memory))
        }
    }

    /// Remembers that the last copy from or to this memory is behind all that the stream was told.
    pub(super) fn mark(&self, pinned: &Pinned, stream: Handle) -> Result<(), CardError> {
        // SAFETY: the event was made by `pin`.
        self.check("cuEventRecord", unsafe {
            (self.driver.record)(pinned.event, stream)
        })
    }

    /// Waits for the last copy from or to this memory.
    pub(super) fn await_mark(&self, pinned: &Pinned) -> Result<(), CardError> {
        // SAFETY: as above.
        self.check("cuEventSynchronize", unsafe {
            (self.driver.await_event)(pinned.event)
        })
    }

    /// Whether the last copy from or to this memory is over.
    pub(super) fn is_over(&self, pinned: &Pinned) -> bool {
        // SAFETY: as above. An event that was never recorded is over.
        unsafe { (self.driver.is_event_over)(pinned.event) == 0 }
    }

    pub(super) fn read_on(&self, address: u64, bytes: &mut [u8], stream: Handle) -> Result<(), CardError> {
        // SAFETY: the stream is one of this card.
        self.check("cuStreamSynchronize", unsafe {
            (self.driver.await_stream)(stream)
        })?;
        // SAFETY: there is room for as many bytes as are copied.
        self.check("cuMemcpyDtoH", unsafe {
            (self.driver.download)(bytes.as_mut_ptr().cast(), address, bytes.len())
        })
    }

    pub(super) fn begin_capture(&self, stream: Handle, mode: c_int) -> Result<(), CardError> {
        // SAFETY: the stream is one of this card.
        self.check("cuStreamBeginCapture", unsafe {
            (self.driver.begin_capture)(stream, mode)
        })
    }

    /// What was captured, ready to be launched.
    pub(super) fn end_capture(&self, stream: Handle) -> Result<Handle, CardError> {
        let (mut graph, mut executable) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the graph is written to a place that lives through the call; so below.
        self.check("cuStreamEndCapture", unsafe {
            (self.driver.end_capture)(stream, &raw mut graph)
        })?;
        let code = unsafe { (self.driver.instantiate)(&raw mut executable, graph, 0) };
        // SAFETY: what is launched is a copy of the graph, which nobody else has.
        self.check("cuGraphDestroy", unsafe { (self.driver.destroy_graph)(graph) })?;
        self.check("cuGraphInstantiate", code).map(|()| executable)
    }

    pub(super) fn launch_graph(&self, graph: Handle, stream: Handle) -> Result<(), CardError> {
        // SAFETY: the graph was made by `end_capture` and has not been dropped.
        self.check("cuGraphLaunch", unsafe {
            (self.driver.launch_graph)(graph, stream)
        })
    }

    /// Drops a graph once it is over.
    pub(super) fn drop_graph(&self, graph: Handle, stream: Handle) -> Result<(), CardError> {
        // SAFETY: the stream is one of this card; the graph was made by `end_capture` and is not used afterwards.
        unsafe {
            self.check("cuStreamSynchronize", (self.driver.await_stream)(stream))?;
            self.check("cuGraphExecDestroy", (self.driver.destroy_executable)(graph))
        }
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
            // A driver without any card fails when it is begun.
            Some(CardError::Call { call, .. }) => assert_eq!(call, "cuInit"),
            other => panic!("{other:?}"),
        }
    }
}
