//! The builder of routes: it records the method and the path of each.
//!
//! The router is built from this table. A test compares the `OpenAPI` document with it in both
//! directions, so that no address exists in only one of them.

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use axum::{Extension, Router};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::http::HttpState;
use crate::http::extract::BodyLimit;

/// Longest request body without a text or a review, in bytes. A title, a name, a label or an invite
/// takes at most 2,400 bytes with each character escaped.
const SMALL_REQUEST_BYTES_MAX: usize = 4 * 1024;
/// Longest request body with a message to another user, in bytes: its characters take twelve bytes each
/// if a client escapes them.
pub(crate) const MESSAGE_REQUEST_BYTES_MAX: usize = 16 * 1024;
/// Longest request body with a review or a reply, in bytes. Body, suggestion and quote take 140 KiB
/// in UTF-8, and three times as much if a client escapes each character.
const REVIEW_REQUEST_BYTES_MAX: usize = 512 * 1024;

const SMALL: BodyLimit = BodyLimit(SMALL_REQUEST_BYTES_MAX);
const MESSAGE: BodyLimit = BodyLimit(MESSAGE_REQUEST_BYTES_MAX);
const REVIEW: BodyLimit = BodyLimit(REVIEW_REQUEST_BYTES_MAX);
const TEXT: BodyLimit = BodyLimit(usize::MAX);

/// Runs the handler in a task of the server. A client that disconnects, or a request whose time is over,
/// drops its answer alone: a commit and its messages stay together (G15).
#[derive(Clone)]
struct ToItsEnd<H>(H);

impl<H: Handler<T, HttpState>, T: 'static> Handler<T, HttpState> for ToItsEnd<H> {
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, state: HttpState) -> Self::Future {
        let tasks = state.tasks.clone();
        // Boxed: the compiler makes the code of the task once, and not for each handler.
        let handled: BoxFuture<'static, Response> = self.0.call(request, state).boxed();
        async move { tasks.complete(handled).await }.boxed()
    }
}

#[derive(Clone, Default)]
pub(crate) struct Routes {
    router: Router<HttpState>,
    table: Vec<(&'static str, &'static str)>,
}

/// Adds a function for each method and body limit. Their handlers run to their end.
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $filter:ident $method:literal $limit:ident;)+) => {
        impl Routes {$(
            $(#[$doc])*
            pub(crate) fn $name<H: Handler<T, HttpState>, T: 'static>(
                self,
                path: &'static str,
                handler: H,
            ) -> Self {
                self.on(MethodFilter::$filter, $method, path, ToItsEnd(handler), $limit)
            }
        )+}
    };
}

methods! {
    /// `POST path`, with a body of a few fields.
    post = POST "post" SMALL;
    /// `POST path`, with a body that contains a message to another user.
    post_message = POST "post" MESSAGE;
    /// `POST path`, with a body that contains a review or a reply.
    post_review = POST "post" REVIEW;
    /// `POST path`, with a body that contains a whole text: only `limits.body_bytes` limits it.
    post_text = POST "post" TEXT;
    patch_review = PATCH "patch" REVIEW;
    patch = PATCH "patch" SMALL;
    put = PUT "put" SMALL;
    /// `PUT path`, with a body that contains a whole text.
    put_text = PUT "put" TEXT;
    put_review = PUT "put" REVIEW;
    delete = DELETE "delete" SMALL;
}

impl Routes {
    pub(crate) fn get<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::GET, "get", path, handler, SMALL)
    }

    /// `POST path`, whose handler waits for other users: it ends with its client, and leaves their queue.
    pub(crate) fn post_waiting<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::POST, "post", path, handler, MESSAGE)
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.table.extend(other.table);
        Self { router: self.router.merge(other.router), table: self.table }
    }

    /// Handlers extract `service` as an [`Extension`]: the state of the router names no feature.
    pub(crate) fn with<T: Clone + Send + Sync + 'static>(self, service: T) -> Self {
        Self { router: self.router.layer(Extension(service)), table: self.table }
    }

    fn on<H: Handler<T, HttpState>, T: 'static>(
        mut self,
        filter: MethodFilter,
        method: &'static str,
        path: &'static str,
        handler: H,
        body: BodyLimit,
    ) -> Self {
        self.table.push((method, path));
        let route = on(filter, handler).layer(Extension(body));
        Self { router: self.router.route(path, route), table: self.table }
    }

    #[cfg(test)]
    pub(crate) fn table(&self) -> &[(&'static str, &'static str)] {
        &self.table
    }

    pub(crate) fn into_router(self) -> Router<HttpState> {
        self.router
    }
}
