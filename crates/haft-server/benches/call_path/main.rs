//! The cost of a call, in parts and as ratios measured in one run. `cargo xtask bench call-path`.

mod check;
mod function;
mod instructions;
mod python;
mod rules;
mod stats;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The work that is counted is this program again, under valgrind.
    if let Some(order) = instructions::Order::of_process() {
        return order.follow();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let folder = tempfile::tempdir()?;
    runtime.block_on(function::measure(folder.path()))?;
    runtime.block_on(rules::measure(folder.path()))?;
    runtime.block_on(python::measure(folder.path()))?;
    check::measure(folder.path())?;
    Ok(())
}
