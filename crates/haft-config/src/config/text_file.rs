//! Reading text files within limits.

use std::io::Read;
use std::path::Path;

use super::parse::FILE_BYTES_MAX;

/// Reads a file up to the maximum size of a configuration.
pub fn read_file(path: &Path) -> Result<String, String> {
    // Opening a pipe waits for a writer, and there may be none. A pipe that a shell passes in
    // `/dev/fd` has a writer.
    let kind = std::fs::metadata(path).map_err(|error| error.to_string())?.file_type();
    if !kind.is_file() && !path.starts_with("/dev") && !path.starts_with("/proc/self/fd") {
        return Err("it is not a file".to_owned());
    }
    read_up_to(path, FILE_BYTES_MAX)
}

/// Reads a regular file of at most `bytes_max` bytes. Nothing else is opened: a pipe may have no
/// writer, and a device no end.
pub fn read_plain_file(path: &Path, bytes_max: u64) -> Result<String, String> {
    let kind = std::fs::metadata(path).map_err(|error| error.to_string())?.file_type();
    if !kind.is_file() {
        return Err("it is not a file".to_owned());
    }
    read_up_to(path, bytes_max)
}

fn read_up_to(path: &Path, bytes_max: u64) -> Result<String, String> {
    // A device has no length, and a file may grow, so the read itself is bounded.
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("it has more than {bytes_max} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].split(|byte| *byte == b'\n').count();
        format!("it is not UTF-8 (line {line})")
    })
}
