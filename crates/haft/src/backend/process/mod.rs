//! Child processes that leave nothing behind.
//!
//! Three nets, each for what slips through the one before: the process group of the child, the
//! marker that all its descendants inherit in their environment, and a watchdog outside Haft for
//! the case that Haft itself is killed. While its parent lives, a descendant is also found through
//! that parent, whatever it did to its group and its environment.
//!
//! A tree that outlives a call (a warm Python worker) is compared with how it was before the call;
//! see [`Leftovers`].
//!
//! The limit: a descendant that left its group, cleared its environment *and* lost its parent before
//! anybody looked has no trace that leads to Haft. It survives. Being the adoptive parent of such
//! orphans (`PR_SET_CHILD_SUBREAPER`) is a setting of the whole process: a program that embeds Haft
//! would have to bury every orphan of its other children too, and with two runtimes in one process
//! nobody could tell whose an orphan is.

mod exit;
mod household;
mod leftovers;
mod marker;
mod reaper;
mod scan;
mod tail;
#[cfg(test)]
mod tests;
mod tree;
mod watchdog;

pub use exit::Exit;
pub use household::Household;
pub use leftovers::{Killed, Leftovers};
pub use marker::MARKER_VARIABLE;
pub use reaper::kill_all_remaining;
pub use tail::{SharedTail, TAIL_BYTES_MAX, Tail, last_line};
pub use tree::{Left, ProcessTree};
