//! The webhook for new questions.

use haft::human_input::{HumanAnswer, HumanQuestion, ItemKind};
use serde_json::{Value, json};
use testkit::LogCapture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::inbox::{asking, open};
use super::support::{Bench, until};

/// Takes one request and answers it with this status; its head and its body.
async fn request(listener: &TcpListener, status: &str) -> (String, Value) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut text = String::new();
    let body = loop {
        let mut bytes = vec![0; 4096];
        let count = stream.read(&mut bytes).await.unwrap();
        text += std::str::from_utf8(&bytes[..count]).unwrap();
        let body = text.split_once("\r\n\r\n").map(|(_, body)| serde_json::from_str(body));
        if let Some(Ok(body)) = body {
            break body;
        }
    };
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    (text, body)
}

/// The webhook receives the question with the configured headers, with retries, and counts as
/// attendance. A question that closes first is not sent.
#[tokio::test]
async fn a_webhook_receives_a_question() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let bench = Bench::new();
    let yaml = format!(
        "inbox: {{webhook: 'http://{address}/hook?key=s3cret', webhook_headers: {{X-Token: abc}}}}"
    );
    let runtime = asking(&bench, &yaml).await;
    let inbox = runtime.inbox();
    assert!(inbox.is_attended());
    let telling = async {
        let (head, first) = request(&listener, "500 Oops").await;
        assert!(head.starts_with("POST /hook?key=s3cret HTTP/1.1"), "{head}");
        assert!(head.to_lowercase().contains("x-token: abc"), "{head}");
        let (_, again) = request(&listener, "204 No Content").await;
        assert_eq!(first, again);
        let item = open(inbox, 1).await.remove(0);
        assert_eq!(first, serde_json::to_value(&item).unwrap());
        assert_eq!((&first["question"], &first["kind"]), (&json!("Who?"), &json!("question")));
        inbox.answer(&item.id, HumanAnswer::Given(json!("you")), "ada").await.unwrap();
    };
    let (answer, ()) =
        tokio::join!(inbox.ask(HumanQuestion::new(ItemKind::Question, "Who?")), telling);
    assert_eq!(answer.unwrap(), json!("you"));
    // Without it the inbox is unattended.
    runtime.apply(bench.config(super::inbox::HUMAN)).await.unwrap();
    assert!(!inbox.is_attended());
}

/// The payload holds no known secret.
#[tokio::test]
async fn a_webhook_receives_no_known_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let bench = Bench::new();
    let yaml = format!("inbox: {{webhook: 'http://{address}/hook?key=canary-hook-1a2b'}}");
    let runtime = asking(&bench, &yaml).await;
    let inbox = runtime.inbox();
    let own_key = format!("haft_admin_{}", "x".repeat(43));
    let ask =
        HumanQuestion::new(ItemKind::Question, format!("Is canary-hook-1a2b or {own_key} right?"));
    let telling = async {
        let (_, told) = request(&listener, "204 No Content").await;
        assert_eq!(told["question"], "Is *** or *** right?");
        let item = open(inbox, 1).await.remove(0);
        inbox.answer(&item.id, HumanAnswer::Given(json!("yes")), "ada").await.unwrap();
    };
    let (answer, ()) = tokio::join!(inbox.ask(ask), telling);
    assert_eq!(answer.unwrap(), json!("yes"));
}

/// A header that cannot be sent is logged, and the webhook is ignored.
#[tokio::test]
async fn an_unusable_webhook_is_reported() {
    let (heard, _guard) = LogCapture::start();
    let bench = Bench::new();
    let yaml = "inbox: {webhook: 'http://localhost:1/hook', webhook_headers: {'a b': x}}";
    let runtime = asking(&bench, yaml).await;
    until(|| heard.count("`inbox.webhook` cannot be used") == 1).await;
    assert!(!runtime.inbox().is_attended());
}
