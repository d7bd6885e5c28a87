//! The schemas of types that the API publishes as text, as a number or under the name of another type.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::fence::Fence;
use crate::handle::Handle;
use crate::ids::{
    ClaimId, DecisionId, DeletionId, DocumentId, NodeId, OfferId, PushSubscriptionId, ReplyId,
    RequestId, ReviewId, SessionId, ShareLinkId, UserId, VersionId, WebhookId,
};

/// A user in a text or an act that outlives the user.
#[derive(JsonSchema)]
pub struct Author {
    /// Opaque.
    pub id: UserId,
    /// `null`: the user is deleted, and the id begins with `del_`.
    pub name: Option<String>,
}

/// Relative positions in base64.
#[derive(JsonSchema)]
#[schemars(inline)]
pub struct EncodedRange {
    /// Yjs relative position, base64.
    pub start: String,
    /// Yjs relative position, base64.
    pub end: String,
}

macro_rules! as_schema {
    ($name:literal, $schema:tt, $($of:ty)+) => {$(
        impl JsonSchema for $of {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }

            fn inline_schema() -> bool {
                $name.is_empty()
            }
        }
    )+};
}

as_schema! {
    "Id",
    {"type": "string", "description": "Opaque.", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
    ClaimId DecisionId DeletionId DocumentId NodeId OfferId PushSubscriptionId ReplyId RequestId ReviewId SessionId
    ShareLinkId UserId VersionId WebhookId
}
as_schema! { "", {"type": "integer"}, Fence }
as_schema! { "", {"type": "string"}, Handle }
