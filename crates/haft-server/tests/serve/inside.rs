//! The whole service within the test's process, with tools written in Rust.

use std::sync::Arc;

use haft::config::LoadOptions;
use haft::live::Live;
use haft::{Config, Envelope, Runtime, RuntimeBuilder, ToolCall, TraceContext};
use haft_server::api::{self, Service};
use haft_server::gateway::{Hub, Mount};
use haft_server::keys::{KeyFile, Keyring};
use haft_server::serve::{GuardSettings, Listener, ListenerSettings};
use haft_server::telemetry::Telemetry;
use serde_json::Value;
use testkit::Workspace;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::client;
use crate::page::Page;
use crate::served::{Answer, answer};

/// A service on a free port that the test can reach into. Ends with the test.
pub(crate) struct Inside {
    pub(crate) workspace: Workspace,
    pub(crate) live: Live,
    pub(crate) telemetry: Arc<Telemetry>,
    url: String,
    client: reqwest::Client,
    _stop: DropGuard,
}

impl Inside {
    /// Starts it with the `haft.yaml` of a workspace.
    pub(crate) async fn start(
        workspace: Workspace,
        tools: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder,
    ) -> Self {
        let options = LoadOptions::from_process(vec![workspace.path().join("haft.yaml")]);
        let config = Config::load(&options).unwrap();
        let telemetry = Telemetry::start(&config.telemetry).unwrap();
        let observer = Arc::clone(&telemetry);
        let builder = Runtime::builder(config).observe(move |call| observer.observe(call));
        let runtime = Box::pin(tools(builder).start()).await.unwrap();
        let live = Live::follow(runtime, options);
        let keys = KeyFile::new(workspace.path().join("keys.json"));
        let keys = Arc::new(Keyring::open(keys).unwrap());
        let settings = ListenerSettings::new("127.0.0.1:0".parse().unwrap());
        let listener = Listener::bind(settings, &keys).await.unwrap();
        let url = format!("http://{}", listener.local_addr());
        let service = Service::new(live.clone(), keys, Arc::clone(&telemetry), None);
        let stop = CancellationToken::new();
        let gateway = Mount::new(live.runtime().clone(), Hub::default());
        let service = api::http_service(&service, &GuardSettings::default(), Some(gateway));
        TaskTracker::new().spawn(listener.serve(service, stop.clone()));
        let client = client().build().unwrap();
        Self { workspace, live, telemetry, url, client, _stop: stop.drop_guard() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        answer(self.client.get(format!("{}{path}", self.url))).await
    }

    /// Posts JSON with more headers.
    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], body: String) -> Answer {
        let mut request = self.client.post(format!("{}{path}", self.url)).body(body);
        request = request.header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(request).await
    }

    /// The page at `/metrics`, read strictly.
    pub(crate) async fn metrics(&self) -> Page {
        let answer = self.get("/metrics").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        Page::parse(&answer.text)
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Envelope {
        self.live.runtime().call(ToolCall::new(tool, &arguments)).await
    }

    /// Calls as the API does: with a span of its own, where spans are exported.
    pub(crate) async fn call_within(&self, caller: Option<TraceContext>, tool: &str) -> Envelope {
        let call = ToolCall::new(tool, &serde_json::json!({})).caller("key:me").session("s-1");
        let call = match self.telemetry.begin(caller) {
            Some(trace) => call.trace_context(trace),
            None => call,
        };
        self.live.runtime().call(call).await
    }
}
