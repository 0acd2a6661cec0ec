//! A launch of a kernel as data: the kernel, the number of blocks, and arguments that are places in named
//! buffers.
//!
//! Every kernel takes one C struct by value. [`Node::pack`] lays its fields out as C does, with the addresses
//! that the buffers have where the node is launched: on a card, or on the processor in tests.

/// A kernel of the sources of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name of the function.
    pub name: &'static str,
    /// The source that defines it.
    pub source: &'static str,
    /// The number of threads of a block.
    pub threads: u32,
}

/// A place in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<B> {
    /// The buffer.
    pub buffer: B,
    /// The offset from its start, in bytes.
    pub offset: usize,
}

impl<B> Place<B> {
    /// Returns the start of a buffer.
    pub fn start(buffer: B) -> Self {
        Place { buffer, offset: 0 }
    }

    /// Returns the place `bytes` bytes after this one.
    pub fn behind(self, bytes: usize) -> Self {
        Place {
            offset: self.offset + bytes,
            ..self
        }
    }

    /// Returns this place in a buffer that begins at an address.
    pub fn at(&self, address: impl Fn(&B) -> u64) -> Place<u64> {
        Place {
            buffer: address(&self.buffer),
            offset: self.offset,
        }
    }
}

impl Place<u64> {
    /// Returns the address of the place.
    pub fn address(&self) -> u64 {
        self.buffer + self.offset as u64
    }
}

/// A field of the arguments of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument<B> {
    /// A pointer.
    At(Place<B>),
    /// A null pointer, for an argument that the kernel can do without.
    Absent,
    /// An `int`.
    Int(i32),
    /// A `float`.
    Float(f32),
}

impl<B> From<Place<B>> for Argument<B> {
    fn from(place: Place<B>) -> Self {
        Argument::At(place)
    }
}

impl<B> From<Option<Place<B>>> for Argument<B> {
    fn from(place: Option<Place<B>>) -> Self {
        place.map_or(Argument::Absent, Argument::At)
    }
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<B> {
    /// The kernel that is launched.
    pub kernel: &'static Kernel,
    /// The number of blocks in each of three dimensions.
    pub grid: [u32; 3],
    /// The bytes of dynamic shared memory of a block.
    pub shared: u32,
    /// The fields of its struct of arguments.
    pub arguments: Vec<Argument<B>>,
}

impl<B> Node<B> {
    /// Returns this launch over buffers that begin at these addresses.
    pub fn at(&self, address: impl Fn(&B) -> u64) -> Node<u64> {
        let argument = |argument: &Argument<B>| match argument {
            Argument::At(place) => Argument::At(place.at(&address)),
            Argument::Absent => Argument::Absent,
            Argument::Int(value) => Argument::Int(*value),
            Argument::Float(value) => Argument::Float(*value),
        };
        Node {
            kernel: self.kernel,
            grid: self.grid,
            shared: self.shared,
            arguments: self.arguments.iter().map(argument).collect(),
        }
    }

    /// Returns the struct of arguments as bytes, given the address of each buffer.
    pub fn pack(&self, mut address: impl FnMut(&B) -> u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 * self.arguments.len());
        for argument in &self.arguments {
            match argument {
                Argument::At(place) => put(&mut bytes, address(&place.buffer) + place.offset as u64),
                Argument::Absent => put(&mut bytes, 0),
                Argument::Int(value) => bytes.extend(value.to_le_bytes()),
                Argument::Float(value) => bytes.extend(value.to_le_bytes()),
            }
        }
        // Every struct has a pointer, which determines the alignment of the struct.
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }
}

fn put(bytes: &mut Vec<u8>, pointer: u64) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend(pointer.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_c_has_them() {
        const KERNEL: Kernel = Kernel {
            name: "k",
            source: "k.cu",
            threads: 1,
        };
        let node = Node {
            kernel: &KERNEL,
            grid: [1; 3],
            shared: 0,
            arguments: vec![
                Argument::Int(1),
                Argument::At(Place {
                    buffer: 'b',
                    offset: 4,
                }),
                Argument::Absent,
                Argument::Int(-1),
                Argument::Float(1.0),
                Argument::Int(2),
            ],
        };
        let bytes = node.pack(|&buffer| u64::from(buffer == 'b') * 0x1000);
        let words: Vec<u32> = bytes
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, [1, 0, 0x1004, 0, 0, 0, !0, 1.0_f32.to_bits(), 2, 0]);
    }
}
