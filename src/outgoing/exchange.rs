//! One exchange on an open connection: the request, and of the response what the caller needs.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::RETRY_AFTER;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};

use crate::outgoing::{Reply, SendError};

/// Longest head of a response that the server reads, in bytes.
const OUTGOING_HEAD_BYTES_MAX: usize = 32 * 1024;
/// The most that the server reads of a response's body, in bytes. Push services explain a refusal in a
/// few hundred.
const OUTGOING_BODY_BYTES_MAX: usize = 32 * 1024;
const _: () = assert!(OUTGOING_HEAD_BYTES_MAX + OUTGOING_BODY_BYTES_MAX <= 64 * 1024);

/// Sends the request and reads the head of the response, of a refusal's body the beginning, and of a success
/// `bytes_max` of the body.
pub(super) async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
    deadline: Instant,
    bytes_max: usize,
) -> Result<Reply, SendError> {
    let exchanging = async {
        let lost = |error: hyper::Error| SendError::NoResponse(error.to_string());
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(OUTGOING_HEAD_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(lost)?;
        let reading = async {
            let response = sender.send_request(request).await.map_err(lost)?;
            read(response, deadline, bytes_max).await
        };
        tokio::pin!(reading, connection);
        // The connection moves the bytes of both directions, and ends with the exchange.
        tokio::select! {
            biased;
            reply = &mut reading => reply,
            _ended = &mut connection => reading.await,
        }
    };
    let late = |_elapsed| SendError::NoResponse("it took too long".to_owned());
    timeout_at(deadline + READ_BESIDE, exchanging).await.map_err(late)?
}

/// [`read`] keeps the deadline itself, because a response without the rest of its body is a response.
const READ_BESIDE: Duration = Duration::from_millis(200);

async fn read(
    response: Response<Incoming>,
    deadline: Instant,
    bytes_max: usize,
) -> Result<Reply, SendError> {
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after =
        retry_after.and_then(|value| retry_after_of(value.to_str().ok()?, Utc::now()));
    let mut reply = Reply { status, retry_after, explanation: String::new(), body: Bytes::new() };
    if reply.is_success() && bytes_max != 0 {
        let whole = Limited::new(response.into_body(), bytes_max).collect();
        let late = |_elapsed| SendError::NoResponse("its body took too long".to_owned());
        let whole = timeout_at(deadline, whole).await.map_err(late)?;
        reply.body = whole.map_err(|error| SendError::NoResponse(error.to_string()))?.to_bytes();
    } else if !reply.is_success() {
        let mut body = response.into_body();
        let mut read = Vec::new();
        while let Ok(Some(Ok(frame))) = timeout_at(deadline, body.frame()).await {
            let Ok(data) = frame.into_data() else { continue };
            let room = OUTGOING_BODY_BYTES_MAX - read.len();
            read.extend(data.iter().take(room));
            if data.len() >= room {
                break;
            }
        }
        reply.explanation = printable(&read);
    }
    Ok(reply)
}

/// The first line of a refusal, as a log may show it.
fn printable(body: &[u8]) -> String {
    const CHARACTERS: usize = 200;
    let text = String::from_utf8_lossy(body);
    let line = text.lines().next().unwrap_or_default();
    line.chars().filter(|character| !character.is_control()).take(CHARACTERS).collect()
}

/// Reads `Retry-After`: seconds or a date (RFC 9110 §10.2.3).
fn retry_after_of(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = DateTime::parse_from_rfc2822(value).ok()?.with_timezone(&Utc);
    Some((at - now).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        let now = DateTime::parse_from_rfc3339("2026-11-23T10:00:00Z").expect("a time");
        let read = |value| retry_after_of(value, now.with_timezone(&Utc));
        assert_eq!(read("120"), Some(Duration::from_secs(120)));
        assert_eq!(read("Mon, 23 Nov 2026 10:00:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(read("Mon, 23 Nov 2026 09:00:30 GMT"), Some(Duration::ZERO));
        for value in ["", "soon", "-1", "1.5", "99999999999999999999999"] {
            assert_eq!(read(value), None, "{value}");
        }
    }

    #[test]
    fn an_explanation_is_one_line_without_control_characters() {
        assert_eq!(printable(b"gone\x1b[31m\nsecond"), "gone[31m");
        assert_eq!(printable(&[b'x'; 1_000]).len(), 200);
        assert_eq!(printable(b""), "");
    }
}
