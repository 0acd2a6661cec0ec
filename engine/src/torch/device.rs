//! The devices on which tensors live, and their number types.
//!
//! torch checks once whether there is CUDA, and keeps the answer. So libtorch_cuda.so, which registers itself
//! when it is opened, must be opened before the first check: [`Device::open`] does both in this order.

use crate::error::LoadError;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;
use tch::Kind;

/// A device to compute on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Device {
    /// The CPU.
    #[default]
    Cpu,
    /// The GPU with this number.
    Cuda(usize),
}

/// An explanation of how to use several GPUs, for users who request a model on all of them.
pub const SEVERAL_CARDS: &str = "Tensor parallelism, one model on several cards, is not supported; run one process a card, \
    --device cuda:0, --device cuda:1 and so on, each on a port of its own, behind a router: see \"Several cards\" in \
    docs/src/operating.md and deploy/haproxy.cfg";

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(',') {
            return Err(format!(
                "{text:?} names several devices, and a process uses one. {SEVERAL_CARDS}"
            ));
        }
        let index = match text {
            "cpu" => return Ok(Device::Cpu),
            "cuda" => "0",
            _ => text.strip_prefix("cuda:").unwrap_or_default(),
        };
        index
            .parse()
            .map(Device::Cuda)
            .map_err(|_| format!("{text:?} is not a device; expected cpu, cuda or cuda:N"))
    }
}

impl Device {
    /// Checks whether a model could run here: opens the device, or returns the reason why it cannot be used.
    ///
    /// # Errors
    /// There is no such device, or libtorch has no libraries for it.
    pub fn check(self) -> Result<(), LoadError> {
        self.open().map(|_| ())
    }

    /// Opens the device, or returns the reason why it cannot be used.
    pub(crate) fn open(self) -> Result<tch::Device, LoadError> {
        let Device::Cuda(index) = self else {
            return Ok(tch::Device::Cpu);
        };
        let refuse = |message| LoadError::Device {
            device: self.to_string(),
            message,
        };
        open_cuda().map_err(|error| {
            refuse(format!(
                "libtorch_cuda.so could not be opened: {error}; `cargo xtask setup --cuda` brings the libraries of CUDA"
            ))
        })?;
        if !tch::Cuda::is_available() {
            return Err(refuse(
                "libtorch was opened with CUDA, but there is no driver or no GPU".to_string(),
            ));
        }
        let count = tch::Cuda::device_count();
        if index as i64 >= count {
            return Err(refuse(format!("there are only {count} GPUs")));
        }
        Ok(tch::Device::Cuda(index))
    }
}

/// The number type of weights and cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dtype {
    /// f32 on the CPU; on a GPU the type of the checkpoint.
    #[default]
    Auto,
    /// 32-bit floats.
    F32,
    /// 16-bit floats with the range of f32.
    Bf16,
    /// 16-bit floats.
    F16,
}

impl FromStr for Dtype {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Dtype::Auto),
            "f32" | "float32" => Ok(Dtype::F32),
            "bf16" | "bfloat16" => Ok(Dtype::Bf16),
            "f16" | "float16" => Ok(Dtype::F16),
            _ => Err(format!(
                "{text:?} is not a number type; expected auto, f32, bf16 or f16"
            )),
        }
    }
}

impl Dtype {
    /// Returns the kind to compute in, for a checkpoint in the kind `stored`.
    pub(crate) fn kind(self, device: Device, stored: Kind) -> Kind {
        match (self, device) {
            (Dtype::F32, _) | (Dtype::Auto, Device::Cpu) => Kind::Float,
            (Dtype::Bf16, _) => Kind::BFloat16,
            (Dtype::F16, _) => Kind::Half,
            (Dtype::Auto, Device::Cuda(_)) => stored,
        }
    }
}

