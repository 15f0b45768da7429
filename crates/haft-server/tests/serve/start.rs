//! `haft serve` from outside: it starts, answers and ends.

use crate::served::{Served, haft, toolbox};

/// The first question every operator asks.
#[tokio::test]
async fn it_starts_answers_and_ends() {
    let served = Served::with_admin(toolbox());
    let health = served.get("/healthz").await;
    assert_eq!((health.status, health.json()["status"].as_str()), (200, Some("ok")));
    let finished = served.end();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}

/// The error for a port in use names the settings that choose another.
#[tokio::test]
async fn a_port_that_is_taken_names_the_settings() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let finished = haft(&toolbox(), &["serve", "--listen", &address]).run();
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    let help = "help: stop what listens there, or choose another port: `--listen ADDRESS:PORT`, or \
                `api.listen` in the configuration";
    assert!(finished.stderr.contains(help), "{}", finished.stderr);
}
