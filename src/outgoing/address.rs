//! The addresses to which the server connects on a user's behalf: those of the public internet.
//!
//! A push service is named by a client, so its address could lead to the server itself, to its database or
//! to the metadata service of a cloud. The check is a list of what is public, so an address that a later
//! standard reserves is refused by default.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// All but the special addresses of IANA's registry.
fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        // This network, private, loopback; multicast, reserved, broadcast.
        [0 | 10 | 127 | 224..=255, ..]
            // Private, link-local.
            | [172, 16..=31, ..] | [192, 168, ..] | [169, 254, ..]
            // Shared by the customers of a carrier (RFC 6598).
            | [100, 64..=127, ..]
            // Protocol assignments, documentation, the former relays of 6to4, benchmarks.
            | [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _]
            | [198, 18..=19, ..]
    )
}

/// Global unicast without its special parts, and the translation of a public IPv4 address.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // A network without IPv4 reaches it by these (RFC 6052).
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(embedded(high, low)),
        // 6to4.
        [0x2002, high, low, ..] => is_public_v4(embedded(high, low)),
        // Teredo, benchmarks, ORCHID and other protocol assignments; documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // All others, among them loopback, mapped and compatible IPv4, ULA, link-local and multicast, are
        // outside 2000::/3.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

/// Whether a host's name alone says that it is private: the host itself, or a name that no public server
/// of names resolves. The check of the addresses follows when the server connects.
#[must_use]
pub fn is_private_name(host: &str) -> bool {
    const PRIVATE: [&str; 7] =
        ["localhost", "local", "internal", "home.arpa", "lan", "test", "invalid"];
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_under = |suffix: &&str| {
        host.strip_suffix(*suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    !host.contains('.') || PRIVATE.iter().any(is_under)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().expect("an address"))
    }

    #[test]
    fn g17_an_address_inside_a_network_is_not_public() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::808:808",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::808:808",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!public(text), "{text}");
        }
    }

    #[test]
    fn an_address_of_the_internet_is_public() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "223.255.255.255",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
        ] {
            assert!(public(text), "{text}");
        }
    }

    #[test]
    fn a_private_name_is_recognized_without_a_look_up() {
        for name in [
            "localhost",
            "LOCALHOST.",
            "push.localhost",
            "redis",
            "db.internal",
            "metadata.google.internal",
            "printer.local",
            "nas.home.arpa",
        ] {
            assert!(is_private_name(name), "{name}");
        }
        for name in ["fcm.googleapis.com", "updates.push.services.mozilla.com", "mylocal.com"] {
            assert!(!is_private_name(name), "{name}");
        }
    }
}
