//! Metadata of tools beside their schemas: hints about behaviour (`annotations`) and icons.
//!
//! Both follow MCP and are hints for clients. No policy decision reads them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

/// The most icons of one tool.
pub const ICONS_MAX: usize = 8;
/// The longest address of an icon, in bytes.
pub const ICON_URL_BYTES_MAX: usize = 2048;
/// The longest `data:` URI of an icon, in bytes. Every list of tools carries it.
pub const ICON_DATA_BYTES_MAX: usize = 32 * 1024;
/// The most sizes of one icon.
pub const ICON_SIZES_MAX: usize = 16;
/// The longest title, in characters.
pub const TITLE_CHARS_MAX: usize = 200;

/// Hints about the behaviour of a tool: MCP's `annotations`.
///
/// Hints of a server are kept unmodified, unknown keys included. A hint never decides if a call is
/// permitted. It only decides if a call with an unknown outcome is retried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolAnnotations(Map<String, Value>);

impl ToolAnnotations {
    /// No hints.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a display name. Clients prefer the tool's own `title`.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with("title", json!(title.into()))
    }

    /// `readOnlyHint`: the tool changes nothing.
    #[must_use]
    pub fn read_only(self, hint: bool) -> Self {
        self.with("readOnlyHint", json!(hint))
    }

    /// `destructiveHint`: the tool may delete or overwrite.
    #[must_use]
    pub fn destructive(self, hint: bool) -> Self {
        self.with("destructiveHint", json!(hint))
    }

    /// `idempotentHint`: a second call with the same arguments changes nothing more.
    #[must_use]
    pub fn idempotent(self, hint: bool) -> Self {
        self.with("idempotentHint", json!(hint))
    }

    /// `openWorldHint`: the tool reaches systems outside a closed set, such as the web.
    #[must_use]
    pub fn open_world(self, hint: bool) -> Self {
        self.with("openWorldHint", json!(hint))
    }

    /// The hint under a key of MCP, unmodified.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Returns true if no hint is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every key with its value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns true if retrying a call is safe: the tool only reads, or a second call changes
    /// nothing.
    pub fn allows_repeat(&self) -> bool {
        ["readOnlyHint", "idempotentHint"]
            .iter()
            .any(|hint| self.0.get(*hint) == Some(&json!(true)))
    }

    /// Applies the keys of `over`; all other keys stay.
    pub(crate) fn overlay(&mut self, over: &Self) {
        for (key, value) in &over.0 {
            self.0.insert(key.clone(), value.clone());
        }
    }

    pub(crate) fn fields_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    fn with(mut self, key: &str, value: Value) -> Self {
        self.0.insert(key.to_owned(), value);
        self
    }
}

/// An icon of a tool, as MCP defines it. A server's icons are kept unmodified and unchecked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Icon(Map<String, Value>);

/// The reason why an icon is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct IconError {
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: &'static str,
}

/// The background an icon is designed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IconTheme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

impl Icon {
    /// Creates an icon from an `https:` address or a base64 `data:` URI. Clients must refuse every
    /// other scheme.
    pub fn new(src: &str) -> Result<Self, IconError> {
        check_src(src)?;
        Ok(Self(Map::new()).with("src", json!(src)))
    }

    /// Sets the media type, for an address that does not imply it.
    pub fn with_mime_type(self, mime_type: &str) -> Result<Self, IconError> {
        if !is_image_type(mime_type) {
            return Err(IconError {
                problem: "`mimeType` is not the type of an image".to_owned(),
                remedy: "write a type such as `image/png` or `image/svg+xml`",
            });
        }
        Ok(self.with("mimeType", json!(mime_type)))
    }

    /// Sets the sizes: `48x48`, or `any` for a scalable icon.
    pub fn with_sizes(self, sizes: &[impl AsRef<str>]) -> Result<Self, IconError> {
        const REMEDY: &str = "write sizes such as `48x48`, or `any` for a scalable image";
        let sizes: Vec<&str> = sizes.iter().map(AsRef::as_ref).collect();
        if sizes.len() > ICON_SIZES_MAX {
            let problem = format!("an icon has more than {ICON_SIZES_MAX} `sizes`");
            return Err(IconError { problem, remedy: REMEDY });
        }
        if !sizes.iter().all(|size| is_size(size)) {
            return Err(IconError {
                problem: "`sizes` has an invalid size".to_owned(),
                remedy: REMEDY,
            });
        }
        Ok(self.with("sizes", json!(sizes)))
    }

