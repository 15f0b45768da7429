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

/// Generated clients name their functions after the ids, and examples show what to send.
#[tokio::test]
async fn operations_have_readable_names_and_bodies_have_examples() {
    let served = Served::open(toolbox());
    let document = served.get("/api/openapi.json").await.json();
    assert_eq!(document["servers"][0]["url"], "/");
    let mut names = Vec::new();
    for (method, path, operation) in operations(&document) {
        names.push(format!("{} {method} {path}", operation["operationId"].as_str().unwrap()));
        let body = &operation["requestBody"]["content"]["application/json"];
        if body.is_null() {
            continue;
        }
        let reference = body["schema"]["$ref"].as_str().and_then(|it| it.rsplit('/').next());
        let schema = reference.map(|name| &document["components"]["schemas"][name]);
        let is_there = |it: &Value| !it["example"].is_null() || !it["examples"].is_null();
        assert!(is_there(body) || schema.is_some_and(is_there), "{method} {path} has no example");
    }
    names.sort();
    insta::assert_snapshot!(names.join("\n"));
}

/// The page loads its own files only, and the document is the one for programs.
#[tokio::test]
async fn the_page_keeps_to_itself() {
    let served = Served::open(toolbox());
    let page = served.get("/api/docs").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let addresses = page.text.split(['"', '\'']).filter(|part| part.contains("/assets/"));
    let addresses: Vec<&str> = addresses.collect();
    assert!(!addresses.is_empty(), "{}", page.text);
    for address in addresses {
        assert!(address.starts_with("/assets/"), "{address}");
        assert_eq!(served.get(address).await.status, 200, "{address}");
    }
    for foreign in ["http:", "https:", "<style", "onload", "eval"] {
        assert!(!page.text.contains(foreign), "{foreign}");
    }
}
