//! W3C trace context of a call, parsed strictly as specified.

use std::collections::HashSet;
use std::sync::Arc;

/// The longest `tracestate` that is propagated; the specification requires at least this much.
const STATE_BYTES_MAX: usize = 512;
/// Maximum number of members in a `tracestate`.
const STATE_MEMBERS_MAX: usize = 32;
/// Maximum length of a key or value in it.
const STATE_PART_BYTES_MAX: usize = 256;

/// The trace context of a call, from `traceparent` and `tracestate`. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// `00-TRACE-PARENT-FLAGS`, valid.
    parent: Arc<str>,
    state: Option<Arc<str>>,
    maker: Maker,
}

/// The creator of the span that a context names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Maker {
    /// The sender of the context.
    Caller,
    /// This program, as the first of its trace.
    Root,
    /// This program, below the span with this id.
    Below(Arc<str>),
}

impl TraceContext {
    /// Parses the two headers. Returns `None` if `traceparent` is not of version 00 or is invalid.
    /// An invalid `tracestate` is dropped, and the trace continues without it.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        if !is_parent(traceparent) {
            return None;
        }
        let state = tracestate.map(str::trim).filter(|state| is_state(state));
        let state = state.map(Into::into);
        Some(Self { parent: traceparent.into(), state, maker: Maker::Caller })
    }

    /// Returns a new sampled trace whose first span this program creates. `None` if an id is zero.
    pub fn root(trace_id: [u8; 16], span_id: [u8; 8]) -> Option<Self> {
        let (trace, span) = (u128::from_be_bytes(trace_id), u64::from_be_bytes(span_id));
        let parent = format!("00-{trace:032x}-{span:016x}-01");
        is_parent(&parent).then(|| Self { parent: parent.into(), state: None, maker: Maker::Root })
    }

    /// Returns a child span of this program in the same trace. `None` if the id is zero.
    pub fn child(&self, span_id: [u8; 8]) -> Option<Self> {
        let (span, flags) = (u64::from_be_bytes(span_id), &self.parent[53..]);
        let parent = format!("00-{}-{span:016x}-{flags}", self.trace_id());
        let maker = Maker::Below(self.parent_id().into());
        is_parent(&parent).then(|| Self { parent: parent.into(), state: self.state.clone(), maker })
    }

    /// Returns true if this program created the span, with [`root`](Self::root) or
    /// [`child`](Self::child).
    pub fn is_own(&self) -> bool {
        match self.maker {
            Maker::Caller => false,
            Maker::Root | Maker::Below(_) => true,
        }
    }

    /// The id of the parent of a span that this program created.
    pub fn above(&self) -> Option<&str> {
        match &self.maker {
            Maker::Caller | Maker::Root => None,
            Maker::Below(id) => Some(id),
        }
    }

    /// The id of the whole trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.parent[3..35]
    }

    /// The id of the calling span: 16 hexadecimal digits.
    pub fn parent_id(&self) -> &str {
        &self.parent[36..52]
    }

    /// Returns true if the caller records this trace.
    pub fn is_sampled(&self) -> bool {
        // The last bit of the last digit, which was validated.
        self.parent
            .chars()
            .last()
            .and_then(|digit| digit.to_digit(16))
            .is_some_and(|it| it & 1 == 1)
    }

    /// The header `traceparent`.
    pub fn traceparent(&self) -> &str {
        &self.parent
    }

    /// The header `tracestate`.
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

fn is_parent(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut next = || parts.next().unwrap_or_default();
    let (version, trace, parent, flags) = (next(), next(), next(), next());
    version == "00"
        && is_id(trace, 32)
        && is_id(parent, 16)
        && is_hex(flags, 2)
        && parts.next().is_none()
}

