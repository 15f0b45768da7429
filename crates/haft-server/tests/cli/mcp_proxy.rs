//! Proxies of the environment on the way to MCP servers.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use testkit::Workspace;

use crate::haft;

/// A proxy that refuses everything, and what it was asked.
fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://user:word@{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heads = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 4096];
            let Ok(count @ 1..) = stream.read(&mut head) else { continue };
            heads.lock().unwrap().push(String::from_utf8_lossy(&head[..count]).to_lowercase());
            drop(stream.write_all(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n"));
        }
    });
    (url, asked)
}

fn listed(server: &str, environment: &[(&str, &str)]) -> String {
    let config = format!("servers: {{far: {{transport: http, url: \"{server}\"}}}}\n");
    let workspace = Workspace::with(&[("haft.yaml", &config)]);
    let program = haft(&workspace, &["tools", "list"]);
    let program = environment.iter().fold(program, |it, (name, value)| it.env(name, value));
    program.run().stderr
}

/// An http request goes to the proxy as it is, an https one through a tunnel. Both carry the proxy's credentials.
#[test]
fn requests_take_the_proxy_of_the_environment() {
    // Base64 of `user:word`.
    let credentials = "proxy-authorization: basic dxnlcjp3b3jk";
    let (url, asked) = proxy();
    listed("http://far.invalid/mcp", &[("HTTP_PROXY", &url)]);
    listed("https://far.invalid/mcp", &[("HTTPS_PROXY", &url)]);
    let asked = asked.lock().unwrap().join("\n");
    assert!(asked.contains("post http://far.invalid/mcp http/1.1"), "{asked}");
    assert!(asked.contains("connect far.invalid:443 http/1.1"), "{asked}");
    let with_credentials = asked.matches(credentials).count();
    assert!(with_credentials >= 2, "{asked}");
    assert_eq!(with_credentials, asked.matches(" http/1.1").count(), "{asked}");
}

#[test]
fn hosts_of_no_proxy_are_reached_without() {
    let (url, asked) = proxy();
    let stderr =
        listed("http://far.invalid/mcp", &[("HTTP_PROXY", &url), ("NO_PROXY", "far.invalid")]);
    assert!(stderr.contains("cannot be reached"), "{stderr}");
    assert!(asked.lock().unwrap().is_empty());
}
