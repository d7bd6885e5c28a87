//! A Redis Cluster: finding the node that has a slot.
//!
//! The crate's own Cluster client is not used: it sends what failed again by itself, up to 16 times,
//! gives a pipeline to one slot only, and has no connection that nothing but renewals uses. Here a
//! node is two [`Link`]s like those to a single Redis, and who sends decides what is sent again.
//!
//! The *guide* is a connection to any one node; when that dies it leads to the next. It is asked
//! who has which slot, and hand-overs are heard on it, for a message published on one node reaches
//! all. The view that comes of it may be out of date, and that does no harm: a node that has not a
//! slot any more says who has it (`MOVED`), or that another is just getting it (`ASK`), and does
//! nothing. While a slot is on its way (`TRYAGAIN`) or nobody may serve it (`CLUSTERDOWN`), nothing
//! was done either.

pub(in crate::locks) mod crc16;
pub(super) mod slot_map;

use std::sync::Arc;
use std::time::Duration;

use redis::{Client, ErrorKind, RedisError, ServerErrorKind};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::locks::redis::cluster::slot_map::{Range, View, is_well, ranges};
use crate::locks::redis::connection::{Link, jittered};
use crate::locks::redis::error::{Fault, explain};
use crate::locks::redis::node::{Coming, Node, Upbringing};
use crate::locks::redis::reply::unexpected;
use crate::locks::redis::scripts::pipeline;
use crate::locks::types::LocksError;
use crate::redis_client::{Address, Addresses};

/// How long one node may take to tell who has what.
const TELLING_MAX: Duration = Duration::from_millis(500);
/// How often it is asked while all is well. What moved meanwhile is learnt from `MOVED`.
const ASKED_EVERY: Duration = Duration::from_secs(10);
/// The same while a node cannot be reached or a slot has none.
const ASKED_IN_NEED_EVERY: Duration = Duration::from_millis(250);
/// Nobody is asked more often, however many wish it.
const ASKED_AFTER: Duration = Duration::from_millis(50);

/// A Cluster and its nodes. It is left to its tasks to keep it true.
#[derive(Debug)]
pub(in crate::locks) struct Cluster {
    seeds: Vec<Client>,
    guide: Link,
    guide_addresses: Arc<Addresses>,
    upbringing: Upbringing,
    view: watch::Sender<Arc<View>>,
    /// Why there is no view yet, or none that can be used.
    fault: watch::Sender<Option<LocksError>>,
    stale: Notify,
}

/// What a node's refusal means for what was asked. Nothing was done in any of these cases.
#[derive(Debug)]
pub(in crate::locks) enum Turn {
    /// The slot is elsewhere, and the view says where by now.
    Elsewhere,
    /// This one only is to be asked there.
    Asking(Arc<Node>),
    /// It is on its way, or nobody may serve it: later.
    Later(LocksError),
    /// It is refused for another reason.
    Refused(LocksError),
}

impl Cluster {
    /// A Cluster of which `seeds` are some nodes. `guide` is kept up elsewhere, at `addresses`.
    pub(in crate::locks) fn new(
        seeds: Vec<Client>,
        guide: Link,
        guide_addresses: Arc<Addresses>,
        upbringing: Upbringing,
    ) -> Self {
        Self {
            seeds,
            guide,
            guide_addresses,
            upbringing,
            view: watch::Sender::new(Arc::new(View::empty())),
            fault: watch::Sender::new(None),
            stale: Notify::new(),
        }
    }

    /// Keeps the view true, for ever.
    pub(in crate::locks) async fn keep_view(self: Arc<Self>) {
        loop {
            self.look_round().await;
            let pause = if self.is_whole() { ASKED_EVERY } else { ASKED_IN_NEED_EVERY };
            tokio::select! {
                () = self.stale.notified() => {}
                () = sleep(jittered(pause)) => {}
            }
            sleep(jittered(ASKED_AFTER)).await;
        }
    }

