//! `auth.oidc` from a file and from the environment.

use std::collections::HashMap;
use std::path::Path;

use crate::config::{Flags, Settings};

fn with(pairs: &[(&str, &str)]) -> Result<Settings, String> {
    let pairs = pairs.iter().map(|(name, text)| (format!("GALLEY_{name}"), (*text).to_owned()));
    let loaded = Settings::load(&Flags::default(), HashMap::from_iter(pairs));
    loaded.map_err(|faults| faults.to_string())
}

#[test]
fn a_provider_is_read_from_the_environment_and_shown() {
    let json = r#"{"issuer":"https://id.example.com/realms/team","client_id":"galley","scopes":"openid email",
        "client_secret_file":"/run/secrets/oidc"}"#;
    let settings = with(&[("AUTH__OIDC", json)]).expect("valid");
    let oidc = settings.auth.oidc.as_ref().expect("a provider");
    assert_eq!(oidc.scopes, ["openid", "email"]);
    assert_eq!(oidc.client_secret_file.as_deref(), Some(Path::new("/run/secrets/oidc")));
    let shown = settings.show();
    assert!(
        shown.contains("[auth.oidc]\nissuer = \"https://id.example.com/realms/team\""),
        "{shown}"
    );
    let short = r#"{"issuer":"http://127.0.0.1:8080","client_id":"galley"}"#;
    let oidc = with(&[("AUTH__OIDC", short)]).expect("valid").auth.oidc.expect("a provider");
    assert_eq!((oidc.scopes.join(" ").as_str(), oidc.client_secret_file), ("openid profile", None));
}

#[test]
fn a_provider_at_fault_stops_the_start_and_names_the_key() {
    const VALID: &str = r#""issuer":"https://id.example.com","client_id":"galley""#;
    for (json, expected) in [
        ("https://id.example.com".to_owned(), "auth.oidc: must be { issuer = …, client_id = … }"),
        ("{}".to_owned(), "auth.oidc.issuer: must be the provider's https:// address"),
        (VALID.replace("https", "http"), "auth.oidc.issuer: must be"),
        (VALID.replace(".com", ".com?x=y"), "auth.oidc.issuer: must be"),
        (VALID.replace("galley", "a b"), "auth.oidc.client_id: must be the id of this Galley"),
        (VALID.replace("galley", ""), "auth.oidc.client_id: must be"),
        (format!(r#"{VALID},"scopes":"profile""#), "auth.oidc.scopes: must be words with openid"),
        (
            format!(r#"{VALID},"client_secret_file":"""#),
            "auth.oidc.client_secret_file: must not be empty",
        ),
        (
            format!(r#"{VALID},"client_secret":"hunter2""#),
            "auth.oidc.client_secret: there is no such setting",
        ),
    ] {
        let json = if json.starts_with('"') { format!("{{{json}}}") } else { json };
        let faults = with(&[("AUTH__OIDC", &json)]).expect_err("a fault");
        assert!(faults.lines().any(|line| line.starts_with(expected)), "{json}: {faults}");
        assert!(!faults.contains("hunter2"), "{faults}");
    }
    let elsewhere = ("AUTH__SIGN_IN_URL", "https://app.example.com/in");
    let faults = with(&[("AUTH__OIDC", &format!("{{{VALID}}}")), elsewhere]).expect_err("a fault");
    assert!(faults.starts_with("auth.sign_in_url: must be left out with auth.oidc"), "{faults}");
    let [keys, audience] =
        [("AUTH__JWKS_URL", "https://id.example.com/k"), ("AUTH__AUDIENCE", "galley")];
    let both = |issuer| {
        with(&[("AUTH__OIDC", &format!("{{{VALID}}}")), keys, audience, ("AUTH__ISSUER", issuer)])
    };
    assert!(both("https://id.example.com").is_ok());
    let faults = both("https://other.example.com").expect_err("two providers");
    assert!(faults.starts_with("auth.oidc.issuer: must be auth.issuer"), "{faults}");
}
