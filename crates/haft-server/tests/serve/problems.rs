//! Errors as problem documents, request ids, and what every answer carries.

use testkit::Workspace;

use crate::{problem, setup, status};

fn post(body: &str, kind: &str) -> String {
    format!(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Request-Id: test-1\r\n\
         {kind}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn get(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Request-Id: test-1\r\n\r\n"
    )
}

/// Whatever goes wrong in the frame is a problem document with cause and remedy.
#[tokio::test]
async fn every_error_is_a_problem_document() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let json = "Content-Type: application/json; charset=utf-8\r\n";
    let requests = [
        ("unknown path", get("/tool")),
        ("wrong method", get("/echo")),
        ("unreadable JSON", post("{\"a\": 1,\n \"b\": }", json)),
        ("no content type", post("{}", "")),
        ("wrong content type", post("{}", "Content-Type: text/plain\r\n")),
        ("wrong query", get("/number?n=many")),
        ("a panic", get("/panic")),
        ("a write without a key", get("/tools").replacen("GET", "POST", 1)),
    ];
    let mut documents = Vec::new();
    for (name, request) in requests {
        let document = problem(&service.raw(&request).await);
        documents.push(format!("{name}: {}", serde_json::to_string_pretty(&document).unwrap()));
    }
    insta::assert_snapshot!(documents.join("\n"));
    assert!(service.raw(&get("/echo")).await.contains("allow: POST\r\n"));
    assert_eq!(status(&service.raw(&post("{\"a\": 1}", json)).await), 200);
}

/// A body beyond the limit is refused, announced or not, and the client gets to see the answer.
#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let large = format!("\"{}\"", "x".repeat(haft_server::serve::BODY_BYTES_MAX));
    let kind = "Content-Type: application/json\r\n";
    let answer = service.raw(&post(&large, kind)).await;
    assert_eq!(problem(&answer)["code"], "BodyTooLarge");
    let chunked = format!(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{kind}\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len()
    );
    assert_eq!(problem(&service.raw(&chunked).await)["status"], 413);
}

/// A harmless id of the client is taken over, any other is replaced; handlers see the same one.
#[tokio::test]
async fn requests_have_ids() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let long = "x".repeat(65);
    for (id, is_kept) in
        [("my-id_1.2", true), ("a b", false), ("<b>", false), ("", false), (long.as_str(), false)]
    {
        let answer = service
            .raw(&format!(
                "GET /id HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: {id}\r\nConnection: close\r\n\r\n"
            ))
            .await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("x-request-id: {body}")), "{answer}");
        assert_eq!(body == id, is_kept, "{answer}");
        assert!(!body.is_empty());
    }
}

/// No banner, no guessing of types, nothing kept by caches.
#[tokio::test]
async fn answers_carry_safe_headers() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    for path in ["/tools", "/nothing"] {
        let answer = service.raw(&get(path)).await.to_ascii_lowercase();
        assert!(answer.contains("x-content-type-options: nosniff\r\n"), "{answer}");
        assert!(answer.contains("cache-control: no-store\r\n"), "{answer}");
        assert!(!answer.contains("\r\nserver:"), "{answer}");
    }
}