    /// The view as it is now.
    pub(in crate::locks) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.borrow())
    }

    /// The view, once there is one.
    pub(in crate::locks) async fn some_view(
        &self,
        deadline: Instant,
    ) -> Result<Arc<View>, LocksError> {
        let mut view = self.view.subscribe();
        tokio::select! {
            seen = view.wait_for(|view| !view.nodes().is_empty()) => {
                seen.map(|view| Arc::clone(&view)).map_err(|_closed| unexpected())
            }
            () = sleep_until(deadline) => Err(self.why_not(None)),
        }
    }

    /// The node that has a slot and can be reached, once there is one.
    pub(in crate::locks) async fn serving(
        &self,
        slot: u16,
        deadline: Instant,
    ) -> Result<Arc<Node>, Fault> {
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
                    return Err(Fault::Unsent(self.why_not(node.as_deref())));
                }
            }
        }
    }

    /// The node that has a slot, reached or not.
    pub(in crate::locks) fn supposed(&self, slot: u16) -> Result<Arc<Node>, Fault> {
        self.view.borrow().node_of(slot).cloned().ok_or_else(|| {
            self.stale.notify_one();
            Fault::Unsent(self.why_not(None))
        })
    }

    /// What `node` means by its refusal to serve `slot`. What it tells of where that is is believed.
    pub(in crate::locks) fn turn(&self, node: &Node, slot: u16, error: &RedisError) -> Turn {
        use ServerErrorKind as Is;
        let told = || Address::read(error.redirect_node()?.0, &node.address);
        let turn = match error.kind() {
            ErrorKind::Server(Is::Moved) => match told().and_then(|told| self.node_at(&told)) {
                Some(there) => {
                    self.view.send_modify(|view| Arc::make_mut(view).give(slot, &there));
                    Turn::Elsewhere
                }
                None => Turn::Later(unexpected()),
            },
            ErrorKind::Server(Is::Ask) => match told().and_then(|told| self.node_at(&told)) {
                Some(there) => Turn::Asking(there),
                None => Turn::Later(unexpected()),
            },
            ErrorKind::Server(
                Is::TryAgain | Is::ClusterDown | Is::MasterDown | Is::BusyLoading | Is::ReadOnly,
            ) => Turn::Later(LocksError::Unavailable(error.to_string())),
            _ => return Turn::Refused(explain(error)),
        };
        self.stale.notify_one();
        turn
    }

    /// Somebody was not there where the view says.
    pub(in crate::locks) fn is_stale(&self) {
        self.stale.notify_one();
    }

    /// The node at an address, known or new.
    fn node_at(&self, address: &Address) -> Option<Arc<Node>> {
        if let Some(node) = self.view.borrow().find(address) {
            return Some(Arc::clone(node));
        }
        let mut found = None;
        self.view.send_modify(|view| {
            // Another may have been as quick.
            found = view.find(address).cloned().or_else(|| self.open(address, Coming::Later));
            if let Some(node) = &found {
                Arc::make_mut(view).keep(node);
            }
        });
        found
    }

    fn open(&self, address: &Address, coming: Coming) -> Option<Arc<Node>> {
        let client = address.client_like(self.seeds.first()?).ok()?;
        tracing::info!(node = %address, "a node of the Cluster");
        let addresses = Arc::new(Addresses::new(vec![client]));
        Some(Node::open(address.clone(), addresses, coming, &self.upbringing))
    }

    /// Asks who has what: the guide first, then whoever else can be reached, until one says that
    /// all is well. One that is cut off from the others does not say so.
    async fn look_round(&self) {
        let known = self.view();
        let others = known.nodes().iter().filter(|node| node.calls.is_up());
        let others = others.map(|node| (&node.calls, Some(&node.address)));
        let mut sources = std::iter::once((&self.guide, None)).chain(others).enumerate();
        let (mut well, mut doubtful, mut fault) = (None, None, None);
        while well.is_none()
            && let Some((at, (link, address))) = sources.next()
        {
            match self.ask(link, address).await {
                Ok((ranges, true)) => well = Some((at, ranges)),
                Ok((ranges, false)) => doubtful = doubtful.or(Some(ranges)),
                Err(why) => fault = fault.or(Some(why)),
            }
        }
        match (well, doubtful) {
            (Some((at, ranges)), _) => {
                if 0 < at {
                    // The guide is cut off from the others, or does not answer.
                    self.guide.reopen();
                }
                self.adopt(&ranges);
            }
            (None, Some(ranges)) => self.adopt(&ranges),
            (None, None) => drop(self.fault.send_replace(fault)),
        }
    }

    /// What one node says of the slots, and whether it thinks that all is well.
    async fn ask(
        &self,
        link: &Link,
        address: Option<&Address>,
    ) -> Result<(Vec<Range>, bool), LocksError> {
        let mut request = pipeline();
        request.cmd("CLUSTER").arg("SLOTS").cmd("CLUSTER").arg("INFO");
        let answer = link.ask(&request, Instant::now() + TELLING_MAX).await?;
        let asked =
            address.cloned().or_else(|| self.guide_addresses.last()).ok_or_else(unexpected)?;
        let mut replies = answer.replies.into_iter();
        let slots = replies.next().ok_or_else(unexpected)?.map_err(|error| explain(&error))?;
        let is_well = replies.next().and_then(Result::ok).is_some_and(|info| is_well(&info));
        Ok((ranges(&slots, &asked).ok_or_else(unexpected)?, is_well))
    }

    fn adopt(&self, ranges: &[Range]) {
        let is_changed = self.view.send_if_modified(|view| {
            let coming = if view.nodes().is_empty() { Coming::First } else { Coming::Later };
            let read = view.read(ranges, |address| self.open(address, coming));
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
        let known = view.nodes().iter().map(|node| &node.address);
        let clients = known.filter_map(|address| address.client_like(self.seeds.first()?).ok());
        self.guide_addresses.replace(clients.chain(self.seeds.iter().cloned()).collect());
    }

    fn is_whole(&self) -> bool {
        let view = self.view();
        view.missing() == 0
            && view.nodes().iter().all(|node| node.calls.is_up() && node.renewals.is_up())
    }

    /// Why a slot is not served, where `node` should.
    fn why_not(&self, node: Option<&Node>) -> LocksError {
        let unavailable = |why: String| LocksError::Unavailable(why);
        match node {
            Some(node) => unavailable(format!("the node {} is out of reach", node.address)),
            None => {
                self.fault.borrow().clone().unwrap_or_else(|| {
                    unavailable("no node of the Cluster has the slot".to_owned())
                })
            }
        }
    }
}
