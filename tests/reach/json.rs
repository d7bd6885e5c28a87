//! A reader of JSON, without escapes in its strings: this program has no dependency.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Number(f64),
    Text(String),
    List(Vec<Self>),
    Object(BTreeMap<String, Self>),
}

impl Json {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text;
        let value = value(&mut rest)?;
        if rest.trim().is_empty() { Ok(value) } else { Err(complaint("the end", rest)) }
    }

    pub(crate) fn field(&self, name: &str) -> Result<&Self, String> {
        let Self::Object(fields) = self else { return Err(format!("no object with {name}")) };
        fields.get(name).ok_or_else(|| format!("no {name}"))
    }

    pub(crate) fn number(&self, name: &str) -> Result<f64, String> {
        if let Self::Number(it) = self.field(name)? {
            Ok(*it)
        } else {
            Err(format!("{name}: no number"))
        }
    }

    pub(crate) fn list(&self, name: &str) -> Result<&[Self], String> {
        if let Self::List(it) = self.field(name)? {
            Ok(it)
        } else {
            Err(format!("{name}: no list"))
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str, String> {
        if let Self::Text(it) = self.field(name)? {
            Ok(it)
        } else {
            Err(format!("{name}: no text"))
        }
    }
}

fn complaint(wanted: &str, rest: &str) -> String {
    format!("{wanted} expected at {:?}", rest.chars().take(20).collect::<String>())
}

fn takes(rest: &mut &str, token: char) -> bool {
    *rest = rest.trim_start();
    rest.strip_prefix(token).inspect(|after| *rest = after).is_some()
}

fn value(rest: &mut &str) -> Result<Json, String> {
    let (mut fields, mut items) = (BTreeMap::new(), Vec::new());
    if takes(rest, '{') {
        while !takes(rest, '}') {
            let name = string(rest)?;
            if !takes(rest, ':') {
                return Err(complaint("a colon", rest));
            }
            fields.insert(name, value(rest)?);
            separated(rest, '}')?;
        }
        return Ok(Json::Object(fields));
    }
    if takes(rest, '[') {
        while !takes(rest, ']') {
            items.push(value(rest)?);
            separated(rest, ']')?;
        }
        return Ok(Json::List(items));
    }
    if rest.starts_with('"') {
        return string(rest).map(Json::Text);
    }
    let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    let (number, after) = rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
    let number = number.parse().map_err(|_error| complaint("a value", rest))?;
    *rest = after;
    Ok(Json::Number(number))
}

/// A comma and another item follow, or the end.
fn separated(rest: &mut &str, end: char) -> Result<(), String> {
    let is_last = rest.trim_start().starts_with(end);
    let is_followed = takes(rest, ',') && !rest.trim_start().starts_with(end);
    if is_last || is_followed { Ok(()) } else { Err(complaint("a comma", rest)) }
}

fn string(rest: &mut &str) -> Result<String, String> {
    if !takes(rest, '"') {
        return Err(complaint("a string", rest));
    }
    let (text, after) = rest.split_once('"').ok_or("a string without an end")?;
    *rest = after;
    if text.contains('\\') { Err("an escape in a string".to_owned()) } else { Ok(text.to_owned()) }
}

#[test]
fn values_are_read_and_others_rejected() {
    let json = Json::parse(r#" {"a": 1.5e2, "b": [-1, "x"], "c": {}} "#).expect("JSON");
    assert_eq!(json.number("a"), Ok(150.0));
    assert_eq!(json.list("b"), Ok(&[Json::Number(-1.0), Json::Text("x".to_owned())][..]));
    assert!(json.number("b").is_err() && json.field("d").is_err());
    for bad in ["", "{", "[1,]", "[1 2]", "{\"a\" 1}", "1 2", "\"a", "\"\\n\"", "{a: 1}"] {
        assert!(Json::parse(bad).is_err(), "{bad}");
    }
}
