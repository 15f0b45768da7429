//! Everything a client does with the gateway, one after the other.

// Logging is on its way out of the protocol, and in use.
#![allow(deprecated)]

use std::sync::Arc;

use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::service::{RoleClient, RunningService, ServiceError, Subscription};
use serde_json::{Value, json};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::Failure;
use crate::events::{Handler, ServerEvents, made};

/// Number of messages of `log_all_levels` from `error` on.
const SERIOUS: usize = 4;
const STEPS: usize = 3;

/// A client at the gateway.
pub(crate) struct Visit {
    pub(crate) client: RunningService<RoleClient, Handler>,
    pub(crate) received: Arc<ServerEvents>,
    pub(crate) is_modern: bool,
}

impl Visit {
    pub(crate) async fn tools(&self, report: &mut Value) -> Result<(), Failure> {
        report["tools"] = json!(self.tool_names().await?);
        let greeted = self.call("greet", json!({"name": "you"})).await?;
        report["greet"] = greeted["structuredContent"].clone();
        report["echo"] = self.echo(1).await?;
        report["failed"] = self.call("old_fail", json!({})).await?["isError"].clone();
        report["refused"] = code_of(self.call("old_rpc_error", json!({})).await);
        report["unknown"] = code_of(self.call("nobody_has_it", json!({})).await);
        let content = self.call("old_every_content", json!({})).await?["content"].take();
        let blocks = content.as_array().into_iter().flatten();
        report["blocks"] = blocks.map(|block| block["type"].clone()).collect();
        report["progress"] =
            json!([self.progress("old_progress").await?, self.progress("new_progress").await?]);
        report["cancelled"] =
            json!([self.cancel("old_drip").await?, self.cancel("new_drip").await?]);
        Ok(())
    }

    pub(crate) async fn prompts_and_resources(&self, report: &mut Value) -> Result<(), Failure> {
        report["prompts"] = json!(self.prompt_names().await?);
        let asked = made(json!({"name": "old_prompt", "arguments": {"name": "you"}}));
        let prompt = json!(self.client.get_prompt(asked).await?);
        report["prompt"] = prompt["messages"][0]["content"]["text"].clone();
        report["resources"] = json!(self.resource_uris().await?);
        report["templates"] = json!(self.templates().await?);
        let mut texts = Vec::new();
        for uri in ["old://note", "new://note", "test://template/7/data"] {
            let read = json!(self.client.read_resource(made(json!({"uri": uri}))).await?);
            texts.push(read["contents"][0]["text"].clone());
        }
        report["read"] = json!(texts);
        let completion =
            self.client.complete_prompt_simple("completable-prompt", "department", "E").await?;
        report["completion"] = json!(completion);
        Ok(())
    }

    pub(crate) async fn asked_back(&self, report: &mut Value) -> Result<(), Failure> {
        if !self.is_modern {
            self.client.set_level(made(json!({"level": "error"}))).await?;
        }
        let mut logs = Vec::new();
        for tool in ["old_log", "new_log"] {
            self.received.lock().logs.clear();
            self.call(tool, json!({})).await?;
            let received = |state: &crate::events::State| {
                (state.logs.len() >= SERIOUS).then(|| state.logs.clone())
            };
            logs.push(by_severity(self.received.until(received).await));
        }
        report["logs"] = json!(logs);
        for question in ["sample", "elicit", "roots"] {
            let mut answers = Vec::new();
            for server in ["old", "new"] {
                let mut result = self.call(&format!("{server}_{question}"), json!({})).await?;
                answers.push(result["structuredContent"]["result"].take());
            }
            report["answers"][question] = json!(answers);
        }
        Ok(())
    }

