//! The Redis Cluster client: it finds the node that owns a slot.
//!
//! Galley does not use the crate's own Cluster client. That client retries failed commands up to 16
//! times, accepts a pipeline for one slot only, and has no separate connection for renewals. Here
//! each node has two [`Link`]s, as a single Redis has, and the caller decides about each retry.
//!
//! The *guide* is one connection to any node; when it breaks, it reopens at the next node. It
//! queries the slot map and carries the subscription for hand-overs, because a message published on
//! one node reaches all nodes. A stale map is harmless: a node that lost a slot replies `MOVED` or
//! `ASK` with the new address and executes nothing. A node executes nothing either while it
//! migrates the slot (`TRYAGAIN`) or while the Cluster is down (`CLUSTERDOWN`).

pub(super) mod slot_map;

use std::sync::Arc;
use std::time::Duration;

use redis::{Client, ErrorKind, RedisError, ServerErrorKind};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::redis::cluster::slot_map::View;
use crate::redis::connection::Link;
use crate::redis::error::explain;
use crate::redis::node::{Node, NodeContext};
use crate::redis::scripts::pipeline;
use crate::redis::server_identity::NodeOrigin;
use crate::redis_client::slots::{Range, is_well, ranges};
use crate::redis_client::{Address, Addresses, jittered};
use crate::types::{CallError, LocksError, unexpected};

const QUERY_TIMEOUT: Duration = Duration::from_millis(500);
/// Interval of slot queries while all is well. `MOVED` replies report changes in between.
const QUERY_EVERY: Duration = Duration::from_secs(10);
/// The interval while a node is unreachable or a slot has no node.
const QUERY_EVERY_DEGRADED: Duration = Duration::from_millis(250);
/// The shortest pause between two slot queries, however many calls request a refresh.
const QUERY_PAUSE_MIN: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Cluster {
    seeds: Vec<Client>,
    guide: Link,
    guide_addresses: Arc<Addresses>,
    context: NodeContext,
    view: watch::Sender<Arc<View>>,
    fault: watch::Sender<Option<LocksError>>,
    stale: Notify,
}

/// The meaning of a node's refusal. The node executed nothing in any of these cases.
#[derive(Debug)]
pub(crate) enum Redirect {
    /// `MOVED`: the slot map now has the new owner.
    Elsewhere,
    /// `ASK`: send this one call to that node.
    Asking(Arc<Node>),
    /// The slot migrates or has no node: retry later.
    Later(LocksError),
    /// The node refused the call for another reason.
    Refused(LocksError),
}

impl Cluster {
    /// A Cluster with some of its nodes in `seeds`. The caller runs the supervisor of `guide`,
    /// which connects to `guide_addresses`.
    pub(crate) fn new(
        seeds: Vec<Client>,
        guide: Link,
        guide_addresses: Arc<Addresses>,
        context: NodeContext,
    ) -> Self {
        Self {
            seeds,
            guide,
            guide_addresses,
            context,
            view: watch::Sender::new(Arc::new(View::empty())),
            fault: watch::Sender::new(None),
            stale: Notify::new(),
        }
    }

