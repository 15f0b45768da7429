//! Several replicas within the test's process, which reach each other by a table that the test can change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use haft::config::LoadOptions;
use haft::human_input::Attendance;
use haft::live::Live;
use haft::mcp_server::SigningKeys;
use haft::{Config, FunctionTool, HumanInbox, ReplicaNumber, Runtime, ToolOutput};
use haft_server::api::{self, Service};
use haft_server::gateway::{Hub, Mount};
use haft_server::keys::{KeyFile, Keyring, Scope};
use haft_server::serve::{GuardSettings, Listener, ListenerSettings, Peers, ReplicaInfo, Replicas};
use haft_server::telemetry::Telemetry;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use testkit::Workspace;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::client;
use crate::served::{Answer, answer};

const CONFIG: &str = "builtin: {enabled: false, request_human_input: {}}\n\
                      tools: [{name: wait}, {name: where}]\n";

/// The addresses of live replicas, shared by all.
type Addresses = Arc<Mutex<BTreeMap<u16, Arc<str>>>>;

/// The table as one replica sees it.
struct Table {
    own: u16,
    addresses: Addresses,
}

impl Replicas for Table {
    fn own(&self) -> ReplicaNumber {
        ReplicaNumber::new(self.own)
    }

    fn address_of(&self, number: ReplicaNumber) -> Option<Arc<str>> {
        self.addresses.lock().unwrap().get(&number.get()).cloned()
    }

    fn live(&self) -> Vec<ReplicaNumber> {
        let addresses = self.addresses.lock().unwrap();
        addresses.keys().filter(|it| **it != self.own).copied().map(ReplicaNumber::new).collect()
    }

    fn list(&self) -> Vec<ReplicaInfo> {
        Vec::new()
    }
}

/// Three replicas with the same keys.
pub(crate) struct Cluster {
    pub(crate) replicas: Vec<Replica>,
    pub(crate) keys: KeyFile,
    addresses: Addresses,
    _folder: Workspace,
}

/// One of them. Ends with the test.
pub(crate) struct Replica {
    pub(crate) number: u16,
    pub(crate) live: Live,
    url: String,
    key: String,
    client: reqwest::Client,
    _workspace: Workspace,
    _attending: Attendance,
    _stop: DropGuard,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let folder = Workspace::new();
        let keys = KeyFile::new(folder.path().join("keys.json"));
        let admin = keys.create("admin", Scope::Admin).unwrap().0.expose().to_owned();
        let addresses = Addresses::default();
        let mut replicas = Vec::new();
        for number in [7, 12, 31746] {
            let table = Table { own: number, addresses: Arc::clone(&addresses) };
            let replica = Replica::start(table, keys.clone(), admin.clone()).await;
            addresses.lock().unwrap().insert(number, replica.url.as_str().into());
            replicas.push(replica);
        }
        Self { replicas, keys, addresses, _folder: folder }
    }

    /// Changes the address of a replica; without one it counts as dead.
    pub(crate) fn set_address(&self, number: u16, address: Option<&str>) {
        let mut addresses = self.addresses.lock().unwrap();
        match address {
            Some(address) => addresses.insert(number, address.into()),
            None => addresses.remove(&number),
        };
    }
}

impl Replica {
    async fn start(table: Table, keys: KeyFile, key: String) -> Self {
        let number = table.own;
        let workspace = Workspace::with(&[("haft.yaml", CONFIG)]);
        let options = LoadOptions::from_process(vec![workspace.path().join("haft.yaml")]);
        let config = Config::load(&options).unwrap();
        let telemetry = Telemetry::start(&config.telemetry).unwrap();
        let inbox = HumanInbox::of_replica(table.own());
        let attending = inbox.attend();
        let schema = json!({"type": "object"});
        let wait = FunctionTool::new("wait", "Waits.", schema.clone(), |_: Value, _| {
            std::future::pending::<Result<ToolOutput, _>>()
        });
        let place = FunctionTool::new(
            "where",
            "Names its replica.",
            schema,
            move |_: Value, _| async move { Ok(ToolOutput::from_text(number.to_string())) },
        );
        let hub = Hub::with_inbox(inbox.clone());
        let builder = Runtime::builder(config).tool(wait).tool(place).replica(table.own());
        let builder = builder.inbox(inbox).server_handler(hub.clone());
        let runtime = Box::pin(builder.start()).await.unwrap();
        let live = Live::follow(runtime, options);
        let keys = Arc::new(Keyring::open(keys).unwrap());
        let settings = ListenerSettings::new("127.0.0.1:0".parse().unwrap());
        let listener = Listener::bind(settings, &keys).await.unwrap();
        let url = format!("http://{}", listener.local_addr());
        let peers = Peers::new(Arc::new(table)).unwrap();
        let signing = SigningKeys::new([[5; 32]]).unwrap();
        let gateway = Mount::of_replica(live.runtime().clone(), hub, peers.clone(), signing);
        let service = Service::of_replica(live.clone(), keys, telemetry, None, Some(peers));
        let stop = CancellationToken::new();
        let service = api::http_service(&service, &GuardSettings::default(), Some(gateway));
        TaskTracker::new().spawn(listener.serve(service, stop.clone()));
        // Each request over its own connection, as behind a balancer.
        let client = client().pool_max_idle_per_host(0).build().unwrap();
        Self {
            number,
            live,
            url,
            key,
            client,
            _workspace: workspace,
            _attending: attending,
            _stop: stop.drop_guard(),
        }
    }

    /// A request with the admin key.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_as(&self.key, method, path)
    }

    pub(crate) fn request_as(&self, key: &str, method: Method, path: &str) -> RequestBuilder {
        self.request_open(method, path).header("x-api-key", key)
    }

    /// A request without a key.
    pub(crate) fn request_open(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        answer(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        answer(request.body(body.to_string())).await
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.post(&format!("/api/v1/tools/{tool}/call"), &json!({"arguments": arguments})).await
    }
}
