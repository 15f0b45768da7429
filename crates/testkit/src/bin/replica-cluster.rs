//! Three replicas of `haft serve` on a temporary PostgreSQL, behind a load balancer without affinity.
//!
//! `replica-cluster HAFT CONFIG` adds the lines of the shared state to the configuration in the file `CONFIG`, starts
//! the program `HAFT` with it three times, and prints the balancer's address. The balancer sends an admin key with each
//! request: shared services require one, and clients such as the conformance suite have none. Everything ends with
//! standard input.

use std::io::{Error, Read as _};
use std::path::Path;

use serde_json::Value;
use testkit::{Balancer, Program, Running, Workspace};

/// Number of replicas.
const REPLICAS: usize = 3;

/// A replica and its address.
struct Replica {
    url: String,
    // Drop order: the process ends before its folder is removed.
    process: Running,
    _workspace: Workspace,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [haft, config] = words.as_slice() else {
        return Err(Error::other("usage: replica-cluster HAFT CONFIG"));
    };
    let haft = std::fs::canonicalize(haft)?;
    let config = std::fs::read_to_string(config)?;
    let database = testkit::postgres::database();
    let database = database.ok_or_else(|| Error::other("PostgreSQL is not installed"))?;
    let config = format!(
        "shared: {{url: \"{}\"}}\nregistry: {{store: shared, dir: ./tools}}\n\
         api: {{drain_delay: 0s}}\n{config}",
        database.url
    );
    let key = create_key(&haft, &config)?;
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        replicas.push(start(&haft, &config)?);
    }
    let urls = replicas.iter().map(|replica| replica.url.clone()).collect();
    let balancer = Balancer::with_key(urls, &key).await;
    println!("{}", balancer.url);
    let mut input = String::new();
    tokio::task::spawn_blocking(move || std::io::stdin().read_to_string(&mut input)).await??;
    for replica in &replicas {
        eprintln!("{}:\n{}", replica.url, replica.process.stderr_so_far());
    }
    Ok(())
}

/// Creates the admin key of the replicas.
fn create_key(haft: &Path, config: &str) -> std::io::Result<String> {
    let workspace = Workspace::with(&[("haft.yaml", config)]);
    let created = Program::new(haft, &workspace);
    let created = created.args(&["keys", "create", "--scope", "admin", "--name", "me"]).run();
    let key = created.stdout.split_whitespace().find(|word| word.starts_with("haft_"));
    key.map(str::to_owned).ok_or_else(|| Error::other(created.stderr))
}

fn start(haft: &Path, config: &str) -> std::io::Result<Replica> {
    let workspace = Workspace::with(&[("haft.yaml", config)]);
    let program = Program::new(haft, &workspace);
    let process = program.args(&["--json", "serve", "--listen", "127.0.0.1:0"]).start();
    let mut greeting = String::new();
    // A document of several lines.
    loop {
        greeting.push_str(&process.line());
        if let Ok(document) = serde_json::from_str::<Value>(&greeting) {
            let url = document["listening"].as_str().ok_or_else(|| Error::other(greeting))?;
            return Ok(Replica { url: url.to_owned(), process, _workspace: workspace });
        }
    }
}
