//! The official Python SDK, release 1.

use testkit::peers::{Era, python_program};

use super::report;
use super::toolbox::{Served, Toolbox, program};

/// Proves S1-1, S0-22, S3-SC-006, S1-5: what a client sees over HTTP, also when a server dies.
#[test]
fn python_1_over_http() {
    let toolbox = Toolbox::new();
    let served = Served::start(&toolbox.workspace);
    let client = python_program(Era::Legacy, &program("python1.py"));
    let report = report::read(&client.run(&toolbox.over_http(&served).to_string()));
    report::assert_complete(&report, Some("2025-11-25"));
    // The session is gone: the SDK ended it.
    assert_eq!(report["ended"], 404);
    toolbox.assert_cancelled();
    served.end();
    toolbox.assert_nothing_is_left();
}

/// Proves S1-1, S0-22, S3-SC-006, S1-5: the same over stdio.
#[test]
fn python_1_over_stdio() {
    let toolbox = Toolbox::new();
    let client = python_program(Era::Legacy, &program("python1.py"));
    let report = report::read(&client.run(&toolbox.over_stdio().to_string()));
    report::assert_complete(&report, Some("2025-11-25"));
    toolbox.assert_cancelled();
    toolbox.assert_nothing_is_left();
}
