//! Metadata of tools, as files write it. The keys are those of MCP.

use super::read::{choice, record};

record! {
    /// `annotations` of a tool.
    pub struct RawAnnotations("`annotations`", Reject) {
        /// A name for people; clients prefer the tool's own `title`.
        title("title"): String,
        /// `true` if the tool changes nothing.
        read_only("readOnlyHint"): bool,
        /// `true` if the tool may delete or overwrite.
        destructive("destructiveHint"): bool,
        /// `true` if a second call with the same arguments changes nothing more.
        idempotent("idempotentHint"): bool,
        /// `true` if the tool reaches systems outside a closed set, such as the web.
        open_world("openWorldHint"): bool,
    }
}

record! {
    /// One of `icons`.
    pub struct RawIcon("an icon", Reject) {
        /// An https: address, or a data: URI with an image in base64.
        src("src"): String,
        /// The type of the image, such as `image/png`.
        mime_type("mimeType"): String,
        /// The sizes it can be shown at, such as `48x48`, or `any`.
        sizes("sizes"): Vec<String>,
        /// The background it is designed for: `light` or `dark`.
        theme("theme"): RawIconTheme,
    }
}

choice! {
    /// The background an icon is designed for.
    pub enum RawIconTheme("a theme of an icon") {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}
