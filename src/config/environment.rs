//! Environment variables: separates settings from variables that only share the prefix.
//!
//! A setting joins section and key with two underscores (`GALLEY_SERVER__LISTEN`). Kubernetes injects
//! `GALLEY_SERVICE_HOST` and `GALLEY_PORT_8080_TCP` into each container of a namespace that has a
//! Service named `galley`; other programs use the prefix for their own variables. The server ignores
//! both kinds, so neither prevents the start.

use std::collections::HashMap;

const PREFIX: &str = "GALLEY_";
const SEPARATOR: &str = "__";

/// The variables that are settings: section, key and text. An empty one is not set.
pub(super) fn settings(all: HashMap<String, String>) -> impl Iterator<Item = [String; 3]> {
    all.into_iter().filter_map(|(name, text)| {
        let is_set = is_setting(&name) && !text.is_empty();
        let name = name.strip_prefix(PREFIX).filter(|_| is_set)?.to_ascii_lowercase();
        let (section, key) = name.split_once(SEPARATOR)?;
        Some([section.to_owned(), key.to_owned(), text])
    })
}

/// The line that lists variables with the prefix that the settings ignore; `None` if there is none.
///
/// It reports the common mistake: a setting with one underscore in place of two. Names that Kubernetes
/// derives from a Service are no mistake and stay unlisted.
#[must_use]
pub fn ignored<'a>(names: impl Iterator<Item = &'a String>) -> Option<String> {
    let is_listed =
        |name: &&String| name.starts_with(PREFIX) && !is_setting(name) && !is_of_kubernetes(name);
    let mut ignored: Vec<&str> = names.filter(is_listed).map(String::as_str).collect();
    ignored.sort_unstable();
    (!ignored.is_empty()).then(|| {
        let names = ignored.join(", ");
        format!(
            "the server ignores {names}: two underscores join section and key of a setting, as in \
             GALLEY_SERVER__LISTEN"
        )
    })
}

fn is_setting(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once(SEPARATOR));
    parts.is_some_and(|(section, _)| !section.is_empty()) && !is_of_kubernetes(name)
}

/// Whether kubelet derives a variable of this name from a Service: `…_SERVICE_HOST`,
/// `…_SERVICE_PORT[_NAME]`, `…_PORT`, `…_PORT_8080_TCP[_ADDR|_PORT|_PROTO]`. No setting ends so.
fn is_of_kubernetes(name: &str) -> bool {
    if name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT") || name.ends_with("_PORT")
    {
        return true;
    }
    let Some((_, port)) = name.rsplit_once("_PORT_") else { return false };
    let mut parts = port.split('_');
    let is_number = parts.next().is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()));
    let is_protocol = matches!(parts.next(), Some("TCP" | "UDP" | "SCTP"));
    is_number && is_protocol && matches!(parts.next(), None | Some("ADDR" | "PORT" | "PROTO"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_kubernetes_service_is_no_setting() {
        for name in [
            "GALLEY_SERVICE_HOST",
            "GALLEY_SERVICE_PORT_HTTP",
            "GALLEY_PORT",
            "GALLEY_PORT_8080_TCP_ADDR",
            "GALLEY_REDIS_PORT_6379_TCP",
            "GALLEY__CANARY_SERVICE_HOST",
            "GALLEY_A__B_SERVICE_PORT",
            "GALLEY_A__B_PORT_53_UDP_PROTO",
        ] {
            assert!(!is_setting(name) && is_of_kubernetes(name), "{name}");
        }
        assert!(is_setting("GALLEY_SERVER__LISTEN"));
        assert!(is_setting("GALLEY_SEATS__LEASES"), "a typing error is still a fault");
        assert!(!is_setting("GALLEY_DATABASE_URL") && !is_of_kubernetes("GALLEY_DATABASE_URL"));
    }
}
