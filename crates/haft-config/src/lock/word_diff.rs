//! The difference of two strings, word by word.

use serde::{Deserialize, Serialize};

/// Strings with more words than this between their common beginning and end are shown whole.
const WORDS_MAX: usize = 2_000;

/// A run of words that stayed, was added or was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordEdit {
    /// The change.
    pub op: WordOp,
    /// The words, with the spaces between them.
    pub text: String,
}

/// A change of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WordOp {
    /// In both strings.
    Same,
    /// In the approved string only.
    Removed,
    /// In the current string only.
    Added,
}

/// The edits that turn `before` into `after`.
pub(super) fn word_diff(before: &str, after: &str) -> Vec<WordEdit> {
    let (old, new) = (words(before), words(after));
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let mut edits = Edits::default();
    edits.extend(WordOp::Same, &old[..head]);
    middle(&old[head..old_end], &new[head..new_end], &mut edits);
    edits.extend(WordOp::Same, &old[old_end..]);
    edits.0
}

/// Words with the white space that follows them.
fn words(text: &str) -> Vec<&str> {
    text.split_inclusive(char::is_whitespace).collect()
}

fn middle(old: &[&str], new: &[&str], edits: &mut Edits) {
    if old.len().max(new.len()) > WORDS_MAX {
        edits.extend(WordOp::Removed, old);
        edits.extend(WordOp::Added, new);
        return;
    }
    // Lengths of the longest common subsequences of all ends.
    let width = new.len() + 1;
    let mut common = vec![0_u16; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        let is_same = i < old.len() && j < new.len() && old[i] == new[j];
        let removes = i < old.len()
            && (j == new.len() || common[(i + 1) * width + j] >= common[i * width + j + 1]);
        if is_same {
            edits.extend(WordOp::Same, &old[i..=i]);
            (i, j) = (i + 1, j + 1);
        } else if removes {
            edits.extend(WordOp::Removed, &old[i..=i]);
            i += 1;
        } else {
            edits.extend(WordOp::Added, &new[j..=j]);
            j += 1;
        }
    }
}

#[derive(Default)]
struct Edits(Vec<WordEdit>);

impl Edits {
    fn extend(&mut self, op: WordOp, words: &[&str]) {
        if words.is_empty() {
            return;
        }
        let text = words.concat();
        match self.0.last_mut().filter(|last| last.op == op) {
            Some(last) => last.text.push_str(&text),
            None => self.0.push(WordEdit { op, text }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_changed_are_found() {
        let shown = |before: &str, after: &str| -> String {
            let show = |edit: WordEdit| match edit.op {
                WordOp::Same => edit.text,
                WordOp::Removed => format!("[-{}-]", edit.text),
                WordOp::Added => format!("{{+{}+}}", edit.text),
            };
            word_diff(before, after).into_iter().map(show).collect()
        };
        assert_eq!(shown("reads a file", "reads any file"), "reads [-a -]{+any +}file");
        assert_eq!(shown("a b", "a b c"), "a [-b-]{+b c+}");
        assert_eq!(shown("", "new text"), "{+new text+}");
        let (long, longer) = ("x ".repeat(5_000), "y ".repeat(6_000));
        assert_eq!(word_diff(&long, &longer).len(), 2);
    }
}
