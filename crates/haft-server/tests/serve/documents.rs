//! The API's own documentation: the document for programs and the page for people.

use serde_json::Value;

use crate::served::{Served, toolbox};

/// Every operation of the document, as `METHOD path`.
fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (method.to_uppercase(), path.clone(), operation))
    });
    operations.collect()
}

/// Each operation has a purpose and its responses, including those of the service around it, and errors are problem
/// documents.
#[tokio::test]
async fn every_operation_is_described_to_its_end() {
    let served = Served::open(toolbox());
    let document = served.get("/api/openapi.json").await.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    assert_eq!(schemes.keys().collect::<Vec<_>>(), ["api_key", "bearer"]);
    for (method, path, operation) in operations(&document) {
        let what = format!("{method} {path}");
        assert!(!operation["summary"].as_str().unwrap_or_default().is_empty(), "{what}");
        let mut expected = vec!["400", "403", "500"];
        if !["/healthz", "/readyz"].contains(&path.as_str()) {
            expected.extend(["401", "429"]);
            assert_eq!(operation["security"].as_array().unwrap().len(), 2, "{what}");
        }
        if operation.get("requestBody").is_some() {
            expected.extend(["408", "413", "415"]);
        }
        let responses = operation["responses"].as_object().unwrap();
        for status in expected {
            let kinds = responses.get(status).map(|response| &response["content"]);
            let problem = kinds.map(|kinds| &kinds["application/problem+json"]["schema"]["$ref"]);
            assert_eq!(problem.unwrap(), "#/components/schemas/Problem", "{what} {status}");
        }
        let ids = operations(&document)
            .into_iter()
            .filter(|(_, _, other)| other["operationId"] == operation["operationId"]);
        assert_eq!(ids.count(), 1, "the id of {what} is there twice");
    }
}

/// The page has every operation, and nothing that runs or comes from elsewhere.
#[tokio::test]
async fn the_page_is_complete_and_keeps_to_itself() {
    let served = Served::open(toolbox());
    let page = served.get("/api/docs").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    let document = served.get("/api/openapi.json").await.json();
    for (method, path, _) in operations(&document) {
        let heading = format!("<b>{method}</b><code>{path}</code>");
        assert!(page.text.contains(&heading), "{heading}");
    }
    for foreign in ["<script", "<link", "<img", "<iframe", "src=", "@import", "url(", "href=\"http"]
    {
        assert!(!page.text.contains(foreign), "{foreign}");
    }
    let section =
        page.text.split("<section").find(|it| it.contains("POST</b><code>/api/v1/tools<"));
    insta::assert_snapshot!(section.unwrap());
}
