//! The functions of CUDA's driver and of NVRTC that launching kernels takes, opened at run time: nothing of CUDA is needed to build.
//!
//! Names and types are those of `cuda.h` and `nvrtc.h`, versions 12 and 13.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;

unsafe extern "C" {
    fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

const RTLD_NOW: c_int = 2;
const RTLD_GLOBAL: c_int = 0x100;

/// What CUDA calls a pointer of its own.
pub(super) type Handle = *mut c_void;
/// Zero where a call succeeded.
pub(super) type Code = c_int;

/// `CUlaunchConfig`: how a kernel is launched.
#[repr(C)]
#[allow(dead_code, reason = "the driver reads the fields")]
pub(super) struct LaunchConfig {
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared: c_uint,
    pub(super) stream: Handle,
    pub(super) attributes: *const LaunchAttribute,
    pub(super) attribute_count: c_uint,
}

/// `CUlaunchAttribute` with a value that is an `int`; other values are pointers, which it is aligned for.
#[repr(C, align(8))]
#[allow(dead_code, reason = "the driver reads the fields")]
pub(super) struct LaunchAttribute {
    id: c_int,
    padding: [u8; 4],
    value: c_int,
    /// The value is a union of 64 bytes.
    rest: [u8; 60],
}

impl LaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: the kernel may start before the end of the one ahead on its stream.
    pub(super) const DEPENDENT: Self = LaunchAttribute {
        id: 6,
        padding: [0; 4],
        value: 1,
        rest: [0; 60],
    };
}

/// Opens a library for the rest of the process.
pub(super) fn open(file: &Path) -> Result<Handle, String> {
    let name = CString::new(file.to_string_lossy().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the name is a C string that lives through the call; libraries of CUDA are meant to be opened this way.
    let handle = unsafe { dlopen(name.as_ptr(), RTLD_NOW | RTLD_GLOBAL) };
    if !handle.is_null() {
        return Ok(handle);
    }
    // SAFETY: after a failed dlopen, dlerror returns a C string that is valid until the next call on this thread.
    let reason = unsafe { dlerror().as_ref().map(|first| CStr::from_ptr(first)) };
    Err(reason.map_or("no reason given".to_owned(), |reason| {
        reason.to_string_lossy().into_owned()
    }))
}

/// Defines a struct of functions that a library has by these names.
macro_rules! functions {
    ($(#[$meta:meta])* $library:ident { $($name:ident = $symbol:literal ($($argument:ty),*);)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub(super) struct $library {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> Code,)*
        }

        impl $library {
            /// The functions of an opened library; the name of the first that it lacks.
            pub(super) fn of(library: Handle) -> Result<Self, &'static str> {
                Ok($library {
                    $($name: {
                        let symbol = concat!($symbol, "\0").as_ptr().cast();
                        // SAFETY: the library was opened and is never closed, and the symbol is a C string.
                        let found = unsafe { dlsym(library, symbol) };
                        if found.is_null() {
                            return Err($symbol);
                        }
                        // SAFETY: the header declares the function of this name with these types.
                        unsafe { std::mem::transmute::<Handle, unsafe extern "C" fn($($argument),*) -> Code>(found) }
                    },)*
                })
            }
        }
    };
}

