//! `haft eval`: how well tools are chosen, measured on sets of requests with known answers.

mod score;
mod set;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use super::{Global, print_json};
use crate::terminal::{self, Paint};
use score::Score;
use set::Set;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A set is a file of JSON lines: {\"query\", \"action\": \"tool\"|\"none\"|\"ask_human\",
\"gold\": [tools], \"toolset\", \"candidates\"?: [tools]}. The toolset is a file of JSON lines
{\"name\", \"description\", \"parameters\", \"id\"?, \"server\"?, \"examples\"?}, beside the set or in
`toolsets` beside its folder. Without such a file, `builtins` are the tools that Haft brings itself.
Where a request names candidates, the decision is made among them, and the ranking among all tools.")]
pub(super) struct EvalArgs {
    /// A set, or a folder of sets
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

pub(super) fn run(global: &Global, args: &EvalArgs) -> anyhow::Result<ExitCode> {
    let mut scores = Vec::new();
    let sets = set::find(&args.paths)?;
    for (at, path) in sets.iter().enumerate() {
        let set = Set::read(path)?;
        let progress = |done: usize| {
            show_progress(&format!(
                "{} of {}: {} {done}/{}",
                at + 1,
                sets.len(),
                set.name,
                set.rows.len()
            ));
        };
        scores.push(score::score(&set, progress)?);
    }
    show_progress("");
    let means = Score::means(&scores);
    if global.json {
        print_json(&json!({"sets": scores, "means": means}))?;
    } else {
        show(Paint::stdout(global.color), &scores, &means);
    }
    Ok(ExitCode::SUCCESS)
}

/// One line at a terminal that is written over by the next.
fn show_progress(line: &str) {
    if std::io::stderr().is_terminal() {
        let line = terminal::fit(line, terminal::stderr_width().saturating_sub(1));
        // A terminal that is gone needs no progress.
        let _ = write!(std::io::stderr().lock(), "\r\u{1b}[K{line}");
    }
}

fn show(paint: Paint, scores: &[Score], means: &score::Means) {
    let percent = |share: Option<f64>| {
        share.map_or_else(|| "-".to_owned(), |it| format!("{:.1}", it * 100.0))
    };
    let rows: Vec<Vec<String>> = scores
        .iter()
        .map(|score| {
            let none = score.none.as_ref();
            vec![
                score.set.clone(),
                score.requests.to_string(),
                percent(score.top_1),
                percent(score.recall_at_5),
                percent(score.recall_at_8),
                percent(score.hit_at_5),
                percent(none.map(|none| none.precision)),
                percent(none.map(|none| none.recall)),
                percent(none.map(|none| none.f1)),
                percent(score.ask),
                percent(Some(score.decisions)),
                format!("{:.0}", score.latency_us_p50),
            ]
        })
        .collect();
    let head = [
        "SET", "REQUESTS", "TOP-1", "RECALL@5", "RECALL@8", "HIT@5", "NONE P", "NONE R", "NONE F1",
        "ASK", "RIGHT", "P50 US",
    ];
    terminal::table(paint, &head, &rows);
    terminal::line(&format!(
        "\nmeans over select_* and multi_*: top-1 {}, recall@5 {} (of all right tools {}), hit@5 {}; over their \
         requests: top-1 {}, recall@5 {}; over all sets: right decisions {}, no-tool F1 {}",
        percent(means.top_1),
        percent(means.recall_at_5),
        percent(means.recall_at_5_of_all),
        percent(means.hit_at_5),
        percent(means.top_1_over_requests),
        percent(means.recall_at_5_over_requests),
        percent(means.decisions),
        percent(means.none_f1),
    ));
}
