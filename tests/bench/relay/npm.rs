//! The Yjs servers of npm with their defaults: documents in memory and no storage.

use std::process::Stdio;
use std::sync::Arc;

use tokio::process::Command;

use crate::client::Dialect;
use crate::contender::Relay;

const PEERS: [(&str, &str, Dialect); 2] = [
    ("@y/websocket-server", "y_websocket.mjs", Dialect::YWebsocket),
    ("@hocuspocus/server", "hocuspocus.mjs", Dialect::Hocuspocus),
];

/// The servers whose packages are installed, by name.
pub(crate) async fn peers() -> Vec<(&'static str, Arc<Relay>)> {
    let mut peers = Vec::new();
    for (name, program, dialect) in PEERS {
        let mut command = Command::new("node");
        command.arg(program).stderr(Stdio::null());
        command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bench/peers"));
        match Relay::start(command, dialect).await {
            Some(relay) => peers.push((name, Arc::new(relay))),
            None => println!("{name} is left out: (cd tests/bench/peers && npm ci)"),
        }
    }
    peers
}
