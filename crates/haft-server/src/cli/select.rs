//! `haft select`.

use std::process::ExitCode;

use haft::select::{Decision, Ranked};

use super::toolbox::{Purpose, Toolbox};
use super::{EXIT_CONFIG, Failure, Global, block_on, print_json, trusted_configuration};
use crate::terminal::{self, Paint};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  haft select \"do I need an umbrella in Oslo?\"
  haft select -k 3 --decide \"what is the standard deviation of 3, 7, 7 and 19?\"

Works offline and asks no model. Descriptions decide, and `examples` of a tool help most.")]
pub(super) struct SelectArgs {
    /// The request in plain words
    request: String,
    /// Number of tools to show
    #[arg(short = 'k', long, value_name = "NUMBER", default_value_t = 8, value_parser = at_least_one)]
    count: usize,
    /// Also decide: use a tool, use none, or ask for what is missing
    #[arg(long)]
    decide: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| "it is not a number above zero".to_owned())
}

pub(super) fn run(global: &Global, args: &SelectArgs) -> anyhow::Result<ExitCode> {
    let SelectArgs { request, count, decide } = args;
    if request.trim().is_empty() {
        return Err(Failure::new(EXIT_CONFIG, "the request is empty", "describe the task").into());
    }
    let config = trusted_configuration(global)?;
    let (ranked, decision) = block_on(async {
        let toolbox = Toolbox::open(config, Purpose::DryRun).await?;
        let ask = async |runtime: &haft::Runtime| {
            runtime.discover().await;
            if !decide {
                return Ok((runtime.select(request, *count).await, None));
            }
            let decision = runtime.decide(request, *count).await;
            let ranked = match &decision {
                Decision::UseTool { ranked } | Decision::AskHuman { ranked, .. } => ranked.clone(),
                Decision::NoTool => runtime.select(request, *count).await,
            };
            Ok((ranked, Some(decision)))
        };
        toolbox.work(ask).await
    })?;
    match (global.json, &decision) {
        (true, Some(decision)) => print_json(decision)?,
        (true, None) => print_json(&ranked)?,
        (false, _) => show(Paint::stdout(global.color), &ranked, decision.as_ref()),
    }
    Ok(ExitCode::SUCCESS)
}

fn show(paint: Paint, ranked: &[Ranked], decision: Option<&Decision>) {
    if let Some(decision) = decision {
        terminal::line(&format!("{} {}\n", paint.dim("decision"), in_words(decision)));
    }
    if ranked.is_empty() {
        terminal::line("no tools");
        return;
    }
    let rows: Vec<Vec<String>> = ranked
        .iter()
        .map(|it| {
            let number = |number: f32| format!("{number:.2}");
            let why = &it.why;
            vec![
                it.tool.clone(),
                number(it.score),
                number(why.semantic),
                number(why.lexical),
                why.words.join(" "),
            ]
        })
        .collect();
    terminal::table(paint, &["TOOL", "SCORE", "MEANING", "WORDS", "SHARED"], &rows);
}

fn in_words(decision: &Decision) -> String {
    let first = |ranked: &[Ranked]| ranked.first().map(|it| it.tool.clone()).unwrap_or_default();
    match decision {
        Decision::UseTool { ranked } => format!("use `{}`", first(ranked)),
        Decision::NoTool => "no tool is needed".to_owned(),
        Decision::AskHuman { ranked, missing } => {
            let names: Vec<&str> = missing.iter().map(|it| it.name.as_str()).collect();
            format!("ask first: `{}` needs {}", first(ranked), names.join(", "))
        }
    }
}
