//! Strings for people: [printable] on a terminal and in logs, [JSON laid out](json_text) for reading, names that
//! [look alike](lookalike), words for error messages. Depends on nothing of Haft.

mod duration;
mod hex;
pub mod json_text;
pub mod lookalike;
pub mod name;
mod secret;
mod text;
mod words;

pub use duration::human;
pub use hex::hex;
pub use secret::Secret;
pub use text::{beginning, is_deceptive, printable, printable_block, printable_json};
pub use words::{innermost, list, nearest};
