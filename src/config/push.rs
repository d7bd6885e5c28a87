//! `[push]`: the settings of Web Push.

use std::path::PathBuf;

use crate::config::PushSettings;
use crate::config::parse::Reader;

/// Reads and checks the section.
pub(super) fn settings(reader: &mut Reader) -> Option<PushSettings> {
    let enabled = reader.switch("push.enabled");
    let key_file = reader.required("push.key_file").map(PathBuf::from);
    let allow_private = reader.switch("push.allow_private");
    let subject = match reader.text("push.subject") {
        None => Some(None),
        Some(text) => {
            let is_contact = is_contact(&text);
            if !is_contact {
                let expected = "must be a contact, like mailto:ops@example.com, or an https:// \
                                address, of at most 256 characters";
                reader.fault("push.subject", expected);
            }
            is_contact.then_some(Some(text))
        }
    };
    let hosts = reader.text("push.hosts").unwrap_or_default().to_ascii_lowercase();
    let hosts: Vec<_> = hosts.split(',').map(str::trim).filter(|host| !host.is_empty()).collect();
    if !hosts.iter().all(|host| is_host_rule(host)) {
        let expected = "must be names of hosts separated by commas, like fcm.googleapis.com, \
                        *.push.apple.com";
        reader.fault("push.hosts", expected);
        return None;
    }
    let hosts = hosts.into_iter().map(str::to_owned).collect();
    Some(PushSettings {
        enabled: enabled?,
        key_file: key_file?,
        subject: subject?,
        hosts,
        allow_private: allow_private?,
    })
}

/// Whether a push service can show the text as the operator's contact (RFC 8292 §2.1).
fn is_contact(text: &str) -> bool {
    const CHARACTERS_MAX: usize = 256;
    let rest = text.strip_prefix("mailto:").filter(|rest| rest.contains('@'));
    let rest = rest.or_else(|| text.strip_prefix("https://"));
    text.len() <= CHARACTERS_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && rest.is_some_and(|rest| !rest.is_empty())
}

/// Whether the text is a name of a host, or `*.` and one.
fn is_host_rule(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.split('.').all(is_label)
}
