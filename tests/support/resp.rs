//! Message boundaries of the Redis protocol, which the proxy needs.

/// The length of the first message in `bytes`; none while it is incomplete.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(2).position(|two| two == b"\r\n")? + 2;
    let count = || std::str::from_utf8(&bytes[1..head - 2]).ok()?.parse::<usize>().ok();
    match bytes[0] {
        // A string with its length; -1 is null.
        b'$' | b'=' | b'!' => {
            let end = count().map_or(head, |count| head + count + 2);
            (end <= bytes.len()).then_some(end)
        }
        b'*' | b'>' | b'~' => all(bytes, head, count().unwrap_or(0)),
        b'%' => all(bytes, head, 2 * count()?),
        _ => Some(head),
    }
}

/// The end of this many messages after `head`.
fn all(bytes: &[u8], head: usize, count: usize) -> Option<usize> {
    let mut end = head;
    for _ in 0..count {
        end += length(&bytes[end..])?;
    }
    Some(end)
}

#[test]
fn message_boundaries_are_found_and_no_message_is_truncated() {
    for message in [
        "+OK\r\n",
        ":-12\r\n",
        "_\r\n",
        "$-1\r\n",
        "$0\r\n\r\n",
        "$6\r\na\r\n\r\nb\r\n",
        "*-1\r\n",
        "*3\r\n$1\r\na\r\n*1\r\n:1\r\n$-1\r\n",
        "%1\r\n+a\r\n>2\r\n+b\r\n+c\r\n",
        "=5\r\ntxt:a\r\n",
    ] {
        let followed = format!("{message}+more\r\n");
        assert_eq!(length(followed.as_bytes()), Some(message.len()), "{message:?}");
        for end in 0..message.len() {
            assert_eq!(length(&message.as_bytes()[..end]), None, "{end} of {message:?}");
        }
    }
}
