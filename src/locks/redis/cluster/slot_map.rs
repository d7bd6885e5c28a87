//! The slot map of a Cluster: the node of each slot, as far as this process knows. No IO.

use std::sync::Arc;

use crate::redis::node::Node;
use crate::redis_client::Address;
use crate::redis_client::slots::{Range, SLOTS};

const NO_NODE: u16 = u16::MAX;

#[derive(Clone, Debug)]
pub(crate) struct View {
    nodes: Vec<Arc<Node>>,
    /// The index of its node, for each slot.
    of_slot: Vec<u16>,
}

impl View {
    pub(crate) fn empty() -> Self {
        Self { nodes: Vec::new(), of_slot: vec![NO_NODE; usize::from(SLOTS)] }
    }

    /// The map that these ranges describe. Known nodes are reused; `open` creates the others.
    pub(crate) fn read(
        &self,
        ranges: &[Range],
        open: impl Fn(&Address) -> Option<Arc<Node>>,
    ) -> Self {
        let mut view = Self::empty();
        for range in ranges {
            let node = view.find(&range.primary).or_else(|| self.find(&range.primary)).cloned();
            let Some(node) = node.or_else(|| open(&range.primary)) else { continue };
            for slot in range.first..=range.last {
                view.give(slot, &node);
            }
        }
        view
    }

    pub(crate) fn give(&mut self, slot: u16, node: &Arc<Node>) {
        let index = self.insert_node(node);
        if let Some(of_slot) = self.of_slot.get_mut(usize::from(slot)) {
            *of_slot = index;
        }
    }

    pub(crate) fn insert_node(&mut self, node: &Arc<Node>) -> u16 {
        let index = self.nodes.iter().rposition(|other| Arc::ptr_eq(other, node));
        let index = index.unwrap_or_else(|| {
            self.nodes.push(Arc::clone(node));
            self.nodes.len() - 1
        });
        u16::try_from(index).unwrap_or(NO_NODE)
    }

    pub(crate) fn node_of(&self, slot: u16) -> Option<&Arc<Node>> {
        let index = self.of_slot.get(usize::from(slot))?;
        self.nodes.get(usize::from(*index))
    }

    pub(crate) fn find(&self, address: &Address) -> Option<&Arc<Node>> {
        self.nodes.iter().find(|node| node.address == *address)
    }

    pub(crate) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    pub(crate) fn missing(&self) -> usize {
        self.of_slot.iter().filter(|index| **index == NO_NODE).count()
    }

    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let same = |(one, other)| Arc::ptr_eq(one, other);
        self.of_slot == other.of_slot
            && self.nodes.len() == other.nodes.len()
            && self.nodes.iter().zip(&other.nodes).all(same)
    }
}
