//! The endpoint of a server: a command with its environment, or an address with its headers.

use std::path::{Path, PathBuf};

use super::oauth;
use crate::config::Dialect;
use crate::config::choices::{InheritEnv, Transport};
use crate::config::compile::merge::ServerSource;
use crate::config::compile::pick;
use crate::config::env_file;
use crate::config::model::{Endpoint, Origin, RemoteEndpoint, Setting, StdioEndpoint};
use crate::config::node::Text;
use crate::config::parse::FILE_BYTES_MAX;
use crate::config::place::{At, Place, Problems};
use crate::config::quantity::EnvValue;
use crate::config::raw::RawServer;
use crate::config::read::Named;
use crate::config::secret::{Masked, Secret, ServerUrl, without_secrets};
use crate::config::text_file::read_plain_file;

pub(super) fn compile(source: &ServerSource, problems: &mut Problems) -> Option<Endpoint> {
    let raw = &source.raw;
    let place = &source.name.place;
    let command = raw.command.as_ref().filter(|command| !command.value.text.trim().is_empty());
    let url = raw.url.as_ref().filter(|url| !url.value.text.trim().is_empty());
    if ["transport", "command", "url"].iter().any(|key| raw.broken.contains(key)) {
        check_rest(source, problems);
        return None;
    }
    let transport = raw.transport.as_ref().map_or_else(|| guess(command, url), |at| at.value);
    match (transport, command, url) {
        (_, Some(_), Some(url)) => {
            problems.error(
                &url.place,
                format!("server `{}` has both a `command` and a `url`", source.name.value),
                "keep `command` for a local server or `url` for a remote one",
            );
            check_rest(source, problems);
            None
        }
        (Transport::Stdio, Some(_), None) => stdio(source, problems),
        (Transport::Stdio, None, _) => {
            let Keys { command, url } = keys(source.dialect);
            let place = raw.command.as_ref().map_or(place, |empty| &empty.place);
            let remedy = if source.name.place.file.starts_with('$') {
                "no file has a server of this name: fix the name in the variable, or set the \
                 server's command or url too"
                    .to_owned()
            } else {
                format!(
                    "name a program in `{command}`, such as npx with the arguments -y and a \
                     package; a remote server has a `{url}` instead"
                )
            };
            problems.error(
                place,
                format!(
                    "server `{}`: '{command}' is required for stdio transport",
                    source.name.value
                ),
                remedy,
            );
            check_rest(source, problems);
            None
        }
        (remote, _, Some(url)) => remote_endpoint(source, remote, url, problems),
        (remote, _, None) => {
            let url = keys(source.dialect).url;
            let place = raw.url.as_ref().map_or(place, |empty| &empty.place);
            problems.error(
                place,
                format!(
                    "server `{}`: '{url}' is required for {remote} transport",
                    source.name.value
                ),
                format!("set `{url}` to the server's address, such as https://HOST/mcp"),
            );
            check_rest(source, problems);
            None
        }
    }
}

/// Reports further problems of an entry without an endpoint, so that one pass shows all of its
/// problems.
fn check_rest(source: &ServerSource, problems: &mut Problems) {
    let raw = &source.raw;
    let _ = environment(raw, &source.folder, problems);
    let _ = encoding(raw.encoding.as_ref(), problems);
    let _ = headers(raw.headers.as_ref(), problems);
}

/// The format's keys for the two kinds of endpoint.
struct Keys {
    command: &'static str,
    url: &'static str,
}

fn keys(dialect: Dialect) -> Keys {
    match dialect {
        Dialect::Goose => Keys { command: "cmd", url: "uri" },
        _ => Keys { command: "command", url: "url" },
    }
}

/// The default transport: stdio for a command, and the scheme of an address.
fn guess(command: Option<&At<Text>>, url: Option<&At<Text>>) -> Transport {
    match (command, url) {
        (None, Some(url)) if url.value.text.starts_with("ws") => Transport::Websocket,
        (None, Some(_)) => Transport::Http,
        _ => Transport::Stdio,
    }
}

