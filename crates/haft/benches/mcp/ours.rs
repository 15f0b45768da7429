//! Haft's own client.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use haft_mcp::transport::Pipes;
use haft_mcp::{
    BoxFuture, Client, ClientOptions, Connector, HttpConnector, HttpOptions, MessageRouter,
    RefuseAll, Transport, TransportError,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::process::Child;

use super::Failure;
use super::compare::{self, Call};

pub(crate) struct Ours {
    client: Client,
    /// Killed when dropped.
    _child: Option<Child>,
}

pub(crate) async fn stdio() -> Result<Ours, Failure> {
    let child = compare::serve(&["stdio"])?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let connector = ChildPipes(std::sync::Mutex::new(Some(child)));
    let client =
        Client::connect(&connector, None, Arc::new(RefuseAll), ClientOptions::default()).await?;
    let child = connector.0.lock().unwrap().take();
    Ok(Ours { client, _child: child })
}

pub(crate) async fn http(url: &str) -> Result<Ours, Failure> {
    let connector = HttpConnector::new(HttpOptions {
        url: url.parse()?,
        shown: url.to_owned(),
        headers: Vec::new(),
        connect_timeout: Duration::from_secs(10),
        timeout: Duration::from_secs(30),
        sse_read_timeout: Duration::from_mins(5),
        terminate_on_close: true,
        authorizer: None,
    })?;
    let client =
        Client::connect(&connector, None, Arc::new(RefuseAll), ClientOptions::default()).await?;
    Ok(Ours { client, _child: None })
}

impl Call for Ours {
    type Prepared = Box<RawValue>;

    fn prepare(&self, arguments: &serde_json::Value) -> Self::Prepared {
        serde_json::value::to_raw_value(arguments).unwrap()
    }

    async fn call(&self, tool: &str, arguments: Self::Prepared) -> Result<String, Failure> {
        let raw = self.client.call_tool(tool, &arguments, haft_mcp::CallOptions::default()).await?;
        // The SDK reads what it got, so we do.
        let CallResult { content } = serde_json::from_str(raw.get())?;
        let block = content.into_iter().next().ok_or("an empty answer")?;
        Ok(block.text)
    }
}

#[derive(Deserialize)]
struct CallResult {
    content: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    text: String,
}

/// The pipes of a process that is running already.
struct ChildPipes(std::sync::Mutex<Option<Child>>);

impl Connector for ChildPipes {
    fn open(
        &self,
        router: MessageRouter,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
        let mut child = self.0.lock().unwrap();
        let child = child.as_mut().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let pipes = Pipes::start(stdout, stdin, encoding_rs::UTF_8, router);
        Box::pin(async { Ok(Arc::new(pipes) as Arc<dyn Transport>) })
    }
}
