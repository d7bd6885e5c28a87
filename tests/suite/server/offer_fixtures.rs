//! Servers and users for review offers.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::galley_process::Server;
use crate::support::postgres_server::{self, Database};
use crate::support::redis_server;
use crate::support::rest_client::{Answer, Person};

/// Servers of one installation.
pub(crate) struct Fleet {
    pub(crate) servers: Vec<Server>,
    pub(crate) redis: Option<redis_server::Server>,
    pub(crate) database: Option<Database>,
}

impl Fleet {
    /// One server with SQLite and locks in memory.
    pub(crate) async fn alone() -> Self {
        Self { servers: vec![Server::start().await], redis: None, database: None }
    }

    /// Servers with one Redis and one PostgreSQL.
    pub(crate) async fn of(servers: usize) -> Self {
        Self::with(servers, &[]).await
    }

    /// Servers with one Redis, one PostgreSQL and these settings.
    pub(crate) async fn with(servers: usize, more: &[(&str, &str)]) -> Self {
        let redis = redis_server::Server::start().await;
        let database = postgres_server::shared().database().await;
        let (locks, url) = (redis.url(), database.url());
        let mut settings = vec![("LOCKS__URL", locks.as_str()), ("DATABASE__URL", url.as_str())];
        settings.extend_from_slice(more);
        let folder = Arc::new(TempDir::new().expect("a folder"));
        // The first one creates the secret.
        let mut all = vec![Server::in_folder(folder, &settings).await];
        while all.len() < servers {
            let next = all[0].beside().await;
            all.push(next);
        }
        Self { servers: all, redis: Some(redis), database: Some(database) }
    }

    /// One of the servers, in rotation.
    pub(crate) fn server(&self, index: usize) -> &Server {
        &self.servers[index % self.servers.len()]
    }

    /// Guests who enter at all servers.
    pub(crate) async fn guests(&self, count: usize) -> Vec<Person> {
        let names: Vec<_> = (0..count).map(|number| format!("Guest {number}")).collect();
        let enter = |(index, name): (usize, &String)| {
            let (server, name) = (self.server(index), name.clone());
            async move { server.guest(&name).await }
        };
        join_all(names.iter().enumerate().map(enter)).await
    }

    /// A claim of each guest at once, at all servers.
    pub(crate) async fn claim_at_once(&self, guests: &[Person], offer: &str) -> Vec<Answer> {
        let claims = guests.iter().enumerate();
        join_all(claims.map(|(index, guest)| decided(self.server(index), guest, offer))).await
    }
}

/// A claim, sent again while the server says 503: on a busy machine a grant or Redis comes too late.
pub(crate) async fn decided(server: &Server, who: &Person, offer: &str) -> Answer {
    let path = format!("/api/review-offers/{offer}/claims");
    server.call_patiently(who, "POST", &path, Some(json!({}))).await
}

/// The id of a new offer.
pub(crate) async fn an_offer(server: &Server, owner: &Person, capacity: u32) -> String {
    let body = json!({ "title": "이번 주 첨삭 다섯 편", "capacity": capacity });
    let offer = server.post(owner, "/api/review-offers", body).await.ok(201);
    offer["id"].as_str().expect("an id").to_owned()
}

pub(crate) async fn claim(server: &Server, who: &Person, offer: &str) -> Answer {
    server.post(who, &format!("/api/review-offers/{offer}/claims"), json!({})).await
}

pub(crate) async fn offer(server: &Server, who: &Person, id: &str) -> Value {
    server.get(who, &format!("/api/review-offers/{id}")).await.ok(200)
}

/// The claims of an offer, for its owner, by their numbers.
pub(crate) async fn claims(server: &Server, owner: &Person, offer: &str) -> Vec<Value> {
    let list = server.get(owner, &format!("/api/review-offers/{offer}/claims?limit=100")).await;
    let mut claims = list.ok(200)["claims"].as_array().expect("rows").clone();
    claims.sort_by_key(|claim| claim["number"].as_i64());
    claims
}

/// The numbers of claims.
pub(crate) fn numbers<'c>(claims: impl IntoIterator<Item = &'c Value>) -> Vec<i64> {
    let mut numbers: Vec<_> =
        claims.into_iter().map(|claim| claim["number"].as_i64().expect("a number")).collect();
    numbers.sort_unstable();
    numbers
}
