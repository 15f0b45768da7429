//! A client program at the real gateway, and what has to be true when it has left.

use serde_json::{Value, json};
use testkit::peers::CommandLine;

use super::report;
use super::toolbox::{Served, Toolbox};

/// Lets a client use `haft serve`; its report.
pub(super) fn over_http(client: &CommandLine, era: &str) -> Value {
    let toolbox = Toolbox::new();
    let served = Served::start(&toolbox.workspace);
    let report = run(client, toolbox.over_http(&served), era);
    toolbox.assert_cancelled();
    served.end();
    toolbox.assert_nothing_is_left();
    report
}

/// Lets a client start `haft mcp` and use it; its report.
pub(super) fn over_stdio(client: &CommandLine, era: &str) -> Value {
    let toolbox = Toolbox::new();
    let report = run(client, toolbox.over_stdio(), era);
    toolbox.assert_cancelled();
    toolbox.assert_nothing_is_left();
    report
}

fn run(client: &CommandLine, mut request: Value, era: &str) -> Value {
    request["era"] = json!(era);
    report::read(&client.run(&request.to_string()))
}
