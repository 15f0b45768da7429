//! The lists of the gateway, all pages of them.

use serde_json::{Value, json};

use crate::Failure;
use crate::visit::Visit;

impl Visit {
    pub(crate) async fn tool_names(&self) -> Result<Vec<Value>, Failure> {
        Ok(column(&json!(self.client.list_all_tools().await?), "name"))
    }

    pub(crate) async fn prompt_names(&self) -> Result<Vec<Value>, Failure> {
        Ok(column(&json!(self.client.list_all_prompts().await?), "name"))
    }

    pub(crate) async fn resource_uris(&self) -> Result<Vec<Value>, Failure> {
        Ok(column(&json!(self.client.list_all_resources().await?), "uri"))
    }

    pub(crate) async fn templates(&self) -> Result<Vec<Value>, Failure> {
        Ok(column(&json!(self.client.list_all_resource_templates().await?), "uriTemplate"))
    }

    /// Reads the list again whenever the server notifies of a change.
    pub(crate) async fn until_listed(
        &self,
        list: impl AsyncFn(&Self) -> Result<Vec<Value>, Failure>,
        name: &str,
    ) -> Result<bool, Failure> {
        loop {
            let before = self.received.lock().changes;
            if list(self).await?.contains(&json!(name)) {
                return Ok(true);
            }
            self.received.until(|state| (state.changes > before).then_some(())).await;
        }
    }
}

fn column(items: &Value, key: &str) -> Vec<Value> {
    items.as_array().into_iter().flatten().map(|item| item[key].clone()).collect()
}
