//! Users.

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::UserId;

/// A user, as other users see them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct User {
    /// Opaque and stable.
    pub id: UserId,
    // A deleted user has an empty name, in JSON `null`: see `Author`.
    /// At most 80 characters: a visible character, no invisible, control or direction characters.
    #[serde(deserialize_with = "name_from")]
    pub name: String,
}

impl Serialize for User {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut user = serializer.serialize_struct("User", 2)?;
        user.serialize_field("id", &self.id)?;
        user.serialize_field("name", &(!self.id.is_deleted()).then_some(&self.name))?;
        user.end()
    }
}

fn name_from<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_user_has_no_name_in_json() {
        let deleted = User { id: UserId::generate_deleted(), name: String::new() };
        let json = serde_json::to_value(&deleted).expect("JSON");
        assert_eq!(json, serde_json::json!({ "id": deleted.id, "name": null }));
        assert_eq!(serde_json::from_value::<User>(json).ok(), Some(deleted));
        let kim = User { id: "kim".parse().expect("an id"), name: "Kim".to_owned() };
        let json = serde_json::to_value(&kim).expect("JSON");
        assert_eq!(serde_json::from_value::<User>(json).ok(), Some(kim));
    }
}
