//! The number of a replica, and ids that carry it.

use std::fmt;

use uuid::Uuid;

/// The number of a replica among those that share one database. Zero is a service on its own.
///
/// An id names its owner: it is a `UUIDv7` whose last two bytes are the number. Such ids still sort by time.
///
/// ```
/// use haft::ReplicaNumber;
///
/// let replica = ReplicaNumber::new(0x7c02);
/// let id = replica.new_id().to_string();
/// assert!(id.ends_with("7c02"));
/// assert_eq!(ReplicaNumber::of_id(&id), Some(replica));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ReplicaNumber(u16);

impl ReplicaNumber {
    /// The number of a service on its own.
    pub const ALONE: Self = Self(0);

    /// The replica of this number.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Makes an id that names this replica.
    pub fn new_id(self) -> Uuid {
        let mut bytes = Uuid::now_v7().into_bytes();
        let [.., high, low] = &mut bytes;
        [*high, *low] = self.0.to_be_bytes();
        Uuid::from_bytes(bytes)
    }

    /// The replica that an id names. Nothing for a text that is not such an id. Ids of a service on its own name no
    /// other replica.
    pub fn of_id(id: &str) -> Option<Self> {
        let id = Uuid::try_parse(id).ok().filter(|id| id.get_version_num() == 7)?;
        let [.., high, low] = *id.as_bytes();
        Some(Self(u16::from_be_bytes([high, low])))
    }
}

impl fmt::Display for ReplicaNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_name_their_replica() {
        let replica = ReplicaNumber::new(0x7c02);
        let ids: Vec<Uuid> = (0..1000).map(|_| replica.new_id()).collect();
        assert!(ids.is_sorted());
        let all: std::collections::HashSet<&Uuid> = ids.iter().collect();
        assert_eq!(all.len(), ids.len());
        for id in ids {
            assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
            assert_eq!(ReplicaNumber::of_id(&id.to_string()), Some(replica));
        }
    }

    #[test]
    fn other_texts_name_no_replica() {
        for text in ["", "tail", "events", "f47ac10b-58cc-4372-a567-0e02b2c37c02"] {
            assert_eq!(ReplicaNumber::of_id(text), None, "{text}");
        }
    }
}
