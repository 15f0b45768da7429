//! Clients that break the rules: each gets an error, and the connection stays open.

use serde_json::json;

use crate::support::{Client, server, workspace};

#[test]
fn an_invalid_message_is_refused_and_forgotten() {
    let workspace = workspace(&json!({}));
    let mut client = Client::connect(&workspace);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let broken = [
        ("this is no JSON", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"#, -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32600),
        (deep.as_str(), -32600),
    ];
    for (line, code) in broken {
        client.send_line(line);
        let answer = client.next();
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(code), &json!(null)),
            "{line}"
        );
    }
    client.send_line("");
    client.send_line(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    client.send_line(r#"{"jsonrpc":"2.0","method":"notifications/strange"}"#);
    client.request(&json!({}), "ping", &json!({}));
    assert_eq!(client.next()["error"]["code"], -32600);
    assert_eq!(client.ask(&json!(1), "ping", &json!({}))["result"], json!({}));
}

#[test]
fn a_message_of_very_many_values_is_refused_and_the_connection_stays() {
    let workspace = workspace(&json!({}));
    let mut client = Client::connect(&workspace);
    let numbers = vec!["0"; 2_000_000].join(",");
    client.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"x","arguments":{{"a":[{numbers}]}}}}}}"#
    ));
    let answer = client.next();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32600)), "{answer}");
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("more than 100000 values and keys"), "{text}");
    assert_eq!(client.ask(&json!(1), "ping", &json!({}))["result"], json!({}));
}

#[test]
fn an_id_that_is_in_flight_is_not_taken_twice() {
    let workspace = workspace(&json!({"files": server(&json!({"tools": ["hang"]}))}));
    let mut client = Client::connect(&workspace);
    assert_eq!(client.tools().len(), 2);
    let params = json!({"name": "hang", "arguments": {}});
    client.request(&json!(1), "tools/call", &params);
    client.request(&json!(1), "tools/call", &params);
    let answer = client.next();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32600)));
}

#[test]
fn a_message_beyond_the_limit_ends_the_connection() {
    let workspace = workspace(&json!({}));
    let mut client = Client::connect(&workspace);
    client.send_line(&"x".repeat(8 * 1024 * 1024 + 1));
    let answer = client.next();
    assert_eq!(answer["error"]["message"], "a message is longer than 8388608 bytes");
    assert_eq!(client.close(), Some(1));
}
