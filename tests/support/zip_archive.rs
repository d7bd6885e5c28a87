//! ZIP archives of one part, honest or not: what a hostile Word file consists of.

use std::io::Write as _;

/// An archive with one entry of this name, in which the directory claims `length` bytes.
pub(crate) fn archive(name: &str, content: &[u8], length: Option<usize>, entries: u16) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).expect("in memory");
    let deflated = encoder.finish().expect("in memory");
    let mut crc = flate2::Crc::new();
    crc.update(content);
    let number = |number: usize| u32::try_from(number).expect("a short file").to_le_bytes();
    let mut shared = vec![20, 0, 0, 0, 8, 0, 0, 0, 0x21, 0];
    shared.extend(crc.sum().to_le_bytes());
    shared.extend(number(deflated.len()));
    shared.extend(number(length.unwrap_or(content.len())));
    shared.extend(u16::try_from(name.len()).expect("a short name").to_le_bytes());
    shared.extend([0, 0]);
    let mut file = Vec::from(*b"PK\x03\x04");
    file.extend(&shared);
    file.extend(name.as_bytes());
    file.extend(deflated);
    let directory = file.len();
    for _ in 0..entries {
        file.extend(b"PK\x01\x02\x14\x00");
        file.extend(&shared);
        file.extend([0; 14]);
        file.extend(name.as_bytes());
    }
    let length = file.len() - directory;
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(entries.to_le_bytes());
    file.extend(entries.to_le_bytes());
    file.extend(number(length));
    file.extend(number(directory));
    file.extend([0, 0]);
    file
}
