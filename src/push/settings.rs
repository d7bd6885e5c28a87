//! `[push]`

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::http::origin::Origin;
use crate::push::vapid::PushKey;
use crate::push::web_push::PushOptions;
use crate::setting::{FoundFaults, is_printable, list};

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PushSettings {
    pub enabled: bool,
    pub key_file: PathBuf,
    pub subject: Option<String>,
    #[serde(deserialize_with = "list")]
    pub hosts: Vec<String>,
    pub allow_private: bool,
}

impl PushSettings {
    pub(crate) fn check(&self, faults: &mut FoundFaults) {
        let has_file = !self.key_file.as_os_str().is_empty();
        faults.unless(has_file, &["push.key_file"], "must not be empty");
        faults.unless(
            self.subject.as_deref().is_none_or(is_contact),
            &["push.subject"],
            "must be a contact, like mailto:ops@example.com, or an https:// address, of at most 256 \
             characters",
        );
        faults.unless(
            self.hosts.iter().all(|host| is_host_rule(host)),
            &["push.hosts"],
            "must be names of hosts separated by commas, like fcm.googleapis.com, *.push.apple.com",
        );
    }

    /// Without a subject the contact is the public address, if it is secure.
    pub(crate) fn options(&self, key: PushKey, public_url: Option<&Origin>) -> PushOptions {
        let contact = public_url.filter(|origin| origin.is_secure()).map(ToString::to_string);
        PushOptions {
            key,
            subject: self.subject.clone().or(contact),
            allow_private: self.allow_private,
            hosts: self.hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
        }
    }
}

/// Whether a push service can show the text as the operator's contact (RFC 8292 §2.1).
fn is_contact(text: &str) -> bool {
    const CHARACTERS_MAX: usize = 256;
    let rest = text.strip_prefix("mailto:").filter(|rest| rest.contains('@'));
    let rest = rest.or_else(|| text.strip_prefix("https://"));
    text.len() <= CHARACTERS_MAX && is_printable(text) && rest.is_some_and(|it| !it.is_empty())
}

fn is_host_rule(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.split('.').all(is_label)
}