functions! {
    /// libcuda.so.1, which comes with the driver.
    Driver {
        init = "cuInit" (c_uint);
        error_text = "cuGetErrorString" (Code, *mut *const c_char);
        device_count = "cuDeviceGetCount" (*mut c_int);
        device = "cuDeviceGet" (*mut c_int, c_int);
        device_name = "cuDeviceGetName" (*mut c_char, c_int, c_int);
        device_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
        primary_context = "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
        use_context = "cuCtxSetCurrent" (Handle);
        synchronize = "cuCtxSynchronize" ();
        allocate = "cuMemAlloc_v2" (*mut u64, usize);
        free = "cuMemFree_v2" (u64);
        upload = "cuMemcpyHtoD_v2" (u64, *const c_void, usize);
        download = "cuMemcpyDtoH_v2" (*mut c_void, u64, usize);
        load_module = "cuModuleLoadData" (*mut Handle, *const c_void);
        function = "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
        set_attribute = "cuFuncSetAttribute" (Handle, c_int, c_int);
        launch = "cuLaunchKernelEx" (*const LaunchConfig, Handle, *mut *mut c_void, *mut *mut c_void);
        create_event = "cuEventCreate" (*mut Handle, c_uint);
        record = "cuEventRecord" (Handle, Handle);
        await_event = "cuEventSynchronize" (Handle);
        is_event_over = "cuEventQuery" (Handle);
        elapsed = "cuEventElapsedTime" (*mut f32, Handle, Handle);
        destroy_event = "cuEventDestroy_v2" (Handle);
        create_stream = "cuStreamCreate" (*mut Handle, c_uint);
        await_stream = "cuStreamSynchronize" (Handle);
        destroy_stream = "cuStreamDestroy_v2" (Handle);
        upload_behind = "cuMemcpyHtoDAsync_v2" (u64, *const c_void, usize, Handle);
        download_behind = "cuMemcpyDtoHAsync_v2" (*mut c_void, u64, usize, Handle);
        allocate_host = "cuMemAllocHost_v2" (*mut *mut c_void, usize);
        free_host = "cuMemFreeHost" (*mut c_void);
        begin_capture = "cuStreamBeginCapture_v2" (Handle, c_int);
        end_capture = "cuStreamEndCapture" (Handle, *mut Handle);
        instantiate = "cuGraphInstantiateWithFlags" (*mut Handle, Handle, u64);
        destroy_graph = "cuGraphDestroy" (Handle);
        launch_graph = "cuGraphLaunch" (Handle, Handle);
        destroy_executable = "cuGraphExecDestroy" (Handle);
    }
}

functions! {
    /// libcublas.so.13, which comes with libtorch for CUDA.
    Blas {
        create = "cublasCreate_v2" (*mut Handle);
        destroy = "cublasDestroy_v2" (Handle);
        set_stream = "cublasSetStream_v2" (Handle, Handle);
        set_workspace = "cublasSetWorkspace_v2" (Handle, *mut c_void, usize);
        multiply = "cublasGemmEx" (
            Handle, c_int, c_int, c_int, c_int, c_int, *const c_void, *const c_void, c_int, c_int, *const c_void, c_int, c_int,
            *const c_void, *mut c_void, c_int, c_int, c_int, c_int
        );
    }
}

functions! {
    /// libnvrtc.so.
    Nvrtc {
        create = "nvrtcCreateProgram" (
            *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
        );
        compile = "nvrtcCompileProgram" (Handle, c_int, *const *const c_char);
        log_size = "nvrtcGetProgramLogSize" (Handle, *mut usize);
        log = "nvrtcGetProgramLog" (Handle, *mut c_char);
        code_size = "nvrtcGetCUBINSize" (Handle, *mut usize);
        code = "nvrtcGetCUBIN" (Handle, *mut c_char);
        destroy = "nvrtcDestroyProgram" (*mut Handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    /// The sizes and places of fields that `cuda.h` has on 64 bits.
    #[test]
    fn structs_lie_as_the_driver_reads_them() {
        assert_eq!(size_of::<LaunchConfig>(), 56);
        assert_eq!(
            [
                offset_of!(LaunchConfig, grid),
                offset_of!(LaunchConfig, block),
                offset_of!(LaunchConfig, shared),
                offset_of!(LaunchConfig, stream),
                offset_of!(LaunchConfig, attributes),
                offset_of!(LaunchConfig, attribute_count),
            ],
            [0, 12, 24, 32, 40, 48]
        );
        assert_eq!(size_of::<LaunchAttribute>(), 72);
        assert_eq!(align_of::<LaunchAttribute>(), 8);
        assert_eq!(offset_of!(LaunchAttribute, value), 8);
    }
}