    pub(crate) async fn changes(&self, report: &mut Value, request: &Value) -> Result<(), Failure> {
        let following = self.follow().await?;
        self.call("old_add_tool", json!({"name": "late_tool"})).await?;
        self.call("old_add_prompt", json!({"name": "late_prompt"})).await?;
        let tool = self.until_listed(Self::tool_names, "late_tool").await?;
        let prompt = self.until_listed(Self::prompt_names, "late_prompt").await?;
        let registry = request["registry"].as_str().ok_or("no registry")?;
        let mut registered: Value = serde_json::from_str(&std::fs::read_to_string(registry)?)?;
        let mut another = registered["tools"][0].clone();
        another["name"] = json!("late_greet");
        registered["tools"].as_array_mut().ok_or("no tools")?.push(another);
        std::fs::write(registry, registered.to_string())?;
        let local = self.until_listed(Self::tool_names, "late_greet").await?;
        report["changed"] = json!([tool, prompt, local]);
        self.call("old_update_resource", json!({"uri": "old://note"})).await?;
        report["updated"] =
            json!(self.received.until(|state| state.updated.first().cloned()).await);
        drop(following);
        report["crash"] = self.call("crash", json!({})).await?["isError"].clone();
        report["after"] = self.echo(2).await?;
        Ok(())
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, ServiceError> {
        let mut params = json!({"name": tool, "arguments": arguments});
        if self.is_modern {
            params["_meta"] = json!({"io.modelcontextprotocol/logLevel": "error"});
        }
        Ok(json!(self.client.call_tool(made(params)).await?))
    }

    async fn echo(&self, n: u64) -> Result<Value, ServiceError> {
        let mut old = self.call("old_echo", json!({"n": n})).await?;
        let mut new = self.call("new_echo", json!({"n": n})).await?;
        Ok(json!([old["structuredContent"].take(), new["structuredContent"].take()]))
    }

    async fn progress(&self, tool: &str) -> Result<Vec<Value>, ServiceError> {
        self.received.lock().steps.clear();
        self.call(tool, json!({"steps": STEPS})).await?;
        let mut steps = self
            .received
            .until(|state| {
                let steps = || state.steps.iter().map(|(_, step)| step.clone()).collect::<Vec<_>>();
                (state.steps.len() >= STEPS).then(steps)
            })
            .await;
        steps.sort_by_key(|step| step[0].as_f64().map(f64::to_bits));
        Ok(steps)
    }

    /// Cancels a call that has reported its start: the SDK notifies the server when the call's future is dropped.
    async fn cancel(&self, tool: &str) -> Result<bool, Failure> {
        let known: Vec<Value> =
            self.received.lock().steps.iter().map(|(token, _)| token.clone()).collect();
        let begun = self.received.until(|state| {
            state.steps.iter().any(|(token, _)| !known.contains(token)).then_some(())
        });
        tokio::select! {
            ended = self.call(tool, json!({})) => Err(format!("{tool} ended: {ended:?}").into()),
            () = begun => Ok(true),
        }
    }

    /// Subscribes to changes, in the way of the era.
    async fn follow(&self) -> Result<Option<AbortOnDropHandle<()>>, Failure> {
        if !self.is_modern {
            self.client.subscribe(made(json!({"uri": "old://note"}))).await?;
            return Ok(None);
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().prompts_list_changed();
        let filter = filter.resource_subscriptions(["old://note"]).build();
        let subscription = self.client.listen(filter).await?;
        let following = follow(subscription, Arc::clone(&self.received));
        Ok(Some(AbortOnDropHandle::new(TaskTracker::new().spawn(following))))
    }
}

async fn follow(mut subscription: Subscription, received: Arc<ServerEvents>) {
    while let Ok(Some(notification)) = subscription.next().await {
        match notification {
            ServerNotification::ResourceUpdatedNotification(updated) => {
                received.note(|state| state.updated.push(updated.params.uri));
            }
            _ => received.note(|state| state.changes += 1),
        }
    }
}

fn code_of(answer: Result<Value, ServiceError>) -> Value {
    match answer {
        Err(ServiceError::McpError(error)) => json!(error.code.0),
        Err(error) => json!(error.to_string()),
        Ok(_) => Value::Null,
    }
}

/// The SDK hands notifications over in any order.
fn by_severity(mut levels: Vec<Value>) -> Vec<Value> {
    let order = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    levels.sort_by_key(|level| order.iter().position(|known| level == known));
    levels
}
