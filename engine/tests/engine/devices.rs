//! The devices on which tests of models run: the processor, and a graphics card if there is one.

use lexiform_engine::Device;

/// The first graphics card, if there is one that libtorch can use; else the test says that it is skipped.
pub(crate) fn cuda(test: &str) -> Option<Device> {
    let device = Device::Cuda(0);
    match device.check() {
        Ok(()) => Some(device),
        Err(_) => {
            println!("skipped: {test}: no CUDA device");
            None
        }
    }
}

/// Each of these tests on the processor, and on a graphics card; to be used in a module `on` beside them.
macro_rules! on_every_device {
    ($($test:ident),* $(,)?) => {
        mod cpu {
            use super::*;
            $(#[test] fn $test() { super::super::$test(Device::Cpu); })*
        }

        mod gpu {
            $(#[test] fn $test() {
                if let Some(device) = crate::devices::cuda(concat!(stringify!($test), " on a graphics card")) {
                    super::super::$test(device);
                }
            })*
        }
    };
}

pub(crate) use on_every_device;
