//! The values that the settings accept, and the line that each fault reports.

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use super::*;
use crate::domain::handle::Handle;

/// An admin token of the least length.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn environment(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn with(pairs: &[(&str, &str)]) -> Result<Settings, Faults> {
    Settings::load(&Flags::default(), environment(pairs))
}

fn from_file(content: &str) -> Result<Settings, Faults> {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(content.as_bytes()).expect("written");
    let flags = Flags { config: Some(file.path().to_owned()), ..Flags::default() };
    Settings::load(&flags, HashMap::new())
}

/// The only fault of these settings.
fn fault(pairs: &[(&str, &str)]) -> String {
    let Faults(mut lines) = with(pairs).expect_err("a fault");
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.pop().expect("one line")
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    let settings = with(&[]).expect("valid");
    assert_eq!(settings.server.listen, "127.0.0.1:8080".parse().expect("an address"));
    assert_eq!(settings.server.public_url, None);
    assert_eq!(*settings.server.linger, Duration::from_secs(5));
    assert_eq!(*settings.server.drain, Duration::from_secs(15));
    assert_eq!(settings.database.url, "sqlite://data/galley.db");
    assert_eq!(settings.locks.url, "memory:");
    assert_eq!(settings.seats.terms(), LeaseTerms::default());
    assert_eq!(*settings.seats.client_timeout, Duration::from_secs(10));
    assert_eq!(*settings.seats.resume_grace, Duration::from_secs(8));
    assert_eq!(*settings.seats.idle_release, Duration::from_secs(1_800));
    assert!(settings.auth.guests && settings.admin.token.is_none() && settings.metrics.enabled);
    assert_eq!(settings.auth.secret_file, PathBuf::from("data/secret"));
}

#[test]
fn later_sources_win_over_earlier_ones() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let content = "[server]\nlisten = \"127.0.0.1:1\"\ndrain = \"1s\"\n[seats]\nlease = \"13s\"";
    file.write_all(content.as_bytes()).expect("written");
    let flags = Flags {
        config: Some(file.path().to_owned()),
        listen: Some("127.0.0.1:3".to_owned()),
        ..Flags::default()
    };
    let variables =
        environment(&[("GALLEY_SERVER__LISTEN", "127.0.0.1:2"), ("GALLEY_SERVER__DRAIN", "2s")]);
    let settings = Settings::load(&flags, variables).expect("valid");
    assert_eq!(settings.server.listen.port(), 3);
    assert_eq!(*settings.server.drain, Duration::from_secs(2));
    assert_eq!(*settings.seats.lease, Duration::from_secs(13));
}

#[test]
fn the_environment_knows_numbers_and_switches() {
    let settings = with(&[
        ("GALLEY_LIMITS__MESSAGE_BYTES", "4096"),
        ("GALLEY_AUTH__GUESTS", "false"),
        ("GALLEY_ADMIN__TOKEN", TOKEN),
        ("GALLEY_LOG__LEVEL", ""),
        ("GALLEY_SERVER__NAME", "galley-1.eu"),
        ("GALLEY_LIMITS__RESERVED_HANDLES", "Admin, 관리자"),
    ])
    .expect("valid");
    let reserved: Vec<_> = settings.limits.reserved_handles.iter().map(Handle::as_str).collect();
    assert_eq!(reserved, ["admin", "관리자"]);
    assert!(fault(&[("GALLEY_LIMITS__RESERVED_HANDLES", "a b")]).contains("reserved_handles"));
    assert_eq!(*settings.limits.message_bytes, 4_096);
    assert!(!settings.auth.guests);
    assert!(settings.admin.token.is_some());
    assert_eq!(settings.log.level, "info");
    assert_eq!(settings.server.name, "galley-1.eu");
    assert!(fault(&[("GALLEY_SERVER__NAME", "a b")]).starts_with("server.name: must be 1 to 64"));
}

