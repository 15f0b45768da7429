//! A browser for people: shows an address, and waits on this machine for the way back.

use std::{io, net::Ipv4Addr, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
    task::JoinSet,
    time::timeout,
};
use url::Url;

use super::{
    AuthError, BoxFuture,
    browser::{Browser, parameter},
};

const PATH: &str = "/callback";
const REQUEST_BYTES_MAX: usize = 16 * 1024;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Browsers open connections ahead of need; more than a few come from somewhere else.
const CONNECTIONS_MAX: usize = 16;

/// True if to start a browser, or only to show the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Start the platform's browser if there is one.
    Browser,
    /// Leave it to the person.
    Nothing,
}

/// Waits on `127.0.0.1` for the browser to come back.
pub struct Loopback {
    listener: TcpListener,
    redirect: Url,
    show: Box<dyn Fn(&Url) + Send + Sync>,
    opening: Opening,
    timeout: Duration,
}

impl Loopback {
    /// Takes a free port. `show` shows the person the address to open.
    pub async fn bind(
        timeout: Duration,
        opening: Opening,
        show: impl Fn(&Url) + Send + Sync + 'static,
    ) -> Result<Self, AuthError> {
        let failed = |problem: String| AuthError::Setup { problem };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(|error| failed(format!("no port to listen on: {error}")))?;
        let port = listener.local_addr().map_err(|error| failed(error.to_string()))?.port();
        let redirect = Url::parse(&format!("http://127.0.0.1:{port}{PATH}"))
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self { listener, redirect, show: Box::new(show), opening, timeout })
    }

    /// Serves connections side by side: one that a browser opened ahead of need and left silent
    /// must not hold up the one that carries the answer.
    async fn wait(&self, state: &str) -> Result<String, AuthError> {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                    let (stream, _) = accepted.map_err(|error| AuthError::Setup {
                        problem: format!("could not wait for the browser: {error}"),
                    })?;
                    let (redirect, state) = (self.redirect.clone(), state.to_owned());
                    connections.spawn(async move {
                        timeout(REQUEST_TIMEOUT, serve(stream, &redirect, &state)).await
                    });
                }
                Some(served) = connections.join_next() => {
                    if let Ok(Ok(Ok(Some(callback)))) = served {
                        return Ok(callback);
                    }
                }
            }
        }
    }
}

impl Browser for Loopback {
    fn redirect(&self) -> Url {
        self.redirect.clone()
    }

    fn authorize<'a>(
        &'a self,
        url: &'a Url,
        _redirect: &'a Url,
    ) -> BoxFuture<'a, Result<String, AuthError>> {
        Box::pin(async move {
            (self.show)(url);
            match self.opening {
                Opening::Browser => open_browser(url),
                Opening::Nothing => {}
            }
            let state = parameter(url, "state").unwrap_or_default();
            match timeout(self.timeout, self.wait(&state)).await {
                Ok(callback) => callback,
                Err(_) => Err(AuthError::Timeout { after: self.timeout }),
            }
        })
    }
}

/// Opens an address in the browser of the desktop. Best effort: show the address as well.
pub fn open_browser(url: &Url) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = Command::new(program)
        .arg(url.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        tracing::debug!(program, %error, "could not start a browser");
    }
}

/// Answers one request. Only the answer to our own request counts; any other client of the port gets an error, and
/// the wait continues.
async fn serve(mut stream: TcpStream, redirect: &Url, state: &str) -> io::Result<Option<String>> {
    let head = read_head(&mut stream).await?;
    let (status, text, callback) = match Request::read(&head, redirect) {
        Ok(callback) if parameter(&callback, "state").as_deref() == Some(state) => {
            let text = match parameter(&callback, "error") {
                None => "You are signed in. You can close this page.",
                Some(_) => "Signing in was refused. See the terminal for details.",
            };
            ("200 OK", text, Some(callback.into()))
        }
        Ok(_) => ("400 Bad Request", "This belongs to another sign-in.", None),
        Err(Refusal::Unreadable) => ("400 Bad Request", "This is not a request.", None),
        Err(Refusal::Host) => ("403 Forbidden", "This host is not served here.", None),
        Err(Refusal::Path) => ("404 Not Found", "There is nothing here.", None),
        Err(Refusal::Method) => ("405 Method Not Allowed", "Only GET is served here.", None),
    };
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Haft</title>\
         <body style=\"font-family:sans-serif;margin:4em\"><p>{text}</p></body></html>"
    );
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n\
         Connection: close\r\n\r\n{page}",
        page.len()
    );
    // A browser that does not wait for the page has still brought its answer.
    let written = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    match (written.await, callback) {
        (_, Some(callback)) => Ok(Some(callback)),
        (written, None) => written.map(|()| None),
    }
}

async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() >= REQUEST_BYTES_MAX || stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

struct Request;

enum Refusal {
    Unreadable,
    Host,
    Path,
    Method,
}

impl Request {
    /// The address that was asked for, if it is ours. The host is checked because a page elsewhere
    /// can point a name of its own at this machine.
    fn read(head: &str, redirect: &Url) -> Result<Url, Refusal> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Refusal::Unreadable);
        };
        let host = lines
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("host"))
            .map(|(_, value)| value.trim());
        let port = redirect.port().unwrap_or_default();
        if host != Some(&format!("127.0.0.1:{port}")) && host != Some(&format!("localhost:{port}"))
        {
            return Err(Refusal::Host);
        }
        if target != PATH && !target.starts_with(&format!("{PATH}?")) {
            return Err(Refusal::Path);
        }
        if method != "GET" {
            return Err(Refusal::Method);
        }
        redirect.join(target).map_err(|_| Refusal::Unreadable)
    }
}
