//! The route table: every address with its methods, in one list.
//!
//! The router is built from this table. A test compares the `OpenAPI` document with it in both
//! directions, so that no address exists in only one of them.

use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use axum::{Extension, Router};

use crate::domain::limits::{
    MESSAGE_REQUEST_BYTES_MAX, REVIEW_REQUEST_BYTES_MAX, SMALL_REQUEST_BYTES_MAX,
};
use crate::http::HttpState;
use crate::http::extract::BodyLimit;

/// Body limits by route.
const SMALL: BodyLimit = BodyLimit(SMALL_REQUEST_BYTES_MAX);
const MESSAGE: BodyLimit = BodyLimit(MESSAGE_REQUEST_BYTES_MAX);
const REVIEW: BodyLimit = BodyLimit(REVIEW_REQUEST_BYTES_MAX);
const TEXT: BodyLimit = BodyLimit(usize::MAX);

/// Routes, and the list of their methods and paths.
#[derive(Default)]
pub(crate) struct Routes {
    router: Router<HttpState>,
    table: Vec<(&'static str, &'static str)>,
}

impl Routes {
    /// `GET path`
    pub(crate) fn get<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::GET, "get", path, handler, SMALL)
    }

    /// `POST path`, with a body of a few fields.
    pub(crate) fn post<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::POST, "post", path, handler, SMALL)
    }

    /// `POST path`, with a body that contains a message to another user.
    pub(crate) fn post_message<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::POST, "post", path, handler, MESSAGE)
    }

    /// `POST path`, with a body that contains a review or a reply.
    pub(crate) fn post_review<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::POST, "post", path, handler, REVIEW)
    }

    /// `POST path`, with a body that contains a whole text: only `limits.body_bytes` limits it.
    pub(crate) fn post_text<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::POST, "post", path, handler, TEXT)
    }

    /// `PATCH path`, with a body that contains a review.
    pub(crate) fn patch_review<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::PATCH, "patch", path, handler, REVIEW)
    }

    /// `PATCH path`, with a body of a few fields.
    pub(crate) fn patch<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::PATCH, "patch", path, handler, SMALL)
    }

    /// `PUT path`, with a body of a few fields.
    pub(crate) fn put<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::PUT, "put", path, handler, SMALL)
    }

    /// `DELETE path`
    pub(crate) fn delete<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::DELETE, "delete", path, handler, SMALL)
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

    /// Method, in lower case, and path of each route.
    #[cfg(test)]
    pub(crate) fn table(&self) -> &[(&'static str, &'static str)] {
        &self.table
    }

    /// The router of these routes.
    pub(crate) fn into_router(self) -> Router<HttpState> {
        self.router
    }
}
