//! Documents as files: Word, HTML, Markdown, plain text and PDF, and the text of an imported file.
//!
//! [`render_model`] places the reviews in the text. [`docx`], [`html`], [`markdown`], [`text`] and [`pdf`] render
//! it; each has a bound of bytes, and the docx and the pages of a PDF are compressed while they are
//! written. `pdf` is a feature, and needs a font. [`import`] reads a Word, Markdown or plain-text file,
//! within bounds (G12, G13). No part is async: callers run it on a thread that may block.

#![allow(missing_docs, reason = "the crate has one caller, and a name says what a field is")]

mod bounded_text;
pub mod build_progress;
pub mod docx;
mod docx_comments;
mod docx_parts;
pub mod error;
pub mod html;
pub mod import;
pub mod labels;
pub mod markdown;
#[cfg(feature = "pdf")]
pub mod pdf;
#[cfg(not(feature = "pdf"))]
#[path = "pdf_absent.rs"]
pub mod pdf;
pub mod render_model;
pub mod text;
mod zip;

/// Bytes of an exported file: twice the largest text. The server holds one such file in memory for each
/// build, and SQLite writes it in one commit while edits wait. A longer one is a typed problem.
pub const EXPORT_BYTES_MAX: usize = 16 * 1024 * 1024;
