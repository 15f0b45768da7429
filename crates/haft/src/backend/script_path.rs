//! Resolves the path of a tool's script, which must lie inside the tools directory.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::config::script_path::check_spelling;
use crate::error::ToolFailure;

/// Returns the real path of the script, with links resolved. Called whenever a script is loaded, because a path
/// inside the tools directory may have become a link to another place.
pub fn resolve(tools_dir: &Path, script_path: &str) -> Result<PathBuf, ToolFailure> {
    check_spelling(script_path).map_err(|problem| refused(script_path, &problem))?;
    let root = tools_dir.canonicalize().map_err(|error| unreadable_root(tools_dir, &error))?;
    let spelled = root.join(script_path);
    let path = spelled.canonicalize().map_err(|error| unreadable(&spelled, &error))?;
    if !path.starts_with(&root) {
        let problem = format!("it is a link that leads out of `{}`", root.display());
        return Err(refused(script_path, &problem));
    }
    let metadata = path.metadata().map_err(|error| unreadable(&spelled, &error))?;
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { "a directory" } else { "not a regular file" };
        return Err(refused(script_path, &format!("`{}` is {kind}", path.display())));
    }
    Ok(path)
}

fn refused(script_path: &str, problem: &str) -> ToolFailure {
    ToolFailure::Execution {
        message: format!("the script path `{}` is refused: {problem}", script_path.escape_debug()),
        remedy: Some(
            "set `script_path` to a file below the tools directory, such as `weather.py`".into(),
        ),
        details: json!({ "script_path": script_path }),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> ToolFailure {
    let shown = path.display();
    let (message, remedy) = match error.kind() {
        io::ErrorKind::NotFound => (
            format!("the script `{shown}` does not exist"),
            "put the file there, or correct `script_path`",
        ),
        _ => (
            format!("the script `{shown}` cannot be reached: {error}"),
            "check the permissions of the file and of the directories above it",
        ),
    };
    ToolFailure::Execution {
        message,
        remedy: Some(remedy.into()),
        details: json!({ "path": path }),
    }
}

fn unreadable_root(tools_dir: &Path, error: &io::Error) -> ToolFailure {
    ToolFailure::Execution {
        message: format!("the tools directory `{}` cannot be used: {error}", tools_dir.display()),
        remedy: Some("create the directory, or correct its path in the configuration".into()),
        details: json!({ "path": tools_dir }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn problem(tools_dir: &Path, script_path: &str) -> String {
        resolve(tools_dir, script_path).unwrap_err().to_string()
    }

    /// Proves the path-traversal row of the attacks.
    #[test]
    fn no_spelling_leaves_the_tools_directory() {
        for (script_path, expected) in [
            ("", "it is empty"),
            ("../secret.py", "it contains `..`"),
            ("a/../../secret.py", "it contains `..`"),
            ("..", "it contains `..`"),
            ("/etc/passwd", "it is absolute, not relative to the tools directory"),
            ("tool.py ", "it begins or ends with white space"),
            (" tool.py", "it begins or ends with white space"),
            ("tool.py\u{a0}", "it begins or ends with white space"),
            ("tool.py\0.txt", "it contains a control character"),
            ("to\nol.py", "it contains a control character"),
        ] {
            assert_eq!(check_spelling(script_path), Err(expected.into()), "{script_path:?}");
        }
        for script_path in ["tool.py", "./tool.py", "sub/tool.py", "..py", "a b.py", "도구.py"] {
            assert_eq!(check_spelling(script_path), Ok(()), "{script_path:?}");
        }
    }

    /// Proves the symlink-swap part of the same row: the link is resolved again at each call.
    #[test]
    fn a_link_is_followed_only_inside() {
        let outside = tempfile::tempdir().unwrap();
        let tools = tempfile::tempdir().unwrap();
        let root = tools.path().canonicalize().unwrap();
        fs::write(outside.path().join("secret.py"), "").unwrap();
        fs::write(root.join("tool.py"), "").unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        symlink("../tool.py", root.join("sub/link.py")).unwrap();
        assert_eq!(resolve(&root, "sub/link.py").unwrap(), root.join("tool.py"));

        fs::remove_file(root.join("sub/link.py")).unwrap();
        symlink(outside.path().join("secret.py"), root.join("sub/link.py")).unwrap();
        symlink(outside.path(), root.join("away")).unwrap();
        for script_path in ["sub/link.py", "away/secret.py"] {
            let expected = format!(
                "the script path `{script_path}` is refused: it is a link that leads out of `{}`",
                root.display()
            );
            assert_eq!(problem(&root, script_path), expected);
        }
    }

    /// Proves S2-EC-08 for everything that is not a script.
    #[test]
    fn what_is_no_file_is_named() {
        let tools = tempfile::tempdir().unwrap();
        let root = tools.path().canonicalize().unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("tool.py"), "").unwrap();
        let here = root.display();
        assert_eq!(
            problem(&root, "gone.py"),
            format!("the script `{here}/gone.py` does not exist")
        );
        assert_eq!(
            problem(&root, "sub"),
            format!("the script path `sub` is refused: `{here}/sub` is a directory")
        );
        assert!(problem(&root, "tool.py/").contains("names a folder"));
        assert!(problem(&root.join("none"), "tool.py").starts_with("the tools directory `"));
    }
}
