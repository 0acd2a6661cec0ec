//! What decoders differ in: the kinds of norms and activations, and how many heads.

/// A norm's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormKind {
    /// By the root of the mean of squares.
    Rms,
    /// The same, with scales that are stored less one.
    RmsPlusOne,
    /// By mean and variance, with a bias.
    Layer,
}

/// What queries and keys are normed over before they are turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QkNorm {
    /// They are not.
    None,
    /// Each head.
    Head,
    /// All heads of a token.
    Token,
}

/// What lies between the matrices of a layer's second half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    Silu,
    /// With the error function.
    Gelu,
    /// The approximation with tanh.
    GeluTanh,
    Relu,
}

/// Heads and their size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    pub(crate) queries: i64,
    pub(crate) keys: i64,
    pub(crate) size: i64,
}
