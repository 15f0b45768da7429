//! Native records back into the words of a native file.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::At;
use super::Dialect;
use super::call_limits::{Burst, Quota, Rate};
use super::choices::{ConnectFailure, Start, Transport};
use super::compile::ServerSource;
use super::expand::literally;
use super::node::Text;
use super::quantity::{Count, CountOrZero, EnvValue, Factor, Span};
use super::raw::{RawReconnect, RawServer, RawTool, RawToolDefault};
use super::raw_metadata::{RawAnnotations, RawIcon};
use super::raw_oauth::RawOauth;
use super::read::Named;
use super::tool_overrides::FixedValue;

/// Keys and values in the order they are written; what is not set is left out.
struct Fields(Map<String, Value>);

impl Fields {
    fn add(&mut self, key: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.0.insert(key.to_owned(), value);
        }
    }

    fn done(self) -> Value {
        Value::Object(self.0)
    }
}

/// A server as an entry of `servers` in a native file of the folder `target`. What its own format
/// means and the native one does not is written out.
pub(super) fn server(source: ServerSource, target: &Path) -> Value {
    let ServerSource { name: _, raw, dialect, folder, runs_in_folder } = source;
    let paths = Paths { folder: &folder, target };
    let cwd = working_folder(&raw, runs_in_folder, &paths);
    // Taken apart, so that no new key is forgotten.
    let RawServer {
        place: _,
        broken: _,
        transport,
        description,
        command,
        args,
        cwd: _,
        env,
        env_file,
        inherit_env,
        encoding,
        sandbox,
        config,
        url,
        headers,
        oauth,
        mode,
        default_tool_config,
        on_connect_failure,
        required,
        start,
        reconnect,
        connect_timeout,
        request_timeout,
        sse_read_timeout,
        terminate_on_close,
        load_tools,
        load_prompts,
        prompts,
        list_changed,
        sampling,
        tool_allowlist,
        tool_denylist,
        tool_prefix,
        protocol,
        labels,
        rate,
        burst,
        quota,
        disabled,
    } = raw;
    let is_required = required.as_ref().is_some_and(|required| required.value);
    let on_connect_failure = on_connect_failure.map(|at| at.value).or_else(|| {
        let meant = dialect.connect_failure();
        (meant != Dialect::Native.connect_failure() && !is_required).then_some(meant)
    });
    let start = start.map(|at| at.value).or_else(|| {
        let meant = dialect.start();
        (meant != Dialect::Native.start()).then_some(meant)
    });
    let request_timeout = request_timeout.map(|at| at.value).or_else(|| {
        let meant = dialect.request_timeout_secs();
        let differs = meant != Dialect::Native.request_timeout_secs();
        differs.then(|| Span(Duration::from_secs(meant)))
    });
    let transport = transport.filter(|at| !is_implied(at.value, command.as_ref(), url.as_ref()));
    let mut fields = Fields(Map::new());
    fields.add("transport", word(transport));
    fields.add("description", plain(description));
    fields.add("command", command.map(|at| text(at.value)));
    fields.add("args", args.filter(|at| !at.value.is_empty()).map(texts));
    fields.add("cwd", cwd.map(Value::String));
    fields.add("env", env.filter(|at| !at.value.0.is_empty()).map(variables));
    fields.add("env_file", env_file.map(|at| json!(paths.seen_from_target(&at.value.text))));
    fields.add("inherit_env", word(inherit_env));
    fields.add("encoding", encoding.map(|at| text(at.value)));
    let sandbox = sandbox.map(|at| at.value.into_native(|path| paths.seen_from_target(path)));
    fields.add("sandbox", sandbox);
    fields.add("config", plain(config));
    fields.add("url", url.map(|at| text(at.value)));
    fields.add("headers", headers.filter(|at| !at.value.0.is_empty()).map(named));
    fields.add("oauth", oauth.map(|at| signing_in(at.value)));
    fields.add("mode", word(mode));
    fields.add("default_tool_config", default_tool_config.map(|at| tool_default(at.value)));
    fields.add("on_connect_failure", on_connect_failure.map(|it: ConnectFailure| json!(it)));
    fields.add("required", plain(required));
    fields.add("start", start.map(|it: Start| json!(it)));
    fields.add("reconnect", reconnect.map(|at| reconnecting(at.value)));
    fields.add("connect_timeout", span(connect_timeout));
    fields.add("request_timeout", request_timeout.map(|Span(time)| duration(time)));
    fields.add("sse_read_timeout", span(sse_read_timeout));
    fields.add("terminate_on_close", plain(terminate_on_close));
    fields.add("load_tools", plain(load_tools));
    fields.add("load_prompts", plain(load_prompts));
    fields.add("prompts", plain(prompts));
    fields.add("list_changed", word(list_changed));
    fields.add("sampling", word(sampling));
    fields.add("tool_allowlist", plain(tool_allowlist.filter(|at| !at.value.is_empty())));
    fields.add("tool_denylist", plain(tool_denylist.filter(|at| !at.value.is_empty())));
    fields.add("tool_prefix", word(tool_prefix));
    fields.add("protocol", word(protocol));
    fields.add("labels", labels.map(|at| json!(at.value)));
    limits(&mut fields, rate, burst, quota);
    fields.add("disabled", plain(disabled.filter(|at| at.value)));
    fields.done()
}

