//! `sandbox` as written: one word, or a record.

use serde_json::{Value, json};

use super::bytes::ByteCount;
use super::choices::Sandbox;
use super::node::{Node, NodeValue, Text};
use super::place::At;
use super::quantity::{Count, Span, shown};
use super::read::{FromNode, Reader, record};

record! {
    /// `sandbox`.
    pub struct RawSandbox("`sandbox`", Reject) {
        /// The mechanism: `landlock` (Linux 6.7, without further programs), `bubblewrap` (the program
        /// `bwrap`), or `none` for resource limits alone.
        kind("kind"): Sandbox,
        /// Files and folders that the program may read, relative to this file, besides system folders, its
        /// own folder and its working directory. `/` means the whole machine.
        read("read"): Vec<At<Text>>,
        /// Files and folders that it may read and write, relative to this file, besides a temporary folder
        /// of its own.
        write("write"): Vec<At<Text>>,
        /// The network it may use: `none` (the default), `all`, or with `landlock` a list of TCP ports that it
        /// may connect to.
        network("network"): RawNetwork,
        /// Private memory of each process, such as `512MB`.
        memory("memory"): ByteCount,
        /// Maximum number of processes and threads. Not available to root.
        processes("processes"): Count,
        /// Maximum number of open files of each process.
        open_files("open_files"): Count,
        /// Processor time of each process, in whole seconds.
        cpu("cpu"): Span,
    }
}

/// A record, or one word that stands for a record with that `kind` alone. A later file replaces it as a
/// whole: half a sandbox is another one.
#[derive(Debug, Clone)]
pub struct SandboxEntry(pub RawSandbox);

impl FromNode for SandboxEntry {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        if !matches!(node.value, NodeValue::Text(_)) {
            return RawSandbox::read(node, reader).map(Self);
        }
        // The word itself has the place of the setting, not of a key inside it.
        let place = reader.place(node);
        let kind = Sandbox::read(node, reader)?;
        let kind = Some(At { value: kind, place: place.clone() });
        Some(Self(RawSandbox { kind, ..RawSandbox::empty(place) }))
    }

    fn schema() -> Value {
        let mut schema = RawSandbox::schema();
        schema["type"] = json!(["object", "string"]);
        schema["examples"] = json!(["landlock", "bubblewrap", "none"]);
        schema
    }
}

/// `network` of a sandbox.
#[derive(Debug, Clone)]
pub enum RawNetwork {
    /// `none`.
    None,
    /// `all`.
    All,
    /// TCP ports.
    Ports(Vec<u16>),
}

impl FromNode for RawNetwork {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::Text(text) if text.text == "none" => Some(Self::None),
            NodeValue::Text(text) if text.text == "all" => Some(Self::All),
            NodeValue::List(items) if !items.is_empty() => {
                let ports: Vec<Option<u16>> = items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| reader.inside(format!("[{at}]"), |reader| port(item, reader)))
                    .collect();
                ports.into_iter().collect::<Option<Vec<u16>>>().map(Self::Ports)
            }
            _ => {
                let problem = format!("{} is not a network of a sandbox", shown(node));
                let remedy = "use `none`, `all`, or a list of TCP ports such as [443]";
                reader.error(node, problem, remedy);
                None
            }
        }
    }

    fn schema() -> Value {
        json!({ "type": ["string", "array"], "examples": ["none", "all", [443]] })
    }
}

fn port(node: &Node, reader: &mut Reader<'_>) -> Option<u16> {
    let port = match &node.value {
        NodeValue::Number(text) => text.parse::<u16>().ok().filter(|port| *port > 0),
        _ => None,
    };
    if port.is_none() {
        let problem = format!("{} is not a TCP port", shown(node));
        let remedy =
            "write port numbers such as 443; the kernel cannot restrict connections to hosts";
        reader.error(node, problem, remedy);
    }
    port
}

impl SandboxEntry {
    /// The entry as a native file spells it. `path` rewrites a path for the folder of that file.
    pub(super) fn into_native(self, path: impl Fn(&str) -> String) -> Value {
        let RawSandbox {
            place: _,
            broken: _,
            kind,
            read,
            write,
            network,
            memory,
            processes,
            open_files,
            cpu,
        } = self.0;
        let paths = |list: Option<At<Vec<At<Text>>>>| {
            list.map(|at| at.value.iter().map(|it| json!(path(&it.value.text))).collect())
        };
        let network = network.map(|at| match at.value {
            RawNetwork::None => json!("none"),
            RawNetwork::All => json!("all"),
            RawNetwork::Ports(ports) => json!(ports),
        });
        let fields: [(&str, Option<Value>); 8] = [
            ("kind", kind.map(|at| json!(at.value))),
            ("read", paths(read)),
            ("write", paths(write)),
            ("network", network),
            ("memory", memory.map(|at| json!(at.value.0))),
            ("processes", processes.map(|at| json!(at.value.0))),
            ("open_files", open_files.map(|at| json!(at.value.0))),
            ("cpu", cpu.map(|at| json!(at.value.0.as_secs_f64()))),
        ];
        fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}
