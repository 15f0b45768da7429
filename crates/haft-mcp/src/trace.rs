//! The trace a request belongs to, passed on without a look into it.

use crate::wire::push_quoted;

/// W3C trace context: in `_meta` of the request over every transport, and as headers over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// `traceparent`, valid.
    pub parent: String,
    /// `tracestate`, valid.
    pub state: Option<String>,
}

impl Trace {
    /// The two fields with their names.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let state = self.state.as_deref().map(|state| ("tracestate", state));
        std::iter::once(("traceparent", self.parent.as_str())).chain(state)
    }

    /// The fields of `_meta` with these behind them.
    pub(crate) fn added_to(&self, meta: &str) -> String {
        let mut json = meta.to_owned();
        for (name, value) in self.fields() {
            if !json.is_empty() {
                json.push(',');
            }
            push_quoted(&mut json, name);
            json.push(':');
            push_quoted(&mut json, value);
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_stand_behind_what_is_there() {
        let mut trace = Trace { parent: "00-a-b-01".to_owned(), state: None };
        assert_eq!(trace.added_to(""), r#""traceparent":"00-a-b-01""#);
        trace.state = Some("x=\"".to_owned());
        assert_eq!(
            trace.added_to(r#""v":1"#),
            r#""v":1,"traceparent":"00-a-b-01","tracestate":"x=\"""#
        );
    }
}
