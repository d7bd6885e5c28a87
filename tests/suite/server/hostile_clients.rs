//! Messages that no honest client sends: the server answers each with a typed close, and no other socket is
//! affected (G12).

use galley::yjs::protocol;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use yrs::Text as _;

use crate::support::galley_process::Server;
use crate::support::redis_server::TEST_TIMEOUT;

/// Goal: each malformed message closes its own socket with 4400 and has no other effect.
#[tokio::test]
async fn g12_malformed_messages_are_closed_with_4400_and_the_document_is_unharmed() {
    let server = Server::start().await;
    let desk = server.desk("unharmed").await;
    let nested = {
        let mut update = vec![1, 1, 1, 0, 8, 1, 7];
        update.extend_from_slice(b"content");
        update.push(1);
        update.extend(std::iter::repeat_n([117, 1], 7_000).flatten());
        protocol::update(&update).to_vec()
    };
    let messages: Vec<(&str, Vec<u8>)> = vec![
        ("empty", vec![]),
        ("unknown type", vec![9]),
        ("a type of the server's", vec![100, 2, b'{', b'}']),
        ("truncated step 1", vec![0, 0, 5, 1]),
        ("state vector of half a gigabyte", vec![0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x0f]),
        ("state vector of 64 million", vec![0, 0, 6, 0x80, 0x80, 0x80, 0x20, 1, 1]),
        ("step 1 with more behind it", vec![0, 0, 1, 0, 7]),
        ("update that is none", vec![0, 2, 3, 1, 2, 3]),
        ("update of 64 million structs", vec![0, 2, 6, 1, 0x80, 0x80, 0x80, 0x20, 1]),
        ("seven thousand levels", nested),
        ("presence of a million", vec![1, 4, 0xc0, 0x84, 0x3d, 1]),
        ("presence that is no object", vec![1, 6, 1, 5, 1, 2, b'4', b'2']),
        ("a var-int without end", vec![0xff; 12]),
    ];
    for (what, message) in messages {
        let writer = server.writer(&desk).await;
        let before = server.peak();
        writer.send(message);
        assert_eq!(writer.closed().await.0, 4400, "{what}");
        // The server allocates no memory for the size that a message declares.
        let grew = server.peak().saturating_sub(before);
        // The allocator grows in steps of 2 MiB.
        assert!(grew < 6 * 1_024 * 1_024, "{what}: {grew} bytes");
    }
    let writer = server.writer(&desk).await;
    writer.send_message(Message::text("hello"));
    assert_eq!(writer.closed().await, (4400, "text-frame".to_owned()));
    assert_eq!(server.text(&desk.writer, &desk.document).await, "unharmed");
}

/// Goal: well-formed letters that name neighbours which never stood side by side would take hours to
/// integrate. The server refuses to build that text.
#[tokio::test]
async fn g13_a_text_whose_integration_would_take_hours_is_refused_at_once_and_others_are_read() {
    let server = Server::start().await;
    let (desk, other) = (server.desk("").await, server.desk("another's").await);
    let letters = 60_000_u32;
    let mut update = vec![1];
    number(&mut update, letters + 1);
    update.extend([7, 0, 4, 1, 7]);
    update.extend_from_slice(b"content");
    number(&mut update, letters);
    update.resize(update.len() + letters as usize, b'a');
    for clock in 0..letters {
        update.extend([0x44, 7]);
        number(&mut update, clock);
        update.extend([1, b'x']);
    }
    update.push(0);
    let writer = server.writer(&desk).await;
    writer.send(protocol::update(&update));
    let text =
        |desk: &crate::support::rest_client::Desk| format!("/api/documents/{}/text", desk.document);
    let requested_at = Instant::now();
    loop {
        let answer = server.get(&desk.writer, &text(&desk)).await;
        // The text is empty until the update has arrived.
        if answer.status != 200 {
            answer.problem(503, "text-too-costly");
            break;
        }
        assert!(requested_at.elapsed() < TEST_TIMEOUT, "{}", answer.json);
    }
    assert_eq!(server.text(&other.writer, &other.document).await, "another's");
    assert!(writer.is_open());
}

/// A number in lib0's variable-length encoding.
fn number(out: &mut Vec<u8>, mut number: u32) {
    while 0x7f < number {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).expect("seven bits"));
}

/// Goal: the server closes a client that edits under a server's client id; no replica has its text.
#[tokio::test]
async fn g10_an_edit_under_an_id_of_the_servers_is_refused() {
    use yrs::block::ClientID;
    use yrs::{Doc, Options, ReadTxn as _, StateVector, Transact as _};
    let server = Server::start().await;
    let desk = server.desk("REAL").await;
    let writer = server.writer(&desk).await;
    let id = ClientID::new(*galley::yjs::log::SERVER_IDS.start());
    let forger = Doc::with_options(Options { client_id: id, ..Options::default() });
    let content = forger.get_or_insert_text("content");
    content.insert(&mut forger.transact_mut(), 0, "EVIL");
    let forged = forger.transact().encode_diff_v1(&StateVector::default());
    writer.send(protocol::update(&forged));
    assert_eq!(writer.closed().await.0, 4403);
    assert_eq!(server.text(&desk.writer, &desk.document).await, "REAL");
}

