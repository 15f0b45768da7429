//! `cargo xtask bench select`: what choosing a tool costs, against its goals. One thread, nothing but the embedded table.
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use haft_select::{Selector, ToolText};
use serde_json::json;

const ROUNDS: usize = 300;

const VERBS: [&str; 10] =
    ["get", "list", "create", "delete", "update", "search", "send", "convert", "analyze", "export"];
const THINGS: [&str; 40] = [
    "invoice",
    "customer",
    "flight",
    "recipe",
    "calendar event",
    "repository",
    "container",
    "weather forecast",
    "stock price",
    "email",
    "playlist",
    "photo",
    "ticket",
    "contract",
    "sensor",
    "vehicle",
    "patient record",
    "bank account",
    "course",
    "hotel room",
    "news article",
    "translation",
    "map route",
    "database table",
    "spreadsheet",
    "video",
    "podcast",
    "game score",
    "warehouse",
    "employee",
    "tax form",
    "museum exhibit",
    "train schedule",
    "restaurant menu",
    "product review",
    "domain name",
    "certificate",
    "backup",
    "log file",
    "chat message",
];
const REQUESTS: [&str; 6] = [
    "What will the weather be like in Lisbon next weekend?",
    "Delete the old invoice of customer 4711",
    "Find me a direct flight from Vienna to Oslo on Friday morning",
    "Show the log file of the container that crashed last night",
    "Which restaurants near the museum have a vegetarian menu?",
    "Translate the contract into French",
];

fn main() {
    let begin = Instant::now();
    let empty = Selector::new(&tools(1));
    black_box(empty.select("hello", 1));
    println!("first use, with the way into the table   {:>9}   goal 5 ms", shown(begin.elapsed()));
    for (count, query_goal, index_goal) in [(500, "200 us", "30 ms"), (4000, "1 ms", "-")] {
        let tools = tools(count);
        let before = resident();
        let begin = Instant::now();
        let selector = Selector::new(&tools);
        println!(
            "index of {count} tools                    {:>9}   goal {index_goal}",
            shown(begin.elapsed())
        );
        println!(
            "  memory                               {:>6.1} MB   goal 20 MB for 4000",
            resident() - before
        );
        let begin = Instant::now();
        black_box(selector.updated(&tools));
        println!("  again, one state later               {:>9}", shown(begin.elapsed()));
        let select = p50(|request| drop(black_box(selector.select(request, 8))));
        println!("  select, p50                          {:>9}   goal {query_goal}", shown(select));
        black_box(selector.decide(REQUESTS[0], 8));
        let decide = p50(|request| drop(black_box(selector.decide(request, 8))));
        println!("  decide, p50                          {:>9}", shown(decide));
    }
}

fn tools(count: usize) -> Vec<ToolText> {
    let tool = |at: usize| {
        let (verb, thing) = (VERBS[at % VERBS.len()], THINGS[at / VERBS.len() % THINGS.len()]);
        let service = format!("service{}", at / 400);
        let identifier =
            json!({"type": "string", "description": format!("Which {thing} it is about.")});
        ToolText {
            name: format!("{verb}_{}_{at}", thing.replace(' ', "_")),
            server: Some(service.clone()),
            title: None,
            description: format!(
                "Use this to {verb} one {thing} of {service}. Needs its identifier, and answers with all of its fields."
            ),
            input_schema: json!({"type": "object", "properties": {"id": identifier}, "required": ["id"]}),
            examples: Vec::new(),
        }
    };
    (0..count).map(tool).collect()
}

fn p50(ask: impl Fn(&str)) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|round| {
            let begin = Instant::now();
            ask(REQUESTS[round % REQUESTS.len()]);
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Memory use of the process in MB; Linux only.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kb: f64 =
        line.and_then(|it| it.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or_default();
    kb / 1024.0
}

fn shown(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1000.0 { format!("{micros:.0} us") } else { format!("{:.2} ms", micros / 1000.0) }
}
