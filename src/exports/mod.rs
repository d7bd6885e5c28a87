//! Exports and imports: documents as files.
//!
//! # Exports
//!
//! A request for a file that the database has not takes the lock of the file (class `export`, one
//! attempt) and hands its guard over to a task, which builds the file, stores it and releases the lock
//! ([`build`]). Every other caller receives the progress and asks again. So a hundred requests on any
//! number of servers cause one build (G11). If the builder dies, its lease ends and the next request
//! takes the lock. The fence of the lock guards the database: a builder that froze beyond its lease
//! stores nothing.
//!
//! [`paper`] places the reviews in the text. [`docx`], [`html`], [`markdown`], [`text`] and [`pdf`] render
//! it ([`rendering`]); each has a bound of bytes, and the docx and the pages of a PDF are compressed while
//! they are written. `pdf` is a feature of the package, and needs a font.
//!
//! # Imports
//!
//! [`import`] reads the text of a Word, Markdown or plain-text file, within bounds (G12, G13).

pub mod build;
pub(crate) mod docx;
mod docx_comments;
mod docx_parts;
pub mod error;
pub(crate) mod gauge;
pub(crate) mod html;
pub(crate) mod http;
pub mod import;
pub(crate) mod markdown;
pub(crate) mod paper;
#[cfg(feature = "pdf")]
pub(crate) mod pdf;
#[cfg(not(feature = "pdf"))]
#[path = "pdf_absent.rs"]
pub(crate) mod pdf;
pub mod rendering;
mod served;
pub(crate) mod sheet;
pub mod store;
pub(crate) mod text;
mod word_formats;
pub mod word_text;
#[cfg(test)]
mod word_text_tests;
mod word_xml;
pub(crate) mod words;
pub(crate) mod zip;
