//! Two clients of one room: one types, the other receives. The same for each contender.

use bytes::Bytes;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use galley::domain::seat::Role;
use galley::yjs::protocol::{self, ClientFrame};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;
use tokio::time::{Duration, Instant, sleep_until, timeout, timeout_at};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::task::TaskTracker;
use yrs::updates::decoder::Decode as _;
use yrs::{Doc, OffsetKind, Options, Text, TextRef, Transact, Update};

use crate::client::{Address, Socket, enter};
use crate::support::redis_server::TEST_TIMEOUT;

/// A keystroke is lost if it has not arrived this long after the last one was due.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(2);

/// The delay of a keystroke.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) since_sent: Duration,
    /// From the time at which it was due to be sent, so a late sender hides no delay.
    pub(crate) since_due: Duration,
}

/// A writer and a reviewer.
pub(crate) struct Pair {
    address: Address,
    writer: SplitSink<Socket, Message>,
    reviewer: Socket,
    text: Typed,
    drain: AbortHandle,
}

impl Pair {
    /// Both have acquired their seats.
    pub(crate) async fn seated(address: Address, tasks: TaskTracker) -> Self {
        let (writer, _) = enter(&address, Role::Writer).await;
        let (reviewer, _) = enter(&address, Role::Reviewer).await;
        let (writer, mut to_writer) = writer.split();
        // Reads and drops the messages to the writer.
        #[expect(clippy::disallowed_methods, reason = "one for each pair")]
        let drain = tasks.spawn(async move { while let Some(Ok(_)) = to_writer.next().await {} });
        let (address, text) = (address.clone(), Typed::default());
        Self { address, writer, reviewer, text, drain: drain.abort_handle() }
    }

    /// Types the next keystroke when the last has arrived; returns each delay.
    pub(crate) async fn at_full_speed(&mut self, keystrokes: u32) -> Vec<Duration> {
        let mut waits = Vec::new();
        for keystroke in self.prepare(keystrokes) {
            let began = Instant::now();
            self.writer.send(Message::Binary(keystroke.clone())).await.expect("it is sent");
            let arriving = timeout(TEST_TIMEOUT, arrival(&mut self.reviewer, &keystroke));
            assert!(arriving.await.expect("it comes in time"), "an open socket");
            waits.push(began.elapsed());
        }
        waits
    }

    /// Prepares the keystrokes.
    pub(crate) fn prepare(&mut self, keystrokes: u32) -> Vec<Bytes> {
        let messages = self.text.next(keystrokes);
        messages.iter().map(|message| self.address.wrap(message)).collect()
    }

    /// Types at the due times, regardless of arrivals; returns the arrivals.
    pub(crate) async fn on_time(
        &mut self,
        keystrokes: &[Bytes],
        first: Instant,
        every: Duration,
    ) -> Vec<Wait> {
        let (departed, departures) = unbounded_channel();
        let count = u32::try_from(keystrokes.len()).expect("a number of keystrokes");
        let reader = Reader {
            reviewer: &mut self.reviewer,
            address: &self.address,
            // These are the last prepared ones.
            seen: self.text.length - count,
        };
        let writing = write(&mut self.writer, keystrokes, (first, every), departed);
        let reading = reader.read(keystrokes, (first, every), departures);
        let ((), waits) = tokio::join!(writing, reading);
        waits
    }

    /// Leaves as a page does.
    pub(crate) async fn leave(mut self) {
        // A closed socket needs no close.
        let _closed = self.writer.send(Message::Close(None)).await;
        let _closed = self.reviewer.close(None).await;
        self.drain.abort();
    }
}

async fn write(
    writer: &mut SplitSink<Socket, Message>,
    keystrokes: &[Bytes],
    (first, every): (Instant, Duration),
    departed: UnboundedSender<Instant>,
) {
    let mut due = first;
    for keystroke in keystrokes {
        sleep_until(due).await;
        due += every;
        // The reader ends with the socket.
        if departed.send(Instant::now()).is_err()
            || writer.send(Message::Binary(keystroke.clone())).await.is_err()
        {
            return;
        }
    }
}

/// The receiving client.
struct Reader<'a> {
    reviewer: &'a mut Socket,
    address: &'a Address,
    /// The first clock of the writer that has not arrived: each keystroke has one.
    seen: u32,
}

impl Reader<'_> {
    async fn read(
        mut self,
        keystrokes: &[Bytes],
        (first, every): (Instant, Duration),
        mut departures: UnboundedReceiver<Instant>,
    ) -> Vec<Wait> {
        let mut waits = Vec::with_capacity(keystrokes.len());
        let mut due = first;
        let last = first + every * u32::try_from(keystrokes.len()).expect("a number of keystrokes");
        for (keystroke, clock) in keystrokes.iter().zip(self.seen..) {
            let arriving = timeout_at(last + GIVEN_UP_AFTER, self.sees(keystroke, clock));
            if !matches!(arriving.await, Ok(true)) {
                break;
            }
            let sent = departures.try_recv().expect("its time was recorded before the send");
            waits.push(Wait { since_sent: sent.elapsed(), since_due: due.elapsed() });
            due += every;
        }
        waits
    }

    /// Waits for a keystroke: for exactly those bytes, or, where a server merges several into one
    /// update, for an update that contains it. False if the socket ends.
    async fn sees(&mut self, keystroke: &Bytes, clock: u32) -> bool {
        while self.seen <= clock {
            let Some(Ok(message)) = self.reviewer.next().await else { return false };
            let data = message.into_data();
            self.seen = if data == *keystroke {
                clock + 1
            } else {
                self.seen.max(end_of(&self.address.unwrap(&data)))
            };
        }
        true
    }
}

/// The clock after the last letter of an update; 0 for anything else.
fn end_of(message: &Bytes) -> u32 {
    let Ok(ClientFrame::Update(update)) = protocol::parse(message) else { return 0 };
    let Ok(update) = Update::decode_v1(update) else { return 0 };
    update.state_vector().iter().map(|(_client, clock)| *clock).max().unwrap_or(0)
}

/// Waits for exactly those bytes; false if the socket ends. Skips presence, events and heartbeats.
async fn arrival(reviewer: &mut Socket, keystroke: &Bytes) -> bool {
    while let Some(Ok(message)) = reviewer.next().await {
        if message.into_data() == *keystroke {
            return true;
        }
    }
    false
}

/// A text that grows at its end by one Hangul syllable at a time.
struct Typed {
    doc: Doc,
    content: TextRef,
    length: u32,
}

impl Default for Typed {
    fn default() -> Self {
        let client_id = yrs::block::ClientID::new(getrandom::u32().expect("random bits").into());
        let options = Options { offset_kind: OffsetKind::Utf16, client_id, ..Options::default() };
        let doc = Doc::with_options(options);
        let content = doc.get_or_insert_text("content");
        Self { doc, content, length: 0 }
    }
}

impl Typed {
    /// The messages of a writer for so many keystrokes.
    fn next(&mut self, keystrokes: u32) -> Vec<Bytes> {
        let keystroke = |_| {
            let mut transaction = self.doc.transact_mut();
            self.content.insert(&mut transaction, self.length, "글");
            self.length += 1;
            protocol::update(&transaction.encode_update_v1())
        };
        (0..keystrokes).map(keystroke).collect()
    }
}
