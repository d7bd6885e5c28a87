//! The names of this server: that for its operators, its origins, and its hosts.

use std::net::SocketAddr;

use crate::config::{ServerSettings, Settings};
use crate::http::host::Hosts;
use crate::http::origin::Origins;

/// `server.name`, or the name of the host.
#[must_use]
pub fn server_name(settings: &Settings) -> String {
    match settings.server.name.as_str() {
        "" => rustix::system::uname().nodename().to_string_lossy().into_owned(),
        name => name.to_owned(),
    }
}

pub(super) fn origins(server: &ServerSettings, address: SocketAddr) -> Origins {
    let origins = match &server.public_url {
        Some(origin) => Origins::exactly(origin.clone()),
        None => Origins::of_listener(address),
    };
    let origins = origins.with_page(server.page_url.as_ref());
    origins.with_host(&server.allowed_origins, &server.frame_ancestors)
}

pub(super) fn hosts(server: &ServerSettings) -> Hosts {
    let public = [&server.public_url, &server.page_url].map(|url| Some(url.as_ref()?.host()));
    Hosts::new(server.listen, &public.into_iter().flatten().collect::<Vec<_>>(), &server.hosts)
}
