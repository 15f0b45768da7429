//! Limits on what clients, servers, models and files send, and on what is in flight.

use super::model::Setting;

/// How many bytes everything in flight may take by default.
pub const IN_FLIGHT_BYTES_DEFAULT: u32 = 256 * 1024 * 1024;
/// Less than this would refuse ordinary requests.
pub const IN_FLIGHT_BYTES_MIN: u32 = 16 * 1024 * 1024;

/// Limits of the whole process.
#[derive(Debug, Clone)]
pub struct LimitsConfig {
    /// How many values and keys one message may have. A parsed value takes up to 40 times its text.
    pub message_nodes_max: Setting<u32>,
    /// How many bytes of memory everything in flight may take.
    pub in_flight_bytes_max: Setting<u32>,
}

impl LimitsConfig {
    /// The most values and keys of one message.
    pub fn nodes_max(&self) -> usize {
        usize::try_from(self.message_nodes_max.value).unwrap_or(usize::MAX)
    }

    pub(crate) fn in_flight_bytes(&self) -> usize {
        usize::try_from(self.in_flight_bytes_max.value).unwrap_or(usize::MAX)
    }
}
