//! The browser for people, driven like a browser.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use url::Url;

use crate::oauth::{AuthError, Browser, Loopback, Opening};

async fn ask(redirect: &Url, request: &str) -> String {
    let port = redirect.port().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = request.replace("PORT", &port.to_string()).replace('\n', "\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn only_the_answer_to_our_own_question_ends_the_wait() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let show = {
        let shown = Arc::clone(&shown);
        move |url: &Url| shown.lock().unwrap().push(url.to_string())
    };
    let browser = Loopback::bind(Duration::from_secs(30), Opening::Nothing, show).await.unwrap();
    let redirect = browser.redirect();
    let url = Url::parse("https://auth.example/authorize?state=s1").unwrap();
    let silent = TcpStream::connect(("127.0.0.1", redirect.port().unwrap())).await.unwrap();
    let person = async {
        for (request, expected) in [
            ("GET /callback?code=c&state=s1 HTTP/1.1\nHost: evil.example\n\n", "403 Forbidden"),
            ("GET /callback?code=c&state=s1 HTTP/1.1\n\n", "403 Forbidden"),
            ("GET / HTTP/1.1\nHost: 127.0.0.1:PORT\n\n", "404 Not Found"),
            ("GET /callbacks?state=s1 HTTP/1.1\nHost: 127.0.0.1:PORT\n\n", "404 Not Found"),
            ("GET //evil.example/ HTTP/1.1\nHost: 127.0.0.1:PORT\n\n", "404 Not Found"),
            (
                "POST /callback?code=c&state=s1 HTTP/1.1\nHost: 127.0.0.1:PORT\n\n",
                "405 Method Not Allowed",
            ),
            ("GET /callback?code=c&state=s2 HTTP/1.1\nHost: 127.0.0.1:PORT\n\n", "400 Bad Request"),
            ("nonsense\n\n", "400 Bad Request"),
            ("GET /callback?code=c&state=s1 HTTP/1.1\nhost: localhost:PORT\n\n", "200 OK"),
        ] {
            assert_eq!(ask(&redirect, request).await, format!("HTTP/1.1 {expected}"), "{request}");
        }
    };
    let (callback, ()) = tokio::join!(browser.authorize(&url, &redirect), person);
    assert_eq!(callback.unwrap(), format!("{redirect}?code=c&state=s1"));
    assert_eq!(*shown.lock().unwrap(), [url.to_string()]);
    drop(silent);
}

#[tokio::test(start_paused = true)]
async fn the_wait_ends() {
    let after = Duration::from_mins(5);
    let browser = Loopback::bind(after, Opening::Nothing, |_| {}).await.unwrap();
    let url = Url::parse("https://auth.example/?state=s1").unwrap();
    let error = browser.authorize(&url, &browser.redirect()).await.unwrap_err();
    assert!(matches!(error, AuthError::Timeout { .. }), "{error}");
    assert_eq!(error.to_string(), "no sign-in within 300s");
}