    pub(crate) async fn run_refreshes(self: Arc<Self>) {
        loop {
            self.refresh_slots().await;
            let pause = if self.is_whole() { QUERY_EVERY } else { QUERY_EVERY_DEGRADED };
            tokio::select! {
                () = self.stale.notified() => {}
                () = sleep(jittered(pause)) => {}
            }
            sleep(jittered(QUERY_PAUSE_MIN)).await;
        }
    }

    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.borrow())
    }

    /// The slot map; waits for the first.
    pub(crate) async fn some_view(&self, deadline: Instant) -> Result<Arc<View>, LocksError> {
        let mut view = self.view.subscribe();
        tokio::select! {
            seen = view.wait_for(|view| !view.nodes().is_empty()) => {
                seen.map(|view| Arc::clone(&view)).map_err(|_closed| unexpected())
            }
            () = sleep_until(deadline) => Err(self.why_not(None)),
        }
    }

    /// The owner of a slot; waits until it is reachable.
    pub(crate) async fn reachable_owner(
        &self,
        slot: u16,
        deadline: Instant,
    ) -> Result<Arc<Node>, CallError> {
        let mut view = self.view.subscribe();
        loop {
            let node = view.borrow_and_update().node_of(slot).cloned();
            if let Some(node) = &node
                && node.calls.is_up()
            {
                return Ok(Arc::clone(node));
            }
            self.stale.notify_one();
            let opens = async {
                match &node {
                    Some(node) => node.calls.opens().await,
                    None => false,
                }
            };
            tokio::select! {
                Ok(()) = view.changed() => {}
                true = opens => {}
                () = sleep_until(deadline) => {
                    return Err(CallError::Unsent(self.why_not(node.as_deref())));
                }
            }
        }
    }

    /// The owner of a slot by the map, reachable or not.
    pub(crate) fn owner_of_slot(&self, slot: u16) -> Result<Arc<Node>, CallError> {
        self.view.borrow().node_of(slot).cloned().ok_or_else(|| {
            self.stale.notify_one();
            CallError::Unsent(self.why_not(None))
        })
    }

    /// Interprets the refusal of `node` to serve `slot`. A `MOVED` reply updates the slot map.
    pub(crate) fn redirect(&self, node: &Node, slot: u16, error: &RedisError) -> Redirect {
        use ServerErrorKind as Is;
        let named = || Address::read(error.redirect_node()?.0, &node.address);
        let redirect = match error.kind() {
            ErrorKind::Server(Is::Moved) => match named().and_then(|named| self.node_at(&named)) {
                Some(there) => {
                    self.view.send_modify(|view| Arc::make_mut(view).give(slot, &there));
                    Redirect::Elsewhere
                }
                None => Redirect::Later(unexpected()),
            },
            ErrorKind::Server(Is::Ask) => match named().and_then(|named| self.node_at(&named)) {
                Some(there) => Redirect::Asking(there),
                None => Redirect::Later(unexpected()),
            },
            ErrorKind::Server(
                Is::TryAgain | Is::ClusterDown | Is::MasterDown | Is::BusyLoading | Is::ReadOnly,
            ) => Redirect::Later(LocksError::Unavailable(error.to_string())),
            _ => return Redirect::Refused(explain(error)),
        };
        self.stale.notify_one();
        redirect
    }

    /// Requests a refresh: a node did not serve as the map says.
    pub(crate) fn request_refresh(&self) {
        self.stale.notify_one();
    }

    /// The node at an address; opens it if the map has none.
    fn node_at(&self, address: &Address) -> Option<Arc<Node>> {
        if let Some(node) = self.view.borrow().find(address) {
            return Some(Arc::clone(node));
        }
        let mut found = None;
        self.view.send_modify(|view| {
            // A concurrent call may have opened it.
            found = view.find(address).cloned().or_else(|| self.open(address, NodeOrigin::Later));
            if let Some(node) = &found {
                Arc::make_mut(view).insert_node(node);
            }
        });
        found
    }

    fn open(&self, address: &Address, origin: NodeOrigin) -> Option<Arc<Node>> {
        let client = address.client_like(self.seeds.first()?).ok()?;
        tracing::info!(redis = %address, "a node of the Cluster");
        let addresses = Arc::new(Addresses::new(vec![client]));
        Some(Node::open(address.clone(), addresses, origin, &self.context))
    }

    /// Queries the slot map: the guide first, then the other reachable nodes, until one reports
    /// that all is well. A partitioned node does not report that.
    async fn refresh_slots(&self) {
        let view = self.view();
        let others = view.nodes().iter().filter(|node| node.calls.is_up());
        let others = others.map(|node| (&node.calls, Some(&node.address)));
        let mut sources = std::iter::once((&self.guide, None)).chain(others).enumerate();
        let (mut well, mut doubtful, mut fault) = (None, None, None);
        while well.is_none()
            && let Some((at, (link, address))) = sources.next()
        {
            match self.query_slots(link, address).await {
                Ok((ranges, true)) => well = Some((at, ranges)),
                Ok((ranges, false)) => doubtful = doubtful.or(Some(ranges)),
                Err(why) => fault = fault.or(Some(why)),
            }
        }
        match (well, doubtful) {
            (Some((at, ranges)), _) => {
                if at > 0 {
                    // The guide is partitioned or does not reply.
                    self.guide.reopen();
                }
                self.adopt(&ranges);
            }
            (None, Some(ranges)) => self.adopt(&ranges),
            (None, None) => drop(self.fault.send_replace(fault)),
        }
    }

    async fn query_slots(
        &self,
        link: &Link,
        address: Option<&Address>,
    ) -> Result<(Vec<Range>, bool), LocksError> {
        let mut request = pipeline();
        request.cmd("CLUSTER").arg("SLOTS").cmd("CLUSTER").arg("INFO");
        let answer = link.query(&request, Instant::now() + QUERY_TIMEOUT).await?;
        let source =
            address.cloned().or_else(|| self.guide_addresses.last()).ok_or_else(unexpected)?;
        let mut replies = answer.replies.into_iter();
        let slots = replies.next().ok_or_else(unexpected)?.map_err(|error| explain(&error))?;
        let is_well = replies.next().and_then(Result::ok).is_some_and(|info| is_well(&info));
        Ok((ranges(&slots, &source).ok_or_else(unexpected)?, is_well))
    }

    fn adopt(&self, ranges: &[Range]) {
        let is_changed = self.view.send_if_modified(|view| {
            let origin =
                if view.nodes().is_empty() { NodeOrigin::First } else { NodeOrigin::Later };
            let read = view.read(ranges, |address| self.open(address, origin));
            let is_changed = !read.is_like(view);
            if is_changed {
                *view = Arc::new(read);
            }
            is_changed
        });
        self.fault.send_replace(None);
        if !is_changed {
            return;
        }
        let view = self.view();
        tracing::info!(
            nodes = view.nodes().len(),
            missing = view.missing(),
            "slots of the Cluster"
        );
        let addresses = view.nodes().iter().map(|node| &node.address);
        let clients = addresses.filter_map(|address| address.client_like(self.seeds.first()?).ok());
        self.guide_addresses.replace(clients.chain(self.seeds.iter().cloned()).collect());
    }

    fn is_whole(&self) -> bool {
        let view = self.view();
        view.missing() == 0
            && view.nodes().iter().all(|node| node.calls.is_up() && node.renewals.is_up())
    }

    /// Why a slot has no reachable owner; `node` is its owner by the map.
    fn why_not(&self, node: Option<&Node>) -> LocksError {
        let unavailable = |why: String| LocksError::Unavailable(why);
        match node {
            Some(node) => unavailable(format!("the node {} is unreachable", node.address)),
            None => {
                self.fault.borrow().clone().unwrap_or_else(|| {
                    unavailable("no node of the Cluster owns the slot".to_owned())
                })
            }
        }
    }
}
