//! `oauth` of a server.

use serde_json::json;

use crate::config_support::{errors, native, remote, row, server, value, warnings};

const SECRET: (&str, &str) = ("CRM_SECRET", "canary-3f9a1c");

fn with(oauth: &str) -> String {
    server(&format!("url: https://crm.example/mcp\noauth: {oauth}"))
}

/// The settings are shown without the secret, and the secret is masked in the log and in descriptions.
#[test]
fn oauth_settings_are_shown_without_the_secret() {
    let oauth = "{grant: client_credentials, client_id: my-app, client_secret_env: CRM_SECRET, scopes: [read], \
                 issuer: 'https://auth.example'}";
    let config = native(&with(oauth), &[SECRET]).unwrap();
    let shown = json!({"grant": "client_credentials", "client_id": "my-app",
        "client_secret_env": "CRM_SECRET", "scopes": ["read"], "issuer": "https://auth.example"});
    assert_eq!(value(&config, "servers.one.oauth"), shown);
    assert_eq!(row(&config, "servers.one.oauth").from, "haft.yaml:4:12");
    assert!(config.secrets().contains(&SECRET.1.to_owned()));
    assert!(config.described_secrets().contains(&SECRET.1.to_owned()));
    assert!(!format!("{config:?}").contains("canary"));

    let config =
        native(&with("{client_metadata_url: 'https://example.com/haft.json'}"), &[]).unwrap();
    let shown = json!({"grant": "authorization_code",
        "client_metadata_url": "https://example.com/haft.json"});
    assert_eq!(value(&config, "servers.one.oauth"), shown);
}

/// A variable of the environment overrides the name of the variable, and never becomes the secret itself.
#[test]
fn the_variable_can_be_overridden() {
    let oauth = "{grant: client_credentials, client_id: my-app, client_secret_env: CRM_SECRET}";
    let environment = [
        SECRET,
        ("OTHER", "other-value"),
        ("HAFT__SERVERS__ONE__OAUTH__CLIENT_SECRET_ENV", "OTHER"),
    ];
    let config = native(&with(oauth), &environment).unwrap();
    let oauth = remote(&config.servers[0]).oauth.as_ref().unwrap();
    let secret = oauth.client_secret.as_ref().unwrap();
    assert_eq!((secret.variable.as_str(), secret.value.expose()), ("OTHER", "other-value"));
}

/// Every contradiction is refused with its place, and no text that may be a secret is repeated.
#[test]
fn invalid_oauth_settings_are_refused() {
    let cases = [
        "{grant: client_credentials}",
        "{grant: password}",
        "{grant: client_credentials, client_id: a, client_secret_env: NOT_SET}",
        "{grant: client_credentials, client_id: a, client_secret_env: EMPTY}",
        "{grant: client_credentials, client_id: a, client_secret_env: canary/secret}",
        "{grant: client_credentials, client_id: a, client_secret_env: CRM_SECRET, client_metadata_url: 'https://a.example/b'}",
        "{client_secret_env: CRM_SECRET}",
        "{client_id: a, client_metadata_url: 'https://a.example/b'}",
        "{client_id: '', scopes: ['a b'], issuer: 'http://auth.example'}",
        "{client_metadata_url: 'https://a.example/'}",
        "{client_metadata_url: 'http://a.example/b'}",
        "{client_metadata_url: 'https://a.example/x/../b'}",
        "{client_metadata_url: 'https://u:w@a.example/b'}",
        "{client_metadata_url: 'https://a.example/b#c'}",
        "{clientid: a}",
    ];
    let environment = [SECRET, ("EMPTY", "")];
    let told: String = cases
        .iter()
        .map(|case| format!("{case}\n{}", errors(native(&with(case), &environment))))
        .collect();
    let errors_only: String = told.lines().filter(|line| !line.starts_with('{')).collect();
    assert!(!errors_only.contains("canary"), "{errors_only}");
    insta::assert_snapshot!(told);
    let both = server("url: https://crm.example/mcp\nheaders: {authorization: x}\noauth: {}");
    assert!(errors(native(&both, &[])).contains("both `oauth` and an `Authorization` header"));
    let local = native(&server("command: cat\noauth: {}"), &[]).unwrap();
    assert!(warnings(&local).contains("`oauth` has no effect on a server with stdio transport"));
}
