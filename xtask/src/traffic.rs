//! Commands that send HTTP requests to a running service: many clients at once, some of which request several
//! texts, heavy clients beside a light one, and hostile ones.

pub(crate) mod attack;
pub(crate) mod crowd;
pub(crate) mod fair;
pub(crate) mod load;
