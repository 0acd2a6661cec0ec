//! The ids by which the parts of a grammar refer to each other.

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the position in the arena.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index!(
    /// The id of an expression of a [`Cfg`](super::Cfg).
    ExprId
);
index!(
    /// The id of a rule of a [`Cfg`](super::Cfg).
    RuleId
);
index!(
    /// The id of a regular language of a [`Cfg`](super::Cfg).
    RegularId
);
index!(
    /// The id of an object list of a [`Cfg`](super::Cfg).
    ObjectListId
);
