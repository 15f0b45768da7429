//! Answers of tools, prompts and resources as text for people.

use haft::Content;
use haft_text::printable_block;

/// A block, made safe for a terminal.
pub(super) fn shown(block: &Content) -> String {
    printable_block(&block.as_text()).into_owned()
}