#[test]
fn unknown_keys_are_faults_wherever_they_come_from() {
    assert!(
        fault(&[("GALLEY_SEATS__LEASES", "9s")])
            .starts_with("seats.leases: there is no such setting")
    );
    let Faults(lines) =
        from_file("listen = \"127.0.0.1:1\"\n[sever]\ndrain = \"1s\"").expect_err("two faults");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let Faults(lines) = from_file("server = 1\n[auth.guests]\nx = 1").expect_err("two faults");
    assert!(lines[0].starts_with("auth.guests: must be a boolean (from "), "{lines:?}");
    assert!(lines[1].starts_with("server: must be a section"), "{lines:?}");
}

#[test]
fn all_faults_of_one_section_are_named_without_its_values() {
    let content = "[auth]\nguests = \"hunter2, expected hunter2\"\nsecret_file = \"\"\nhunter = 2\n\
                   sign_in_url = [\"hunter2\"]\n[admin]\ntoken = [\"hunter2\"]\n[log]\n\
                   level = \"hunter2\"\nformat = \"hunter2\"\n[limits]\nconnections = \"hunter2\"\n\
                   guest_burst = -1\nreserved_handles = [\"a\"]\njoin_burst = 4294967296";
    let Faults(lines) = from_file(content).expect_err("eleven faults");
    let keys: Vec<_> = lines.iter().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    let expected = [
        "admin.token",
        "auth.guests",
        "auth.hunter",
        "auth.secret_file",
        "auth.sign_in_url",
        "limits.connections",
        "limits.guest_burst",
        "limits.join_burst",
        "limits.reserved_handles",
        "log.format",
        "log.level",
    ];
    assert_eq!(keys, expected, "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("hunter2")), "{lines:?}");
    assert!(lines[5].contains("must be a whole number from 1 to 1000000 (from /"), "{}", lines[5]);
}

/// A key with a fault has its default when the rules between keys are checked.
#[test]
fn a_rule_between_keys_waits_until_both_are_valid() {
    let content = "[seats]\nlease = \"long\"\nrenew_every = \"9s\"\nclient_timeout = \"10s\"";
    let Faults(lines) = from_file(content).expect_err("a fault");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("seats.lease: must be a duration"), "{lines:?}");
}

#[test]
fn variables_that_only_share_the_prefix_are_no_settings() {
    let of_kubernetes = [
        ("GALLEY_SERVICE_HOST", "10.0.0.1"),
        ("GALLEY_SERVICE_PORT_HTTP", "8080"),
        ("GALLEY_PORT", "tcp://10.0.0.1:8080"),
        ("GALLEY_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("GALLEY__CANARY_SERVICE_HOST", "10.0.0.2"),
        ("GALLEY_REDIS__OLD_PORT_6379_TCP", "tcp://10.0.0.3:6379"),
    ];
    assert!(with(&of_kubernetes).is_ok());
    assert_eq!(ignored(environment(&of_kubernetes).keys()), None);
    let others = [("GALLEY_ORIGIN", "http://x"), ("GALLEY_DATABASE_URL", "sqlite://x.db")];
    assert_eq!(with(&others).expect("valid").database.url, "sqlite://data/galley.db");
    let line = ignored(environment(&others).keys()).expect("a line");
    assert!(line.contains("GALLEY_DATABASE_URL, GALLEY_ORIGIN"), "{line}");
    assert!(!line.contains("sqlite") && !line.contains('\n'), "{line}");
}

#[test]
fn a_line_that_is_no_toml_is_named_by_its_position_and_not_quoted() {
    for content in [
        "[admin]\ntoken=\"hunter2-and-no-end",
        "[admin]\ntoken = hunter2",
        "[admin]\n[admin]\ntoken = \"hunter2\"",
        "[admin]\ntoken = \"a\" hunter2\n",
        "hunter2",
        "[admin]\ntoken = \"\"\"hunter2\nhunter2",
        "token.hunter2 = 1\ntoken.hunter2 = 2",
    ] {
        let Faults(lines) = from_file(content).expect_err("a fault");
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(": line ") && lines[0].contains("column "), "{lines:?}");
        assert!(!lines[0].contains("hunter2"), "{lines:?}");
    }
}

