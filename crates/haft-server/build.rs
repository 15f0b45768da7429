//! Compresses the built console and lists its files, so that the binary embeds them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The folder that `npm run build` in `console/` writes.
const BUILT: &str = "console";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={BUILT}");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join(BUILT);
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut files = Vec::new();
    collect(&root, &root, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for (number, name) in files.iter().enumerate() {
        let target = out.join(format!("{number}.gz"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&fs::read(root.join(name))?)?;
        fs::write(&target, encoder.finish()?)?;
        // Quoted as Rust writes a string.
        let target = target.to_string_lossy();
        writeln!(table, "    ({name:?}, include_bytes!({target:?})),").map_err(io::Error::other)?;
    }
    table.push_str("]\n");
    fs::write(out.join("console.rs"), table)
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if let Ok(name) = path.strip_prefix(root) {
            files.push(name.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}
