//! The pages, each with what its commands need.

use haft::Code;
use serde_json::json;
use testkit::{ModelServer, Step};

use crate::session::Session;
use crate::{document, root};

/// Proves S2-SC-002: the README's commands do what it prints.
#[test]
fn readme() {
    Session::new("README.md").run();
}

#[test]
fn agent() {
    let answers = ["a.txt changed most.", "Fine.", "It is the only one.", "Hello."];
    let model = ModelServer::openai(answers.map(Step::text));
    Session::new("docs/agent.md")
        .env("OPENAI_API_KEY", "k")
        .env("HAFT__AGENT__MODEL", "openai::gpt-5")
        .env("HAFT__AGENT__BASE_URL", &model.url())
        .run();
    assert_eq!(model.left(), 0);
    let piped = model.requests()[1].last_user_text();
    assert!(piped.contains("review this") && piped.contains("+b"), "{piped}");
}

#[test]
fn configuration() {
    Session::new("docs/configuration.md").run();
}

#[test]
fn http_api() {
    Session::new("docs/http-api.md").run();
}

#[test]
fn migration() {
    Session::new("docs/migration.md").run();
}

#[test]
fn operating() {
    Session::new("docs/operating.md").run();
}

#[test]
fn quick_start() {
    let call = Step::call("get_current_time", json!({"timezone": "Asia/Seoul"})).not_streamed();
    let model = ModelServer::openai([call, Step::text("It is noon in Seoul.").not_streamed()]);
    Session::new("docs/quick-start.md").env("OPENAI_BASE_URL", &model.url()).run();
    let results = model.last_request().results();
    assert!(results[0].text.contains("Asia/Seoul"), "{results:?}");
}

#[test]
fn terminal() {
    Session::new("docs/terminal.md").run();
}

#[test]
fn tool_choice() {
    Session::new("docs/tool-choice.md").run();
}

#[test]
fn tools() {
    Session::new("docs/tools.md").run();
}

#[test]
fn troubleshooting() {
    Session::new("docs/troubleshooting.md").run();
}

#[test]
fn trust() {
    Session::new("docs/trust.md").run();
}

/// The README stays short.
#[test]
fn the_readme_has_at_most_150_lines() {
    assert!(document("README.md").lines().count() <= 150);
}

/// Every error code has a section, and errors name it.
#[test]
fn every_error_code_is_explained() {
    for code in Code::ALL {
        let docs = code.docs();
        let (page, anchor) = docs.split_once('#').unwrap();
        assert!(document(page).contains(&format!("\n## {}\n", code.as_str())), "{code:?}");
        assert_eq!(anchor, code.as_str().to_lowercase());
    }
}

/// Alerts and dashboard use only metrics that the documentation lists.
#[test]
fn alerts_and_dashboard_use_documented_metrics() {
    let page = document("docs/operating.md");
    let metric = regex::Regex::new(r"\b(haft|tool)_[a-z_]+").unwrap();
    for file in ["deploy/alerts.yaml", "deploy/grafana-dashboard.json"] {
        for name in metric.find_iter(&document(file)).map(|found| found.as_str()) {
            let name = name.trim_end_matches("_bucket");
            assert!(name == "tool_name" || page.contains(name), "{file}: {name}");
        }
    }
}

/// Every page with commands has a test here.
#[test]
fn every_page_is_tested() {
    let tests = include_str!("pages.rs");
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|file| file.unwrap().path());
    for page in docs.filter(|path| path.extension().is_some_and(|it| it == "md")) {
        let name = format!("docs/{}", page.file_name().unwrap().display());
        let has_commands = !crate::markdown::steps(&document(&name)).is_empty();
        let is_tested = tests.contains(&format!("Session::new(\"{name}\")"));
        assert!(is_tested || !has_commands, "{name} has commands and no test in pages.rs");
    }
}
