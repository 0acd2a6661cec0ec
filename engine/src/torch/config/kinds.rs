//! The properties in which decoders differ: the kinds of norms and activations, and the number of heads.

/// The kind of a norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormKind {
    /// Divides by the root of the mean of squares.
    Rms,
    /// Like [`Rms`](Self::Rms), with scales that are stored less one.
    RmsPlusOne,
    /// Normalises by mean and variance, and adds a bias.
    Layer,
}

/// The range over which queries and keys are normalised before they are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QkNorm {
    /// They are not normalised.
    None,
    /// Each head.
    Head,
    /// All heads of a token.
    Token,
}

/// The function between the matrices of a layer's second half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    Silu,
    /// GELU with the error function.
    Gelu,
    /// GELU approximated with tanh.
    GeluTanh,
    Relu,
}

/// The numbers of heads, and their size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    pub(crate) queries: i64,
    pub(crate) keys: i64,
    pub(crate) size: i64,
}
