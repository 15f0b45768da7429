//! Servers that ask their client something, through the gateway: each era behind each era.

use serde_json::{Value, json};

use super::{Gateway, modern_headers, modern_request, request};
use crate::support::{server, workspace};

fn capable() -> Value {
    json!({"sampling": {}, "elicitation": {}, "roots": {}})
}

/// A server of this era that asks; it may ask for samples.
fn asking(era: &str) -> Gateway {
    let scenario = json!({"era": era, "tools": ["sample", "elicit", "roots", "echo"]});
    let mut server = server(&scenario);
    server["sampling"] = json!("allow");
    Gateway::open(workspace(&json!({"files": server})))
}

/// The client's answer to each question.
fn answer_to(method: &str) -> Value {
    match method {
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "m", "content": {"type": "text", "text": "sampled"},
        }),
        "elicitation/create" => json!({"action": "accept", "content": {"answer": "elicited"}}),
        "roots/list" => json!({"roots": [{"uri": "file:///rooted"}]}),
        other => panic!("asked {other}"),
    }
}

const QUESTIONS: [(&str, &str, &str); 3] = [
    ("sample", "sampling/createMessage", "sampled"),
    ("elicit", "elicitation/create", "elicited"),
    ("roots", "roots/list", "rooted"),
];

async fn legacy_client(gateway: &Gateway) {
    let session = gateway.session(&capable()).await;
    session.ask("tools/list", &json!({})).await;
    for (tool, method, answer) in QUESTIONS {
        let call = json!({"name": tool, "arguments": {"message": "please"}});
        let mut course = session.course(5, "tools/call", &call).await;
        let question = course.message().await.unwrap();
        assert_eq!(question["method"], method, "{question}");
        let answered = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer_to(method)});
        assert_eq!(session.post(&answered).await.status, 202);
        let result = course.answer().await;
        assert!(result["result"].to_string().contains(answer), "{result}");
    }
    // A client without capabilities is not asked, and the server receives the refusal.
    let unable = gateway.session(&json!({})).await;
    for (tool, _, _) in QUESTIONS {
        let call = json!({"name": tool, "arguments": {"message": "please"}});
        let mut course = unable.course(6, "tools/call", &call).await;
        let answer = course.message().await.unwrap();
        assert_eq!(answer["id"], 6, "{answer}");
        assert!(answer.to_string().contains("code"), "an error, in one way or another: {answer}");
    }
}

async fn modern_client(gateway: &Gateway) {
    gateway.modern(1, "tools/list", json!({})).await.answer().await;
    let send = async |params: Value, capable: &Value| {
        let message = modern_request(5, "tools/call", params, capable);
        gateway.course(&modern_headers(&message).as_pairs(), &message).await.answer().await
    };
    for (tool, method, answer) in QUESTIONS {
        let call = json!({"name": tool, "arguments": {"message": "please"}});
        let asked = send(call.clone(), &capable()).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let questions = asked["result"]["inputRequests"].as_object().unwrap();
        let (name, question) = questions.iter().next().unwrap();
        assert_eq!((questions.len(), question["method"].as_str()), (1, Some(method)));
        let mut again = call.clone();
        again["inputResponses"] = json!({name: answer_to(method)});
        again["requestState"] = asked["result"]["requestState"].clone();

        // A state is of use for the very same request only.
        let mut other = again.clone();
        other["arguments"]["message"] = json!("something else");
        assert_eq!(send(other, &capable()).await["error"]["code"], -32602);
        let mut forged = again.clone();
        forged["requestState"] = json!("AAAA");
        assert_eq!(send(forged, &capable()).await["error"]["code"], -32602);

        let result = send(again.clone(), &capable()).await;
        assert_eq!(result["result"]["resultType"], "complete", "{result}");
        assert!(result["result"].to_string().contains(answer), "{result}");
        // ...and once.
        assert_eq!(send(again, &capable()).await["error"]["code"], -32602);
        let unable = send(call, &json!({})).await;
        assert!(unable.to_string().contains("code"), "an error, in one way or another: {unable}");
    }
}

#[tokio::test]
async fn a_legacy_client_of_a_legacy_server_is_asked() {
    legacy_client(&asking("legacy")).await;
}

#[tokio::test]
async fn a_legacy_client_of_a_modern_server_is_asked() {
    legacy_client(&asking("modern")).await;
}

#[tokio::test]
async fn a_modern_client_of_a_legacy_server_is_asked() {
    modern_client(&asking("legacy")).await;
}

#[tokio::test]
async fn a_modern_client_of_a_modern_server_is_asked() {
    modern_client(&asking("modern")).await;
}

/// A question that does not name its call is refused if it could be meant for several clients.
#[tokio::test]
async fn a_question_that_may_be_meant_for_another_is_refused() {
    let scenario = json!({"tools": ["elicit", "hang"]});
    let gateway = Gateway::open(workspace(&json!({"files": server(&scenario)})));
    let one = gateway.session(&capable()).await;
    one.ask("tools/list", &json!({})).await;
    let hang = json!({"name": "hang", "arguments": {}});
    let hanging = one.course(1, "tools/call", &hang).await;
    let two = gateway.session(&capable()).await;
    let call = json!({"name": "elicit", "arguments": {"message": "please"}});
    let answer = two.course(2, "tools/call", &call).await.message().await.unwrap();
    assert!(answer.to_string().contains("several clients"), "{answer}");
    drop(hanging);
}

/// Without `sampling: allow` sampling is denied, whatever the client can do.
#[tokio::test]
async fn sampling_is_denied_unless_the_configuration_allows_it() {
    let gateway =
        Gateway::open(workspace(&json!({"files": server(&json!({"tools": ["sample"]}))})));
    let session = gateway.session(&capable()).await;
    session.ask("tools/list", &json!({})).await;
    let call = json!({"name": "sample", "arguments": {"message": "please"}});
    let answer = session.post(&request(3, "tools/call", &call)).await;
    assert_eq!(answer.json()["id"], 3);
    assert!(!answer.text.contains("sampling/createMessage\",\"params"), "{}", answer.text);
}
