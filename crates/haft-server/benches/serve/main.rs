//! The cost of serving, as ratios measured in one run. `cargo xtask bench serve`. The words `calls`, `keys`,
//! `writes` and `reload` as arguments choose a part. `edits TOOLS ROUNDS` makes that many edits and nothing else, for a
//! profiler: the difference of two runs is the cost of an edit.

mod calls;
mod host;
mod keys;
mod reload;
#[path = "../call_path/stats.rs"]
#[allow(dead_code, reason = "the other benchmark uses the rest")]
mod stats;
mod writes;
mod wrk;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // The servers under test are this program again, each in a process of its own.
    if let Some(server) = host::Server::wanted() {
        return runtime.block_on(host::run(server));
    }
    let folder = tempfile::tempdir()?;
    println!("{} cores; ratios count, not the figures themselves", cores());
    let chosen: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let is_chosen = |part: &str| chosen.is_empty() || chosen.iter().any(|it| it == part);
    if let Some(("edits", rest)) = chosen.split_first().map(|(word, rest)| (word.as_str(), rest)) {
        return runtime.block_on(writes::edits(folder.path(), rest));
    }
    if is_chosen("calls") {
        calls::measure(folder.path())?;
    }
    if is_chosen("keys") {
        runtime.block_on(keys::measure(folder.path()))?;
    }
    if is_chosen("writes") {
        runtime.block_on(writes::measure(folder.path()))?;
    }
    if is_chosen("reload") {
        runtime.block_on(reload::measure(folder.path()))?;
    }
    Ok(())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
