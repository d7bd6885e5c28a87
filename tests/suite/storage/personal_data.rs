//! `config/PERSONAL_DATA.md` against the schema: each column of text or bytes has a row.

use std::collections::BTreeSet;

use regex::Regex;

use crate::storage::database::{Desk, Stranger};

crate::storage::on_both_engines! {
    personal_data:
    each_column_of_text_or_bytes_stands_in_the_paper
}

const PAPER: &str = include_str!("../../../config/PERSONAL_DATA.md");

const SQLITE: &str = "SELECT m.name, x.name FROM sqlite_schema m JOIN pragma_table_xinfo(m.name) x \
    WHERE m.type = 'table' AND x.type IN ('TEXT', 'BLOB') AND m.name <> '_sqlx_migrations'";
const POSTGRES: &str = "SELECT table_name::text, column_name::text FROM information_schema.columns \
    WHERE table_schema = 'public' AND data_type IN ('text', 'bytea') \
    AND table_name <> '_sqlx_migrations'";

/// The columns in the rows of a table's first two cells: `table`: `column`, …; or a table and its columns.
fn documented() -> BTreeSet<(String, String)> {
    let name = Regex::new("`([a-z0-9_]+)`(:?)").expect("a pattern");
    let mut all = BTreeSet::new();
    for line in PAPER.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = line.split('|').skip(1);
        let (first, second) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        let mut table = String::new();
        let is_list = !first.contains(':');
        let text = if is_list { format!("{first}, {second}") } else { first.to_owned() };
        for found in name.captures_iter(&text) {
            let word = found[1].to_owned();
            if &found[2] == ":" || (is_list && table.is_empty()) {
                table = word;
            } else {
                all.insert((table.clone(), word));
            }
        }
    }
    all
}

pub(crate) async fn each_column_of_text_or_bytes_stands_in_the_paper(desk: Desk) {
    let stored: BTreeSet<(String, String)> = match &mut desk.location.stranger().await {
        Stranger::Sqlite(connection) => {
            let rows: Vec<(String, String)> =
                sqlx::query_as(SQLITE).fetch_all(connection).await.unwrap();
            rows.into_iter().collect()
        }
        Stranger::Postgres(connection) => {
            let rows: Vec<(String, String)> =
                sqlx::query_as(POSTGRES).fetch_all(connection).await.unwrap();
            rows.into_iter().collect()
        }
    };
    let documented = documented();
    let missing: Vec<_> = stored.difference(&documented).collect();
    assert_eq!(missing, Vec::<&(String, String)>::new(), "add rows to config/PERSONAL_DATA.md");
    // PostgreSQL has no journal.
    let is_gone = |it: &&(String, String)| !stored.contains(*it) && it.0 != "journal";
    let gone: Vec<_> = documented.iter().filter(is_gone).collect();
    assert!(gone.is_empty(), "no such columns: {gone:?}");
}
