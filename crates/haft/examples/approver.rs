//! A custom approver: a program that answers the questions in the inbox.
//!
//! Run it with `cargo run -p haft --example approver`.

use std::time::Duration;

use haft::config::choices::Approval;
use haft::human_input::HumanAnswer;
use haft::{ConfigBuilder, HumanInbox, Runtime, ToolCall, ToolFailure};
use serde_json::{Value, json};

/// Pays an amount.
#[haft::tool]
async fn pay(euros: u32) -> Result<String, ToolFailure> {
    Ok(format!("paid {euros} euros"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = ConfigBuilder::new().folder("target/example-approver").build()?;
    let pay = pay().with_approval(Approval::Ask);
    let runtime = Runtime::builder(config).tool(pay).start().await?;

    // From now on a call waits for an answer. Without an approver it is denied at once.
    let _attending = runtime.inbox().attend();
    tokio::select! {
        () = approve_small_payments(runtime.inbox()) => {}
        () = make_payments(&runtime) => {}
    }
    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

async fn make_payments(runtime: &Runtime) {
    for euros in [5, 5_000] {
        let call = ToolCall::new("pay", &json!({"euros": euros})).asking_people();
        println!("{}", runtime.call(call).await.model_text());
    }
}

/// Allows payments of up to 100 euros and denies all others, until the inbox ends.
async fn approve_small_payments(inbox: &HumanInbox) {
    let mut events = inbox.subscribe();
    loop {
        for item in inbox.open() {
            let arguments = item.arguments.as_ref().map_or("{}", |arguments| arguments.get());
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            let is_small = arguments["euros"].as_u64().is_some_and(|euros| euros <= 100);
            let answer = HumanAnswer::Given(json!(if is_small { "allow" } else { "deny" }));
            if let Err(error) = inbox.answer(&item.id, answer, "approver").await {
                eprintln!("the question stays open: {error}");
            }
        }
        if events.recv().await.is_err() {
            return;
        }
    }
}
