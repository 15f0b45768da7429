//! Reasons why the database cannot be used, each with a remedy.

use std::error::Error as _;
use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::migrate::SCHEMA_VERSION;

/// Reasons why the database cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// The settings are invalid.
    #[error("{problem}")]
    Settings {
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// No connection is possible.
    #[error("the database cannot be reached{}: {cause}", for_age(*.age))]
    Unreachable {
        /// The cause.
        cause: String,
        /// The time since it last responded, if it ever did.
        age: Option<Duration>,
    },
    /// The database did not respond in time, or cancelled the statement.
    #[error("the database did not respond within {} s", .after.as_secs())]
    TimedOut {
        /// The time limit.
        after: Duration,
    },
    /// The connection broke during a statement, which may have taken effect or not.
    #[error("the connection to the database broke during a statement: {cause}")]
    Ambiguous {
        /// The cause.
        cause: String,
    },
    /// The database takes no changes: a standby, or set to read-only.
    #[error("the database is read-only")]
    ReadOnly,
    /// The database refuses the user, the password, or the operation.
    #[error("the database refuses: {cause}")]
    Refused {
        /// The cause.
        cause: String,
        /// The remedy.
        remedy: String,
    },
    /// The tables of Haft are missing.
    #[error("the database has no tables of Haft")]
    NoSchema,
    /// The tables are older than this Haft needs.
    #[error("the tables are at version {found}, and this Haft needs version {SCHEMA_VERSION}")]
    SchemaTooOld {
        /// Their version.
        found: i32,
    },
    /// The tables are newer than this Haft can use.
    #[error(
        "the tables are at version {found} and need a Haft that knows version {works_from}; this one knows {SCHEMA_VERSION}"
    )]
    SchemaTooNew {
        /// Their version.
        found: i32,
        /// The oldest version whose Haft can use them.
        works_from: i32,
    },
    /// The database refuses the values of a statement: too long, out of range, or not text.
    #[error("the database refuses the values: {cause}")]
    Content {
        /// The cause.
        cause: String,
    },
    /// Anything else.
    #[error("the database reports: {cause}")]
    Other {
        /// The cause.
        cause: String,
    },
}

fn for_age(age: Option<Duration>) -> String {
    age.map(|age| format!(" for {} s", age.as_secs())).unwrap_or_default()
}

impl DatabaseError {
    /// The remedy.
    pub fn remedy(&self) -> String {
        match self {
            Self::Settings { remedy, .. } | Self::Refused { remedy, .. } => remedy.clone(),
            Self::Unreachable { .. } => {
                "see that PostgreSQL runs and that `shared.url` names its host and port".to_owned()
            }
            Self::TimedOut { .. } => {
                "retry; if it lasts, see what the database is busy with".to_owned()
            }
            Self::Ambiguous { .. } => "read the state again before you retry".to_owned(),
            Self::ReadOnly => "name the primary in `shared.url`, or all hosts with \
                               `target_session_attrs=read-write`"
                .to_owned(),
            Self::NoSchema | Self::SchemaTooOld { .. } => {
                "run `haft shared migrate`, or set `shared.migrate: auto`".to_owned()
            }
            Self::SchemaTooNew { .. } => "upgrade this Haft".to_owned(),
            Self::Content { .. } => "shorten or correct the value that it names".to_owned(),
            Self::Other { .. } => {
                "see the log of PostgreSQL; `haft shared status` tries again".to_owned()
            }
        }
    }

    /// Returns true if waiting may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Ambiguous { .. }
            | Self::ReadOnly => true,
            Self::Settings { .. }
            | Self::Refused { .. }
            | Self::NoSchema
            | Self::SchemaTooOld { .. }
            | Self::SchemaTooNew { .. }
            | Self::Content { .. }
            | Self::Other { .. } => false,
        }
    }

    /// An error while connecting.
    pub(crate) fn connecting(error: &tokio_postgres::Error, age: Option<Duration>) -> Self {
        match error.code() {
            Some(_) => Self::reported(error),
            None => Self::Unreachable { cause: chain(error), age },
        }
    }

    /// An error of a statement that was sent.
    pub(crate) fn of_statement(error: &tokio_postgres::Error, limit: Duration) -> Self {
        match error.code() {
            Some(code) if *code == SqlState::QUERY_CANCELED => Self::TimedOut { after: limit },
            // The server ends the connection, and reports it before or after the statement took effect.
            Some(code) if is_end(code) => Self::Ambiguous { cause: chain(error) },
            Some(_) => Self::reported(error),
            None => Self::Ambiguous { cause: chain(error) },
        }
    }

    fn reported(error: &tokio_postgres::Error) -> Self {
        let cause = chain(error);
        let Some(code) = error.code() else { return Self::Other { cause } };
        let remedy = if [
            &SqlState::INVALID_PASSWORD,
            &SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        ]
        .contains(&code)
        {
            "correct user and password in `shared.url`"
        } else if *code == SqlState::INVALID_CATALOG_NAME {
            "create the database, or correct its name in `shared.url`"
        } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
            "let the user of `shared.url` own the database or its schema `haft`, or run `haft shared migrate` as one who does"
        } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
            return Self::ReadOnly;
        } else if [&SqlState::UNDEFINED_TABLE, &SqlState::INVALID_SCHEMA_NAME].contains(&code) {
            return Self::NoSchema;
        } else if is_end(code) || *code == SqlState::TOO_MANY_CONNECTIONS {
            return Self::Unreachable { cause, age: None };
        } else if CONTENT_CLASSES.iter().any(|class| code.code().starts_with(class)) {
            return Self::Content { cause };
        } else {
            return Self::Other { cause };
        };
        Self::Refused { cause, remedy: remedy.to_owned() }
    }
}

/// Classes of errors in the values of a statement: data exceptions, integrity, limits of a program.
const CONTENT_CLASSES: [&str; 3] = ["22", "23", "54"];

/// Returns true if the server starts, ends or gives up.
fn is_end(code: &SqlState) -> bool {
    [
        &SqlState::ADMIN_SHUTDOWN,
        &SqlState::CRASH_SHUTDOWN,
        &SqlState::CANNOT_CONNECT_NOW,
        &SqlState::IDLE_SESSION_TIMEOUT,
    ]
    .contains(&code)
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string);
    let mut cause = if error.as_db_error().is_some() { None } else { error.source() };
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text.lines().next().unwrap_or_default().to_owned()
}
