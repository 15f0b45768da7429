//! The marker in the environment that identifies descendants, even after they left the group.

use std::ffi::OsString;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use super::ProcessScope;

/// The environment variable that every child of Haft carries and passes on to its own children.
///
/// Its value is a list of `<token>.<scope>.<number>:`, the innermost Haft last: a Haft that runs as
/// a child of another one adds its own entry and keeps the outer one, so both find their
/// descendants.
pub const MARKER_VARIABLE: &str = "HAFT_TREE";

/// The marker of one child of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Marker {
    pub(super) scope: ProcessScope,
    number: u64,
}

impl Marker {
    /// Creates a unique marker.
    pub(super) fn next(scope: ProcessScope) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { scope, number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// The value of [`MARKER_VARIABLE`] for the child.
    pub(super) fn value(self) -> OsString {
        let mut value = std::env::var_os(MARKER_VARIABLE).unwrap_or_default();
        value.push(format!("{}{}.{}:", instance_prefix(), self.scope.number(), self.number));
        value
    }

    /// Finds the marker of this Haft in the environment of a process (entries end in NUL).
    pub(super) fn find(environment: &[u8]) -> Option<Self> {
        let entry = environment
            .split(|&byte| byte == 0)
            .find_map(|entry| entry.strip_prefix(MARKER_VARIABLE.as_bytes())?.strip_prefix(b"="))?;
        std::str::from_utf8(entry)
            .ok()?
            .split(':')
            .find_map(|mark| Self::parse(mark.strip_prefix(instance_prefix())?))
    }

    fn parse(mark: &str) -> Option<Self> {
        let (scope, number) = mark.split_once('.')?;
        let scope = ProcessScope::with_number(scope.parse().ok()?);
        Some(Self { scope, number: number.parse().ok()? })
    }
}

/// The prefix of every marker of this process, unique among processes: a random token and a dot.
pub(super) fn instance_prefix() -> &'static str {
    static PREFIX: OnceLock<String> = OnceLock::new();
    PREFIX.get_or_init(|| format!("{}.", Uuid::now_v7().simple()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_in_its_own_environment_only() {
        let marker = Marker::next(ProcessScope::new());
        let value = marker.value().into_string().unwrap();
        let found = |environment: String| Marker::find(environment.as_bytes());
        assert_eq!(found(format!("A=1\0HAFT_TREE={value}\0B=2\0")), Some(marker));
        assert_eq!(found(format!("HAFT_TREE=0123.1.1:{value}\0")), Some(marker), "nested");
        assert_eq!(found(format!("HAFT_TREE={value}ffff.1.1:\0")), Some(marker), "outer");
        assert_eq!(found(format!("OTHER={value}\0")), None);
        assert_eq!(found("HAFT_TREE=0123.1.1:\0".into()), None);
        assert_eq!(found(String::new()), None);
    }
}
