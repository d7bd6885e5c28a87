//! The elements of a Word document: which are text, which set text apart, which are counted as left out.
//!
//! Each element of a run and of a paragraph (ECMA-376-1 §17.3, §17.5, §17.13, §17.16, §22.1) has a row in
//! [`Element::of`], and the test names those of the schema one by one.

const WORD: [&str; 2] = [
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
];
const MATH: [&str; 2] = [
    "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "http://purl.oclc.org/ooxml/officeDocument/math",
];
/// The beginnings of the namespaces of pictures, charts, diagrams and shapes.
const DRAWINGS: [&str; 4] = [
    "http://schemas.openxmlformats.org/drawingml/2006/",
    "http://purl.oclc.org/ooxml/drawingml/",
    "urn:schemas-microsoft-com:vml",
    "http://schemas.microsoft.com/office/drawing/",
];
const WORD_2010: &str = "http://schemas.microsoft.com/office/word/2010/wordml";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Element {
    Body,
    Paragraph,
    ParagraphProperties,
    /// Of runs, cells, tables, sections; also former properties. No text is inside.
    Properties,
    RowProperties,
    Run,
    Text,
    Tab,
    Break,
    Hyphen,
    /// A sign of a font with signs of its own.
    Symbol,
    /// The reading above the base of a ruby.
    Ruby,
    Reading,
    /// The text of a run with it is not shown.
    Vanish,
    RunStyle,
    FieldMark,
    Instruction,
    SimpleField,
    /// A tracked change, of words, of the mark of a paragraph, or of a row.
    Insertion,
    Deletion,
    CellDeletion,
    Table,
    Row,
    Cell,
    /// Columns before the first cell of a row.
    ColumnsBefore,
    /// The paragraphs of a text box, which stands beside the text.
    Box,
    Equation,
    /// An equation or several, each on a line.
    EquationLines,
    /// A part of an equation that is set apart from those beside it.
    EquationPart,
    /// The mark of a comment.
    Comment,
    /// The mark of a footnote or endnote.
    Reference,
    /// The note itself, in a part of its own.
    Note,
    Picture,
    /// Content of another kind, or of another part or file: an embedded file, a chart, a diagram, a control,
    /// ink, a part in HTML, a subdocument, a word as a drawing.
    Object,
    /// A value that Word makes when it shows the page: a date, a number of a page.
    Value,
    /// No row of the schema.
    Other,
    Ignored,
}

impl Element {
    pub(super) fn of(namespace: &[u8], name: &[u8]) -> Self {
        let Ok(namespace) = std::str::from_utf8(namespace) else { return Self::Other };
        match namespace {
            _ if WORD.contains(&namespace) => Self::of_word(name),
            _ if MATH.contains(&namespace) => Self::of_equation(name),
            _ if DRAWINGS.iter().any(|it| namespace.starts_with(it)) => match name {
                b"pic" | b"imagedata" => Self::Picture,
                b"chart" | b"relIds" | b"lockedCanvas" | b"textpath" => Self::Object,
                _ => Self::Other,
            },
            WORD_2010 if name == b"contentPart" => Self::Object,
            _ => Self::Other,
        }
    }

