//! Examples from past requests.

use haft::select::{ProposedExample, Selector};
use serde_json::json;

use crate::ranking::tool;

/// Requests that lead to a wrong tool are proposed, equal ones once, frequent ones first.
#[test]
fn what_is_not_found_is_proposed() {
    let schema = || json!({"type": "object"});
    let selector = Selector::new(&[
        tool("hr_system", "Internal system A.", schema()),
        tool("get_weather", "Current weather and forecast for a place.", schema()),
    ]);
    let served = [
        ("will it be sunny in Rome", "get_weather"),
        ("will I get holidays when the weather is nice", "hr_system"),
        ("my holidays in rain and snow", "hr_system"),
        ("my holidays in rain and snow ", "hr_system"),
        ("my holidays in rain and in snow", "hr_system"),
        ("the weather for my payslip", "gone_tool"),
        ("weather and two tools", "hr_system"),
        ("weather and two tools", "get_weather"),
    ];
    let proposals = selector.propose(&served);
    assert_eq!(proposals.len(), 1, "{proposals:?}");
    assert_eq!(proposals[0].tool, "hr_system");
    let example = |request: &str, times| ProposedExample {
        request: request.to_owned(),
        times,
        found: "get_weather".to_owned(),
    };
    assert_eq!(
        proposals[0].examples,
        [
            example("my holidays in rain and snow", 2),
            example("will I get holidays when the weather is nice", 1),
        ]
    );
    assert_eq!(selector.propose(&[]), []);
}
