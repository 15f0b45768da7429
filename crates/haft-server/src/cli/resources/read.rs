//! `haft resources read`.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use clap::Args;
use haft::{Content, ResourceInfo, Runtime, ServerInfo};

use super::{Listed, list_all, listed, refused};
use crate::cli::service::{self, RefusedList, Reply, Request};
use crate::cli::toolbox::{self, Purpose, Toolbox};
use crate::cli::{EXIT_CONFIG, EXIT_CONNECT, EXIT_RUNTIME, Failure, Global, block_on, print_json};
use crate::terminal;

#[derive(Debug, Args)]
pub(in crate::cli) struct ReadArgs {
    /// The resource's URI
    uri: String,
    /// The server that has it; no other is connected. Without it, the one that lists the URI
    #[arg(long)]
    server: Option<String>,
    /// Write the content to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: &ReadArgs) -> anyhow::Result<ExitCode> {
    let contents = match from_service(global, args)? {
        Some(contents) => contents,
        None => from_toolbox(global, args)?,
    };
    match &args.output {
        Some(path) => {
            let bytes = bytes_of(&contents)?.concat();
            std::fs::write(path, bytes).map_err(|error| {
                let problem = format!("`{}` cannot be written: {error}", path.display());
                Failure::new(EXIT_RUNTIME, problem, "fix `--output`")
            })?;
        }
        None if global.json => print_json(&contents)?,
        None => print(&args.uri, &contents)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads by way of the running service, if there is one.
fn from_service(global: &Global, args: &ReadArgs) -> anyhow::Result<Option<Vec<Content>>> {
    let names = Vec::from_iter(args.server.clone());
    let request = Request::Servers { names, connect: true };
    let Some(Reply::Servers(servers)) = service::ask(global, &request)? else { return Ok(None) };
    let server = match &args.server {
        Some(server) => server.clone(),
        None => find(&args.uri, &listed(global, None)?)?,
    };
    require_connected(&server, &servers)?;
    let request = Request::ReadResource { server, uri: args.uri.clone() };
    match service::ask(global, &request)? {
        Some(Reply::Contents(contents)) => Ok(Some(contents)),
        _ => Err(service::unexpected()),
    }
}

fn from_toolbox(global: &Global, args: &ReadArgs) -> anyhow::Result<Vec<Content>> {
    let config = toolbox::with_servers(global, args.server.as_deref().as_slice())?;
    let read = async |runtime: &Runtime| {
        let server = match &args.server {
            Some(server) => server.clone(),
            None => find(&args.uri, &list_all(runtime).await)?,
        };
        require_connected(&server, &runtime.servers())?;
        Ok(runtime.read_resource(&server, &args.uri).await.map_err(refused)?)
    };
    block_on(async { Toolbox::open(config, Purpose::Inspect).await?.work(read).await })
}

fn require_connected(server: &str, servers: &[ServerInfo]) -> Result<(), Failure> {
    let failed = servers.iter().find(|it| it.name == server && !toolbox::answers(it));
    let Some(failed) = failed else { return Ok(()) };
    let problem = format!("`{server}` could not be asked: {}", toolbox::reason(failed));
    Err(Failure::new(EXIT_CONNECT, problem, toolbox::remedy_and_more(failed)))
}

/// The one server that lists the URI, or has a template for it.
fn find(uri: &str, listed: &Listed) -> Result<String, Failure> {
    let owner = |resource: &ResourceInfo| match resource {
        ResourceInfo::Resource { server, resource } if resource.uri == uri => Some(server.clone()),
        ResourceInfo::Resource { .. } | ResourceInfo::Template { .. } => None,
    };
    let family = |resource: &ResourceInfo| match resource {
        ResourceInfo::Template { server, template } if fits(&template.uri_template, uri) => {
            Some(server.clone())
        }
        ResourceInfo::Resource { .. } | ResourceInfo::Template { .. } => None,
    };
    let mut owners: Vec<String> = listed.resources.iter().filter_map(owner).collect();
    if owners.is_empty() {
        owners = listed.resources.iter().filter_map(family).collect();
    }
    owners.dedup();
    if owners.len() > 1 {
        let names: Vec<String> = owners.iter().map(|owner| format!("`{owner}`")).collect();
        let problem = format!("several servers have `{uri}`: {}", names.join(", "));
        return Err(Failure::new(EXIT_CONFIG, problem, "name one with `--server`"));
    }
    owners.pop().ok_or_else(|| {
        let failed = listed.servers.iter().filter(|server| toolbox::failed(server));
        let failed = failed.map(|server| (&server.name, toolbox::reason(server).to_owned()));
        let refused = listed.refused.iter();
        let refused =
            refused.map(|RefusedList { server, failure }| (server, failure.message.clone()));
        let unasked: Vec<String> = failed
            .chain(refused)
            .map(|(name, reason)| format!("`{name}` could not be asked: {reason}"))
            .collect();
        let (problem, code) = if unasked.is_empty() {
            (format!("no server lists `{uri}`"), EXIT_RUNTIME)
        } else {
            (format!("no server lists `{uri}`; {}", unasked.join("; ")), EXIT_CONNECT)
        };
        let remedy = "`haft resources list` shows every resource; `--server` names the one to ask";
        Failure::new(code, problem, remedy)
    })
}

/// Returns true if a URI can come from a template: the fixed parts in their order, something between them.
fn fits(template: &str, uri: &str) -> bool {
    let mut fixed = template.split('{').enumerate().map(|(at, part)| {
        // Behind each brace stands a variable, and behind that the next fixed part.
        if at == 0 { part } else { part.split_once('}').map_or("", |(_, fixed)| fixed) }
    });
    let Some(mut rest) = fixed.next().and_then(|start| uri.strip_prefix(start)) else {
        return false;
    };
    let fixed: Vec<&str> = fixed.collect();
    let Some((end, between)) = fixed.split_last() else { return rest.is_empty() };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(end) && rest.len() > end.len()
}

fn print(uri: &str, contents: &[Content]) -> Result<(), Failure> {
    let is_binary = contents.iter().any(|content| match content {
        Content::Resource { text, data, .. } => text.is_none() && data.is_some(),
        Content::Text { .. } | Content::Image { .. } | Content::Audio { .. } => false,
    });
    if !is_binary {
        let texts: Vec<String> =
            contents.iter().map(|block| block.as_text().into_owned()).collect();
        terminal::whole(&texts.concat());
        return Ok(());
    }
    if std::io::stdout().is_terminal() {
        let problem = format!("`{uri}` is binary and not for a terminal");
        return Err(Failure::new(EXIT_RUNTIME, problem, "write it to a file with `--output FILE`"));
    }
    terminal::bytes(&bytes_of(contents)?.concat());
    Ok(())
}

/// The bytes of each content. Base64 is read with and without its padding.
fn bytes_of(contents: &[Content]) -> Result<Vec<Vec<u8>>, Failure> {
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let base64 = GeneralPurpose::new(&base64::alphabet::STANDARD, lenient);
    let bytes = |content: &Content| match content {
        Content::Resource { text: None, data: Some(data), uri, .. } => {
            base64.decode(data).map_err(|error| {
                let problem =
                    format!("the server sent `{uri}` as something that is not base64: {error}");
                Failure::new(EXIT_RUNTIME, problem, "look at it with `--json`, and fix the server")
            })
        }
        text => Ok(text.as_text().into_owned().into_bytes()),
    };
    contents.iter().map(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_template_fits_what_can_be_made_of_it() {
        assert!(fits("test://template/{id}/data", "test://template/7/data"));
        assert!(fits("file:///{+path}", "file:///a/b"));
        assert!(fits("db://{table}/{row}", "db://t/1"));
        assert!(!fits("test://template/{id}/data", "test://template/7/date"));
        assert!(!fits("file:///{+path}", "file:///"));
        assert!(!fits("db://{table}/{row}", "db://t"));
        assert!(fits("plain://x", "plain://x") && !fits("plain://x", "plain://xy"));
    }
}