/// A command or an address implies its transport.
fn is_implied(transport: Transport, command: Option<&At<Text>>, url: Option<&At<Text>>) -> bool {
    match transport {
        Transport::Stdio => command.is_some(),
        Transport::Http => url.is_some(),
        Transport::Sse | Transport::Websocket => false,
    }
}

/// A tool as an entry of `tools`.
pub(super) fn tool(raw: RawTool) -> Value {
    let RawTool {
        place: _,
        broken: _,
        name,
        mcp,
        max_instances,
        timeout,
        parallel_capable,
        approval,
        mode,
        on_limit,
        rate,
        burst,
        quota,
        examples,
        title,
        annotations,
        icons,
        rename,
        description,
        hide_arguments,
        fixed_arguments,
        labels,
    } = raw;
    let mut fields = Fields(Map::new());
    fields.add("name", plain(name));
    fields.add("mcp", plain(mcp));
    fields.add("max_instances", max_instances.map(|At { value: Count(n), .. }| json!(n)));
    fields.add("timeout", span(timeout));
    fields.add("parallel_capable", plain(parallel_capable));
    fields.add("approval", word(approval));
    fields.add("mode", word(mode));
    fields.add("on_limit", word(on_limit));
    limits(&mut fields, rate, burst, quota);
    fields.add("examples", plain(examples));
    fields.add("title", plain(title));
    fields.add("annotations", annotations.map(|at| hints(at.value)));
    fields.add("icons", icons.map(|at| at.value.into_iter().map(icon).collect()));
    fields.add("rename", plain(rename));
    fields.add("description", plain(description));
    fields.add("hide_arguments", plain(hide_arguments));
    let shown = |(name, value): (At<String>, FixedValue)| (name.value, value.shown().clone());
    fields.add(
        "fixed_arguments",
        fixed_arguments.map(|at| at.value.0.into_iter().map(shown).collect()),
    );
    fields.add("labels", labels.map(|at| json!(at.value)));
    fields.done()
}

fn limits(
    fields: &mut Fields,
    rate: Option<At<Rate>>,
    burst: Option<At<Burst>>,
    quota: Option<At<Quota>>,
) {
    fields.add("rate", rate.map(|at| json!(at.value.to_string())));
    fields.add("burst", burst.map(|At { value: Burst(burst), .. }| json!(burst)));
    fields.add("quota", quota.map(|at| json!(at.value.to_string())));
}

fn hints(raw: RawAnnotations) -> Value {
    let RawAnnotations {
        place: _,
        broken: _,
        title,
        read_only,
        destructive,
        idempotent,
        open_world,
    } = raw;
    let mut fields = Fields(Map::new());
    fields.add("title", plain(title));
    fields.add("readOnlyHint", plain(read_only));
    fields.add("destructiveHint", plain(destructive));
    fields.add("idempotentHint", plain(idempotent));
    fields.add("openWorldHint", plain(open_world));
    fields.done()
}

fn icon(raw: RawIcon) -> Value {
    let RawIcon { place: _, broken: _, src, mime_type, sizes, theme } = raw;
    let mut fields = Fields(Map::new());
    fields.add("src", plain(src));
    fields.add("mimeType", plain(mime_type));
    fields.add("sizes", plain(sizes));
    fields.add("theme", word(theme));
    fields.done()
}

