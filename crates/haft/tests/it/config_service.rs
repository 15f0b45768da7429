//! `api`, `policy` and `telemetry`: what they mean, and what is refused.

use haft::Config;
use haft::config::show;

fn shown(yaml: &str) -> String {
    let config = Config::from_yaml(yaml).unwrap_or_else(|error| panic!("{error}"));
    let is_service = |path: &str| {
        ["api.", "policy.", "telemetry."].iter().any(|section| path.starts_with(section))
    };
    let rows = show::rows(&config).into_iter().filter(|row| is_service(&row.path));
    rows.map(|row| format!("{} = {} ({})\n", row.path, row.value, row.from)).collect()
}

#[test]
fn everything_that_is_said_is_taken_over_and_secrets_are_masked() {
    insta::assert_snapshot!(shown(
        "api:
  listen: '[::1]:9000'
  keys_file: keys.json
  tls: {cert: c.pem, key: k.pem}
  allowed_hosts: [haft.example.com]
  allowed_origins: ['https://console.example.com']
  shutdown_grace: 2m
policy: {allowed_commands: ['npx -y @scope/* ...', uvx], allowed_env: [TOKEN, 'ACME_*']}
telemetry:
  otlp_endpoint: https://user:hidden@collector.example.com
  otlp_headers: {Authorization: Bearer hidden}
  service_name: tools
"
    ));
}

#[test]
fn what_makes_no_sense_is_refused_with_a_remedy() {
    let error = Config::from_yaml(
        "api:
  listen: somewhere
  tls: {cert: c.pem}
  allowed_hosts: ['https://haft.example.com', '']
  allowed_origins: [console.example.com, 'https://x.example.com/path', 'null']
  shutdown_grace: 0
  admin_key: secret
policy: {allowed_commands: ['*', '', 'good'], allowed_env: ['*', '**', 'A B', 'A**', GOOD]}
telemetry: {otlp_endpoint: 'localhost:4318'}
",
    );
    insta::assert_snapshot!(error.unwrap_err());
}

/// `**` in a command is used literally, and every load warns about it.
#[test]
fn a_gap_for_anything_is_warned_of() {
    let config = Config::from_yaml("policy: {allowed_commands: ['npx -y @scope/**', 'uvx mcp-*']}");
    let warnings = config.unwrap().warnings;
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert_eq!(
        warning.problem,
        "`**` in `npx -y @scope/**` allows anything, also another package, version or address"
    );
    assert!(warning.remedy.to_string().contains("`*`"), "{}", warning.remedy);
}
