//! The spelling of a script's path.

use std::path::{Component, Path};

/// Checks, without disk access, that the path is relative and stays below the tools directory. The
/// error completes the sentence "the script path is refused: ...".
pub fn check_spelling(script_path: &str) -> Result<(), String> {
    if script_path.is_empty() {
        return Err("it is empty".into());
    }
    if script_path.trim() != script_path {
        return Err("it begins or ends with white space".into());
    }
    if script_path.chars().any(char::is_control) {
        return Err("it contains a control character".into());
    }
    for component in Path::new(script_path).components() {
        match component {
            Component::Normal(_) | Component::CurDir => {}
            Component::ParentDir => return Err("it contains `..`".into()),
            Component::RootDir | Component::Prefix(_) => {
                return Err("it is absolute, not relative to the tools directory".into());
            }
        }
    }
    if script_path == "." || script_path.ends_with('/') || script_path.ends_with("/.") {
        return Err("it names a folder".into());
    }
    Ok(())
}
