//! The HTTP client of the tests. It holds each response to the `OpenAPI` document, see [`contract`].

use std::fmt::Display;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Body, Method, Request, Response, Result};
use serde::Serialize;
use serde_json::Value;

use crate::support::contract::{self, Received};

/// Sends requests to a server.
#[derive(Clone, Debug)]
pub(crate) struct Client(reqwest::Client);

/// A request that the test completes and sends.
#[derive(Debug)]
pub(crate) struct RequestBuilder {
    client: reqwest::Client,
    request: reqwest::RequestBuilder,
}

impl Client {
    pub(crate) fn new(client: reqwest::Client) -> Self {
        Self(client)
    }

    pub(crate) fn get(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::GET, url)
    }

    pub(crate) fn post(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::POST, url)
    }

    pub(crate) fn delete(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::DELETE, url)
    }

    pub(crate) fn request(&self, method: Method, url: impl AsRef<str>) -> RequestBuilder {
        let request = self.0.request(method, url.as_ref());
        RequestBuilder { client: self.0.clone(), request }
    }
}

impl RequestBuilder {
    fn with(self, change: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder) -> Self {
        Self { client: self.client, request: change(self.request) }
    }

    pub(crate) fn bearer_auth(self, token: impl Display) -> Self {
        self.with(|request| request.bearer_auth(token))
    }

    pub(crate) fn header(self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.with(|request| request.header(name.as_ref(), value.as_ref()))
    }

    pub(crate) fn json(self, body: &(impl Serialize + ?Sized)) -> Self {
        self.with(|request| request.json(body))
    }

    pub(crate) fn body(self, body: impl Into<Body>) -> Self {
        self.with(|request| request.body(body))
    }

    pub(crate) async fn send(self) -> Result<Response> {
        let request = self.request.build()?;
        // A benchmark measures its requests, and `GALLEY_BIN` may name a version with another document.
        // A preflight of CORS is no operation.
        let is_preflight = request.method() == Method::OPTIONS;
        if !cfg!(test) || is_preflight || std::env::var_os("GALLEY_BIN").is_some() {
            return self.client.execute(request).await;
        }
        checked(&self.client, request).await
    }
}

/// The response, if the document describes it. The client reads a body of JSON whole; the test reads any other.
async fn checked(client: &reqwest::Client, request: Request) -> Result<Response> {
    let (method, path) = (request.method().clone(), request.url().path().to_owned());
    let response = client.execute(request).await?;
    let status = response.status().as_u16();
    let kind = response.headers().get(CONTENT_TYPE).map(|kind| kind.to_str().expect("text"));
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().to_owned();
    let (response, json) =
        if (kind.ends_with("/json") || kind.ends_with("+json")) && method != Method::HEAD {
            let (status, headers) = (response.status(), response.headers().clone());
            let bytes = response.bytes().await?;
            let json: Value = serde_json::from_slice(&bytes).expect("JSON");
            let mut read = hyper::Response::new(bytes);
            *read.status_mut() = status;
            *read.headers_mut() = headers;
            (Response::from(read), Some(json))
        } else {
            (response, None)
        };
    let (method, path, kind) = (method.as_str(), path.as_str(), kind.as_str());
    contract::hold(&Received { method, path, status, kind, json: json.as_ref() });
    Ok(response)
}