    /// Sets the background it is designed for.
    #[must_use]
    pub fn with_theme(self, theme: IconTheme) -> Self {
        let theme = match theme {
            IconTheme::Light => "light",
            IconTheme::Dark => "dark",
        };
        self.with("theme", json!(theme))
    }

    /// The field under a key of MCP, unmodified.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    pub(crate) fn fields_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    fn with(mut self, key: &str, value: Value) -> Self {
        self.0.insert(key.to_owned(), value);
        self
    }
}

fn check_src(src: &str) -> Result<(), IconError> {
    let refuse = |problem: String| {
        Err(IconError {
            problem,
            remedy: "use an https: address, or a data: URI such as `data:image/png;base64,...`",
        })
    };
    let Ok(url) = Url::parse(src) else {
        return refuse("`src` of an icon is not a valid URI".to_owned());
    };
    match url.scheme() {
        "https" if src.len() > ICON_URL_BYTES_MAX => {
            refuse(format!("`src` of an icon is longer than {ICON_URL_BYTES_MAX} bytes"))
        }
        "https" if !url.username().is_empty() || url.password().is_some() => {
            refuse("`src` of an icon has a user name or password".to_owned())
        }
        "https" => Ok(()),
        "data" if src.len() > ICON_DATA_BYTES_MAX => {
            refuse(format!("`src` of an icon is longer than {ICON_DATA_BYTES_MAX} bytes"))
        }
        "data" if is_base64_image(url.path()) => Ok(()),
        "data" => refuse("`src` of an icon is not an image in base64".to_owned()),
        scheme => refuse(format!("`src` of an icon has the scheme `{scheme}:`")),
    }
}

/// Returns true if the rest of a `data:` URI is `image/...;base64,...`.
fn is_base64_image(rest: &str) -> bool {
    let Some((media_type, data)) = rest.split_once(',') else { return false };
    let Some(media_type) = media_type.strip_suffix(";base64") else { return false };
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte);
    let mime_type = media_type.split(';').next().unwrap_or_default();
    is_image_type(mime_type) && !data.is_empty() && data.bytes().all(is_base64)
}

fn is_image_type(mime_type: &str) -> bool {
    mime_type.strip_prefix("image/").is_some_and(|kind| {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte);
        (1..=64).contains(&kind.len()) && kind.bytes().all(is_token)
    })
}

fn is_size(size: &str) -> bool {
    let is_number = |text: &str| {
        (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    size == "any"
        || size.split_once('x').is_some_and(|(width, height)| is_number(width) && is_number(height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_data_images_are_icons() {
        for src in [
            "https://example.com/icon.png",
            "data:image/png;base64,iVBORw0KGgo=",
            "data:image/svg+xml;charset=utf-8;base64,PHN2Zy8+",
        ] {
            assert!(Icon::new(src).is_ok(), "{src}");
        }
        for src in [
            "icon.png",
            "",
            "http://example.com/icon.png",
            "http://127.0.0.1/icon.png",
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "file:///etc/passwd",
            "ftp://example.com/i.png",
            "ws://example.com/",
            "blob:https://example.com/1",
            "https://user:word@example.com/i.png",
            "data:text/html;base64,PGI+",
            "data:image/png,raw",
            "data:image/svg+xml,<svg onload=alert(1)/>",
            "data:image/png;base64,",
        ] {
            assert!(Icon::new(src).is_err(), "{src}");
        }
        let long = |start: &str, len: usize| format!("{start}{}", "A".repeat(len));
        assert!(Icon::new(&long("https://example.com/", ICON_URL_BYTES_MAX)).is_err());
        assert!(Icon::new(&long("data:image/png;base64,", ICON_DATA_BYTES_MAX)).is_err());
    }

    #[test]
    fn an_icon_has_the_fields_of_mcp() {
        let icon = Icon::new("https://example.com/i.png").unwrap();
        let icon = icon.with_mime_type("image/png").unwrap();
        let icon = icon.with_sizes(&["48x48", "any"]).unwrap().with_theme(IconTheme::Dark);
        assert_eq!(
            json!(icon),
            json!({"src": "https://example.com/i.png", "mimeType": "image/png",
                   "sizes": ["48x48", "any"], "theme": "dark"})
        );
        let icon = || Icon::new("https://example.com/i.png").unwrap();
        for mime_type in ["text/html", "image/", "image/a b"] {
            assert!(icon().with_mime_type(mime_type).is_err(), "{mime_type}");
        }
        for size in ["48", "x48", "48x", "large", "-1x1", "999999x1"] {
            assert!(icon().with_sizes(&[size]).is_err(), "{size}");
        }
        assert!(icon().with_sizes(&["1x1"; ICON_SIZES_MAX + 1]).is_err());
    }
}
