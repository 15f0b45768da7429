//! The version of the tables.

/// The version of the tables that this Haft writes.
pub const SCHEMA_VERSION: i32 = 2;