fn is_id(text: &str, length: usize) -> bool {
    is_hex(text, length) && text.bytes().any(|byte| byte != b'0')
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_state(text: &str) -> bool {
    let blank = [' ', '\t'];
    let members = text.split(',').map(|member| member.trim_matches(blank));
    // Empty members are valid and ignored.
    let members: Vec<&str> = members.filter(|member| !member.is_empty()).collect();
    let mut keys = HashSet::new();
    let is_member = |member: &str| match member.split_once('=') {
        Some((key, value)) => is_key(key) && is_value(value),
        None => false,
    };
    text.len() <= STATE_BYTES_MAX
        && (1..=STATE_MEMBERS_MAX).contains(&members.len())
        && members.iter().all(|member| is_member(member))
        && members.iter().all(|member| keys.insert(member.split('=').next()))
}

/// `key`, or `tenant@system`.
fn is_key(text: &str) -> bool {
    let is_rest = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/');
    let fits = |text: &str, length_max: usize| {
        (1..=length_max).contains(&text.len()) && text.bytes().all(is_rest)
    };
    let begins_with_letter =
        |text: &str| text.starts_with(|first: char| first.is_ascii_lowercase());
    match text.split_once('@') {
        None => begins_with_letter(text) && fits(text, STATE_PART_BYTES_MAX),
        Some((tenant, system)) => {
            let begins_well =
                tenant.starts_with(|it: char| it.is_ascii_lowercase() || it.is_ascii_digit());
            begins_well && fits(tenant, 241) && begins_with_letter(system) && fits(system, 14)
        }
    }
}

fn is_value(text: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, 0x20..=0x7e) && byte != b',' && byte != b'=';
    (1..=STATE_PART_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_valid_parent_is_read() {
        let trace = TraceContext::parse(PARENT, None).unwrap();
        assert_eq!(trace.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(trace.parent_id(), "b7ad6b7169203331");
        assert_eq!((trace.traceparent(), trace.tracestate()), (PARENT, None));
        assert!(trace.is_sampled());
        let unsampled = PARENT.replace("-01", "-02");
        assert!(!TraceContext::parse(&unsampled, None).unwrap().is_sampled());
    }

    #[test]
    fn a_span_of_ones_own_stays_in_its_trace() {
        let caller = TraceContext::parse(&PARENT.replace("-01", "-03"), Some("a=b")).unwrap();
        let own = caller.child([0x01; 8]).unwrap();
        let expected = "00-0af7651916cd43dd8448eb211c80319c-0101010101010101-03";
        assert_eq!((own.traceparent(), own.tracestate()), (expected, Some("a=b")));
        assert_eq!((own.is_own(), own.above()), (true, Some("b7ad6b7169203331")));
        assert_eq!((caller.is_own(), caller.above()), (false, None));
        assert_eq!(caller.child([0; 8]), None);
    }

    #[test]
    fn a_trace_of_ones_own_is_recorded_and_has_nothing_above() {
        let root = TraceContext::root([0xab; 16], [0xcd; 8]).unwrap();
        let parent = format!("00-{}-{}-01", "ab".repeat(16), "cd".repeat(8));
        assert_eq!(root.traceparent(), parent);
        assert_eq!((root.is_own(), root.above(), root.is_sampled()), (true, None, true));
        assert_eq!(TraceContext::root([0; 16], [1; 8]), None);
        assert_eq!(TraceContext::root([1; 16], [0; 8]), None);
    }

    #[test]
    fn anything_else_is_no_parent() {
        let zeros = |count| "0".repeat(count);
        let broken = [
            String::new(),
            PARENT.to_uppercase(),
            PARENT.replace("00-", "01-"),
            PARENT.replace("00-", "ff-"),
            PARENT.replace("0af7651916cd43dd8448eb211c80319c", &zeros(32)),
            PARENT.replace("b7ad6b7169203331", &zeros(16)),
            PARENT.replace("b7ad", "g7ad"),
            PARENT.replace("b7ad6b7169203331", "b7ad6b716920333"),
            PARENT.replace("0af7", "0af"),
            format!("{PARENT}-00"),
            format!("{PARENT} "),
            format!("{PARENT}\r\nx: y"),
            PARENT.replace("-01", "-1"),
            PARENT.replace("-01", ""),
            PARENT.replace("0af7", "é7"),
        ];
        for text in broken {
            assert_eq!(TraceContext::parse(&text, None), None, "{text:?}");
        }
    }

    #[test]
    fn a_state_is_kept_as_it_is_or_not_at_all() {
        let state = |state: &str| {
            TraceContext::parse(PARENT, Some(state)).unwrap().tracestate().map(ToOwned::to_owned)
        };
        let many =
            |count: usize| (0..count).map(|at| format!("k{at}=1")).collect::<Vec<_>>().join(",");
        let good = [
            "a=1",
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
            "1t@sys=x y",
            "a=1, b=2,,",
            "a/b*c_d-e=~",
        ];
        for text in good {
            assert_eq!(state(text).as_deref(), Some(text));
        }
        assert!(state(&many(32)).is_some());
        let bad =
            ["", ",", "a", "a=", "A=1", "1a=1", "a=1,a=2", "a=b=c", "a=é", "a=1\r\nx: y", "t@=1"];
        for text in bad {
            assert_eq!(state(text), None, "{text:?}");
        }
        assert_eq!(state(&many(33)), None);
        assert_eq!(state(&format!("a={}", "x".repeat(257))), None);
    }
}
