//! The cost of rules: a call past 0, 10 and 100 of them, and past one whose condition is evaluated. Times, and
//! instructions, which a busy machine does not change.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::function::{CALLS, Failure, one_by_one, start_with};
use super::instructions;
use super::stats::us;

/// Rules for other tools, so that each is tried and none matches.
fn others(count: usize) -> Vec<Value> {
    let rule = |at: usize| {
        let when = "args.path.startsWith('/etc/')";
        json!({"name": format!("rule {at}"), "match": {"tool": format!("tool_{at}_*"), "when": when}, "effect": "deny"})
    };
    (0..count).map(rule).collect()
}

pub(crate) async fn measure(folder: &Path) -> Result<(), Failure> {
    println!("\n# Rules");
    let evaluated =
        json!({"match": {"when": "args.city == 'Paris' && args.days > 5"}, "effect": "deny"});
    let rows = [
        ("0 rules", others(0)),
        ("10 rules that do not match", others(10)),
        ("100 rules that do not match", others(100)),
        ("1 rule whose condition is evaluated", vec![evaluated]),
    ];
    let (mut without, mut fewest) = (Duration::ZERO, None);
    for (row, (name, rules)) in rows.into_iter().enumerate() {
        let policy = format!("policy: {}, ", json!({"rules": rules}));
        let runtime = start_with(folder, "os", &policy).await?;
        one_by_one(&runtime, CALLS / 10).await?;
        let p50 = one_by_one(&runtime, CALLS).await?.percentile(50);
        let counted = instructions::per_call(&folder.join("counted"), &policy)?;
        if row == 0 {
            (without, fewest) = (p50, counted);
        }
        let more = us(p50.saturating_sub(without));
        println!("{name}: p50 {}, {more} more (target: at most 1 us more with 10 rules)", us(p50));
        match (counted, fewest) {
            (Some(counted), Some(fewest)) => {
                let more = i128::from(counted) - i128::from(fewest);
                println!("    {counted} instructions per call, {more:+}");
            }
            _ => println!("    instructions are not counted: valgrind is not installed"),
        }
        runtime.shutdown(Duration::from_secs(1)).await;
    }
    Ok(())
}
