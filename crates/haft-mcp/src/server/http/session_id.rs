//! Ids of sessions where there are replicas: everything that Haft knows about the client, signed and bound to its
//! principal. Any replica rebuilds the session from its id.

use std::borrow::Cow;
use std::num::NonZeroU16;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use crate::client::LEGACY_VERSIONS;
use crate::declared;
use crate::server::peer::ClientFacts;
use crate::server::principal::Principal;
use crate::server::replica::{Replica, TAG_BYTES};
use crate::transport::Era;

/// The longest id. Clients send it with every request.
pub(super) const ID_CHARS_MAX: usize = 1536;
/// The random part.
pub(super) const RANDOM_BYTES: usize = 16;
/// The layout of what follows: the home replica, the random part, the client as a JSON list.
const LAYOUT: u8 = 1;
const HEAD_BYTES: usize = 1 + 2 + RANDOM_BYTES;
const CLIENT_BYTES_MAX: usize = ID_CHARS_MAX / 4 * 3 - HEAD_BYTES - TAG_BYTES;

/// What the keys sign here.
const PURPOSE: &str = "Mcp-Session-Id";

/// A session as its id describes it.
pub(super) struct SignedSession {
    /// The replica that opened it.
    pub(super) home: NonZeroU16,
    pub(super) facts: ClientFacts,
}

/// Makes the id of a new session. What does not fit is left out of the facts too, so that the session is the same
/// everywhere.
pub(super) fn sign(
    replica: &Replica,
    random: [u8; RANDOM_BYTES],
    mut facts: ClientFacts,
) -> (String, ClientFacts) {
    facts.id = client_id(&random);
    let client = loop {
        let client = (&facts.protocol_version, &facts.name, &facts.capabilities);
        // Strings and values that came from JSON: serialization cannot fail.
        let client = serde_json::to_vec(&client).unwrap_or_default();
        if client.len() <= CLIENT_BYTES_MAX {
            break client;
        }
        shorten(&mut facts);
    };
    let home = replica.number.get().to_be_bytes();
    let payload = [&[LAYOUT][..], &home, &random, &client].concat();
    let tag = replica.keys.sign(PURPOSE, &parts(replica, &payload, &facts.principal));
    (BASE64_URL_SAFE_NO_PAD.encode([&payload[..], &tag].concat()), facts)
}

/// Reads the id of a session that one of the replicas opened for this principal at this endpoint.
pub(super) fn verify(replica: &Replica, id: &str, principal: &Principal) -> Option<SignedSession> {
    if id.len() > ID_CHARS_MAX {
        return None;
    }
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(id).ok()?;
    let (payload, tag) = bytes.split_at_checked(bytes.len().checked_sub(TAG_BYTES)?)?;
    if !replica.keys.is_signed(PURPOSE, &parts(replica, payload, &principal.name), tag) {
        return None;
    }
    let (head, client) = payload.split_at_checked(HEAD_BYTES)?;
    let [LAYOUT, high, low, random @ ..] = head else { return None };
    let home = NonZeroU16::new(u16::from_be_bytes([*high, *low]))?;
    let (version, name, capabilities): (String, Option<String>, Value) =
        serde_json::from_slice(client).ok()?;
    // Another release of Haft may have opened it.
    let version = LEGACY_VERSIONS.into_iter().find(|known| *known == version)?;
    let facts = ClientFacts {
        id: client_id(random.try_into().ok()?),
        principal: Arc::clone(&principal.name),
        revoked: principal.revoked.clone(),
        role: principal.role,
        era: Era::Legacy,
        protocol_version: Cow::Borrowed(version),
        name,
        capabilities,
    };
    Some(SignedSession { home, facts })
}

fn parts<'a>(replica: &'a Replica, payload: &'a [u8], principal: &'a str) -> [&'a [u8]; 3] {
    [payload, replica.endpoint.as_bytes(), principal.as_bytes()]
}

/// The id of the client, the same on every replica.
fn client_id(random: &[u8; RANDOM_BYTES]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *random;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// Leaves out the details of the longest capability; without any, half of the client's name.
fn shorten(facts: &mut ClientFacts) {
    let details = facts.capabilities.as_object_mut().and_then(|all| {
        let long = all.values_mut().filter(|it| **it != Value::Object(Map::new()));
        long.max_by_key(|it| it.to_string().len())
    });
    match (details, &mut facts.name) {
        (Some(details), _) => *details = Value::Object(Map::new()),
        (None, Some(name)) if !name.is_empty() => *name = declared::cut(name, name.len() / 2),
        (None, _) => (facts.name, facts.capabilities) = (None, Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::replica::SigningKeys;

    fn replica(number: u16, endpoint: &str) -> Replica {
        let keys = SigningKeys::new([[7; 32]]).unwrap();
        Replica { number: NonZeroU16::new(number).unwrap(), keys, endpoint: endpoint.into() }
    }

    fn facts(name: &str, capabilities: Value) -> ClientFacts {
        ClientFacts {
            id: 0,
            principal: "key:a".into(),
            revoked: None,
            role: None,
            era: Era::Legacy,
            protocol_version: Cow::Borrowed(LEGACY_VERSIONS[0]),
            name: Some(name.to_owned()),
            capabilities,
        }
    }

    #[test]
    fn any_replica_rebuilds_the_session_for_its_principal_alone() {
        let capabilities = json!({"elicitation": {"url": {}}, "extensions": {"x": {}}});
        let (id, signed) = sign(&replica(31746, ""), [9; 16], facts("Ada", capabilities));
        let principal = Principal::new("key:a").with_role("call");
        let rebuilt = verify(&replica(2, ""), &id, &principal).unwrap();
        assert_eq!(rebuilt.home.get(), 31746);
        assert_eq!(rebuilt.facts.role, Some("call"));
        let same = ClientFacts { role: None, ..rebuilt.facts };
        assert_eq!(format!("{same:?}"), format!("{signed:?}"));

        assert!(verify(&replica(2, ""), &id, &Principal::new("key:b")).is_none());
        assert!(verify(&replica(2, "docs"), &id, &principal).is_none());
        let keys = SigningKeys::new([[8; 32]]).unwrap();
        assert!(verify(&Replica { keys, ..replica(2, "") }, &id, &principal).is_none());
        for at in [0, 5, id.len() - 1] {
            let mut changed = id.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(verify(&replica(2, ""), &changed, &principal).is_none(), "{at}");
        }
        for other in ["", "A", &"A".repeat(200), &"A".repeat(10_000)] {
            assert!(verify(&replica(2, ""), other, &principal).is_none());
        }
    }

    #[test]
    fn an_id_has_at_most_1536_characters() {
        let long = json!({"roots": "r".repeat(900), "sampling": {"a": "s".repeat(700)}, "x": {}});
        for name in ["\u{1}".repeat(256), "n".repeat(256), "Ada".to_owned()] {
            let (id, signed) = sign(&replica(1, ""), [0; 16], facts(&name, long.clone()));
            assert!(id.len() <= ID_CHARS_MAX, "{}", id.len());
            let read = verify(&replica(1, ""), &id, &Principal::new("key:a")).unwrap().facts;
            assert_eq!((read.name, read.capabilities), (signed.name, signed.capabilities));
        }
        let (_, kept) = sign(&replica(1, ""), [0; 16], facts("Ada", long));
        let capabilities = json!({"roots": {}, "sampling": {"a": "s".repeat(700)}, "x": {}});
        assert_eq!((kept.name.as_deref(), kept.capabilities), (Some("Ada"), capabilities));
    }
}
