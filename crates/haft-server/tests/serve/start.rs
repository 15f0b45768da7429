//! `haft serve` from outside: it starts, answers and ends.

use crate::served::{Served, toolbox};

/// The first question every operator asks.
#[tokio::test]
async fn it_starts_answers_and_ends() {
    let served = Served::with_admin(toolbox());
    let health = served.get("/healthz").await;
    assert_eq!((health.status, health.json()["status"].as_str()), (200, Some("ok")));
    let finished = served.end();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}
