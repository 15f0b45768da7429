//! Proves that secrets do not reach the log, and that nothing else changes.

use std::borrow::Cow;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Redactor;

/// Made once: compiling the patterns takes longer than a thousand uses.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
    let secrets = ["hunter22", "hunter22-longer", "pa\"ss\\wd/1\n", "비밀번호하나둘", "short"];
    Redactor::new(secrets.map(String::from))
});

#[track_caller]
fn assert_redacted(before: &str, after: &str) {
    let redacted = REDACTOR.json(before).into_owned();
    assert_eq!(redacted, after);
    serde_json::from_str::<&serde_json::value::RawValue>(&redacted).unwrap();
}

#[test]
fn known_secrets_go_wherever_they_stand_in_a_string() {
    assert_redacted(
        r#"{"a":"x hunter22 y","b":["hunter22-longer"]}"#,
        r#"{"a":"x *** y","b":["***"]}"#,
    );
    assert_redacted(r#"{"key hunter22":"비밀번호하나둘"}"#, r#"{"key ***":"***"}"#);
}

#[test]
fn known_secrets_go_in_every_json_spelling() {
    assert_redacted(r#"{"a":"hunt\u0065r22"}"#, r#"{"a":"***"}"#);
    assert_redacted(r#"{"a":"<pa\"ss\\wd/1\n>"}"#, r#"{"a":"<***>"}"#);
    assert_redacted(r#"{"a":"<pa\u0022ss\\wd\/1\n>"}"#, r#"{"a":"<***>"}"#);
    assert_redacted(
        r#"{"a":"said {\"p\": \"pa\\\"ss\\\\wd/1\\n\"} and"}"#,
        r#"{"a":"said {\"p\": \"***\"} and"}"#,
    );
}

#[test]
fn secrets_that_are_too_short_are_left() {
    assert_redacted(r#"{"a":"a short text"}"#, r#"{"a":"a short text"}"#);
}

#[test]
fn values_of_secret_keys_go() {
    for key in [
        "password",
        "PASSWD",
        "db_password",
        "userPassword",
        "secret",
        "clientSecret",
        "client_secret",
        "token",
        "access-token",
        "api_key",
        "apikey",
        "API-Key",
        "x-api-key",
        "apiKey",
        "Authorization",
        "AWS_SECRET_ACCESS_KEY",
        "accessKey",
        "private_key",
        "Cookie",
        "Set-Cookie",
        "pass\\u0077ord",
    ] {
        assert_redacted(&format!(r#"{{"{key}" : "v"}}"#), &format!(r#"{{"{key}" : "***"}}"#));
    }
}

#[test]
fn keys_that_only_resemble_are_left_and_so_are_values_that_are_no_strings() {
    for text in [
        r#"{"max_tokens":"100"}"#,
        r#"{"max_tokens":100,"token_count":"7","tokenize":"yes","tokens":"a"}"#,
        r#"{"page_token":"p2","nextPageToken":"p3"}"#,
        r#"{"password_policy":"strict","secretary":"Kim","cookies_allowed":"no"}"#,
        r#"{"password":null,"token":12345678901234567890123,"secret":true}"#,
        r#"{"secret":["a",{"name":"b"}],"password":{"first":"c"}}"#,
        r#"["password","token : x"]"#,
    ] {
        assert_redacted(text, text);
    }
}

#[test]
fn token_shapes_go_and_what_is_around_them_stays() {
    let cases = [
        ("Authorization: Bearer abc.def-123=", "Authorization: Bearer ***"),
        ("use sk-proj-abcdefghij0123456789 here", "use *** here"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "***"),
        ("github_pat_11ABCDEFG0abcdefghij_klmnop", "***"),
        ("xoxb-123456789012-abcdef, xoxp-123456789012", "***, ***"),
        ("id AKIAIOSFODNN7EXAMPLE.", "id ***."),
        ("postgres://kim:pa@ss@db:5432/x?y=z", "postgres://kim:***@db:5432/x?y=z"),
        ("redis://:pass1@host", "redis://:***@host"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b", "a *** b"),
        ("cut: -----BEGIN PRIVATE KEY-----\nMII", "cut: ***"),
    ];
    for (before, after) in cases {
        assert_eq!(REDACTOR.text(before), after);
        let quoted = |text: &str| json!([1, format!("line\n{text}")]).to_string();
        assert_redacted(&quoted(before), &quoted(after));
    }
}

#[test]
fn ordinary_text_has_no_token_shapes() {
    for text in [
        "the bearer of news",
        "task-force-one-two-three-four",
        "http://host:8080/a@b",
        "mail a@b.c",
        "sk-learn",
        "AKIA",
        "see https://example.com/x?y=1 or kim@example.com",
    ] {
        assert!(matches!(REDACTOR.text(text), Cow::Borrowed(same) if same == text), "{text}");
    }
}

#[test]
fn json_inside_a_string_is_redacted_too() {
    assert_redacted(
        r#"{"text":"{\"user\":\"kim\",\"password\":\"x\\\"y\",\"n\":1.50}"}"#,
        r#"{"text":"{\"user\":\"kim\",\"password\":\"***\",\"n\":1.50}"}"#,
    );
}

#[test]
fn numbers_order_and_repeated_keys_survive() {
    assert_redacted(
        r#"{"z":1e400, "token":"t","a":123456789012345678901234567890,"z":-0.0 ,"é\n":"\ud83d\ude00"}"#,
        r#"{"z":1e400, "token":"***","a":123456789012345678901234567890,"z":-0.0 ,"é\n":"\ud83d\ude00"}"#,
    );
}

#[test]
fn text_without_secrets_is_not_even_copied() {
    let text = r#"{"city":"Seoul","max_tokens":5,"url":"https://example.com/a"}"#;
    assert!(!REDACTOR.is_suspicious(text));
    assert!(matches!(REDACTOR.json(text), Cow::Borrowed(_)));
    assert!(matches!(Redactor::new([]).json(text), Cow::Borrowed(_)));
}

#[test]
fn a_redactor_does_not_print_its_secrets() {
    assert_eq!(format!("{:?}", *REDACTOR), "Redactor(***)");
}

proptest! {
    #[test]
    fn no_surroundings_let_a_known_secret_through(before: String, after: String, key: String) {
        for secret in ["hunter22", "pa\"ss\\wd/1\n"] {
            let value = json!({ key.clone(): [format!("{before}{secret}{after}")] });
            for json in [value.to_string(), json!([value.to_string()]).to_string()] {
                let redacted: Value = serde_json::from_str(&REDACTOR.json(&json)).unwrap();
                prop_assert!(!redacted.to_string().contains("hunter22"));
                prop_assert!(!redacted.to_string().contains("wd/1"));
            }
        }
    }

    #[test]
    fn nothing_makes_redaction_panic(text: String) {
        let _ = REDACTOR.json(&text);
        let _ = REDACTOR.json(&format!("\"\\u{text}"));
    }
}
