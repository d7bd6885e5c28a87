//! Names in backticks: a comment or a paper names only what exists.

use std::collections::HashSet;

use crate::tree::{self, Source, assert_none};

/// Terms of other programs and standards, and names of the changelog that are gone.
const FOREIGN: &str = "ASK CLUSTERDOWN Default_Ignorable_Code_Point F0 HAProxy MOVED MessagePack NOSCRIPT \
    ReadyForQuery Referer SQLITE_IOERR_SHMSIZE SSL_CERT_DIR SSL_CERT_FILE SharedLink TRYAGAIN \
    callgrind madvise outdatedTimeout resolve_conflict showDocument synchronous_standby_names \
    withLock";

#[test]
fn a_name_in_backticks_exists() {
    let sources = tree::all();
    let mut names: HashSet<&str> = sources.iter().flat_map(|source| words(&source.path)).collect();
    let is_code = |source: &&Source| source.kind() != "md" && source.path != "tests/tidy/names.rs";
    for source in sources.iter().filter(is_code) {
        let code = source.text.lines().filter(|line| !is_comment(source, line));
        names.extend(code.flat_map(words));
    }
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| ["lua", "md", "rs"].contains(&source.kind())) {
        let lines = source.lines();
        for (number, line) in
            lines.filter(|(_, line)| source.kind() == "md" || is_comment(source, line))
        {
            let missing = line.split('`').skip(1).step_by(2).filter(|text| is_name(text));
            let missing = missing.flat_map(words).filter(|name| {
                // A prefix of test names, such as `g7_`.
                !name.ends_with('_')
                    && !names.contains(name)
                    && FOREIGN.split(' ').all(|it| it != *name)
            });
            complaints.extend(missing.map(|name| source.complaint(number, &format!("`{name}`"))));
        }
    }
    assert_none(&complaints, "correct the name, or add the term of another program to FOREIGN");
}

fn is_comment(source: &Source, line: &str) -> bool {
    let mark = if source.kind() == "lua" { "--" } else { "//" };
    line.trim_start().starts_with(mark)
}

fn is_name(text: &str) -> bool {
    let path = text.strip_suffix("()").unwrap_or(text);
    let path = path.strip_suffix('!').unwrap_or(path);
    path.split("::").all(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && words(part).eq([part])
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}
