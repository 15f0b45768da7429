//! The official SDK's client, with the settings that suit it best.

use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, JsonObject};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};

use super::Failure;
use super::compare::{self, Call};

pub(crate) struct Theirs(RunningService<RoleClient, ()>);

pub(crate) async fn stdio() -> Result<Theirs, Failure> {
    let child = TokioChildProcess::new(compare::serve(&["stdio"])?)?;
    Ok(Theirs(().serve(child).await?))
}

pub(crate) async fn http(url: &str) -> Result<Theirs, Failure> {
    // By default rmcp opens a connection for each request; kept ones are faster.
    let http = reqwest::Client::builder().tcp_nodelay(true).build()?;
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    Ok(Theirs(().serve(StreamableHttpClientTransport::with_client(http, config)).await?))
}

impl Call for Theirs {
    type Prepared = JsonObject;

    fn prepare(&self, arguments: &serde_json::Value) -> Self::Prepared {
        arguments.as_object().unwrap().clone()
    }

    async fn call(&self, tool: &str, arguments: Self::Prepared) -> Result<String, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = self.0.call_tool(params).await?;
        let block = result.content.into_iter().next().ok_or("an empty answer")?;
        match block {
            rmcp::model::ContentBlock::Text(text) => Ok(text.text),
            _ => Err("an answer without text".into()),
        }
    }
}