unsafe extern "C" {
    fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

const RTLD_NOW: c_int = 2;
const RTLD_GLOBAL: c_int = 0x100;

/// Opens libtorch's CUDA half once, and remembers the outcome.
fn open_cuda() -> Result<(), String> {
    static OPENED: OnceLock<Result<(), String>> = OnceLock::new();
    let open = || {
        let file = folder_of("libtorch_cpu.so")
            .unwrap_or_default()
            .join("libtorch_cuda.so");
        let name = CString::new(file.to_string_lossy().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: `name` is a C string that lives through the call; libtorch_cuda.so is meant to be opened
        // this way.
        let handle = unsafe { dlopen(name.as_ptr(), RTLD_NOW | RTLD_GLOBAL) };
        if !handle.is_null() {
            return Ok(());
        }
        // SAFETY: after a failed dlopen, dlerror returns a C string that is valid until the next call on this
        // thread.
        let reason = unsafe { dlerror().as_ref().map(|first| CStr::from_ptr(first)) };
        Err(reason.map_or("no reason given".to_string(), |reason| {
            reason.to_string_lossy().into_owned()
        }))
    };
    OPENED.get_or_init(open).clone()
}

/// Returns the folder from which this process has loaded a library.
pub(super) fn folder_of(library: &str) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let files = maps.lines().filter_map(mapped_file).map(PathBuf::from);
    let mut found = files.filter(|file| file.file_name().is_some_and(|name| name == library));
    Some(found.next()?.parent()?.to_path_buf())
}

/// Returns the file of a line of `/proc/self/maps`: all that follows the first slash, since names may contain
/// spaces.
fn mapped_file(line: &str) -> Option<&str> {
    line.find('/').map(|at| &line[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_types_are_read_and_written() {
        for text in ["cpu", "cuda:0", "cuda:3"] {
            assert_eq!(text.parse::<Device>().unwrap().to_string(), text);
        }
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
        for text in ["", "gpu", "cuda:", "cuda:x", "cuda:-1"] {
            assert!(
                text.parse::<Device>().unwrap_err().contains("expected cpu"),
                "{text}"
            );
        }
        let several = "cuda:0,cuda:1".parse::<Device>().unwrap_err();
        assert!(several.contains("one process a card"), "{several}");
        assert_eq!("bfloat16".parse(), Ok(Dtype::Bf16));
        assert!("int8".parse::<Dtype>().is_err());
    }

    /// Guards against a checkout in a folder with a space in its name, where CUDA was not found.
    #[test]
    fn a_mapped_file_may_have_spaces_in_its_name() {
        let line =
            "7f01-7f02 r-xp 00000000 fe:00 1234567                    /home/me/my work/lib/libtorch_cpu.so";
        assert_eq!(mapped_file(line), Some("/home/me/my work/lib/libtorch_cpu.so"));
        assert_eq!(mapped_file("7f01-7f02 rw-p 00000000 00:00 0 "), None);
        assert!(folder_of("libtorch_cpu.so").is_some_and(|folder| folder.join("libtorch_cpu.so").exists()));
    }

    /// Guards against pages of C++ calls where an operator should read that memory is short.
    #[test]
    fn memory_that_is_not_there_is_told_in_one_line() {
        let huge = tch::Tensor::f_zeros([1 << 50], (Kind::Float, tch::Device::Cpu));
        let told = crate::error::in_one_line(&huge.expect_err("a petabyte"));
        assert_eq!(
            told,
            format!(
                "there is not enough memory: {} bytes more are needed",
                1_u64 << 52
            )
        );
        assert_eq!(crate::error::in_one_line(&"short\nframe #0: at::zeros"), "short");
    }

    #[test]
    fn a_gpu_that_is_not_there_is_an_error_with_a_reason() {
        match Device::Cuda(99).open() {
            Err(LoadError::Device { device, message }) => {
                assert_eq!(device, "cuda:99");
                assert!(!message.is_empty());
            }
            other => panic!("{other:?}"),
        }
    }
}
