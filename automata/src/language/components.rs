//! Strongly connected components (Tarjan 1972), without recursion.

/// Returns the number of the component of each node. A component's number is smaller than those of the
/// components that lead into it, so an edge between components goes from a larger to a smaller number.
/// O(nodes + edges).
pub(crate) fn components<E: AsRef<[u32]>>(edges: &[E]) -> Vec<u32> {
    let mut search = ComponentSearch {
        edges,
        order: vec![u32::MAX; edges.len()],
        low: vec![0; edges.len()],
        component: vec![u32::MAX; edges.len()],
        path: Vec::new(),
        next_order: 0,
        next_component: 0,
    };
    for node in 0..edges.len() as u32 {
        if search.order[node as usize] == u32::MAX {
            search.run(node);
        }
    }
    search.component
}

struct ComponentSearch<'a, E> {
    edges: &'a [E],
    order: Vec<u32>,
    low: Vec<u32>,
    component: Vec<u32>,
    path: Vec<u32>,
    next_order: u32,
    next_component: u32,
}

impl<E: AsRef<[u32]>> ComponentSearch<'_, E> {
    fn run(&mut self, root: u32) {
        self.enter(root);
        let mut calls = vec![(root, 0usize)];
        while let Some((node, at)) = calls.last_mut() {
            let node = *node;
            match self.edges[node as usize].as_ref().get(*at) {
                Some(&next) => {
                    *at += 1;
                    if self.order[next as usize] == u32::MAX {
                        self.enter(next);
                        calls.push((next, 0));
                    } else if self.component[next as usize] == u32::MAX {
                        self.low[node as usize] = self.low[node as usize].min(self.order[next as usize]);
                    }
                }
                None => {
                    calls.pop();
                    self.leave(node);
                    if let Some(&(caller, _)) = calls.last() {
                        self.low[caller as usize] = self.low[caller as usize].min(self.low[node as usize]);
                    }
                }
            }
        }
    }

    fn enter(&mut self, node: u32) {
        self.order[node as usize] = self.next_order;
        self.low[node as usize] = self.next_order;
        self.next_order += 1;
        self.path.push(node);
    }

    fn leave(&mut self, node: u32) {
        if self.low[node as usize] != self.order[node as usize] {
            return;
        }
        while let Some(member) = self.path.pop() {
            self.component[member as usize] = self.next_component;
            if member == node {
                break;
            }
        }
        self.next_component += 1;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn cycles_are_one_component_and_edges_go_down() {
        let found = super::components(&[vec![1], vec![2], vec![0, 3], vec![4], vec![3], vec![]]);
        assert_eq!(found[0], found[1]);
        assert_eq!(found[1], found[2]);
        assert_eq!(found[3], found[4]);
        assert!(found[0] > found[3]);
        assert_ne!(found[5], found[3]);
    }
}
