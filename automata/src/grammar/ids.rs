//! The numbers by which the parts of a grammar refer to each other.

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the arena.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index!(
    /// An expression of a [`Cfg`](super::Cfg).
    ExprId
);
index!(
    /// A rule of a [`Cfg`](super::Cfg).
    RuleId
);
index!(
    /// A regular language of a [`Cfg`](super::Cfg).
    RegularId
);
index!(
    /// A series of a [`Cfg`](super::Cfg).
    SeriesId
);