fn tool_default(raw: RawToolDefault) -> Value {
    let RawToolDefault {
        place: _,
        broken: _,
        name: _,
        max_instances,
        timeout,
        parallel_capable,
        approval,
        on_limit,
        rate,
        burst,
        quota,
    } = raw;
    let mut fields = Fields(Map::new());
    fields.add("max_instances", max_instances.map(|At { value: Count(n), .. }| json!(n)));
    fields.add("timeout", span(timeout));
    fields.add("parallel_capable", plain(parallel_capable));
    fields.add("approval", word(approval));
    fields.add("on_limit", word(on_limit));
    limits(&mut fields, rate, burst, quota);
    fields.done()
}

fn signing_in(raw: RawOauth) -> Value {
    let RawOauth {
        place: _,
        broken: _,
        grant,
        client_id,
        client_secret_env,
        client_metadata_url,
        scopes,
        issuer,
    } = raw;
    let mut fields = Fields(Map::new());
    fields.add("grant", word(grant));
    fields.add("client_id", plain(client_id));
    fields.add("client_secret_env", client_secret_env.map(|at| json!(at.value.name)));
    fields.add("client_metadata_url", plain(client_metadata_url));
    fields.add("scopes", plain(scopes));
    fields.add("issuer", plain(issuer));
    fields.done()
}

fn reconnecting(raw: RawReconnect) -> Value {
    let RawReconnect { place: _, broken: _, attempts, base, factor, max } = raw;
    let mut fields = Fields(Map::new());
    fields.add("attempts", attempts.map(|At { value: CountOrZero(n), .. }| json!(n)));
    fields.add("base", span(base));
    fields.add("factor", factor.map(|At { value: Factor(factor), .. }| json!(factor)));
    fields.add("max", span(max));
    fields.done()
}

/// Paths of the foreign file, relative to the native one.
struct Paths<'a> {
    folder: &'a Path,
    target: &'a Path,
}

impl Paths<'_> {
    /// A path that is relative to the foreign file.
    fn seen_from_target(&self, path: &str) -> String {
        // The value of a variable may be an absolute path.
        if self.folder == self.target || path.starts_with("${") {
            return path.to_owned();
        }
        let folder = literally(&self.folder.display().to_string());
        Path::new(&folder).join(path).display().to_string()
    }
}

/// A native server runs beside its file by default; one of another format may not.
fn working_folder(raw: &RawServer, runs_in_folder: bool, paths: &Paths<'_>) -> Option<String> {
    if let Some(cwd) = &raw.cwd {
        return Some(paths.seen_from_target(&cwd.value.text));
    }
    raw.command.as_ref()?;
    let mut words =
        raw.command.iter().map(|at| &at.value).chain(raw.args.iter().flat_map(|at| &at.value));
    let is_relative = |word: &Text| word.text.starts_with("./") || word.text.starts_with("../");
    let needs_folder = runs_in_folder || words.any(is_relative);
    (needs_folder && paths.folder != paths.target)
        .then(|| literally(&paths.folder.display().to_string()))
}

fn text(text: Text) -> Value {
    Value::String(text.text)
}

fn texts(At { value, .. }: At<Vec<Text>>) -> Value {
    Value::Array(value.into_iter().map(text).collect())
}

fn named(At { value: Named(entries), .. }: At<Named<Text>>) -> Value {
    Value::Object(entries.into_iter().map(|(name, value)| (name.value, text(value))).collect())
}

fn variables(At { value: Named(entries), .. }: At<Named<EnvValue>>) -> Value {
    let value = |EnvValue(value)| value.map_or(Value::Null, text);
    Value::Object(entries.into_iter().map(|(name, it)| (name.value, value(it))).collect())
}

fn word<T: serde::Serialize>(choice: Option<At<T>>) -> Option<Value> {
    choice.map(|at| json!(at.value))
}

fn plain<T: serde::Serialize>(value: Option<At<T>>) -> Option<Value> {
    value.map(|at| json!(at.value))
}

fn span(span: Option<At<Span>>) -> Option<Value> {
    span.map(|At { value: Span(time), .. }| duration(time))
}

/// `30s`, `1500ms`, or seconds with all their digits.
fn duration(time: Duration) -> Value {
    if time.subsec_nanos() == 0 {
        json!(format!("{}s", time.as_secs()))
    } else if time.subsec_nanos().is_multiple_of(1_000_000) {
        json!(format!("{}ms", time.as_millis()))
    } else {
        json!(time.as_secs_f64())
    }
}