#[test]
fn a_sign_in_address_is_a_link_of_the_web() {
    let address = "https://app.example.com/sign-in?next={return}";
    let settings = with(&[("GALLEY_AUTH__SIGN_IN_URL", address)]).expect("valid");
    assert_eq!(settings.auth.sign_in_url.as_deref(), Some(address));
    for address in ["javascript:alert(1)", "/sign-in", "https://", "https:///x", "https://a b"] {
        let line = fault(&[("GALLEY_AUTH__SIGN_IN_URL", address)]);
        assert!(line.starts_with("auth.sign_in_url: must be an http"), "{line}");
    }
}

#[test]
fn an_admin_token_is_as_long_as_the_secret() {
    assert!(with(&[("GALLEY_ADMIN__TOKEN", TOKEN)]).is_ok());
    let line = fault(&[("GALLEY_ADMIN__TOKEN", &TOKEN[1..])]);
    assert!(line.starts_with("admin.token: must be at least 32 bytes"), "{line}");
    assert!(!line.contains(&TOKEN[1..]), "{line}");
}

#[test]
fn all_faults_are_named_at_once_and_one_line_each() {
    let Faults(lines) = with(&[
        ("GALLEY_SERVER__LISTEN", "everywhere"),
        ("GALLEY_SEATS__LEASE", "12"),
        ("GALLEY_LIMITS__CONNECTIONS", "0"),
        ("GALLEY_LOG__FORMAT", "xml"),
        ("GALLEY_AUTH__GUESTS", "maybe"),
        ("GALLEY_AUTH__GUEST", "true"),
    ])
    .expect_err("six faults");
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(lines.iter().all(|line| !line.contains('\n')));
}

#[test]
fn a_bare_number_is_not_a_duration() {
    assert!(fault(&[("GALLEY_SERVER__DRAIN", "15")]).contains("a duration with its unit"));
    let Faults(lines) = from_file("[server]\ndrain = 15").expect_err("a fault");
    assert!(lines[0].starts_with("server.drain: must be a duration"), "{lines:?}");
}

#[test]
fn a_lease_must_be_three_renewals_long() {
    let line = fault(&[("GALLEY_SEATS__LEASE", "11s")]);
    let fault = "seats.lease: a lease must be at least three renewals long (seats.renew_every)";
    assert_eq!(line, format!("{fault} (from the environment)"));
}

#[test]
fn a_client_timeout_must_exceed_the_heartbeat_interval() {
    assert!(fault(&[("GALLEY_SEATS__CLIENT_TIMEOUT", "4s")]).contains("longer than"));
}

#[test]
fn a_redis_beside_a_sqlite_file_needs_the_operators_consent() {
    let redis = ("GALLEY_LOCKS__URL", "redis://127.0.0.1:6379");
    assert!(fault(&[redis]).contains("database.shared_sqlite = true"));
    assert!(with(&[redis, ("GALLEY_DATABASE__SHARED_SQLITE", "true")]).is_ok());
    assert!(with(&[redis, ("GALLEY_DATABASE__URL", "postgres://db/galley")]).is_ok());
}

