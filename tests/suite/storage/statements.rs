//! Both engines accept each statement of the source: a misspelt column fails here in a second.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;

use crate::storage::database::{Desk, Location, Stranger};
use galley::storage::error::StorageError;
use galley::storage::statement::sql;
use galley::storage::statement_text;
use galley::storage::tx::run;
use sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};

crate::storage::on_both_engines! {
    statements:
    every_statement_of_the_source_is_prepared
    a_write_in_a_read_is_rejected
}

/// Statements that the source has at least: a scan that finds fewer has missed some.
const STATEMENTS_MIN: usize = 150;

pub(crate) async fn every_statement_of_the_source_is_prepared(desk: Desk) {
    let is_postgres = matches!(desk.location, Location::Server(_));
    let mut stranger = desk.location.stranger().await;
    let statements = statements(is_postgres);
    assert!(STATEMENTS_MIN <= statements.len(), "{} statements", statements.len());
    let mut faults = Vec::new();
    for Found { path, text, names } in statements {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let rendered = statement_text(&text, &names, is_postgres);
        if let Err(error) = prepare(&mut stranger, rendered).await {
            faults.push(format!("{path}: {error}\n{text}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    let misspelt = "SELECT titel FROM documents WHERE id = $1".to_owned();
    assert!(prepare(&mut stranger, misspelt).await.is_err());
}

/// Goal: a statement that writes fails in a `Read` and in a `Snapshot`, and runs where writes belong.
pub(crate) async fn a_write_in_a_read_is_rejected(desk: Desk) {
    let (storage, document) = (&desk.storage, desk.document().await);
    let rename = || sql!("UPDATE documents SET title = 'new' WHERE id = {document}");
    let read: Result<u64, StorageError> =
        run!(storage, Read, tx => { rename().run(tx).await }).await;
    let snapshot: Result<u64, StorageError> =
        run!(storage, Snapshot, tx => { rename().run(tx).await }).await;
    for rejected in [read, snapshot] {
        let error = rejected.expect_err("a write").to_string();
        assert!(error.contains("read-only") || error.contains("readonly"), "{error}");
    }
    assert_ne!(storage.document(document).await.unwrap().unwrap().title, "new");
    let one: Result<u64, StorageError> = run!(storage, One, tx => { rename().run(tx).await }).await;
    let write: Result<u64, StorageError> =
        run!(storage, Write, tx => { rename().run(tx).await }).await;
    assert_eq!((one.unwrap(), write.unwrap()), (1, 1));
}

async fn prepare(stranger: &mut Stranger, text: String) -> Result<(), sqlx::Error> {
    let text = AssertSqlSafe(text).into_sql_str();
    match stranger {
        Stranger::Sqlite(connection) => connection.prepare(text).await.map(drop),
        Stranger::Postgres(connection) => match connection.prepare(text).await {
            // ambiguous_parameter: an argument whose type only its value shows. PostgreSQL has analysed
            // the whole text before.
            Err(error) if code(&error) == "42P08" => Ok(()),
            prepared => prepared.map(drop),
        },
    }
}

fn code(error: &sqlx::Error) -> String {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.unwrap_or_default().into_owned()
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Mark(char),
}

impl Token {
    fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

/// A statement with its marks and the names of its arguments.
struct Found {
    path: String,
    text: String,
    names: Vec<String>,
}

/// Each `sql!` and `kind!` of `src`, for one engine.
fn statements(is_postgres: bool) -> Vec<Found> {
    let files: Vec<(PathBuf, Vec<Token>)> =
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
            .into_iter()
            .map(|path| {
                let source = fs::read_to_string(&path).expect("a source file");
                (path, tokens(&source))
            })
            .collect();
    let mut constants = HashMap::new();
    for (path, tokens) in &files {
        for (name, text) in constants_of(tokens) {
            constants.insert((Some(path.clone()), name.clone()), text.clone());
            constants.insert((None, name), text);
        }
    }
    let mut found = Vec::new();
    // The folder of an engine has its own statements.
    let other = if is_postgres { "src/core/storage/sqlite" } else { "src/core/storage/postgres" };
    for (path, tokens) in files.iter().filter(|(path, _)| !path.to_string_lossy().contains(other)) {
        let text_of = |token: &Token| match token {
            Token::Text(text) => text.clone(),
            Token::Word(name) => {
                let own = constants.get(&(Some(path.clone()), name.clone()));
                let text = own.or_else(|| constants.get(&(None, name.clone())));
                text.unwrap_or_else(|| panic!("{}: no text {name}", path.display())).clone()
            }
            Token::Mark(mark) => panic!("{}: {mark} in a statement", path.display()),
        };
        for at in 0..tokens.len() {
            let (tokens, path) = (&tokens[at..], path.display().to_string());
            if let Some(text) = kind_at(tokens) {
                found.push(Found { names: names_of(&text), path, text });
                continue;
            }
            let Some(parts) = parts_at(tokens, is_postgres) else { continue };
            let (text, names) = (parts.iter().map(text_of).collect(), names_at(tokens));
            found.push(Found { path, text, names });
        }
    }
    found
}

/// The parts of the text of a statement that begins here.
fn parts_at(tokens: &[Token], is_postgres: bool) -> Option<Vec<Token>> {
    let word = |at: usize, wanted: &str| tokens.get(at) == Some(&Token::Word(wanted.to_owned()));
    let mark = |at: usize, wanted: char| tokens.get(at) == Some(&Token::Mark(wanted));
    if !(word(0, "sql") && mark(1, '!') && mark(2, '(')) {
        return None;
    }
    match tokens.get(3)? {
        Token::Mark('[') => Some(list(&tokens[4..])),
        Token::Word(name) if name == "sqlite" && mark(4, ':') => {
            let end = tokens.iter().position(|it| *it == Token::Mark(']'))?;
            // `, postgres: [`
            Some(list(if is_postgres { &tokens[end + 5..] } else { &tokens[6..] }))
        }
        Token::Text(_) | Token::Word(_) => Some(vec![tokens[3].clone()]),
        Token::Mark(_) => None,
    }
}

/// The names of the arguments of a `sql!` that begins here: its texts have them, or the list behind. A constant
/// only uses them.
fn names_at(tokens: &[Token]) -> Vec<String> {
    let mut depth = 0;
    let call = tokens.iter().skip(2).take_while(|it| {
        depth += i32::from(matches!(it, Token::Mark('(' | '[' | '{')));
        depth -= i32::from(matches!(it, Token::Mark(')' | ']' | '}')));
        depth > 0
    });
    let call: Vec<_> = call.collect();
    let mut names = names_of(&call.iter().filter_map(|it| it.text()).collect::<String>());
    for (at, token) in call.iter().enumerate().skip(1) {
        let is_item = *call[at - 1] == Token::Mark(',');
        let is_named = matches!(call.get(at + 1), None | Some(Token::Mark(',' | '=')));
        if let Token::Word(name) = token
            && (is_item && is_named && name.contains(char::is_lowercase))
        {
            names.push(name.clone());
        }
    }
    unique(names)
}

/// The expressions in the braces of a text.
fn names_of(text: &str) -> Vec<String> {
    let text = text.replace("{{", "");
    let words = text.split('{').skip(1).filter_map(|it| it.split_once('}'));
    let words = words.map(|(word, _)| word).filter(|it| !it.starts_with('@'));
    unique(words.map(str::to_owned).collect())
}

fn unique(mut names: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// The text of a `kind!` that begins here.
fn kind_at(tokens: &[Token]) -> Option<String> {
    use Token::{Mark, Text, Word};
    let [Word(kind), Mark('!'), Mark('('), Text(_), _, Text(columns), _, rest @ ..] = tokens else {
        return None;
    };
    let [Mark('('), Text(key), _, Text(more), Mark(')'), _, Text(of_user), ..] = rest else {
        return None;
    };
    (kind == "kind").then(|| {
        format!(
            "SELECT {key} AS key, {more} AS more, {columns} {of_user} \
             AND ({key}, {more}) > ({{key}}, {{more}}) ORDER BY {key}, {more} LIMIT {{rows}}"
        )
    })
}

fn list(tokens: &[Token]) -> Vec<Token> {
    let parts = tokens.iter().take_while(|it| **it != Token::Mark(']'));
    parts.filter(|it| **it != Token::Mark(',')).cloned().collect()
}

/// The constants of a file that are one text.
fn constants_of(tokens: &[Token]) -> Vec<(String, String)> {
    let constants = tokens.windows(7).filter_map(|window| match window {
        [
            Token::Word(keyword),
            Token::Word(name),
            Token::Mark(':'),
            Token::Mark('&'),
            Token::Word(kind),
            Token::Mark('='),
            Token::Text(text),
        ] if keyword == "const" && kind == "str" => Some((name.clone(), text.clone())),
        _ => None,
    });
    constants.collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("storage/statement.rs")
            && !path.ends_with("sql/lib.rs")
        {
            found.push(path);
        }
    }
    found
}

/// The words, texts and marks of a source, without comments.
fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = source.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '/' if rest.peek() == Some(&'/') => {
                rest.by_ref().find(|it| *it == '\n');
            }
            '"' => tokens.push(Token::Text(text(&mut rest))),
            '\'' => skip_character(&mut rest),
            it if it.is_alphanumeric() || it == '_' => {
                let mut word = it.to_string();
                while let Some(more) = rest.next_if(|it| it.is_alphanumeric() || *it == '_') {
                    word.push(more);
                }
                tokens.push(Token::Word(word));
            }
            it if it.is_whitespace() => {}
            it => tokens.push(Token::Mark(it)),
        }
    }
    tokens
}

/// The rest of a text after its first quotation mark.
fn text(rest: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(next) = rest.next() {
        match next {
            '"' => break,
            '\\' => match rest.next() {
                Some('\n') => while rest.next_if(|it| it.is_whitespace()).is_some() {},
                Some('n') => text.push('\n'),
                Some(it) => text.push(it),
                None => {}
            },
            it => text.push(it),
        }
    }
    text
}

/// Skips a character; the name of a lifetime stays as a word.
fn skip_character(rest: &mut Peekable<Chars<'_>>) {
    let mut ahead = rest.clone();
    let is_escaped = ahead.next() == Some('\\');
    if is_escaped || ahead.next() == Some('\'') {
        rest.next();
        if is_escaped {
            rest.next();
        }
        rest.find(|it| *it == '\'');
    }
}
