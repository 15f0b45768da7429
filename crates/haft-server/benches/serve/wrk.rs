//! `wrk`, and what it prints.

use std::path::Path;
use std::process::Command;

use super::Failure;

/// The measurements of one run of `wrk`.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) per_second: f64,
    pub(crate) p50: String,
    pub(crate) p99: String,
}

/// Posts a body again and again.
pub(crate) fn post(
    url: &str,
    key: &str,
    body: &str,
    connections: u32,
    secs: u32,
    folder: &Path,
) -> Result<Run, Failure> {
    let script = folder.join("post.lua");
    std::fs::write(
        &script,
        format!(
            "wrk.method = 'POST'\nwrk.body = '{body}'\n\
             wrk.headers['Content-Type'] = 'application/json'\nwrk.headers['X-API-Key'] = '{key}'\n"
        ),
    )?;
    let output = Command::new("wrk")
        .args(["--threads", "1", "--latency"])
        .args(["--connections", &connections.to_string(), "--duration", &format!("{secs}s")])
        .arg("--script")
        .arg(&script)
        .arg(url)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    if !output.status.success() || text.contains("Non-2xx") || text.contains("Socket errors") {
        return Err(format!("wrk: {text}{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let after = |label: &str| {
        let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix(label));
        line.map(|rest| rest.trim().to_owned()).ok_or_else(|| format!("no `{label}` in {text}"))
    };
    Ok(Run { per_second: after("Requests/sec:")?.parse()?, p50: after("50%")?, p99: after("99%")? })
}