#[test]
fn a_postgresql_is_named_by_host_and_database() {
    for url in [
        "postgres://db/galley",
        "postgresql://kim:hunter2@db.internal:5433/galley?sslmode=verify-full&sslrootcert=ca.pem",
        "postgres://kim@%2Frun%2Fpostgresql/galley",
        "postgres://[::1]:5432/galley",
    ] {
        let settings = with(&[("GALLEY_DATABASE__URL", url)]).expect("valid");
        assert!(!settings.show().contains("hunter2"));
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
    for (url, expected) in [
        ("postgres://", "must be postgres://"),
        ("postgres://db", "must be postgres://"),
        ("postgres://db/", "must be postgres://"),
        ("postgres:///galley", "must be postgres://"),
        ("postgres://kim:hunter2@/galley", "must be postgres://"),
        ("postgres://kim:hun/ter2@db/galley", "%2F"),
        ("postgres://db/galley?password=hunter2", "no parameters other than sslmode"),
        ("postgres://db/galley?sslmode=require&options=-chunter2", "no parameters other than"),
        ("mysql://kim:hunter2@db/galley", "must be sqlite://PATH"),
    ] {
        let line = fault(&[("GALLEY_DATABASE__URL", url)]);
        assert!(line.starts_with("database.url: ") && line.contains(expected), "{url}: {line}");
        assert!(!line.contains("hunter2") && !line.contains("ter2"), "{line}");
    }
}

#[test]
fn origins_are_listed_with_commas_or_spaces_and_read_strictly() {
    let settings = with(&[(
        "GALLEY_SERVER__ALLOWED_ORIGINS",
        "https://a.example, https://b.example  http://c:1",
    )]);
    let found = settings.expect("valid").server.allowed_origins;
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["https://a.example", "https://b.example", "http://c:1"]);
    for key in ["allowed_origins", "frame_ancestors", "page_url"] {
        let variable = format!("GALLEY_SERVER__{}", key.to_uppercase());
        for text in ["https://a.example/", "*", "https://a.example/path", "a.example", "null"] {
            let found = fault(&[(variable.as_str(), text)]);
            assert!(found.starts_with(&format!("server.{key}: must be an origin")), "{found}");
        }
    }
}

#[test]
fn a_public_url_is_an_origin() {
    for text in ["galley.example.com", "https://a.example/x", "https://u@a.example", "ftp://a"] {
        assert!(fault(&[("GALLEY_SERVER__PUBLIC_URL", text)]).contains("must be an origin"));
    }
    let settings = with(&[("GALLEY_SERVER__PUBLIC_URL", "https://Galley.example:443")]);
    let origin = settings.expect("valid").server.public_url.expect("set");
    assert_eq!(origin.to_string(), "https://galley.example");
}

#[test]
fn a_provider_has_keys_an_issuer_and_an_audience_or_none_of_them() {
    let keys = [
        ("GALLEY_AUTH__JWKS_URL", "https://id.example/jwks"),
        ("GALLEY_AUTH__ISSUER", "https://id.example/"),
        ("GALLEY_AUTH__AUDIENCE", "galley"),
    ];
    let auth = with(&keys).expect("valid").auth;
    assert_eq!(auth.name_claims, ["name", "preferred_username"]);
    assert_eq!(auth.audience.as_deref(), Some("galley"));
    for index in 0..3 {
        assert!(fault(&[keys[index]]).contains("all three, or none"));
        let two: Vec<_> = keys.into_iter().filter(|key| *key != keys[index]).collect();
        assert!(fault(&two).starts_with("auth.jwks_url: is set together"));
    }
    for url in ["http://id.example/jwks", "https://u:hunter2@id.example/", "id.example", "http://"]
    {
        let line = fault(&[("GALLEY_AUTH__JWKS_URL", url), keys[1], keys[2]]);
        assert!(line.starts_with("auth.jwks_url: must be an https://"), "{line}");
        assert!(!line.contains("hunter2"), "{line}");
    }
    let local = ("GALLEY_AUTH__JWKS_URL", "http://127.0.0.1:9000/jwks");
    assert!(with(&[local, keys[1], keys[2]]).is_ok());
    let blank = ("GALLEY_AUTH__AUDIENCE", "two words");
    assert!(fault(&[keys[0], keys[1], blank]).starts_with("auth.audience: must be printable"));
    assert!(fault(&[("GALLEY_AUTH__NAME_CLAIMS", ",")]).starts_with("auth.name_claims: must name"));
}

