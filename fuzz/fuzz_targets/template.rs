//! A URI template of a server and a URI of a client, on two lines.
#![no_main]

// Built from its source: the crate around it would multiply the build time of all targets.
#[path = "../../crates/haft-server/src/gateway/template.rs"]
mod template;

use libfuzzer_sys::fuzz_target;
use template::{Reach, matches};

/// Each input compiles up to four patterns, so long ones would leave little time for different ones.
const INPUT_BYTES_MAX: usize = 512;

fuzz_target!(|bytes: &[u8]| {
    if bytes.len() > INPUT_BYTES_MAX {
        return;
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (template, uri) = text.split_once('\n').unwrap_or((text, ""));
    let [segment, anything] =
        [Reach::Segment, Reach::Anything].map(|reach| matches(template, uri, reach));
    assert!(anything || !segment, "the narrow reach matches more than the wide one");
    if !template.contains('{') {
        assert_eq!(segment, template == uri, "a template without variables is one URI");
    }
    // A template beyond the limit matches nothing.
    let is_small = template.matches('{').count() <= template::VARIABLES_MAX;
    if let Some(expanded) = expand(template).filter(|_| is_small) {
        let [segment, anything] =
            [Reach::Segment, Reach::Anything].map(|reach| matches(template, &expanded, reach));
        assert!(segment && anything, "the template does not match its own URI `{expanded}`");
    }
});

/// The template with `x` for every variable. `None` for a template that is unbalanced.
fn expand(template: &str) -> Option<String> {
    let mut expanded = String::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        expanded.push_str(literal);
        expanded.push('x');
        rest = after.split_once('}')?.1;
    }
    Some(expanded + rest)
}
