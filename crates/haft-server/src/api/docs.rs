//! `/api/docs`: the API document as a page to read. Made once, at the start, of nothing but text: no
//! scripts, nothing from elsewhere.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Content security policy: the page may only be displayed.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                                 form-action 'none'; frame-ancestors 'none'";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem;\
color-scheme:light dark}h2{margin-top:2.5rem}pre,code{font:14px/1.4 ui-monospace,monospace}\
pre{overflow:auto;padding:.7rem;border:1px solid #8886;border-radius:.4rem}\
section{border-top:1px solid #8886;margin-top:1.5rem}h3 b{margin-right:.6rem}\
table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;padding:.15rem 1rem .15rem 0}\
summary{cursor:pointer}";

/// The page of an API document.
pub(super) fn page(document: &Value) -> String {
    let title = text(&document["info"]["title"]);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title} API</title>\
         <style>{STYLE}</style></head><body>\n<h1>{title} API {}</h1>\n<p>{}</p>\n\
         <p>Send a key as <code>X-API-Key: KEY</code> or <code>Authorization: Bearer KEY</code>; \
         <code>haft keys create</code> makes one. Errors are problem documents (RFC 9457). The same for \
         programs: <a href=\"openapi.json\">openapi.json</a>.</p>\n",
        text(&document["info"]["version"]),
        text(&document["info"]["description"]),
    );
    let mut operations: Vec<(&str, &str, &str, &Value)> = Vec::new();
    for (path, methods) in members(&document["paths"]) {
        for (method, operation) in members(methods) {
            let tag = operation["tags"][0].as_str().unwrap_or("other");
            operations.push((tag, path, method, operation));
        }
    }
    operations.sort_by_key(|(tag, path, ..)| (*tag, *path));
    let mut last = "";
    for (tag, path, method, operation) in operations {
        if tag != last {
            add(&mut page, format_args!("<h2>{}</h2>\n", escaped(tag)));
            last = tag;
        }
        section(&mut page, path, method, operation);
    }
    page.push_str("<h2>Schemas</h2>\n");
    for (name, schema) in members(&document["components"]["schemas"]) {
        add(
            &mut page,
            format_args!(
                "<details id=\"schema-{0}\"><summary><code>{0}</code> {1}</summary><pre>{2}</pre></details>\n",
                escaped(name),
                text(&schema["description"]),
                escaped(&pretty(schema)),
            ),
        );
    }
    page + "</body></html>\n"
}

fn section(page: &mut String, path: &str, method: &str, operation: &Value) {
    let id = format!("{method}-{path}");
    add(
        page,
        format_args!(
            "<section id=\"{}\">\n<h3><b>{}</b><code>{}</code></h3>\n<p>{}</p>\n",
            escaped(&id),
            escaped(&method.to_uppercase()),
            escaped(path),
            text(&operation["summary"]),
        ),
    );
    if operation["description"].is_string() {
        add(page, format_args!("<p>{}</p>\n", text(&operation["description"])));
    }
    if let Some(parameters) = operation["parameters"].as_array() {
        page.push_str("<table><tr><th>Parameter</th><th>In</th><th></th></tr>\n");
        for parameter in parameters {
            add(
                page,
                format_args!(
                    "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>\n",
                    text(&parameter["name"]),
                    text(&parameter["in"]),
                    text(&parameter["description"]),
                ),
            );
        }
        page.push_str("</table>\n");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        add(page, format_args!("<p>Body: {}</p>\n", shape(body)));
    }
    page.push_str("<table><tr><th>Answer</th><th></th><th>Body</th></tr>\n");
    for (status, response) in members(&operation["responses"]) {
        let bodies = members(&response["content"]).map(|(kind, content)| {
            format!("{} <small>{}</small>", shape(&content["schema"]), escaped(kind))
        });
        let bodies: Vec<String> = bodies.collect();
        add(
            page,
            format_args!(
                "<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                escaped(status),
                text(&response["description"]),
                bodies.join("<br>"),
            ),
        );
    }
    add(
        page,
        format_args!(
            "</table>\n<pre>{}</pre>\n</section>\n",
            escaped(&curl(path, method, operation))
        ),
    );
}

/// A command to try the operation.
fn curl(path: &str, method: &str, operation: &Value) -> String {
    let path = path.replace(['{', '}'], "");
    let method =
        if method == "get" { String::new() } else { format!("-X {} ", method.to_uppercase()) };
    let mut line = format!("curl {method}http://127.0.0.1:7300{path}");
    if !operation["security"].is_null() {
        line.push_str(" -H \"X-API-Key: $KEY\"");
    }
    if operation.get("requestBody").is_some() {
        line.push_str(" -H 'Content-Type: application/json' -d @body.json");
    }
    line
}

/// A schema in short: the name of one that is shown below, or itself.
fn shape(schema: &Value) -> String {
    let name = |schema: &Value| {
        let place = schema["$ref"].as_str()?;
        Some(escaped(place.rsplit('/').next()?))
    };
    match name(schema).or_else(|| name(&schema["items"])) {
        Some(name) => {
            let several = if schema["items"].is_null() { "" } else { "list of " };
            format!("{several}<a href=\"#schema-{name}\"><code>{name}</code></a>")
        }
        None => match schema["type"].as_str() {
            Some("object") | None => format!("<code>{}</code>", escaped(&schema.to_string())),
            Some(kind) => escaped(kind),
        },
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = value.as_object().map(Map::iter).into_iter().flatten();
    members.map(|(key, value)| (key.as_str(), value))
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// A string with its backtick parts as code.
fn text(value: &Value) -> String {
    let escaped = escaped(value.as_str().unwrap_or_default());
    let parts = escaped.split('`').enumerate();
    let parts = parts.map(|(at, part)| match at % 2 {
        0 => part.to_owned(),
        _ => format!("<code>{part}</code>"),
    });
    parts.collect()
}

fn add(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = page.write_fmt(text);
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, character| {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::page;

    #[test]
    fn documents_are_escaped_as_text() {
        let evil = "<script>alert('x')</script>\"&";
        let page = page(&json!({
            "info": {"title": evil, "version": evil, "description": evil},
            "paths": {evil: {"get": {"tags": [evil], "summary": evil, "description": evil,
                "parameters": [{"name": evil, "in": evil, "description": evil}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": evil}}}},
                "responses": {evil: {"description": evil, "content": {evil: {"schema": {"type": evil}}}}}}}},
            "components": {"schemas": {evil: {"description": evil}}},
        }));
        assert!(!page.contains("<script") && !page.contains("('x')"), "{page}");
    }
}
