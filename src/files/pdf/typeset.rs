//! Sets paragraphs into lines: shaping, line breaks, direction and fallback of fonts.
//!
//! A paragraph is set in chunks, so that memory does not grow with its length: the last line of a chunk
//! is set again as the first one of the next.

use std::borrow::Cow;
use std::ops::Range;

use krilla::color::rgb;
use krilla::geom::{PathBuilder, Point, Rect};
use krilla::paint::Fill;
use krilla::surface::Surface;
use krilla::text::{Font, GlyphId, KrillaGlyph};
use parley::{
    Alignment, AlignmentOptions, FontContext, FontFamily, FontFamilyName, Layout, LayoutContext,
    LineHeight, OverflowWrap, Run, StyleProperty, WordBreak,
};

use crate::pdf::fonts::Fonts;
use crate::pdf::rich::{Ink, Rich, Role};
use galley_domain::export::ExportFailure;

/// Bytes of a paragraph that one layout contains: some pages of lines, 1 MiB of layout.
const CHUNK_BYTES: usize = 4 * 1024;
/// The size and the height of a number behind its passage, as parts of the size of the text.
const NUMBER: (f32, f32) = (0.62, 0.36);

#[derive(Clone, Copy, Debug)]
pub(super) struct Measure {
    pub(super) size: f32,
    pub(super) leading: f32,
    pub(super) width: f32,
    pub(super) indent: f32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) left: f32,
    pub(super) width: f32,
}

pub(super) struct Line {
    /// Its part of the paragraph.
    pub(super) range: Range<usize>,
    pub(super) height: f32,
    /// From its top, in points.
    baseline: f32,
    pieces: Vec<Piece>,
}

struct Piece {
    font: Font,
    size: f32,
    x: f32,
    width: f32,
    ink: Ink,
    text: String,
    glyphs: Vec<KrillaGlyph>,
}

/// Sets paragraphs. Its buffers serve one paragraph after another.
pub(super) struct Typesetter<'a> {
    fonts: &'a Fonts,
    context: FontContext,
    layouts: LayoutContext<Ink>,
    layout: Layout<Ink>,
    families: FontFamily<'a>,
    language: Option<parley::fontique::Language>,
}

impl<'a> Typesetter<'a> {
    pub(super) fn new(fonts: &'a Fonts, language: &str) -> Self {
        let name = |name: &'a String| FontFamilyName::Named(Cow::Borrowed(name.as_str()));
        let families = fonts.families().iter().map(name).collect::<Vec<_>>();
        Self {
            fonts,
            context: fonts.context(),
            layouts: LayoutContext::new(),
            layout: Layout::new(),
            families: FontFamily::List(Cow::Owned(families)),
            language: language.parse().ok(),
        }
    }

    /// Passes on each line as soon as it is set. The failure is that of `sink`.
    pub(super) fn lines(
        &mut self,
        rich: &Rich,
        measure: Measure,
        sink: &mut dyn FnMut(Line) -> Result<(), ExportFailure>,
    ) -> Result<(), ExportFailure> {
        let mut from = 0;
        while from < rich.text().len() {
            let to = rich.text().floor_char_boundary(from.saturating_add(CHUNK_BYTES));
            let chunk = rich.text().get(from..to).unwrap_or_default();
            self.lay_out(chunk, rich.inks(from..to), measure);
            let is_last = to == rich.text().len();
            let count = self.layout.len();
            let complete = if is_last { count } else { count.saturating_sub(1).max(1) };
            let mut end = 0;
            for line in self.layout.lines().take(complete) {
                end = line.text_range().end;
                sink(self.set(&line, chunk, from, measure))?;
            }
            from = if is_last || end == 0 { to } else { from.saturating_add(end) };
        }
        Ok(())
    }