    fn of_word(name: &[u8]) -> Self {
        match name {
            b"body" => Self::Body,
            b"p" => Self::Paragraph,
            b"pPr" => Self::ParagraphProperties,
            b"rPr" | b"tcPr" | b"tblPr" | b"tblPrEx" | b"sectPr" | b"sdtPr" | b"sdtEndPr"
            | b"rubyPr" | b"smartTagPr" | b"customXmlPr" | b"pPrChange" | b"rPrChange"
            | b"trPrChange" | b"tcPrChange" | b"tblPrChange" | b"tblPrExChange"
            | b"sectPrChange" | b"tblGridChange" | b"numberingChange" => Self::Properties,
            b"trPr" => Self::RowProperties,
            b"r" => Self::Run,
            b"t" => Self::Text,
            b"tab" | b"ptab" => Self::Tab,
            b"br" | b"cr" => Self::Break,
            b"noBreakHyphen" => Self::Hyphen,
            b"sym" => Self::Symbol,
            b"ruby" => Self::Ruby,
            b"rt" => Self::Reading,
            b"vanish" => Self::Vanish,
            b"rStyle" => Self::RunStyle,
            b"fldChar" => Self::FieldMark,
            b"instrText" => Self::Instruction,
            b"fldSimple" => Self::SimpleField,
            b"ins" | b"moveTo" => Self::Insertion,
            b"del" | b"moveFrom" => Self::Deletion,
            b"cellDel" => Self::CellDeletion,
            b"tbl" => Self::Table,
            b"tr" => Self::Row,
            b"tc" => Self::Cell,
            b"gridBefore" => Self::ColumnsBefore,
            b"txbxContent" => Self::Box,
            b"commentReference" => Self::Comment,
            b"footnoteReference" | b"endnoteReference" => Self::Reference,
            b"footnote" | b"endnote" => Self::Note,
            b"object" | b"control" | b"movie" | b"contentPart" | b"altChunk" | b"subDoc" => {
                Self::Object
            }
            b"dayShort" | b"dayLong" | b"monthShort" | b"monthLong" | b"yearShort"
            | b"yearLong" | b"pgNum" => Self::Value,
            // Their children have rows of their own.
            b"hyperlink" | b"smartTag" | b"customXml" | b"sdt" | b"sdtContent" | b"dir"
            | b"bdo" | b"rubyBase" | b"drawing" | b"pict" => Self::Ignored,
            // Word shows it at the end of a line alone, and lines end elsewhere here.
            b"softHyphen" => Self::Ignored,
            // Deleted words and fields. The number inside its note, which the list of the notes repeats, and
            // lines above notes.
            b"delText"
            | b"delInstrText"
            | b"footnoteRef"
            | b"endnoteRef"
            | b"annotationRef"
            | b"separator"
            | b"continuationSeparator" => Self::Ignored,
            // Where a page ended at the last print, marks of spelling, places, permissions.
            b"lastRenderedPageBreak"
            | b"proofErr"
            | b"bookmarkStart"
            | b"bookmarkEnd"
            | b"permStart"
            | b"permEnd"
            | b"commentRangeStart"
            | b"commentRangeEnd" => Self::Ignored,
            // The ranges of moves and of tagged changes; the changed words are marked themselves.
            b"moveFromRangeStart"
            | b"moveFromRangeEnd"
            | b"moveToRangeStart"
            | b"moveToRangeEnd"
            | b"customXmlInsRangeStart"
            | b"customXmlInsRangeEnd"
            | b"customXmlDelRangeStart"
            | b"customXmlDelRangeEnd"
            | b"customXmlMoveFromRangeStart"
            | b"customXmlMoveFromRangeEnd"
            | b"customXmlMoveToRangeStart"
            | b"customXmlMoveToRangeEnd" => Self::Ignored,
            _ => Self::Other,
        }
    }

    fn of_equation(name: &[u8]) -> Self {
        match name {
            b"oMath" => Self::Equation,
            b"oMathPara" => Self::EquationLines,
            b"r" => Self::Run,
            b"t" => Self::Text,
            b"rPr" | b"ctrlPr" => Self::Properties,
            b"num" | b"den" | b"sup" | b"sub" | b"deg" | b"e" | b"fName" | b"lim" | b"mr"
            | b"d" | b"dPr" | b"begChr" | b"sepChr" | b"endChr" | b"rad" | b"nary" | b"naryPr"
            | b"acc" | b"accPr" | b"chr" | b"m" | b"eqArr" | b"func" => Self::EquationPart,
            // Their children have rows of their own.
            b"f" | b"sSup" | b"sSub" | b"sSubSup" | b"sPre" | b"limLow" | b"limUpp" | b"bar"
            | b"box" | b"borderBox" | b"groupChr" | b"phant" => Self::Ignored,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The groups of the schema for the content of runs, of paragraphs, of bodies and of equations.
    #[test]
    fn each_element_of_a_run_and_of_a_paragraph_has_a_row() {
        let word = "annotationRef br commentReference continuationSeparator contentPart cr dayLong dayShort \
            delInstrText delText drawing endnoteRef endnoteReference fldChar footnoteRef \
            footnoteReference instrText lastRenderedPageBreak monthLong monthShort noBreakHyphen \
            object pgNum pict ptab rPr ruby separator softHyphen sym t tab yearLong yearShort \
            bdo bookmarkEnd bookmarkStart commentRangeEnd commentRangeStart customXml \
            customXmlDelRangeEnd customXmlDelRangeStart customXmlInsRangeEnd customXmlInsRangeStart \
            customXmlMoveFromRangeEnd customXmlMoveFromRangeStart customXmlMoveToRangeEnd \
            customXmlMoveToRangeStart del dir fldSimple hyperlink ins moveFrom moveFromRangeEnd \
            moveFromRangeStart moveTo moveToRangeEnd moveToRangeStart pPr permEnd permStart proofErr r \
            sdt smartTag subDoc altChunk p sectPr tbl tr tc rt rubyBase rubyPr sdtContent sdtPr";
        let math = "oMath oMathPara acc bar box borderBox d eqArr f func groupChr limLow limUpp m nary \
            phant rad sPre sSub sSubSup sSup r t num den e sub sup deg lim fName mr";
        for (namespace, names) in
            [(WORD[0], word), (WORD[1], word), (MATH[0], math), (MATH[1], math)]
        {
            for name in names.split_whitespace() {
                let row = Element::of(namespace.as_bytes(), name.as_bytes());
                assert_ne!(row, Element::Other, "{namespace} {name}");
            }
        }
        assert_eq!(Element::of(b"urn:x", b"t"), Element::Other);
    }
}
