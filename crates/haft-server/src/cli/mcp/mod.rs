//! `haft mcp`: the toolbox as an MCP server over stdin and stdout.

mod channel;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use haft::config::LoadOptions;
use haft::config::choices::Surface;
use haft::live::Live;
use haft::mcp_server::{ServeOptions, stdio};
use tokio_util::task::TaskTracker;

use super::toolbox::{Purpose, Toolbox};
use super::trust::{self, Trusted};
use super::{Global, block_on, load, load_shared, log_times, profile};
use crate::gateway::{Gateway, Hub, View};

/// The caller's name in the log.
const PRINCIPAL: &str = "mcp";

#[derive(Debug, Args)]
#[command(after_help = "\
A client starts it and speaks to it. `haft install CLIENT --write` configures that; by hand:
  {\"mcpServers\": {\"haft\": {\"command\": \"haft\", \"args\": [\"mcp\", \"-c\", \"/path/to/haft.yaml\"]}}}

Examples:
  haft mcp                      every tool, prompt and resource
  haft mcp --profile reader     only what `profiles.reader` of the configuration shows
  haft mcp --surface search     three tools that find, describe and call the others, for
                                toolboxes too large for a model's context

It ends when the client closes its side. Log lines go to stderr.")]
pub(super) struct McpArgs {
    /// Show a part of the toolbox: an entry of `profiles` in the configuration
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Presentation of the tools, overriding the configuration: `all` or `search`
    #[arg(long, value_parser = parse_surface)]
    surface: Option<Surface>,
}

pub(super) fn parse_surface(text: &str) -> Result<Surface, String> {
    [Surface::All, Surface::Search]
        .into_iter()
        .find(|surface| surface.word() == text)
        .ok_or_else(|| "use `all` or `search`".to_owned())
}

pub(super) fn run(global: &Global, args: &McpArgs) -> anyhow::Result<ExitCode> {
    let (config, options) = load::load_usable(global, load::files(global)?)?;
    let (config, options) = load_shared::with_registry(config, options)?;
    if let Some(name) = &args.profile {
        profile::require(&config, name)?;
    }
    log_times(global, &config);
    for warning in &config.warnings {
        tracing::warn!("{warning}; {}", warning.remedy);
    }
    let mut config = Trusted::require(global, config)?;
    if let Some(name) = &args.profile {
        // Now that the whole file is trusted, and again when it is loaded again.
        config.config_mut().keep_profile(name);
    }
    let options = LoadOptions { profile: args.profile.clone(), ..options };
    block_on(async {
        let hub = Hub::default();
        let toolbox = Toolbox::open(config, Purpose::Serve(hub.clone())).await?;
        let options = trust::guard(global, options);
        toolbox.hide_progress();
        let served = toolbox.work(async |runtime| {
            // A tool that is added to the files is there for the client without a new start.
            let live = Live::follow(runtime.clone(), options);
            let mut view = View::new(runtime, args.profile.as_deref());
            if let Some(surface) = args.surface {
                view = view.with_surface(surface);
            }
            let tasks = TaskTracker::new();
            let gateway = Gateway::new(runtime.clone(), view, &hub, &tasks);
            let (input, (output, last_words)) = (channel::input()?, channel::output()?);
            let mut options = ServeOptions::new(PRINCIPAL);
            options.limits.nodes_max = runtime.config().limits.nodes_max();
            let served = stdio(gateway, input, output, options).await;
            last_words.finish().await;
            live.stop().await;
            tasks.close();
            tasks.wait().await;
            served.context("the connection to the client broke")
        });
        served.await?;
        Ok(ExitCode::SUCCESS)
    })
}