/// Goal: the server closes a client that edits under another user's client id before any replica receives the
/// edit.
#[tokio::test]
async fn g10_an_edit_under_another_users_client_id_reaches_no_replica() {
    let server = Server::with(&[("SEATS__RENEW_EVERY", "250ms")]).await;
    let desk = server.desk("REAL").await;
    let writer = server.writer(&desk).await;
    writer.append(" text");
    writer.saved().await;
    let forged = writer.edit_offline(|content, transaction| content.insert(transaction, 0, "EVIL"));
    let client = i64::try_from(writer.client_id()).expect("32 bits");
    writer.leave().await;
    server.has_rooms(0).await;
    // A document has one writer, so the test edits the database to give the client id to another user.
    let handed_over = sqlx::query("UPDATE clients SET user_id = $1 WHERE client = $2")
        .bind(&desk.reviewer.id)
        .bind(client)
        .execute(&mut server.database().await)
        .await;
    assert_eq!(handed_over.expect("written").rows_affected(), 1);
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    writer.send(protocol::update(&forged));
    assert_eq!(writer.closed().await, (4403, "client-id-of-another".to_owned()));
    // The server handled that edit before this one.
    let writer = server.writer(&desk).await;
    writer.append("!");
    writer.saved().await;
    reviewer.reads("REAL text!").await;
    assert!(reviewer.is_open());
    assert_eq!(server.text(&desk.writer, &desk.document).await, "REAL text!");
}

/// Goal: the server neither accepts an update with a gap nor names it in `document.saved`; it requests the
/// missing part.
#[tokio::test]
async fn an_update_with_a_gap_is_requested_again_and_then_accepted_whole() {
    let server = Server::start().await;
    let desk = server.desk("").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    writer.edit_offline(|content, transaction| content.insert(transaction, 0, "first "));
    let second =
        writer.edit_offline(|content, transaction| content.insert(transaction, 6, "second"));
    // Alone it builds on an edit that no replica has. The client answers the request with both.
    writer.send(protocol::update(&second));
    reviewer.reads("first second").await;
    writer.saved().await;
}

#[tokio::test]
async fn g13_a_message_over_the_limit_is_closed_with_4413() {
    let server = Server::with(&[("LIMITS__MESSAGE_BYTES", "65536")]).await;
    let desk = server.desk("text").await;
    for bytes in [65_537, 1_000_000] {
        let writer = server.writer(&desk).await;
        writer.send(vec![0; bytes]);
        assert_eq!(writer.closed().await.0, 4413, "{bytes} bytes");
    }
    let writer = server.writer(&desk).await;
    writer.append(&"가".repeat(30_000));
    assert_eq!(writer.closed().await.0, 4413);
    let reviewer = server.reviewer(&desk).await;
    reviewer.send(protocol::awareness(&vec![0; 9_000]));
    assert_eq!(reviewer.closed().await.0, 4413);
}

#[tokio::test]
async fn g13_a_flood_of_messages_ends_its_own_socket_only() {
    let server = Server::start().await;
    let desk = server.desk("text").await;
    let (writer, reviewer) = (server.writer(&desk).await, server.reviewer(&desk).await);
    for _ in 0..5_000 {
        reviewer.send(protocol::query_awareness());
    }
    assert_eq!(reviewer.closed().await.0, 4529);
    writer.append("!");
    writer.saved().await;
}

/// Goal: a document at its quota becomes read-only, and the server notifies its users. Its text can still be
/// read, and only its writer shrinks it.
#[tokio::test]
async fn g13_a_document_at_its_quota_rejects_edits_and_keeps_its_text() {
    let server =
        Server::with(&[("LIMITS__DOCUMENT_BYTES", "131072"), ("LIMITS__MESSAGE_BYTES", "65536")])
            .await;
    let desk = server.desk("").await;
    let writer = server.writer(&desk).await;
    for _ in 0..4 {
        writer.append(&"x".repeat(40_000));
    }
    let problem = writer.event("problem").await;
    assert_eq!(problem["type"], "/problems/document-too-large");
    let text = server.text(&desk.writer, &desk.document).await;
    assert_eq!(text.len(), 120_000);
    writer.leave().await;
    // A client that reads no events would not learn of it: the server closes its socket.
    let stock = server.claim_seat(&desk, "writer", "").await;
    stock.synced().await;
    stock.append(&"x".repeat(40_000));
    assert_eq!(stock.closed().await, (4413, "document".to_owned()));
}
