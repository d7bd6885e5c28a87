//! `[exports]`

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::setting::list;

#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExportSettings {
    #[serde(deserialize_with = "list")]
    pub fonts: Vec<PathBuf>,
}
