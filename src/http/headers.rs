//! Headers of every response, errors included.
//!
//! The pages run no inline script and load nothing from other origins. The only exception to "no inline
//! style" is a nonce for the editor, which creates its style sheets itself.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::http::origin::{Origin, Origins};

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");
/// Features of browsers that no page uses.
const PERMISSIONS: HeaderValue =
    HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()");

#[derive(Clone)]
pub struct Policy(Arc<Inner>);

struct Inner {
    connect: String,
    frames: String,
    of_everything_else: HeaderValue,
    is_secure: bool,
}

impl Policy {
    #[must_use]
    pub fn new(origins: &Origins) -> Self {
        // Websocket origins are named besides 'self', because not every browser includes them in it. The
        // grammar of policies has no IPv6 addresses, and a browser reports one as an error.
        let sockets = origins.all().map(Origin::websocket).filter(|socket| !socket.contains('['));
        let connect =
            sockets.fold("'self'".to_owned(), |connect, socket| format!("{connect} {socket}"));
        let frames: Vec<_> = origins.frames().iter().map(ToString::to_string).collect();
        let frames = if frames.is_empty() { "'none'".to_owned() } else { frames.join(" ") };
        let of_everything_else = policy(&connect, &frames, "'self'", "'self'");
        let is_secure = origins.own().is_secure();
        Self(Arc::new(Inner { connect, frames, of_everything_else, is_secure }))
    }

    pub(crate) fn harden(&self, headers: &mut HeaderMap) {
        headers.reserve(7);
        let policy = headers.entry(CONTENT_SECURITY_POLICY);
        policy.or_insert_with(|| self.0.of_everything_else.clone());
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // The address of an invite's page must not reach other sites.
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
        headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
        headers.insert(PERMISSIONS_POLICY, PERMISSIONS);
        if self.0.is_secure {
            let two_years = HeaderValue::from_static("max-age=63072000; includeSubDomains");
            headers.insert(STRICT_TRANSPORT_SECURITY, two_years);
        }
    }

    #[must_use]
    pub fn of_page(&self, nonce: &Nonce) -> HeaderValue {
        self.with_style(&format!("'self' 'nonce-{}'", nonce.0), "'self'")
    }

    /// The policy of the documentation's page, which has style attributes and `data:` icons.
    #[must_use]
    pub fn of_docs(&self) -> HeaderValue {
        self.with_style("'self' 'unsafe-inline'", "'self' data:")
    }

    fn with_style(&self, style: &str, image: &str) -> HeaderValue {
        policy(&self.0.connect, &self.0.frames, style, image)
    }
}

fn policy(connect: &str, frames: &str, style: &str, image: &str) -> HeaderValue {
    let policy = format!(
        "default-src 'self'; style-src {style}; script-src 'self'; img-src {image}; \
         connect-src {connect}; worker-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors {frames}; \
         form-action 'self'"
    );
    // Origins and nonces are ASCII, so this cannot fail; the fallback is the strictest policy.
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// A number used once, which marks the page's own style sheets against injected ones.
pub struct Nonce(String);

impl Nonce {
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(STANDARD.encode(bytes)))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub(crate) async fn harden(State(policy): State<Policy>, request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with("/api/");
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    policy.harden(headers);
    if is_api {
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
    response
}
