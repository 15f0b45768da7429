//! The table, and the goals as ratios.

use super::contenders::{Contender, Kind};
use super::load::{Effort, Figures, IN_FLIGHT};
use super::median;
use super::messages::Era;

/// A contender and what was measured of it.
pub(crate) struct Row {
    pub(crate) contender: Contender,
    pub(crate) rounds: Vec<Figures>,
    pub(crate) left_out: Option<String>,
}

impl Row {
    fn figure(&self, figure: impl Fn(&Figures) -> f64) -> f64 {
        median(&self.rounds, figure)
    }

    fn per_second(&self) -> f64 {
        self.figure(|it| it.per_second)
    }
}

pub(crate) fn print(rows: &[Row], effort: &Effort) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "{cores} cores, shared with the load and the server; haft and raw-proxy run on {cores} threads each. \
         Medians of {} interleaved rounds; ratios count, not the figures themselves.\n",
        effort.rounds
    );
    table(rows);
    for row in rows {
        if let Some(reason) = &row.left_out {
            println!("left out: {}: {reason}", row.contender.name);
        }
    }
    for era in [Era::Legacy, Era::Modern] {
        goals(rows, era);
    }
}

fn table(rows: &[Row]) {
    println!(
        "| front | p50 us | p99 us | calls/s at {IN_FLIGHT} | its CPU us/call | 1 MiB ms | idle MB (with children) | after load MB | start to first call ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for row in rows.iter().filter(|row| row.left_out.is_none()) {
        println!(
            "| {} | {:.0} | {:.0} | {:.0} | {:.1} | {:.1} | {:.1} ({:.1}) | {:.1} | {:.0} |",
            row.contender.name,
            row.figure(|it| it.p50.as_secs_f64() * 1e6),
            row.figure(|it| it.p99.as_secs_f64() * 1e6),
            row.per_second(),
            row.figure(|it| it.cpu_micros),
            row.figure(|it| it.blob.as_secs_f64() * 1e3),
            row.figure(|it| it.idle.own),
            row.figure(|it| it.idle.with_children),
            row.figure(|it| it.after_load.own),
            row.figure(|it| it.start.as_secs_f64() * 1e3),
        );
    }
    println!();
}

fn goals(rows: &[Row], era: Era) {
    let find =
        |kind: Kind| rows.iter().find(|row| row.contender.kind == kind && !row.rounds.is_empty());
    let (Some(haft), Some(floor)) = (find(Kind::Haft(era)), find(Kind::RawProxy)) else {
        return;
    };
    println!("\nGoals, {}:", haft.contender.name);
    let ratio = |figure: fn(&Figures) -> f64| haft.figure(figure) / floor.figure(figure);
    at_most("p50 against raw-proxy", ratio(|it| it.p50.as_secs_f64()), 1.3, "x");
    at_least("calls/s against raw-proxy", haft.per_second() / floor.per_second(), 0.8);
    let script = rows.iter().filter(|row| row.contender.kind == Kind::ScriptPeer);
    let fastest = script.map(Row::per_second).filter(|it| !it.is_nan()).reduce(f64::max);
    let against = "calls/s against the fastest Node.js or Python peer";
    at_least(against, haft.per_second() / fastest.unwrap_or(f64::NAN), 10.0);
    let rust = find(Kind::RustPeer).map_or(f64::NAN, Row::per_second);
    at_least("calls/s against the Rust peer", haft.per_second() / rust, 2.5);
    at_most("1 MiB result against raw-proxy", ratio(|it| it.blob.as_secs_f64()), 1.3, "x");
    at_most("memory idle, without children", haft.figure(|it| it.idle.own), 30.0, " MB");
    if let Some(direct) = find(Kind::Direct) {
        let start = |row: &Row| row.figure(|it| it.start.as_secs_f64() * 1e3);
        let limit = 1.5 * start(direct) + 50.0;
        at_most("start to first call (1.5x the server's own + 50 ms)", start(haft), limit, " ms");
    }
}

fn at_most(what: &str, measured: f64, limit: f64, unit: &str) {
    let verdict = verdict(measured, measured <= limit);
    println!("  {verdict}: {what}: {measured:.2}{unit} (at most {limit:.1}{unit})");
}

fn at_least(what: &str, measured: f64, limit: f64) {
    let verdict = verdict(measured, measured >= limit);
    println!("  {verdict}: {what}: {measured:.2}x (at least {limit:.1}x)");
}

fn verdict(measured: f64, is_met: bool) -> &'static str {
    match (measured.is_nan(), is_met) {
        (true, _) => "not measured",
        (false, true) => "met",
        (false, false) => "missed",
    }
}
