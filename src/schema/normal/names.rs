//! Names of keys in the order in which they came, each once. An object may name tens of thousands, and each is looked for
//! whenever one is added to another list.

use std::rc::Rc;

use foldhash::HashSet;

/// So many names are compared sooner than one is hashed.
const FEW: usize = 8;

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    list: Vec<Rc<str>>,
    /// All of them, once they are more than a few.
    hashed: HashSet<Rc<str>>,
}

impl Names {
    /// Adds a name that is not among them yet.
    pub(super) fn add(&mut self, name: Rc<str>) {
        if self.contains(&name) {
            return;
        }
        if self.list.len() == FEW {
            self.hashed.extend(self.list.iter().cloned());
        }
        if self.list.len() >= FEW {
            self.hashed.insert(name.clone());
        }
        self.list.push(name);
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        match self.list.len() {
            ..=FEW => self.list.iter().any(|known| &**known == name),
            _ => self.hashed.contains(name),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Rc<str>> {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_however_many_there_are() {
        let name = |at: usize| Rc::<str>::from(format!("k{at}"));
        let mut names = Names::default();
        for at in 0..3 * FEW {
            assert!(!names.contains(&name(at)));
            names.add(name(at));
            names.add(name(at / 2));
            assert_eq!(names.len(), at + 1);
            assert!((0..=at).all(|at| names.contains(&name(at))));
        }
        let listed: Vec<Rc<str>> = names.iter().cloned().collect();
        assert_eq!(listed, (0..3 * FEW).map(name).collect::<Vec<_>>());
    }
}
