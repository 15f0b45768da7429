//! `haft mcp`: the toolbox as an MCP server over stdin and stdout.

mod channel;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use haft::live::Live;
use haft::mcp_server::{ServeOptions, stdio};

use super::toolbox::{Purpose, Toolbox};
use super::{Global, block_on, load};
use crate::gateway::{Gateway, Hub, View};

/// Who calls, as the log names it.
const PRINCIPAL: &str = "mcp";

#[derive(Debug, Args)]
#[command(after_help = "\
A client starts it and speaks to it. `haft install CLIENT --write` configures that; by hand:
  {\"mcpServers\": {\"haft\": {\"command\": \"haft\", \"args\": [\"mcp\", \"-c\", \"/path/to/haft.yaml\"]}}}

It ends when the client closes its side. Log lines go to stderr.")]
pub(super) struct McpArgs {}

pub(super) fn run(global: &Global, _: &McpArgs) -> anyhow::Result<ExitCode> {
    let (config, options) = load::load_files(global, load::files(global)?)?;
    for warning in &config.warnings {
        tracing::warn!("{warning}; {}", warning.remedy);
    }
    block_on(async {
        let hub = Hub::default();
        let toolbox = Toolbox::open(config, Purpose::Serve(hub.clone())).await?;
        toolbox.hide_progress();
        let served = toolbox.work(async |runtime| {
            // A tool that is added to the files is there for the client without a new start.
            let live = Live::follow(runtime.clone(), options);
            let gateway = Gateway::new(runtime.clone(), View::default(), &hub);
            let (input, (output, last_words)) = (channel::input()?, channel::output()?);
            let served = stdio(gateway, input, output, ServeOptions::new(PRINCIPAL)).await;
            last_words.finish().await;
            live.stop().await;
            served.context("the connection to the client broke")
        });
        served.await?;
        Ok(ExitCode::SUCCESS)
    })
}
