//! A custom approver: a program that answers the questions in the inbox.
//!
//! Run it with `cargo run -p haft --example approver`.

use std::time::Duration;

use haft::config::choices::Approval;
use haft::human_input::HumanAnswer;
use haft::{ConfigBuilder, FunctionTool, Runtime, ToolCall};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Payment {
    euros: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pay = FunctionTool::typed("pay", "Pays an amount.", |args: Payment| async move {
        Ok(format!("paid {} euros", args.euros))
    });
    let config = ConfigBuilder::new().folder("target/example-approver").build()?;
    let runtime = Runtime::builder(config).tool(pay.with_approval(Approval::Ask)).start().await?;

    for euros in [5, 5_000] {
        let call = ToolCall::new("pay", &json!({"euros": euros})).asking_people();
        let (envelope, ()) = tokio::join!(runtime.call(call), approve_small_payments(&runtime));
        println!("{}", envelope.model_text());
    }
    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

/// Allows payments of up to 100 euros and denies all others.
async fn approve_small_payments(runtime: &Runtime) {
    let _attending = runtime.inbox().attend();
    let (open, mut events) = runtime.inbox().follow();
    if open.is_empty() && events.recv().await.is_err() {
        return;
    }
    for item in runtime.inbox().open() {
        let arguments = item.arguments.as_ref().map_or("{}", |arguments| arguments.get());
        let payment: Option<Payment> = serde_json::from_str(arguments).ok();
        let answer = if payment.is_some_and(|it| it.euros <= 100) { "allow" } else { "deny" };
        let given = HumanAnswer::Given(json!(answer));
        if let Err(error) = runtime.inbox().answer(&item.id, given, "approver").await {
            eprintln!("the question stays open: {error}");
        }
    }
}
