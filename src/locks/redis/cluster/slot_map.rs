//! The slot map of a Cluster: the node of each slot, as far as this process knows. No IO.

use std::sync::Arc;

use redis::Value;

use crate::redis::cluster::crc16::SLOTS;
use crate::redis::node::Node;
use crate::redis_client::Address;

const NO_NODE: u16 = u16::MAX;

#[derive(Clone, Debug)]
pub(crate) struct View {
    nodes: Vec<Arc<Node>>,
    /// The index of its node, for each slot.
    of_slot: Vec<u16>,
}

/// One row of `CLUSTER SLOTS`: the primary owns the slots from `first` to `last`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) primary: Address,
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

/// Parses the reply to `CLUSTER SLOTS` of the node at `source`: first slot, last slot, then the
/// primary and its replicas, each with host and port first. `None` if the reply has another form.
pub(crate) fn ranges(reply: &Value, source: &Address) -> Option<Vec<Range>> {
    let Value::Array(rows) = reply else { return None };
    rows.iter().map(|row| range(row, source)).collect()
}

fn range(row: &Value, source: &Address) -> Option<Range> {
    let Value::Array(fields) = row else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = fields.as_slice() else {
        return None;
    };
    let [host, Value::Int(port), ..] = primary.as_slice() else { return None };
    let host = match host {
        // The node does not know its own address, or its configuration hides it.
        Value::Nil => "",
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?,
        Value::SimpleString(text) => text,
        _ => return None,
    };
    let slot = |number: i64| u16::try_from(number).ok().filter(|slot| *slot < SLOTS);
    let primary = Address::read(&format!("{host}:{port}"), source)?;
    Some(Range { first: slot(*first)?, last: slot(*last)?, primary })
}

pub(crate) fn is_well(reply: &Value) -> bool {
    let text = match reply {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes),
        Value::VerbatimString { text, .. } => text.as_str().into(),
        _ => return false,
    };
    text.lines().any(|line| line.trim_end() == "cluster_state:ok")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), text("id"), Value::Map(vec![])])
    }

    #[test]
    fn ranges_are_read_with_their_primaries() {
        let source = Address { host: "here".to_owned(), port: 1 };
        let (one, two) = (node(text("10.0.0.1"), 7), node(Value::Nil, 8));
        let rows = vec![
            Value::Array(vec![Value::Int(0), Value::Int(99), one.clone(), two.clone()]),
            Value::Array(vec![Value::Int(100), Value::Int(16_383), two]),
        ];
        let read = ranges(&Value::Array(rows), &source).expect("ranges");
        let read_ranges: Vec<_> =
            read.iter().map(|it| (it.first, it.last, it.primary.to_string())).collect();
        assert_eq!(
            read_ranges,
            [(0, 99, "10.0.0.1:7".to_owned()), (100, 16_383, "here:8".to_owned())]
        );
        for strange in [
            Value::Nil,
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(16_384), one.clone()])]),
            Value::Array(vec![Value::Array(vec![Value::Int(-1), Value::Int(3), one])]),
        ] {
            assert_eq!(ranges(&strange, &source), None);
        }
        assert!(is_well(&text("cluster_state:ok\r\ncluster_slots_assigned:16384\r\n")));
        assert!(!is_well(&text("cluster_state:fail\r\n")) && !is_well(&Value::Nil));
    }
}