fn stdio(source: &ServerSource, problems: &mut Problems) -> Option<Endpoint> {
    let raw = &source.raw;
    check_no_headers(source, problems);
    without_effect(raw.oauth.as_ref().map(|at| &at.place), "oauth", "stdio", problems);
    let env = environment(raw, &source.folder, problems);
    let encoding = encoding(raw.encoding.as_ref(), problems);
    let cwd = raw.cwd.as_ref().map(|cwd| source.folder.join(&cwd.value.text));
    Some(Endpoint::Stdio(Box::new(StdioEndpoint {
        command: raw.command.clone()?.value.into(),
        args: Masked::command_line(raw.args.iter().flat_map(|args| args.value.iter().cloned())),
        cwd: cwd.or_else(|| own_folder(source)),
        env,
        env_file: raw.env_file.as_ref().map(|file| source.folder.join(&file.value.text)),
        inherit_env: pick(raw.inherit_env.clone(), InheritEnv::Safe),
        encoding: encoding?,
    })))
}

/// Headers cannot be sent over stdio. Three formats define such an entry as invalid; other clients,
/// in whose files it occurs, ignore them.
fn check_no_headers(source: &ServerSource, problems: &mut Problems) {
    let Some(At { place, .. }) = &source.raw.headers else { return };
    match source.dialect {
        Dialect::AgentYaml | Dialect::McpServers | Dialect::Toolbox => problems.error(
            place,
            format!(
                "server `{}`: `headers` cannot be sent over stdio transport",
                source.name.value
            ),
            "delete `headers` and pass credentials in `env`, or reach the server by `url`",
        ),
        _ => without_effect(Some(place), "headers", "stdio", problems),
    }
}

/// The folder of the file, if the format uses it; a document without a file has none.
fn own_folder(source: &ServerSource) -> Option<PathBuf> {
    let is_named = !source.folder.as_os_str().is_empty();
    (source.runs_in_folder && is_named).then(|| source.folder.clone())
}

/// The variables of `env_file`, then those of `env`, which win.
fn environment(
    raw: &RawServer,
    folder: &Path,
    problems: &mut Problems,
) -> Vec<(String, Option<Secret>)> {
    let mut variables: Vec<(String, Option<Secret>)> = Vec::new();
    if let Some(At { value: file, place }) = &raw.env_file {
        let path = folder.join(&file.text);
        // A terminal or a pipe would hold the load for as long as its other side likes.
        let parsed = read_plain_file(&path, FILE_BYTES_MAX).and_then(|text| env_file::parse(&text));
        match parsed {
            Ok(parsed) => variables
                .extend(parsed.into_iter().map(|(name, value)| (name, Some(Secret::new(value))))),
            Err(problem) => problems.error(
                place,
                format!(
                    "the env file `{}` cannot be read: {problem}",
                    folder.join(file.shown()).display()
                ),
                "fix the path (it is relative to this file) or the file",
            ),
        }
    }
    for (name, EnvValue(value)) in raw.env.iter().flat_map(|env| &env.value.0) {
        if name.value.is_empty() || name.value.contains(['=', '\0']) {
            problems.error(
                &name.place,
                format!("`{}` cannot be the name of a variable", name.value.escape_debug()),
                "use letters, digits and `_`",
            );
            continue;
        }
        variables.retain(|(known, _)| *known != name.value);
        let value = value.as_ref().map(|text| Secret::new(text.text.clone()));
        variables.push((name.value.clone(), value));
    }
    variables
}

fn encoding(raw: Option<&At<Text>>, problems: &mut Problems) -> Option<Setting<&'static str>> {
    let Some(At { value, place }) = raw else {
        return Some(Setting::default("UTF-8"));
    };
    // Python's spellings (`latin-1`, `utf_8`) are as common in these files as the web's labels.
    let label = value.text.to_lowercase().replace('_', "-").replace("latin-1", "latin1");
    if let Some(encoding) = encoding_rs::Encoding::for_label(label.as_bytes()) {
        Some(Setting { value: encoding.name(), origin: Origin::Explicit(place.clone()) })
    } else {
        problems.error(
            place,
            format!("`{}` is not a known text encoding", value.shown()),
            "use a name such as `utf-8`, `latin-1`, `utf-16le` or `shift_jis`",
        );
        None
    }
}

