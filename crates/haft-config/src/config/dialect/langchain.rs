//! The dictionary of LangChain's `MultiServerMCPClient`: names at the root.

use super::{Layer, set_servers};
use crate::config::choices::Transport;
use crate::config::node::{Node, Text};
use crate::config::quantity::{EnvValue, Span};
use crate::config::raw::RawServer;
use crate::config::read::{FromNode, Named, Reader, record};

record! {
    struct RawEntry("a server", Warn) {
        /// The transport of the server.
        transport("transport"): Transport,
        /// The program to start.
        command("command"): Text,
        /// Its arguments.
        args("args"): Vec<Text>,
        /// Variables for its environment.
        env("env"): Named<EnvValue>,
        /// Its working directory.
        cwd("cwd"): Text,
        /// The text encoding of its input and output.
        encoding("encoding"): Text,
        /// The address of a remote server.
        url("url"): Text,
        /// HTTP headers.
        headers("headers"): Named<Text>,
        /// Time limit for connecting.
        timeout("timeout"): Span,
        /// Maximum idle time of an event stream.
        sse_read_timeout("sse_read_timeout"): Span,
        /// True if the session is ended on close.
        terminate_on_close("terminate_on_close"): bool,
    }
}

pub(super) fn read(root: &Node, layer: &mut Layer, reader: &mut Reader<'_>) {
    let place = reader.place(root);
    let Some(Named(entries)) = Named::<RawEntry>::read(root, reader) else {
        return;
    };
    let servers = entries.into_iter().map(|(name, entry)| (name, native(entry))).collect();
    set_servers(layer, servers, place);
}

fn native(entry: RawEntry) -> RawServer {
    RawServer {
        transport: entry.transport,
        command: entry.command,
        args: entry.args,
        env: entry.env,
        cwd: entry.cwd,
        encoding: entry.encoding,
        url: entry.url,
        headers: entry.headers,
        connect_timeout: entry.timeout,
        sse_read_timeout: entry.sse_read_timeout,
        terminate_on_close: entry.terminate_on_close,
        broken: entry.broken,
        ..RawServer::empty(entry.place)
    }
}
