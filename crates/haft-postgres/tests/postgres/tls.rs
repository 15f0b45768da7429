//! Connections with TLS, whose certificate is verified.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_postgres::{Database, DatabaseError, Settings};
use testkit::postgres::database;

use crate::settings;

fn pem(what: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {what}-----\n{}\n-----END {what}-----\n", lines.join("\n"))
}

#[tokio::test]
async fn a_certificate_is_verified_against_the_given_authority() {
    let Some(test) = database() else { return };
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let certificate = pem("CERTIFICATE", made.cert.der());
    test.write("server.crt", &certificate, 0o644);
    test.write("server.key", &pem("PRIVATE KEY", &made.signing_key.serialize_der()), 0o600);
    test.sql("alter system set ssl = on");
    test.sql("select pg_reload_conf()");
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, certificate).unwrap();
    let url = format!("{}?sslmode=require", test.url);

    let trusted = Settings { ca: Some(ca), ..settings(&url) };
    // The server reads its configuration a little later.
    let database = crate::registry::eventually(async || Database::open(trusted.clone()).await.ok());
    database.await.status().await.unwrap();
    let with_tls = "select bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid)
        where datname = current_database() and usename <> 'postgres'";
    assert_eq!(test.sql(with_tls), "t");

    let error = Database::open(settings(&url)).await.err().unwrap();
    assert!(matches!(&error, DatabaseError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
    let missing = Settings { ca: Some(PathBuf::from("/nothing.pem")), ..settings(&url) };
    let error = Database::open(missing).await.err().unwrap();
    assert!(matches!(&error, DatabaseError::Settings { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_if_tls_is_required() {
    let Some(test) = database() else { return };
    let error = Database::open(settings(&format!("{}?sslmode=require", test.url))).await.err();
    let error = error.unwrap();
    assert!(error.to_string().contains("TLS"), "{error}");
}