fn remote_endpoint(
    source: &ServerSource,
    transport: Transport,
    url: &At<Text>,
    problems: &mut Problems,
) -> Option<Endpoint> {
    let raw = &source.raw;
    for (key, place) in stdio_only(raw) {
        without_effect(place, key, transport.word(), problems);
    }
    let headers = headers(raw.headers.as_ref(), problems);
    let url = check_url(source, transport, url, problems)?;
    let headers = headers?;
    let oauth = raw.oauth.as_ref().map(|raw| oauth::compile(&source.name.value, raw, problems));
    let is_authorization = |(name, _): &(String, _)| name.eq_ignore_ascii_case("authorization");
    if let Some(At { place, .. }) = &raw.oauth
        && headers.iter().any(is_authorization)
    {
        problems.error(
            place,
            format!(
                "server `{}` has both `oauth` and an `Authorization` header",
                source.name.value
            ),
            "keep one: the header is a token of its own",
        );
    }
    let remote = RemoteEndpoint { url, headers, oauth };
    match transport {
        Transport::Http => Some(Endpoint::Http(remote)),
        Transport::Sse => Some(Endpoint::Sse(remote)),
        Transport::Websocket => Some(Endpoint::Websocket(remote)),
        Transport::Stdio => None,
    }
}

fn check_url(
    source: &ServerSource,
    transport: Transport,
    At { value, place }: &At<Text>,
    problems: &mut Problems,
) -> Option<ServerUrl> {
    let server = &source.name.value;
    let schemes = if transport == Transport::Websocket { ["ws", "wss"] } else { ["http", "https"] };
    let shown = without_secrets(value.shown());
    let remedy = format!("write {}://HOST/PATH or {}://HOST/PATH", schemes[0], schemes[1]);
    match url::Url::parse(value.text.trim()) {
        Ok(url) if schemes.contains(&url.scheme()) && url.has_host() => {
            let is_open = source.dialect == Dialect::AgentYaml && is_open_and_remote(&url);
            let url = ServerUrl::written(url, value);
            if is_open {
                let problem = format!(
                    "server `{server}`: `{url}` is not encrypted; everything sent there can be read on \
                     the way"
                );
                problems.warn(place, problem, "use https://, or a server on localhost");
            }
            Some(url)
        }
        Ok(url) => {
            let scheme = url.scheme();
            problems.error(
                place,
                format!(
                    "server `{server}`: `{}` is not an address for {transport}: its scheme is `{scheme}`",
                    ServerUrl::written(url.clone(), value)
                ),
                remedy,
            );
            None
        }
        Err(error) => {
            problems.error(
                place,
                format!("server `{server}`: `{shown}` is not a valid URL: {error}"),
                remedy,
            );
            None
        }
    }
}

/// Returns true if requests leave this machine unencrypted.
fn is_open_and_remote(url: &url::Url) -> bool {
    let local = ["localhost", "127.0.0.1", "[::1]"];
    matches!(url.scheme(), "http" | "ws")
        && !url.host_str().is_some_and(|host| local.contains(&host))
}

fn headers(
    raw: Option<&At<Named<Text>>>,
    problems: &mut Problems,
) -> Option<Vec<(String, Secret)>> {
    let mut headers: Vec<(String, Secret)> = Vec::new();
    let mut valid = true;
    for (name, value) in raw.iter().flat_map(|headers| &headers.value.0) {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let problem = if name.value.is_empty() || !name.value.bytes().all(token) {
            format!("`{}` cannot be the name of a header", name.value.escape_debug())
        } else if value.text.chars().any(|c| c.is_control() && c != '\t') {
            format!(
                "the value of header `{}` contains a line break or control character",
                name.value
            )
        } else if headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name.value)) {
            format!("the header `{}` is given twice", name.value)
        } else {
            headers.push((name.value.clone(), Secret::new(value.text.clone())));
            continue;
        };
        valid = false;
        problems.error(&name.place, problem, "write `Name: value`, each name once");
    }
    valid.then_some(headers)
}

fn stdio_only(raw: &RawServer) -> [(&'static str, Option<&Place>); 6] {
    [
        ("args", raw.args.as_ref().filter(|args| !args.value.is_empty()).map(|at| &at.place)),
        ("cwd", raw.cwd.as_ref().map(|at| &at.place)),
        ("env", raw.env.as_ref().filter(|env| !env.value.0.is_empty()).map(|at| &at.place)),
        ("env_file", raw.env_file.as_ref().map(|at| &at.place)),
        ("inherit_env", raw.inherit_env.as_ref().map(|at| &at.place)),
        ("encoding", raw.encoding.as_ref().map(|at| &at.place)),
    ]
}

fn without_effect(place: Option<&Place>, key: &str, transport: &str, problems: &mut Problems) {
    if let Some(place) = place {
        let problem = format!("`{key}` has no effect on a server with {transport} transport");
        problems.warn(place, problem, format!("delete `{key}`"));
    }
}
