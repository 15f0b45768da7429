//! The client that the official MCP conformance suite tests, built on the public API of `haft`.
//!
//! The suite starts it with the address of a server as its last argument. It connects, uses
//! everything the server has, answers what the server asks, and signs in where that is wanted.
//! `cargo xtask conformance` runs the suite.

use std::process::ExitCode;
use std::time::Duration;

use haft::config::LoadOptions;
use haft::oauth::{
    AuthError, BoxFuture, Browser, ClientIdentity, Interactive, Login, RegisteredClient, Secret,
    StoredTokens, TokenStore,
};
use haft::{Config, Refusal, ResourceInfo, Runtime, ServerHandler, Status, ToolCall, ToolInfo};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;
use url::Url;

const SERVER: &str = "suite";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let url: Url = std::env::args().next_back().ok_or("no address was given")?.parse()?;
    let variable = |name: &str| std::env::var(name).ok();
    let context: Value = match variable("MCP_CONFORMANCE_CONTEXT") {
        Some(context) => serde_json::from_str(&context)?,
        None => Value::Null,
    };
    let is_modern = variable("MCP_CONFORMANCE_PROTOCOL_VERSION")
        .is_some_and(|version| version.as_str() >= "2026-07-28");
    let protocol = if is_modern { "modern" } else { "legacy" };
    let folder = tempfile::tempdir()?;
    let scenario = variable("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let is_machine = scenario.starts_with("auth/client-credentials");
    let oauth = if is_machine { machine(&context)? } else { String::new() };
    let text = format!(
        "servers: {{{SERVER}: {{url: '{url}', on_connect_failure: exit, sampling: allow, \
         protocol: {protocol}, connect_timeout: 20s{oauth}}}}}\n\
         log: {{dir: '{0}/logs'}}\nstate_dir: '{0}/state'\n",
        folder.path().display()
    );
    let mut builder =
        Runtime::builder(load(&text, &context, folder.path())?).server_handler(Person);
    if !is_machine {
        builder = builder.authorizer(SERVER, sign_in(url, &context, folder.path())?);
    }
    let runtime = builder.start().await?;
    let used = use_everything(&runtime, &context).await;
    runtime.shutdown(Duration::from_secs(5)).await;
    used
}

/// Uses every tool, prompt and resource of the server.
async fn use_everything(
    runtime: &Runtime,
    context: &Value,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut failures = Vec::new();
    for tool in runtime.tools() {
        for arguments in arguments_for(&tool, context) {
            let answer = runtime.call(ToolCall::new(&tool.name, &arguments)).await;
            eprintln!("{}: {:?} {:?}", tool.name, answer.status, answer.error);
            if answer.status == Status::Error {
                failures.push(tool.name.clone());
            }
        }
    }
    for prompt in runtime.prompts() {
        let arguments: Map<String, Value> =
            prompt.arguments.iter().map(|it| (it.name.clone(), json!("test"))).collect();
        runtime.prompt(SERVER, &prompt.name, &to_raw_value(&arguments)?).await?;
    }
    for resource in runtime.resources(SERVER).await.unwrap_or_default() {
        if let ResourceInfo::Resource { resource, .. } = resource {
            runtime.read_resource(SERVER, &resource.uri).await?;
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(format!("failed: {failures:?}").into()) }
}

/// The suite's arguments, otherwise the simplest that match the tool's schema.
fn arguments_for(tool: &ToolInfo, context: &Value) -> Vec<Value> {
    let wanted: Vec<Value> = context["toolCalls"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|call| call["name"] == tool.name)
        .map(|call| without_nulls(&call["arguments"]))
        .collect();
    if !wanted.is_empty() {
        return wanted;
    }
    let schema = &tool.input_schema;
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let arguments: Map<String, Value> =
        required.map(|name| (name.to_owned(), simplest(&schema["properties"][name]))).collect();
    vec![Value::Object(arguments)]
}

/// Haft refuses a null where the tool's schema wants a boolean, as the suite's own example has it.
/// An omitted argument means the same.
fn without_nulls(arguments: &Value) -> Value {
    let given = arguments.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    given.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn simplest(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(5),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("test"),
    }
}

/// Someone who agrees to everything and leaves every default as it is.
struct Person;

impl ServerHandler for Person {
    fn capabilities(&self, _server: &str) -> Value {
        json!({"elicitation": {"form": {"applyDefaults": true}}, "sampling": {}, "roots": {}})
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a str,
        params: &'a RawValue,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move {
            let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
            let properties = params["requestedSchema"]["properties"].as_object();
            let content: Map<String, Value> = properties
                .into_iter()
                .flatten()
                .filter_map(|(name, it)| Some((name.clone(), it.get("default")?.clone())))
                .collect();
            Ok(json!({"action": "accept", "content": content}))
        })
    }

    fn sample<'a>(
        &'a self,
        _server: &'a str,
        _params: &'a RawValue,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async {
            let content = json!({"type": "text", "text": "an answer"});
            Ok(json!({"role": "assistant", "content": content, "model": "test"}))
        })
    }

    fn roots<'a>(&'a self, _server: &'a str) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async { Ok(json!({"roots": []})) })
    }
}

