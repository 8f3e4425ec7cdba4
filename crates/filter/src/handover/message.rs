use crate::fields::{Fields, PutFields};

/// The kind and the length of a message.
const HEAD: usize = 5;
/// No message is longer, apart from its head.
pub const MAX_MESSAGE: usize = 1 << 20;

/// What a message holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum MessageKind {
    Format = 1,
    Rule = 2,
    Interface = 3,
    /// A table of addresses, with the number of its entries and its name; its entries follow.
    Table = 4,
    Entries = 5,
    Source = 6,
    State = 7,
    End = 8,
}

impl MessageKind {
    const ALL: [MessageKind; 8] = [
        MessageKind::Format,
        MessageKind::Rule,
        MessageKind::Interface,
        MessageKind::Table,
        MessageKind::Entries,
        MessageKind::Source,
        MessageKind::State,
        MessageKind::End,
    ];

    fn of(byte: u8) -> Option<MessageKind> {
        MessageKind::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Adds a message whose fields `fill` adds.
pub(super) fn put_message(to: &mut Vec<u8>, kind: MessageKind, fill: impl FnOnce(&mut Vec<u8>)) {
    to.put([kind as u8, 0, 0, 0, 0]);
    let start = to.len();
    fill(to);
    let length = (to.len() - start) as u32;
    to[start - HEAD + 1..start].copy_from_slice(&length.to_le_bytes());
}

/// A message among received bytes.
pub(super) struct ReceivedMessage<'a> {
    pub kind: MessageKind,
    pub fields: Fields<'a>,
    /// Its length with its head.
    pub length: usize,
}

/// The bytes begin with no message.
pub(super) struct NoMessage;

/// The message that bytes begin with; `None` if more of it must come.
pub(super) fn next_message(bytes: &[u8]) -> Result<Option<ReceivedMessage<'_>>, NoMessage> {
    let mut head = Fields(bytes);
    let (Some(kind), Some(length)) = (head.u8(), head.u32()) else { return Ok(None) };
    let (kind, length) = (MessageKind::of(kind).ok_or(NoMessage)?, length as usize);
    if length > MAX_MESSAGE {
        return Err(NoMessage);
    }
    let body = bytes.get(HEAD..HEAD + length);
    Ok(body.map(|body| ReceivedMessage { kind, fields: Fields(body), length: HEAD + length }))
}
