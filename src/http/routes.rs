//! The route table: every address that takes a method, in one list.
//!
//! The router is built from it, and a test holds the `OpenAPI` document against it both ways, so
//! that neither can gain or lose an address alone.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};

use crate::http::HttpState;

/// Routes and, beside them, what they are.
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
        self.on(MethodFilter::GET, "get", path, handler)
    }

    /// `POST path`
    pub(crate) fn post<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::POST, "post", path, handler)
    }

    /// `PATCH path`
    pub(crate) fn patch<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::PATCH, "patch", path, handler)
    }

    /// `DELETE path`
    pub(crate) fn delete<H: Handler<T, HttpState>, T: 'static>(
        self,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.on(MethodFilter::DELETE, "delete", path, handler)
    }

    fn on<H: Handler<T, HttpState>, T: 'static>(
        mut self,
        filter: MethodFilter,
        method: &'static str,
        path: &'static str,
        handler: H,
    ) -> Self {
        self.table.push((method, path));
        Self { router: self.router.route(path, on(filter, handler)), table: self.table }
    }

    /// Method, in lower case, and path of each route.
    #[cfg(test)]
    pub(crate) fn table(&self) -> &[(&'static str, &'static str)] {
        &self.table
    }

    /// The routes alone.
    pub(crate) fn into_router(self) -> Router<HttpState> {
        self.router
    }
}
