//! Where one message of Redis's protocol ends and the next begins: all that the proxy has to know
//! of it.

/// How long the first message in `bytes` is; none while its end is not there.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(2).position(|two| two == b"\r\n")? + 2;
    let count = || std::str::from_utf8(&bytes[1..head - 2]).ok()?.parse::<usize>().ok();
    match bytes[0] {
        // Text of a told length; -1 is none at all.
        b'$' | b'=' | b'!' => {
            let end = count().map_or(head, |count| head + count + 2);
            (end <= bytes.len()).then_some(end)
        }
        b'*' | b'>' | b'~' => all(bytes, head, count().unwrap_or(0)),
        b'%' => all(bytes, head, 2 * count()?),
        _ => Some(head),
    }
}

/// The end of so many messages that follow `head`.
fn all(bytes: &[u8], head: usize, count: usize) -> Option<usize> {
    let mut end = head;
    for _ in 0..count {
        end += length(&bytes[end..])?;
    }
    Some(end)
}

#[test]
fn messages_are_told_apart_and_none_is_cut_short() {
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
