//! The fonts of PDFs, shared by all builds.

use std::collections::HashMap;

use krilla::text::Font;
use parley::FontContext;
use parley::fontique::{Blob, Collection, CollectionOptions, SourceCache};

#[derive(Clone)]
pub(super) struct Face {
    pub(super) data: Blob<u8>,
    pub(super) index: u32,
    pub(super) family: String,
    pub(super) font: Font,
}

/// The fonts in order of preference.
pub struct Fonts {
    context: FontContext,
    families: Vec<String>,
    /// The fonts by the blob and the index that a layout names.
    faces: HashMap<(u64, u32), Font>,
}

impl std::fmt::Debug for Fonts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fonts").field("families", &self.families).finish_non_exhaustive()
    }
}

impl Fonts {
    pub(super) fn of(faces: &[Face]) -> Self {
        let mut context = empty_context();
        for face in faces {
            context.collection.register_fonts(face.data.clone(), None);
        }
        let families = faces.iter().map(|face| face.family.clone()).collect();
        let faces =
            faces.iter().map(|face| ((face.data.id(), face.index), face.font.clone())).collect();
        Self { context, families, faces }
    }

    pub(super) fn context(&self) -> FontContext {
        self.context.clone()
    }

    /// The names of the families, the most preferred one first.
    pub(super) fn families(&self) -> &[String] {
        &self.families
    }

    pub(super) fn face(&self, blob: u64, index: u32) -> Option<&Font> {
        self.faces.get(&(blob, index))
    }
}

pub(super) fn empty_context() -> FontContext {
    let collection = Collection::new(CollectionOptions { shared: false, system_fonts: false });
    FontContext { collection, source_cache: SourceCache::default() }
}
