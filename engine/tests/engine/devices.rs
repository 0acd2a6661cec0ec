//! Where tests of models run: on the processor, and on a graphics card where there is one.

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
