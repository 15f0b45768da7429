//! Child processes that leave nothing behind.
//!
//! Three mechanisms, each for what the previous one misses: the process group of the child, the
//! marker that all its descendants inherit in their environment, and a watchdog outside Haft for
//! the case that Haft itself is killed. While its parent lives, a descendant is also found through
//! that parent, regardless of its group and its environment.
//!
//! A tree that outlives a call (a warm Python worker) is compared with its state before the call;
//! see [`Leftovers`].
//!
//! The limit: a descendant that left its group, cleared its environment *and* lost its parent
//! before a scan has no trace that leads to Haft. It survives. Becoming the parent of such orphans
//! (`PR_SET_CHILD_SUBREAPER`) is a setting of the whole process: a program that embeds Haft would
//! have to reap every orphan of its other children too, and with two runtimes in one process the
//! owner of an orphan would be unknown.

mod exit;
mod leftovers;
mod marker;
mod reaper;
mod scan;
mod scope;
mod tail;
#[cfg(test)]
mod tests;
mod tree;
mod watchdog;

pub use exit::Exit;
pub use leftovers::{Killed, Leftovers};
pub use reaper::kill_all_remaining;
pub use scope::ProcessScope;
#[cfg(test)]
pub(crate) use tail::TAIL_BYTES_MAX;
pub use tail::{SharedTail, Tail, last_line};
pub use tree::{Left, ProcessTree};