    fn lay_out(
        &mut self,
        chunk: &str,
        inks: impl Iterator<Item = (Range<usize>, Ink)>,
        measure: Measure,
    ) {
        let mut builder = self.layouts.ranged_builder(&mut self.context, chunk, 1.0, false);
        builder.push_default(StyleProperty::FontFamily(self.families.clone()));
        builder.push_default(StyleProperty::FontSize(measure.size));
        builder.push_default(StyleProperty::LineHeight(LineHeight::Absolute(measure.leading)));
        builder.push_default(StyleProperty::Locale(self.language));
        // As on the page: Korean breaks between words.
        builder.push_default(StyleProperty::WordBreak(WordBreak::KeepAll));
        builder.push_default(StyleProperty::OverflowWrap(OverflowWrap::Anywhere));
        for (range, ink) in inks {
            if ink.role == Role::Number {
                let size = measure.size * NUMBER.0;
                builder.push(StyleProperty::FontSize(size), range.clone());
                // No larger than its font, or it would move the lines apart.
                let height = LineHeight::Absolute(size);
                builder.push(StyleProperty::LineHeight(height), range.clone());
            }
            builder.push(StyleProperty::Brush(ink), range);
        }
        builder.build_into(&mut self.layout, chunk);
        self.layout.break_all_lines(Some(measure.width - measure.indent));
        self.layout.align(Alignment::Start, AlignmentOptions::default());
    }

    /// A line of the layout without the layout.
    fn set(
        &self,
        line: &parley::Line<'_, Ink>,
        chunk: &str,
        from: usize,
        measure: Measure,
    ) -> Line {
        let metrics = line.metrics();
        let mut pieces = Vec::new();
        let mut x = measure.indent + metrics.offset;
        for run in line.runs() {
            let (data, index) = (&run.font().data, run.font().index);
            if let Some(font) = self.fonts.face(data.id(), index) {
                self.set_run(&run, chunk, font, &mut x, &mut pieces);
            }
        }
        let range = line.text_range();
        Line {
            range: range.start.saturating_add(from)..range.end.saturating_add(from),
            height: metrics.line_height,
            baseline: metrics.baseline - metrics.block_min_coord,
            pieces,
        }
    }

    fn set_run(
        &self,
        run: &Run<'_, Ink>,
        chunk: &str,
        font: &Font,
        x: &mut f32,
        pieces: &mut Vec<Piece>,
    ) {
        let size = run.font_size();
        let mut current: Option<(u16, Range<usize>, Piece)> = None;
        for cluster in run.visual_clusters() {
            let range = cluster.text_range();
            let style = cluster.style_index();
            let is_same = current.as_ref().is_some_and(|(index, ..)| *index == style);
            if !is_same && !cluster.is_ligature_continuation() {
                pieces.extend(current.take().map(|it| finished(it, chunk)));
            }
            let (_, covered, piece) = current.get_or_insert_with(|| {
                let ink = self.layout.styles().get(usize::from(style)).map(|it| it.brush);
                let (ink, font) = (ink.unwrap_or_default(), font.clone());
                let (text, glyphs) = (String::new(), Vec::new());
                let piece = Piece { font, size, x: *x, width: 0.0, ink, text, glyphs };
                (style, range.clone(), piece)
            });
            *covered = covered.start.min(range.start)..covered.end.max(range.end);
            if cluster.is_ligature_continuation() {
                piece.join(&range);
                continue;
            }
            for glyph in cluster.glyphs() {
                piece.glyphs.push(KrillaGlyph::new(
                    GlyphId::new(glyph.id),
                    glyph.advance / size,
                    glyph.x / size,
                    glyph.y / size,
                    0.0,
                    range.clone(),
                    None,
                ));
                piece.width += glyph.advance;
                *x += glyph.advance;
            }
        }
        pieces.extend(current.map(|it| finished(it, chunk)));
    }
}

/// The piece with its own text, which its glyphs refer to.
fn finished((_, covered, mut piece): (u16, Range<usize>, Piece), chunk: &str) -> Piece {
    piece.text = chunk.get(covered.clone()).unwrap_or_default().to_owned();
    for glyph in &mut piece.glyphs {
        let Range { start, end } = glyph.text_range;
        glyph.text_range = start.saturating_sub(covered.start)..end.saturating_sub(covered.start);
    }
    piece
}

