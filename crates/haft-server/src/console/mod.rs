//! The web console: a page at `/` and its files, embedded in the binary. It uses the public API only.

mod assets;

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::extract::RawQuery;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, SET_COOKIE, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{AppendHeaders, IntoResponse as _, Response};
use axum::routing::get;
use serde_json::json;

use crate::serve::{Problem, Sessions};
use crate::sign_ins::{CALLBACK_PATH, SignIns};
use assets::Asset;

/// The page may run its own files and talk to its own origin. Images and audio of tools are data URLs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      media-src data:; font-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
/// Pages of the console, as people type their addresses. `/tools` is a path of the API.
const PAGES: [&str; 10] = [
    "/servers",
    "/servers/{name}",
    "/log",
    "/log/{id}",
    "/inbox",
    "/chat",
    "/registry",
    "/config",
    "/access",
    "/connect",
];
/// Names of files carry the hash of their content.
const FOREVER: &str = "public, max-age=31536000, immutable";
const ALWAYS_ASK: &str = "no-cache";

/// The routes of the console. They answer without a key, because a browser has none yet.
pub(crate) fn routes(sessions: Arc<Sessions>, sign_ins: Arc<SignIns>, is_tls: bool) -> Router {
    let start = move |headers: HeaderMap, RawQuery(query): RawQuery| {
        ready(start(&sessions, is_tls, &headers, query.as_deref()))
    };
    let came_back = move |RawQuery(query): RawQuery| ready(came_back(&sign_ins, query.as_deref()));
    let pages = PAGES.iter().fold(Router::new(), |router, page| {
        router.route(page, get(|uri: Uri, headers: HeaderMap| ready(to_page(&uri, &headers))))
    });
    pages
        .route("/", get(start))
        .route("/api/docs", get(|headers: HeaderMap| ready(docs(&headers))))
        .route(CALLBACK_PATH, get(came_back))
        .route("/assets/{name}", get(|uri: Uri, headers: HeaderMap| ready(asset(&uri, &headers))))
}

fn start(
    sessions: &Sessions,
    is_tls: bool,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<Response, Problem> {
    if let Some(token) = query.and_then(|query| query.strip_prefix("link=")) {
        return sign_in(sessions, is_tls, token);
    }
    if accepts_html(headers) {
        let page = assets::find("index.html").ok_or_else(Problem::internal)?;
        return Ok(page_response(page, headers));
    }
    Ok(([(VARY, "accept")], axum::Json(index())).into_response())
}

fn accepts_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

/// Leads a browser to a page of the console, whose address is a fragment.
fn to_page(uri: &Uri, headers: &HeaderMap) -> Result<Response, Problem> {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let address = HeaderValue::from_str(&format!("/#{path}")).ok();
    match address.filter(|_| accepts_html(headers)) {
        Some(address) => {
            let headers = [(LOCATION, address), (VARY, HeaderValue::from_static("accept"))];
            Ok((StatusCode::SEE_OTHER, headers).into_response())
        }
        None => Err(Problem::not_found(format!("there is no path `{}`", uri.path()))
            .remedy("`/api/docs` lists every path")),
    }
}

/// The API document as a page.
fn docs(headers: &HeaderMap) -> Result<Response, Problem> {
    let page = assets::find("docs.html").ok_or_else(Problem::internal)?;
    Ok(page_response(page, headers))
}

/// The end of a sign-in at a remote server. The page shows nothing of the request.
fn came_back(sign_ins: &SignIns, query: Option<&str>) -> Response {
    let (status, text) = if query.is_some_and(|query| sign_ins.returned(query)) {
        (
            StatusCode::OK,
            "The answer arrived. You can close this page; the console shows the result.",
        )
    } else {
        (
            StatusCode::BAD_REQUEST,
            "This sign-in is not known here, or it expired. Begin again in the console.",
        )
    };
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>Haft</title><p>{text}</p></html>\n"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, page).into_response()
}

/// The answer for a program that requests `/`.
fn index() -> serde_json::Value {
    json!({
        "name": "haft", "version": env!("CARGO_PKG_VERSION"), "api": "/api/v1", "docs": "/api/docs",
        "openapi": "/api/openapi.json", "mcp": "/mcp", "health": "/healthz",
        "console": "open this address in a browser",
    })
}

/// Exchanges the token of a link for a cookie, and leaves the token out of the address.
fn sign_in(sessions: &Sessions, is_tls: bool, token: &str) -> Result<Response, Problem> {
    let Some(caller) = sessions.follow_link(token) else {
        return Err(Problem::unauthorized("the sign-in link was used, or it expired")
            .remedy("run `haft console` again, or open `/` and enter a key"));
    };
    let cookie = sessions.open(caller, is_tls)?;
    let headers = AppendHeaders([
        (SET_COOKIE, cookie),
        (LOCATION, HeaderValue::from_static("/")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ]);
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

fn page_response(page: &'static Asset, headers: &HeaderMap) -> Response {
    let mut response = response(page, headers, ALWAYS_ASK);
    let added = response.headers_mut();
    added.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    added.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    added.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    response
}

fn asset(uri: &Uri, headers: &HeaderMap) -> Result<Response, Problem> {
    let name = uri.path().trim_start_matches('/');
    match assets::find(name) {
        Some(asset) => Ok(response(asset, headers, FOREVER)),
        None => Err(Problem::not_found(format!("the console has no file `{name}`"))
            .remedy("reload the page: it may be from another version")),
    }
}

fn response(asset: &'static Asset, headers: &HeaderMap, cache: &'static str) -> Response {
    let about = [
        (ETAG, asset.etag()),
        (CONTENT_TYPE, HeaderValue::from_static(asset.kind())),
        (CACHE_CONTROL, HeaderValue::from_static(cache)),
        (VARY, HeaderValue::from_static("accept-encoding")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    let is_known = headers.get_all(IF_NONE_MATCH).iter().any(|tag| *tag == asset.etag());
    if is_known {
        return (StatusCode::NOT_MODIFIED, about).into_response();
    }
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    if accepted.is_some_and(|value| value.split(',').any(|it| it.trim().starts_with("gzip"))) {
        let encoding = [(CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
        return (about, encoding, asset.gzip).into_response();
    }
    match asset.plain() {
        Ok(bytes) => (about, bytes).into_response(),
        Err(_) => Problem::internal().into_response(),
    }
}
