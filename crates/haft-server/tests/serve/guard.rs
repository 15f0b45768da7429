//! Host and Origin: DNS rebinding and foreign web pages.

use haft_server::serve::GuardSettings;
use testkit::Workspace;

use crate::{client, problem, setup, status};

fn allowing() -> GuardSettings {
    GuardSettings {
        allowed_hosts: vec!["Haft.Example.com".to_owned()],
        allowed_origins: vec!["https://App.example.com".to_owned()],
    }
}

/// IP addresses, `localhost` and the allowed names pass, however they are spelled; any other name, none
/// and several are refused.
#[tokio::test]
async fn only_known_hosts_are_answered() {
    let workspace = Workspace::new();
    let service = crate::Setup { guard: allowing(), ..setup() }.start(&workspace).await;
    let hosts = [
        ("Host: 127.0.0.1\r\n", 200),
        ("Host: 127.0.0.1:1234\r\n", 200),
        ("Host: 192.168.1.7:80\r\n", 200),
        ("Host: [::1]\r\n", 200),
        ("Host: [::1]:8080\r\n", 200),
        ("Host: localhost\r\n", 200),
        ("Host: LOCALHOST.:99\r\n", 200),
        ("Host: haft.example.com:8443\r\n", 200),
        ("Host: haft.example.com.\r\n", 200),
        ("Host: evil.example.com\r\n", 403),
        ("Host: localhost.evil.com\r\n", 403),
        ("Host: 127.0.0.1.evil.com\r\n", 403),
        ("Host: 127.1\r\n", 403),
        ("Host: 0x7f000001\r\n", 403),
        ("Host: user@localhost\r\n", 400),
        ("Host: localhost:x\r\n", 400),
        ("Host: [::1\r\n", 400),
        ("Host: [::1]x\r\n", 400),
        ("Host: \r\n", 400),
        ("Host: localhost, evil.com\r\n", 400),
        ("Host: localhost\r\nHost: localhost\r\n", 400),
        ("", 400),
    ];
    for (host, expected) in hosts {
        let answer =
            service.raw(&format!("GET /tools HTTP/1.1\r\n{host}Connection: close\r\n\r\n")).await;
        assert_eq!(status(&answer), expected, "{host}: {answer}");
        if expected != 200 {
            assert_eq!(problem(&answer)["status"], expected, "{host}");
        }
    }
    // Neither the paths without a key nor unknown ones are an exception.
    for path in ["/healthz", "/nothing"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: evil.com\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&service.raw(&request).await), 403, "{path}");
    }
}

/// A request in absolute form names its host twice, and both must be the same.
#[tokio::test]
async fn the_address_of_a_request_counts_too() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    for (target, host, expected) in [
        ("http://127.0.0.1/tools", "127.0.0.1", 200),
        ("http://evil.com/tools", "evil.com", 403),
        ("http://evil.com/tools", "127.0.0.1", 400),
        ("http://127.0.0.1/tools", "evil.com", 400),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&service.raw(&request).await), expected, "{target} {host}");
    }
}

/// HTTP/2 has the host in `:authority`.
#[tokio::test]
async fn http2_is_checked_as_well() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let client =
        client().http2_prior_knowledge().resolve("evil.example", service.address).build().unwrap();
    let answer = client.get(service.url("/tools")).send().await.unwrap();
    assert_eq!((answer.version(), answer.status().as_u16()), (reqwest::Version::HTTP_2, 200));
    let foreign = format!("http://evil.example:{}/tools", service.address.port());
    assert_eq!(client.get(foreign).send().await.unwrap().status().as_u16(), 403);
}

/// A page of this server and the allowed ones may; `null`, other ports, other hosts and several may not.
#[tokio::test]
async fn only_known_pages_may_ask() {
    let workspace = Workspace::new();
    let service = crate::Setup { guard: allowing(), ..setup() }.start(&workspace).await;
    for (host, origin, expected) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8080", 200),
        ("localhost:8080", "http://LOCALHOST:8080", 200),
        ("localhost", "http://localhost:80", 200),
        ("localhost:80", "http://localhost", 200),
        ("[::1]:8080", "http://[::1]:8080", 200),
        // Behind a proxy with TLS.
        ("haft.example.com", "https://haft.example.com", 200),
        ("localhost:8080", "https://app.example.com", 200),
        ("localhost:8080", "https://app.example.com:443", 200),
        ("localhost:8080", "http://app.example.com", 403),
        ("localhost:8080", "https://app.example.com.evil.com", 403),
        ("localhost:8080", "http://localhost:3000", 403),
        ("localhost:8080", "http://localhost", 403),
        ("localhost:8080", "http://127.0.0.1:8080", 403),
        ("localhost:8080", "null", 403),
        ("localhost:8080", "file://", 403),
        ("localhost:8080", "", 403),
        ("localhost:8080", "http://localhost:8080\r\nOrigin: http://localhost:8080", 400),
    ] {
        let request = format!(
            "POST /echo HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        let answer = service.raw(&request).await;
        assert_eq!(status(&answer), expected, "{host} {origin}: {answer}");
    }
}

/// An allowed page gets CORS headers, also with a refusal; no other page does.
#[tokio::test]
async fn an_allowed_page_may_use_the_service() {
    let workspace = Workspace::new();
    let service = crate::Setup { guard: allowing(), ..setup() }.start(&workspace).await;
    let origin = "https://app.example.com";
    let client = client().build().unwrap();
    let asking = client
        .request(reqwest::Method::OPTIONS, service.url("/tools"))
        .header("origin", origin)
        .header("access-control-request-method", "POST");
    let permission = asking.send().await.unwrap();
    assert_eq!(permission.status().as_u16(), 204);
    for (name, expected) in [
        ("access-control-allow-origin", origin),
        ("access-control-allow-methods", "GET, POST, PUT, DELETE"),
        ("vary", "origin"),
    ] {
        assert_eq!(permission.headers()[name], expected);
    }
    let allowed = permission.headers()["access-control-allow-headers"].to_str().unwrap();
    assert!(allowed.contains("x-api-key") && allowed.contains("if-match"), "{allowed}");
    let refused = client.post(service.url("/tools")).header("origin", origin).send().await.unwrap();
    assert_eq!(refused.status().as_u16(), 401);
    assert_eq!(refused.headers()["access-control-allow-origin"], origin);
    let plain = client.get(service.url("/tools")).send().await.unwrap();
    assert!(!plain.headers().contains_key("access-control-allow-origin"));
}