#[test]
fn the_secrets_of_tokens_have_names_and_files() {
    let load = |json: &str| with(&[("GALLEY_AUTH__TOKEN_SECRETS", json)]);
    let two = r#"[{"kid":"b","file":"data/b"},{"kid":"a","file":"data/a"}]"#;
    let secrets = load(two).expect("valid").auth.token_secrets;
    let names: Vec<_> = secrets.iter().map(|it| (it.kid.as_str(), it.file.as_path())).collect();
    assert_eq!(names, [("b", "data/b".as_ref()), ("a", "data/a".as_ref())]);
    let listed = "[auth]\ntoken_secrets = [{ kid = \"b\", file = \"data/b\" }]";
    assert_eq!(from_file(listed).expect("valid").auth.token_secrets.len(), 1);
    for (json, expected) in [
        (r#"[{"kid":"","file":"f"}]"#, "[0].kid: must be 1 to 64"),
        (r#"[{"kid":"a b","file":"f"}]"#, "[0].kid: must be 1 to 64"),
        (r#"[{"kid":"a","file":""}]"#, "[0].file: must not be empty"),
        (r#"[{"kid":"a","file":"f"},{"kid":"a","file":"g"}]"#, "[1].kid: is that of another"),
        (r#"[{"kid":"a","path":"f"}]"#, "[0].path: there is no such setting"),
        ("data/secret", ": must be [{ kid"),
    ] {
        let Faults(lines) = load(json).expect_err("a fault");
        let start = format!("auth.token_secrets{expected}");
        assert!(lines.iter().any(|line| line.starts_with(&start)), "{lines:?}");
    }
}

#[test]
fn a_redis_is_one_or_some_nodes_of_a_cluster() {
    let shared = ("GALLEY_DATABASE__SHARED_SQLITE", "true");
    for url in [
        "redis+cluster://a:1,b:2",
        "rediss+cluster://u:hunter2@a:1,b:2",
        "redis://a/1",
        "redis+sentinel://u:hunter2@a:1,b:2/main/0",
    ] {
        let settings = with(&[("GALLEY_LOCKS__URL", url), shared]).expect("valid");
        assert!(!settings.show().contains("hunter2"), "{}", settings.show());
    }
    for url in [
        "redis+cluster://",
        "redis+cluster://a:1/3",
        "redis+sentinel://a:1",
        "valkey://a",
        "redis://:1",
    ] {
        let why = fault(&[("GALLEY_LOCKS__URL", url), shared]);
        assert!(why.starts_with("locks.url: "), "{why}");
    }
}

/// The parsers of `serve` refuse these, too.
#[test]
fn an_address_that_no_driver_reads_is_a_fault() {
    let shared = ("GALLEY_DATABASE__SHARED_SQLITE", "true");
    for (key, variable, urls) in [
        (
            "locks.url",
            "GALLEY_LOCKS__URL",
            &[
                "redis://u:hunter2@a:99999",
                "redis://:hunter2@a/x",
                "rediss://:hunter2@a/#insecure",
                "redis+cluster://:hunter2@a:1,b:x",
                "redis+sentinel://:hunter2@a:x/main",
                "rediss://:hunter2@a:x/1",
            ][..],
        ),
        (
            "database.url",
            "GALLEY_DATABASE__URL",
            &[
                "sqlite://:memory:",
                "sqlite://galley.db?mode=ro",
                "postgres://u:hunter2@db:99999/galley",
                "postgres://u:hunter2@db/galley?sslmode=maybe",
            ],
        ),
    ] {
        for url in urls {
            let line = fault(&[(variable, url), shared]);
            assert!(line.starts_with(&format!("{key}: ")) && line.lines().count() == 1, "{line}");
            assert!(!line.contains("hunter2"), "{line}");
        }
    }
}

#[test]
fn shown_settings_hide_secrets_and_parse_back() {
    let settings = with(&[
        ("GALLEY_LOCKS__URL", "rediss://galley:hunter2@redis.internal:6380/1"),
        ("GALLEY_DATABASE__URL", "postgres://galley:hunter2@db.internal/galley"),
        ("GALLEY_ADMIN__TOKEN", TOKEN),
        ("GALLEY_SERVER__PUBLIC_URL", "https://galley.example"),
        ("GALLEY_SEATS__IDLE_RELEASE", "0s"),
    ])
    .expect("valid");
    let shown = settings.show();
    assert!(!shown.contains("hunter2") && !shown.contains(TOKEN), "{shown}");
    assert!(!format!("{settings:?}").contains("hunter2"));
    let readable = shown.replace("token = \"***\"", &format!("token = \"{TOKEN}\""));
    let again = from_file(&readable).expect("valid");
    assert_eq!(again.show(), shown);
}

#[test]
fn the_examples_and_the_manual_agree_with_the_program() {
    let production = include_str!("../../config/production.toml");
    let settings = from_file(production).expect("valid");
    assert!(settings.auth.sign_in_url.is_some() && production.contains("\n[admin]\n"));
    // The manual contains every key without a default too, commented out.
    for key in ["public_url", "sign_in_url", "oidc", "jwks_url", "token_secrets", "token"] {
        assert!(DEFAULTS.contains(&format!("\n# {key} = ")), "{key}");
    }
}

#[test]
fn web_push_is_on_with_a_key_beside_the_secret() {
    let push = with(&[]).expect("valid").push;
    assert!(push.enabled && !push.allow_private);
    assert_eq!(push.key_file, PathBuf::from("data/push-key"));
    assert_eq!((push.subject, push.hosts.len()), (None, 0));
}

#[test]
fn a_subject_is_a_contact_and_a_push_service_a_host() {
    let subject = |text| [("GALLEY_PUSH__SUBJECT", text)];
    for text in ["mailto:ops@example.com", "https://example.com/contact"] {
        assert_eq!(with(&subject(text)).expect("valid").push.subject.as_deref(), Some(text));
    }
    for text in ["ops@example.com", "mailto:ops", "https://", "http://example.com", "mailto:a@b c"]
    {
        assert!(fault(&subject(text)).starts_with("push.subject: must be a contact"), "{text}");
    }
    let own = |text| [("GALLEY_SERVER__HOSTS", text)];
    with(&own("galley, galley.internal:8080, [::1]")).expect("valid");
    for text in ["http://b", "b/x", "b:x", "a b", "*.b"] {
        assert!(fault(&own(text)).starts_with("server.hosts: must be names"), "{text}");
    }
    let hosts = |text| [("GALLEY_PUSH__HOSTS", text)];
    let named = with(&hosts("FCM.googleapis.com, *.push.apple.com")).expect("valid").push.hosts;
    assert_eq!(named, ["FCM.googleapis.com", "*.push.apple.com"]);
    for text in ["https://push.example", "push.example:443", "*", "a..b", "a/b"] {
        assert!(fault(&hosts(text)).starts_with("push.hosts: must be names"), "{text}");
    }
}

#[test]
fn another_value_of_the_assets_names_the_command_that_serves_the_sources() {
    let assets = |text| [("GALLEY_SERVER__ASSETS", text)];
    assert!(with(&assets("bundle")).expect("valid").show().contains("assets = \"bundle\""));
    let fault = fault(&assets("sources"));
    assert!(fault.starts_with("server.assets: must be `bundle`"), "{fault}");
    assert!(fault.contains("build.mjs --watch"), "{fault}");
}

#[test]
fn the_fonts_are_a_list_and_a_text_with_commas_in_the_environment() {
    let paths = |settings: Settings| {
        let paths = settings.exports.fonts.iter().map(|path| path.display().to_string());
        paths.collect::<Vec<_>>()
    };
    assert_eq!(paths(with(&[]).expect("valid")).len(), 2);
    let fonts = [("GALLEY_EXPORTS__FONTS", " /a b.ttf, /c.otf ,")];
    assert_eq!(paths(with(&fonts).expect("valid")), ["/a b.ttf", "/c.otf"]);
    let none = from_file("[exports]\nfonts = []").expect("valid");
    assert!(none.show().contains("[exports]\nfonts = []\n"));
    assert_eq!(paths(none), Vec::<String>::new());
    let one = from_file("[exports]\nfonts = [\"/a.ttf\"]").expect("valid");
    assert!(one.show().contains("fonts = [\"/a.ttf\"]\n"));
    let Faults(lines) = from_file("[exports]\nfonts = 1").expect_err("a fault");
    assert!(lines[0].starts_with("exports.fonts: must be a list of texts"), "{lines:?}");
}
