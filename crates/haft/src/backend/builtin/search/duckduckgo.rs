//! The HTML page of `DuckDuckGo`, which needs no key and limits requests early.

use reqwest::header::{CONTENT_TYPE, USER_AGENT};
use url::Url;
use url::form_urlencoded::Serializer;

use super::answer::Found;
use super::html::{self, Token, Tokens};
use super::http::{Http, Service};
use super::pace::Pace;
use super::question::Question;
use crate::config::agent::SearchService;
use crate::error::ToolFailure;

const WHEN_REFUSED: &str = "try again later, or configure another service: `builtin.web_search.searxng.url`, \
    `BRAVE_API_KEY` or `TAVILY_API_KEY`";
/// Markers of the CAPTCHA page, which replaces the results.
const CHALLENGE: [&str; 3] = ["anomaly-modal", "challenge-form", "bots use DuckDuckGo too"];
/// Markers of the page without results.
const NOTHING_FOUND: [&str; 3] = ["no-results", "result--no-result", "No results."];
const AGENT: &str = "Mozilla/5.0 (compatible; Haft)";

pub(super) async fn search(
    http: &Http,
    settings: &SearchService,
    pace: &Pace,
    question: &Question,
) -> Result<Vec<Found>, ToolFailure> {
    let service =
        Service { name: "DuckDuckGo", section: "duckduckgo", settings, when_refused: WHEN_REFUSED };
    pace.turn().await.map_err(|_| {
        let cause = "is asked once a second at most, and too many searches wait already";
        service.unavailable(cause, WHEN_REFUSED)
    })?;
    let request = http.client.post(service.address("/html/")).header(USER_AGENT, AGENT);
    let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    let reply = http.send(service, request.body(form(question))).await?;
    let html = String::from_utf8_lossy(&reply.body);
    let has = |words: &[&str]| words.iter().any(|word| html.contains(word));
    if reply.status.as_u16() == 202 || has(&CHALLENGE) {
        return Err(service.limited(reply.status, None));
    }
    service.accepted(&reply)?;
    let links = links(&html);
    if links.is_empty() && !has(&NOTHING_FOUND) {
        return Err(
            service.unreadable("the page has no results and does not say that there are none")
        );
    }
    let found = links
        .iter()
        .filter_map(|link| Found::new(&link.title, target(&link.href)?.as_str(), &link.snippet));
    Ok(found.collect())
}

fn form(question: &Question) -> String {
    let mut form = Serializer::new(String::new());
    form.append_pair("q", &question.query).append_pair("b", "");
    if let Some(range) = question.time_range {
        form.append_pair("df", range.letter());
    }
    form.finish()
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Link {
    href: String,
    title: String,
    snippet: String,
}

/// The text being read and the nesting depth of elements with the same name.
struct Reading<'p> {
    part: Part,
    element: &'p str,
    depth: usize,
}

#[derive(Clone, Copy)]
enum Part {
    Title,
    Snippet,
}

/// Titles, addresses and snippets of the page, in order.
fn links(page: &str) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut reading: Option<Reading<'_>> = None;
    for token in Tokens::of(page) {
        match token {
            Token::Open { name, attributes } => {
                let class = html::attribute(attributes, "class").unwrap_or_default();
                let is = |wanted: &str| class.split_ascii_whitespace().any(|word| word == wanted);
                let part = if is("result__a") {
                    let href = html::attribute(attributes, "href").unwrap_or_default();
                    links.push(Link { href, ..Link::default() });
                    Some(Part::Title)
                } else if is("result__snippet") {
                    Some(Part::Snippet)
                } else {
                    None
                };
                if let Some(part) = part {
                    reading = Some(Reading { part, element: name, depth: 1 });
                } else if let Some(reading) = &mut reading
                    && reading.element.eq_ignore_ascii_case(name)
                {
                    reading.depth += 1;
                }
            }
            Token::Close { name } => {
                if let Some(open) = &mut reading
                    && open.element.eq_ignore_ascii_case(name)
                {
                    open.depth -= 1;
                    if open.depth == 0 {
                        reading = None;
                    }
                }
            }
            Token::Text(text) => {
                if let (Some(reading), Some(link)) = (&reading, links.last_mut()) {
                    let into = match reading.part {
                        Part::Title => &mut link.title,
                        Part::Snippet => &mut link.snippet,
                    };
                    into.push_str(&html::decode(text));
                }
            }
        }
    }
    links
}

/// The final target of a link; `None` for an advertisement.
fn target(href: &str) -> Option<Url> {
    let base = Url::parse("https://duckduckgo.com/").ok()?;
    let url = base.join(href.trim()).ok()?;
    let is_own = |url: &Url| {
        url.host_str()
            .is_some_and(|host| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com"))
    };
    let target = if is_own(&url) && url.path().trim_end_matches('/') == "/l" {
        let wrapped = url.query_pairs().find(|(name, _)| name == "uddg")?.1;
        Url::parse(&wrapped).ok()?
    } else {
        url
    };
    let is_advertisement = is_own(&target) && target.path() == "/y.js";
    (!is_advertisement).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_unwrapped_and_advertisements_dropped() {
        for (href, expected) in [
            (
                "//duckduckgo.com/l/?uddg=https%3A%2F%2Frust%2Dlang.org%2Fa%3Fb%3D1%26c&rut=x",
                Some("https://rust-lang.org/a?b=1&c"),
            ),
            ("https://example.com/", Some("https://example.com/")),
            ("https://duckduckgo.com/y.js?ad_domain=shop.example", None),
            ("//duckduckgo.com/l/?uddg=https%3A%2F%2Fduckduckgo.com%2Fy.js%3Fad_domain%3Dx", None),
            ("//duckduckgo.com/l/?rut=x", None),
        ] {
            assert_eq!(target(href).map(String::from).as_deref(), expected, "{href}");
        }
    }

    #[test]
    fn a_page_is_read_however_it_is_broken() {
        let page = r#"<!-- <a class="result__a" href="no"> --><script>"<a class='result__a'>"</script>
            <h2><a rel=x class='result__a more' href = "https://a.example/?x=1&amp;y=2">A &lt;b&gt; <b>bo</b>ld</a></h2>
            <div class="result__snippet">one <div>two</div> three</div> not this
            <A CLASS="result__a" HREF=https://b.example/>second<"#;
        let link = |href: &str, title: &str, snippet: &str| Link {
            href: href.into(),
            title: title.into(),
            snippet: snippet.into(),
        };
        let expected = [
            link("https://a.example/?x=1&y=2", "A <b> bold", "one two three"),
            link("https://b.example/", "second<", ""),
        ];
        assert_eq!(links(page), expected);
    }
}
