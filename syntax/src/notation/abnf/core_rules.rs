//! The rules that every grammar in ABNF has without defining them.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use crate::notation::tree::{Definition, Node, NodeKind};

/// These rules, in ABNF.
pub(super) const SOURCE: &str = include_str!("core_rules.abnf");

/// Adds those of the core rules that the definitions call and do not define.
pub(super) fn add(definitions: &mut Vec<Definition>, core: Vec<Definition>) {
    let key = |name: &str| name.to_ascii_lowercase();
    let mut known: HashSet<String> = HashSet::with_capacity(definitions.len());
    known.extend(definitions.iter().map(|definition| key(&definition.name)));
    let mut core: HashMap<String, Definition> = {
        let named = core
            .into_iter()
            .map(|definition| (key(&definition.name), definition));
        let mut core = HashMap::with_capacity(named.len());
        core.extend(named.filter(|(name, _)| !known.contains(name)));
        core
    };
    let mut at = 0;
    while let Some(definition) = definitions.get(at) {
        let mut called = Vec::new();
        names(&definition.body, &mut called);
        let called: Vec<Definition> = called.iter().filter_map(|name| core.remove(&key(name))).collect();
        definitions.extend(called);
        at += 1;
    }
}

/// Collects the names that a part calls. Recurses as deep as the part, which is bounded.
fn names<'n>(node: &'n Node, found: &mut Vec<&'n str>) {
    if let NodeKind::Name(name) = &node.kind {
        found.push(name);
    }
    for part in node.parts() {
        names(part, found);
    }
}
