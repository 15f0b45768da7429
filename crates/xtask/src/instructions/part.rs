//! The part of Haft that a function belongs to, by the beginning of its name.

/// The beginning of a path, and the part.
const PARTS: [(&str, &str); 33] = [
    ("haft::call", "haft::call"),
    ("haft::record", "haft::record"),
    ("haft::redact", "haft::redact"),
    ("haft::backend", "haft::backend"),
    ("haft::", "haft: other"),
    ("haft_bounds", "haft_bounds"),
    ("haft_mcp::server", "haft_mcp::server"),
    ("haft_mcp::", "haft_mcp: client side"),
    ("haft_server::serve", "haft_server::serve"),
    ("haft_server::gateway", "haft_server::gateway"),
    ("haft_server::keys", "haft_server::keys"),
    ("haft_server::", "haft_server: other"),
    ("hyper", "hyper, http"),
    ("http", "hyper, http"),
    ("axum", "axum, tower"),
    ("tower", "axum, tower"),
    ("matchit", "axum, tower"),
    ("tokio_util", "tokio_util"),
    ("tokio", "tokio"),
    ("mio", "tokio"),
    ("futures", "futures"),
    ("serde", "serde, serde_json"),
    ("ryu", "serde, serde_json"),
    ("itoa", "serde, serde_json"),
    ("tracing", "tracing"),
    ("sha2", "sha2"),
    ("memchr", "memchr, regex"),
    ("regex", "memchr, regex"),
    ("aho_corasick", "memchr, regex"),
    ("mi_", "allocation"),
    ("core", "core, alloc, std"),
    ("alloc", "core, alloc, std"),
    ("std", "core, alloc, std"),
];

const ALLOCATION: [&str; 14] = [
    "malloc",
    "_int_malloc",
    "calloc",
    "realloc",
    "_int_realloc",
    "free",
    "_int_free",
    "cfree",
    "malloc_consolidate",
    "unlink_chunk",
    "posix_memalign",
    "aligned_alloc",
    "_mid_memalign",
    "tcache_",
];

pub(super) fn of(function: &str) -> &'static str {
    if function.starts_with("__mem") || function.starts_with("mem") && !function.contains("::") {
        return "memcpy, memcmp";
    }
    if !function.contains("::") {
        let is_allocation = ALLOCATION.iter().any(|it| function.starts_with(it))
            || function.starts_with("__rust_")
            || function.contains("__rdl_")
            || function.contains("__rust_alloc");
        if is_allocation {
            return "allocation";
        }
    }
    path(function).map_or("libc, kernel interface", |path| {
        let part = PARTS.iter().find(|(start, _)| path.starts_with(start));
        part.map_or("other crates", |(_, part)| part)
    })
}

/// The path that names the part: that of the dropped type for a drop, the first path otherwise.
fn path(function: &str) -> Option<&str> {
    let inner = ["core::ptr::drop_in_place<", "core::ptr::drop_glue<"]
        .iter()
        .find_map(|start| function.strip_prefix(start));
    let text = inner.unwrap_or(function);
    let text = text.trim_start_matches(['<', '&', '(', '*', '_']);
    let text = text.strip_prefix("mut ").or_else(|| text.strip_prefix("dyn ")).unwrap_or(text);
    // A standard container belongs to what it holds.
    let wrapped =
        ["alloc::sync::Arc<", "alloc::boxed::Box<", "core::option::Option<", "alloc::vec::Vec<"];
    match wrapped.iter().find_map(|start| text.strip_prefix(start)) {
        Some(held) if held.contains("::") => path(held),
        _ => text.contains("::").then_some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_belong_to_parts() {
        assert_eq!(of("_int_malloc"), "allocation");
        assert_eq!(of("__memcpy_avx_unaligned_erms"), "memcpy, memcmp");
        assert_eq!(of("<hyper::proto::h1::Dispatcher<T> as Future>::poll"), "hyper, http");
        assert_eq!(of("haft::call::path::{{closure}}"), "haft::call");
        let dropped = "core::ptr::drop_in_place<core::option::Option<haft::record::Line>>";
        assert_eq!(of(dropped), "haft::record");
        assert_eq!(of("epoll_wait"), "libc, kernel interface");
    }
}
