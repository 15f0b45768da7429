//! Child processes that leave nothing behind.
//!
//! Three nets, each for what slips through the one before: the process group of the child, the
//! marker that all its descendants inherit in their environment, and a watchdog outside Haft for
//! the case that Haft itself is killed.

mod exit;
mod household;
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
pub use marker::MARKER_VARIABLE;
pub use reaper::kill_all_remaining;
pub use tail::{SharedTail, TAIL_BYTES_MAX, Tail, last_line};
pub use tree::{Left, ProcessTree};
