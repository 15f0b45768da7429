//! `haft console`: opens the web console of a running service in the browser, signed in.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::serve::reachable;
use super::{EXIT_RUNTIME, Failure, Global, block_on, configuration_of_file, load, print_json};
use crate::terminal;

/// The variable that holds the key.
const KEY_VARIABLE: &str = "HAFT_KEY";
/// The time that the service may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The address of a service without a configuration.
const DEFAULT_URL: &str = "http://127.0.0.1:7300";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft serve &                         a service of this folder
  haft console                         open its console
  HAFT_KEY=... haft console            signed in, where the service has keys
  haft console --no-browser --url https://haft.example.com

The link signs in once and expires after two minutes. Without HAFT_KEY the page asks for the key.")]
pub(super) struct ConsoleArgs {
    /// The address of the service, instead of `api.listen` of the configuration
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
    /// Only print the address, and start no browser
    #[arg(long)]
    no_browser: bool,
}

#[derive(Deserialize)]
struct Link {
    path: String,
}

pub(super) fn run(global: &Global, args: &ConsoleArgs) -> anyhow::Result<ExitCode> {
    let url = match &args.url {
        Some(url) => url.clone(),
        None => configured_url(global)?,
    };
    let address = block_on(sign_in_address(url))?;
    if global.json {
        print_json(&json!({ "url": address.as_str() }))?;
    } else {
        terminal::line(address.as_str());
    }
    if !args.no_browser {
        haft::oauth::open_browser(&address);
    }
    Ok(ExitCode::SUCCESS)
}

fn configured_url(global: &Global) -> anyhow::Result<Url> {
    if !load::is_named(global) {
        return Ok(Url::parse(DEFAULT_URL)?);
    }
    let config = configuration_of_file(global)?;
    let scheme = if config.api.tls.is_some() { "https" } else { "http" };
    Ok(Url::parse(&format!("{scheme}://{}", reachable(config.api.listen.value)))?)
}

/// The address of the page, with a link that signs in if a key is at hand.
async fn sign_in_address(url: Url) -> anyhow::Result<Url> {
    let Some(key) = std::env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty()) else {
        return Ok(url.join("/")?);
    };
    let client = haft::http_client_builder().timeout(ANSWER_TIMEOUT).build()?;
    let request = client.post(url.join("/api/v1/session/link")?).header("x-api-key", key);
    let response = request.send().await.map_err(|error| {
        let remedy = "start the service with `haft serve`, or name its address with `--url`";
        Failure::new(EXIT_RUNTIME, format!("`{url}` does not answer: {error}"), remedy)
    })?;
    if !response.status().is_success() {
        let status = response.status();
        let remedy =
            format!("set {KEY_VARIABLE} to a key of this service; `haft keys list` shows them");
        return Err(Failure::new(EXIT_RUNTIME, format!("`{url}` answered {status}"), remedy).into());
    }
    let body = response.bytes().await?;
    let link: Link = serde_json::from_slice(&body)?;
    Ok(url.join(&link.path)?)
}
