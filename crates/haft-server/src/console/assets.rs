//! The files of the console, compressed at build time.

use std::io::{self, Read as _};
use std::sync::LazyLock;

use axum::http::HeaderValue;
use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};

/// Name and compressed content of each file.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/console.rs"));

static ASSETS: LazyLock<Vec<Asset>> =
    LazyLock::new(|| FILES.iter().map(|(name, gzip)| Asset::new(name, gzip)).collect());

/// One file of the console.
pub(super) struct Asset {
    name: &'static str,
    pub(super) gzip: &'static [u8],
    etag: HeaderValue,
}

pub(super) fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

impl Asset {
    fn new(name: &'static str, gzip: &'static [u8]) -> Self {
        let hash = Sha256::digest(gzip);
        // Hexadecimal digits in quotes are a valid value.
        let etag = HeaderValue::from_str(&format!("\"{}\"", haft_text::hex(&hash[..8])));
        Self { name, gzip, etag: etag.unwrap_or_else(|_| HeaderValue::from_static("\"0\"")) }
    }

    pub(super) fn etag(&self) -> HeaderValue {
        self.etag.clone()
    }

    /// The content without compression, for clients that do not accept it.
    pub(super) fn plain(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        GzDecoder::new(self.gzip).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn kind(&self) -> &'static str {
        match self.name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("woff2") => "font/woff2",
            Some("json") => "application/json",
            Some(_) | None => "application/octet-stream",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_and_its_script_are_embedded() {
        let page = find("index.html").expect("the page is built");
        let text = String::from_utf8(page.plain().expect("it unpacks")).expect("it is text");
        let scripts: Vec<&Asset> =
            ASSETS.iter().filter(|it| it.kind().starts_with("text/javascript")).collect();
        assert!(text.contains("<div id=\"root\">"), "{text}");
        assert!(scripts.iter().any(|script| text.contains(script.name)), "{text}");
    }
}
