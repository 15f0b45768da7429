//! Limits on what clients, servers, models and files send, and on what is in flight.

use super::model::Setting;

/// Default memory limit for data in flight, in bytes.
pub const IN_FLIGHT_BYTES_DEFAULT: u32 = 256 * 1024 * 1024;
/// Less than this would refuse ordinary requests.
pub const IN_FLIGHT_BYTES_MIN: u32 = 16 * 1024 * 1024;

/// Limits of the whole process.
#[derive(Debug, Clone)]
pub struct LimitsConfig {
    /// Maximum number of values and keys in one message. A parsed value takes up to 40 times its
    /// text.
    pub message_nodes_max: Setting<u32>,
    /// Memory limit for data in flight, in bytes.
    pub in_flight_bytes_max: Setting<u32>,
}

impl LimitsConfig {
    /// The most values and keys of one message.
    pub fn nodes_max(&self) -> usize {
        usize::try_from(self.message_nodes_max.value).unwrap_or(usize::MAX)
    }

    /// The most bytes of messages, arguments and answers in memory at once.
    pub fn in_flight_bytes(&self) -> usize {
        usize::try_from(self.in_flight_bytes_max.value).unwrap_or(usize::MAX)
    }
}
