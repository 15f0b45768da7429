//! The way in for programs: an index, and errors that name the documentation.

use serde_json::{Value, json};

use crate::served::{Served, toolbox};

/// `/api/v1` and `/` answer programs with addresses, and every address answers.
#[tokio::test]
async fn the_api_has_an_index() {
    let served = Served::with_admin(toolbox());
    for path in ["/api/v1", "/"] {
        let index = served.get(path).await;
        assert_eq!(index.status, 200, "{path}");
        let index = index.json();
        assert_eq!((&index["name"], &index["docs"]), (&json!("haft"), &json!("/api/docs")));
    }
    let index = served.get("/api/v1").await.json();
    for path in index["endpoints"].as_array().unwrap() {
        let answer = served.get(path.as_str().unwrap()).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    }
}

/// Every 404 names the documentation: an unknown path, an unknown item, and a call of an unknown tool.
#[tokio::test]
async fn a_404_names_the_documentation() {
    let served = Served::with_admin(toolbox());
    for path in ["/nothing", "/api/v1/nothing", "/api/v1/tools/nothing", "/api/v1/log/nothing"] {
        let answer = served.get(path).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text);
        assert_eq!(answer.header("link"), "</api/docs>; rel=\"help\"", "{path}");
        assert_eq!(answer.json()["docs"], "/api/docs", "{path}");
    }
    let answer = served.post("/api/v1/tools/nothing/call", r#"{"arguments": {}}"#).await;
    assert_eq!((answer.status, answer.header("link")), (404, "</api/docs>; rel=\"help\""));
    let found = served.get("/api/v1/tools/greet").await;
    assert_eq!((found.header("link"), &found.json()["docs"]), ("", &Value::Null));
}
