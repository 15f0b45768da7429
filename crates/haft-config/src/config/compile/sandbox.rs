//! `sandbox`: what cannot be enforced is refused here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::explicit;
use crate::config::bytes::ByteCount;
use crate::config::choices::Sandbox;
use crate::config::model::{Config, Origin, Setting};
use crate::config::node::Text;
use crate::config::place::{At, Place, Problems};
use crate::config::quantity::{Count, Span};
use crate::config::raw_sandbox::{RawNetwork, RawSandbox, SandboxEntry};
use crate::config::sandbox::{ResourceLimits, SandboxConfig, SandboxNetwork, plain_path};

/// Origin of the sandbox of an entry that has none of its own.
const FROM_DEFAULTS: &str = "defaults.sandbox";
/// With less, an interpreter does not start.
const MEMORY_MIN: u64 = 16 << 20;
/// With fewer, an interpreter does not start.
const OPEN_FILES_MIN: u32 = 16;

/// The sandbox of an entry: its own, otherwise that of `defaults`.
pub(super) fn compile_or(
    raw: Option<At<SandboxEntry>>,
    defaults: &Setting<SandboxConfig>,
    folder: &Path,
    problems: &mut Problems,
) -> Setting<SandboxConfig> {
    match raw {
        Some(raw) => compile(raw, folder, problems),
        None if defaults.origin == Origin::Default => defaults.clone(),
        None => Setting { value: defaults.value.clone(), origin: Origin::Implied(FROM_DEFAULTS) },
    }
}

/// Compiles a sandbox. Its paths are relative to `folder`.
pub(super) fn compile(
    raw: At<SandboxEntry>,
    folder: &Path,
    problems: &mut Problems,
) -> Setting<SandboxConfig> {
    explicit(raw, |SandboxEntry(raw)| {
        let RawSandbox {
            place,
            broken,
            kind,
            read,
            write,
            network,
            memory,
            processes,
            open_files,
            cpu,
        } = raw;
        if kind.is_none() && !broken.contains(&"kind") {
            problems.error(
                &place.below("kind"),
                "the sandbox does not say its `kind`",
                "add `kind: landlock`, `kind: bubblewrap`, or `kind: none` for limits alone",
            );
        }
        let kind = kind.map_or(Sandbox::None, |at| at.value);
        if kind == Sandbox::None {
            let lists = [
                ("read", read.as_ref().map(|at| &at.place)),
                ("write", write.as_ref().map(|at| &at.place)),
                ("network", network.as_ref().map(|at| &at.place)),
            ];
            for (key, place) in lists.into_iter().filter_map(|(key, at)| Some((key, at?))) {
                problems.error(
                    place,
                    format!("`{key}` cannot be enforced with `kind: none`"),
                    format!("set `kind` to `landlock` or `bubblewrap`, or delete `{key}`"),
                );
            }
        }
        SandboxConfig {
            kind,
            read: paths(read, folder, problems),
            write: paths(write, folder, problems),
            network: self::network(kind, network, problems),
            limits: ResourceLimits {
                memory: memory.map(|at| self::memory(&at, problems)),
                processes: processes.map(|at| at.value.0),
                open_files: open_files.map(|at| self::open_files(&at, problems)),
                cpu: cpu.map(|at| whole_seconds(&at)),
            },
        }
    })
}

fn network(kind: Sandbox, raw: Option<At<RawNetwork>>, problems: &mut Problems) -> SandboxNetwork {
    match (kind, raw.map(|at| (at.value, at.place))) {
        (Sandbox::None, _) | (_, Some((RawNetwork::All, _))) => SandboxNetwork::All,
        (_, None | Some((RawNetwork::None, _))) => SandboxNetwork::None,
        (Sandbox::Landlock, Some((RawNetwork::Ports(ports), _))) => SandboxNetwork::Ports(ports),
        (Sandbox::Bubblewrap, Some((RawNetwork::Ports(_), place))) => {
            problems.error(
                &place,
                "bubblewrap cannot restrict the network to ports",
                "use `network: none` or `network: all`, or `kind: landlock`",
            );
            SandboxNetwork::None
        }
    }
}

fn paths(raw: Option<At<Vec<At<Text>>>>, folder: &Path, problems: &mut Problems) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for At { value, place } in raw.map(|at| at.value).unwrap_or_default() {
        if value.text.is_empty() || value.text.contains('\0') {
            problems.error(&place, "the path is empty", "name a file or a folder");
        } else if value.text.starts_with('~') {
            problems.error(
                &place,
                format!("`~` is not replaced in `{}`", value.shown()),
                "write ${HOME}, or the whole path",
            );
        } else {
            paths.push(plain_path(&folder.join(&value.text)));
        }
    }
    paths
}

fn memory(at: &At<ByteCount>, problems: &mut Problems) -> u64 {
    let ByteCount(bytes) = at.value;
    if bytes < MEMORY_MIN {
        problems.error(
            &at.place,
            format!("`memory` is {bytes} bytes, less than {MEMORY_MIN}"),
            "write 16MiB or more, or delete `memory`",
        );
    }
    bytes
}

fn open_files(at: &At<Count>, problems: &mut Problems) -> u32 {
    let Count(number) = at.value;
    if number < OPEN_FILES_MIN {
        problems.error(
            &at.place,
            format!("`open_files` is {number}, less than {OPEN_FILES_MIN}"),
            format!("write {OPEN_FILES_MIN} or more, or delete `open_files`"),
        );
    }
    number
}

/// The kernel counts processor time in seconds.
fn whole_seconds(at: &At<Span>) -> Duration {
    let Span(time) = at.value;
    Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

/// Refuses sandboxes that let a program write files of Haft: it could change its own sandbox.
pub(super) fn refuse_own_files(config: &Config, problems: &mut Problems) {
    let own = config.own_files();
    let servers = config.servers.iter().map(|server| &server.sandbox);
    let local = config.local.iter().map(|tool| &tool.sandbox);
    let code = &config.builtin.code_execution.sandbox;
    let all = servers.chain(local).chain([&*config.defaults.sandbox, code]);
    let mut reported: Vec<(&Place, &Path)> = Vec::new();
    for Setting { value: sandbox, origin } in all {
        let Origin::Explicit(place) = origin else { continue };
        for path in &sandbox.write {
            let Some(file) =
                own.iter().find(|own| own.starts_with(path) || path.starts_with(own.as_path()))
            else {
                continue;
            };
            if reported.contains(&(place, path)) {
                continue;
            }
            reported.push((place, path));
            problems.error(
                place,
                format!(
                    "the sandbox lets a program write `{}`, which holds files of Haft: `{}`",
                    path.display(),
                    file.display()
                ),
                "list folders that hold no files of Haft, or move `state_dir` and `log.dir`",
            );
        }
    }
}
