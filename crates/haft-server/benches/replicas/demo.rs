//! Three replicas to look at: a tool is registered at one and called at another.

use std::path::Path;

use serde_json::json;
use testkit::Workspace;

use crate::Failure;
use crate::calls;
use crate::cluster::Cluster;

/// Starts everything, shows a call at another replica, and waits for Ctrl-C.
pub(crate) async fn run() -> Result<(), Failure> {
    let shared = Workspace::new();
    let script = calls::script(&shared.path().join("record"));
    let haft = Path::new(env!("CARGO_BIN_EXE_haft"));
    let cluster = Cluster::start(haft, &script).await?;
    println!("PostgreSQL     {}", cluster.database.url());
    for (index, replica) in cluster.replicas.iter().enumerate() {
        println!("replica {}      http://127.0.0.1:{}", index + 1, replica.port);
    }
    println!("load balancer  http://127.0.0.1:{}", cluster.balancer.port);
    println!("admin key      {}", cluster.key);
    let targets = cluster.targets();
    calls::register(&targets[0]).await?;
    println!("\nregistered `record` at replica 1");
    let body = json!({"arguments": {"nonce": "hello"}});
    let answer = targets[1].post("/tools/record/call", &body).await?;
    println!("called it at replica 2: {} {}", answer.status.as_u16(), answer.body);
    println!("\nCtrl-C ends everything.");
    tokio::signal::ctrl_c().await?;
    Ok(())
}
