//! A change of the registry, against writing a file of the same size durably.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use haft::live::{Action, Condition, Edit, Live, RegistryDocument};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Failure;
use super::host::{Hosted, Server, toolbox};
use super::stats::ms;
use testkit::ordinary_tool;
use testkit::times::{Times, ratio};

const ROUNDS: u32 = 100;
/// Number of tools in the registry beside the one that changes.
const SIZES: [u32; 2] = [10, 500];

pub(crate) async fn measure(folder: &Path) -> Result<(), Failure> {
    println!("\n# A registry write, against write + fsync + rename + fsync of the folder");
    for tools in SIZES {
        let folder = folder.join(format!("writes-{tools}"));
        let registry = prepare(&folder, tools)?;
        let (live, _telemetry) = toolbox(&folder).await?;
        one_size(tools, &folder, &registry, &live).await?;
        live.stop().await;
        live.runtime().shutdown(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Makes edits of a registry one after the other, for a profiler.
pub(crate) async fn edits(folder: &Path, sizes: &[String]) -> Result<(), Failure> {
    let [tools, rounds] = sizes else { return Err("write `edits TOOLS ROUNDS`".into()) };
    prepare(folder, tools.parse()?)?;
    let (live, _telemetry) = toolbox(folder).await?;
    for round in 0..rounds.parse()? {
        live.edit(put(round)?).await?;
    }
    live.stop().await;
    live.runtime().shutdown(Duration::from_secs(1)).await;
    Ok(())
}

fn put(round: u32) -> Result<Edit, Failure> {
    let entry = RawValue::from_string(tool("changing", round).to_string())?;
    Ok(Edit {
        document: RegistryDocument::Tools,
        name: "changing".to_owned(),
        action: Action::Put(entry),
        condition: Condition::Always,
    })
}

async fn one_size(tools: u32, folder: &Path, registry: &Path, live: &Live) -> Result<(), Failure> {
    let beside = folder.join("over-http");
    prepare(&beside, tools)?;
    let hosted = Hosted::start(Server::Haft(beside))?;
    // The client wants to know with what it would do TLS; this one fails only where that is known.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let bare_folder = folder.join("bare");
    fs::create_dir_all(&bare_folder)?;
    let (mut bare, mut edits, mut puts) = (Vec::new(), Vec::new(), Vec::new());
    // In turns, so that all see the same disk.
    for round in 0..ROUNDS {
        let text = fs::read_to_string(registry.join("tools.json"))?;
        bare.push(timed(|| write_bare(&bare_folder, &text))?);
        let edit = put(round)?;
        let began = Instant::now();
        live.edit(edit).await?;
        edits.push(began.elapsed());
        let request = client
            .put(format!("{}/api/v1/tools/changing", hosted.url))
            .header("x-api-key", &hosted.key)
            .header("content-type", "application/json")
            .body(tool("changing", round).to_string());
        let began = Instant::now();
        let answer = request.send().await?;
        puts.push(began.elapsed());
        if !answer.status().is_success() {
            return Err(answer.text().await?.into());
        }
    }
    let (bare, edits, puts) = (Times::new(bare), Times::new(edits), Times::new(puts));
    let (bare50, bare99) = (bare.percentile(50), bare.percentile(99));
    println!("{tools} tools: bare        p50 {}, p99 {}", ms(bare50), ms(bare99));
    for (what, times) in [("Live::edit", edits), ("PUT        ", puts)] {
        let (p50, p99) = (times.percentile(50), times.percentile(99));
        println!(
            "          {what:<11} p50 {}, p99 {}: {:.1}x the bare p50 (target: at most 3x)",
            ms(p50),
            ms(p99),
            ratio(p50, bare50)
        );
    }
    Ok(())
}

/// A folder with `haft.yaml` and a registry of tools. Gives the registry's folder.
pub(crate) fn prepare(folder: &Path, tools: u32) -> Result<std::path::PathBuf, Failure> {
    let registry = folder.join("tools");
    fs::create_dir_all(&registry)?;
    fs::write(
        folder.join("haft.yaml"),
        "registry: {dir: tools}\ndefaults: {max_concurrent: 64}\n\
         tools: [{name: noop, max_instances: 64}]\n",
    )?;
    fs::write(registry.join("weather.py"), "def run(args):\n    return {}\n")?;
    let tools: Vec<Value> = (0..tools).map(|at| tool(&format!("tool_{at}"), at)).collect();
    fs::write(registry.join("tools.json"), format!("{:#}", json!({ "tools": tools })))?;
    fs::write(registry.join("mcp.json"), "{\"mcp_servers\": {}}\n")?;
    Ok(registry)
}

/// A tool whose description has the round in which it was written.
fn tool(name: &str, round: u32) -> Value {
    ordinary_tool(name, &format!("A tool with a schema of ordinary size ({round})."))
}

fn write_bare(folder: &Path, text: &str) -> io::Result<()> {
    let (draft, path) = (folder.join("tools.json.new"), folder.join("tools.json"));
    let mut file = File::create(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, &path)?;
    File::open(folder)?.sync_all()
}

fn timed(work: impl FnOnce() -> io::Result<()>) -> io::Result<Duration> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}