impl Line {
    /// Whether the line has glyphs of its font, besides the box for a missing one.
    pub(super) fn has_glyphs(&self) -> bool {
        let glyphs = self.pieces.iter().flat_map(|piece| &piece.glyphs);
        glyphs.into_iter().any(|glyph| glyph.glyph_id.to_u32() != 0)
    }

    pub(super) fn width(&self) -> f32 {
        self.pieces.iter().map(|piece| piece.width).sum()
    }

    pub(super) fn draw(&self, surface: &mut Surface<'_>, left: f32, top: f32) {
        let baseline = top + self.baseline;
        for piece in &self.pieces {
            piece.draw_ground(surface, left, baseline);
        }
        for piece in &self.pieces {
            piece.draw(surface, left, baseline);
        }
    }
}

impl Piece {
    /// Adds a part of the text to the last glyph, which is a ligature.
    fn join(&mut self, part: &Range<usize>) {
        if let Some(last) = self.glyphs.last_mut() {
            let joined = &mut last.text_range;
            *joined = joined.start.min(part.start)..joined.end.max(part.end);
        }
    }

    /// The tint of a marked passage, with a line below it for a printer without colours.
    fn draw_ground(&self, surface: &mut Surface<'_>, left: f32, baseline: f32) {
        if self.ink.is_marked {
            let (x, size) = (left + self.x, self.size);
            fill_box(surface, TINT, (x, baseline - 0.86 * size), (self.width, 1.1 * size));
            fill_box(surface, TINT_LINE, (x, baseline + 0.24 * size), (self.width, 0.6));
        }
    }

    fn draw(&self, surface: &mut Surface<'_>, left: f32, baseline: f32) {
        let (color, x) = (color_of(self.ink.role), left + self.x);
        let rise =
            if self.ink.role == Role::Number { self.size * NUMBER.1 / NUMBER.0 } else { 0.0 };
        surface.set_fill(Some(filled(color)));
        let from = Point::from_xy(x, baseline - rise);
        surface.draw_glyphs(from, &self.glyphs, self.font.clone(), &self.text, self.size, false);
        match self.ink.role {
            Role::Deleted => {
                fill_box(surface, color, (x, baseline - 0.34 * self.size), (self.width, 0.6));
            }
            Role::Added => {
                fill_box(surface, color, (x, baseline + 0.14 * self.size), (self.width, 0.6));
            }
            Role::Text | Role::Soft | Role::Number | Role::Head => {}
        }
    }
}

type Rgb = (u8, u8, u8);

const TINT: Rgb = (0xFD, 0xF3, 0xD0);
const TINT_LINE: Rgb = (0xC4, 0xA2, 0x3C);

fn color_of(role: Role) -> Rgb {
    match role {
        Role::Text => (0x1C, 0x1A, 0x17),
        Role::Soft => (0x6B, 0x65, 0x58),
        Role::Number | Role::Head => (0x8A, 0x4B, 0x0F),
        Role::Added => (0x1D, 0x6B, 0x3A),
        Role::Deleted => (0xA1, 0x35, 0x2B),
    }
}

fn filled((red, green, blue): Rgb) -> Fill {
    Fill { paint: rgb::Color::new(red, green, blue).into(), ..Fill::default() }
}

/// Fills a rectangle, given by its corner and its size in points.
pub(super) fn fill_box(
    surface: &mut Surface<'_>,
    color: Rgb,
    corner: (f32, f32),
    size: (f32, f32),
) {
    // A box without an area has nothing to fill.
    let Some(rect) = Rect::from_xywh(corner.0, corner.1, size.0, size.1) else { return };
    let mut path = PathBuilder::new();
    path.push_rect(rect);
    if let Some(path) = path.finish() {
        surface.set_fill(Some(filled(color)));
        surface.draw_path(&path);
    }
}
