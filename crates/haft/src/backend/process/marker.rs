//! The mark in the environment by which a descendant is known, however far it moved away.

use std::ffi::OsString;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use super::Household;

/// The environment variable that every child of Haft carries and hands on to its own children.
///
/// Its value is a list of `<token>.<household>.<number>:`, the innermost Haft last: a Haft that runs as a child
/// of another one adds its own entry and keeps the outer one, so both find their descendants.
pub const MARKER_VARIABLE: &str = "HAFT_TREE";

/// The mark of one child of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Marker {
    pub(super) household: Household,
    number: u64,
}

impl Marker {
    /// A mark that no other child has.
    pub(super) fn next(household: Household) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { household, number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// What the child finds in [`MARKER_VARIABLE`].
    pub(super) fn value(self) -> OsString {
        let mut value = std::env::var_os(MARKER_VARIABLE).unwrap_or_default();
        value.push(format!("{}{}.{}:", instance_prefix(), self.household.number(), self.number));
        value
    }

    /// The mark of a process of this Haft, found in its environment (entries end in NUL).
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
        let (household, number) = mark.split_once('.')?;
        let household = Household::with_number(household.parse().ok()?);
        Some(Self { household, number: number.parse().ok()? })
    }
}

/// What every mark of this process begins with, and no mark of any other: a random token, a dot.
pub(super) fn instance_prefix() -> &'static str {
    static PREFIX: OnceLock<String> = OnceLock::new();
    PREFIX.get_or_init(|| format!("{}.", Uuid::now_v7().simple()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_in_its_own_environment_only() {
        let marker = Marker::next(Household::new());
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
