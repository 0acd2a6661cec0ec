//! Tells the linker that the symbols of Node-API come from the process that loads the library.

fn main() {
    napi_build::setup();
}
