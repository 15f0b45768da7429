//! Anchors of headings, as forges derive them.

/// The anchors of a page, in its order.
pub(super) fn anchors(page: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for heading in headings(page) {
        let base = anchor(heading);
        let same = anchors.iter().filter(|known| **known == base).count();
        anchors.push(if same == 0 { base } else { format!("{base}-{same}") });
    }
    anchors
}

/// The headings of a page, outside of code.
fn headings(page: &str) -> impl Iterator<Item = &str> {
    prose(page).filter_map(|line| {
        let text = line.trim_start_matches('#');
        let is_heading = text.len() < line.len() && text.starts_with(' ');
        is_heading.then(|| text.trim())
    })
}

/// The lines outside of fenced code.
pub(super) fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Lower case, without punctuation, with `-` for spaces.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|it| if it == ' ' { '-' } else { it }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_forges() {
        let page = "# The agent\n```sh\n# no heading\n```\n## `haft run`\n## agent.yaml\n## Title, annotations and icons\n## The agent\n";
        let expected =
            ["the-agent", "haft-run", "agentyaml", "title-annotations-and-icons", "the-agent-1"];
        assert_eq!(anchors(page), expected);
    }
}