/// The settings of a client that gets its tokens without a person.
fn machine(context: &Value) -> Result<String, Box<dyn std::error::Error>> {
    let id = context["client_id"].as_str().ok_or("the suite gives no client id")?;
    Ok(format!(
        ", oauth: {{grant: client_credentials, client_id: '{id}', client_secret_env: SECRET}}"
    ))
}

/// A configuration whose environment holds the client's secret.
fn load(
    text: &str,
    context: &Value,
    folder: &std::path::Path,
) -> Result<Config, Box<dyn std::error::Error>> {
    let file = folder.join("haft.yaml");
    std::fs::write(&file, text)?;
    let secret = context["client_secret"].as_str().unwrap_or_default();
    let options = LoadOptions {
        files: vec![file],
        environment: [("SECRET".to_owned(), secret.to_owned())].into(),
        cwd: folder.to_path_buf(),
        ..LoadOptions::default()
    };
    Ok(Config::load(&options)?)
}

/// Signs in with the suite's client settings.
fn sign_in(
    url: Url,
    context: &Value,
    folder: &std::path::Path,
) -> Result<Interactive, Box<dyn std::error::Error>> {
    let text = |key: &str| context[key].as_str().map(str::to_owned);
    let identity = ClientIdentity {
        name: "haft".into(),
        registered: text("client_id").map(|id| RegisteredClient {
            id,
            secret: text("client_secret").map(Secret::new),
            issuer: text("issuer"),
        }),
        metadata_url: Some(Url::parse("https://conformance-test.local/client-metadata.json")?),
    };
    let login = Login::new(url, "haft").with_identity(identity);
    let tokens = StoredTokens::new(login, TokenStore::new(folder), TaskTracker::new())?;
    Ok(Interactive::new(tokens, FollowsRedirects))
}

/// A browser whose person agrees at once: it follows the redirect and shows no page.
struct FollowsRedirects;

impl Browser for FollowsRedirects {
    fn redirect(&self) -> Url {
        Url::parse("http://localhost:3000/callback").unwrap_or_else(|_| unreachable!("a constant"))
    }

    fn authorize<'a>(
        &'a self,
        url: &'a Url,
        _redirect: &'a Url,
    ) -> BoxFuture<'a, Result<String, AuthError>> {
        Box::pin(async move {
            location(url).await.map_err(|error| AuthError::Denied { problem: error.to_string() })
        })
    }
}

/// Where a GET of `url` is redirected to. The suite speaks plain HTTP on this machine.
async fn location(url: &Url) -> std::io::Result<String> {
    use std::io::Error;
    let address = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(80));
    let mut stream = TcpStream::connect(address).await?;
    let path = &url[url::Position::BeforePath..];
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", address.0);
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let header = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    header.ok_or_else(|| Error::other("the authorization server did not redirect"))
}
