//! Numbers and times as the log spells them, written without the machinery of `std::fmt`.

use std::fmt::Write as _;

use jiff::Timestamp;

const MILLIS_PER_DAY: i64 = 86_400_000;

/// The first millisecond of the year 10000.
const MILLIS_MAX: i64 = 253_402_300_800_000;

pub(super) fn push_number(line: &mut String, number: u64) {
    if number >= 10 {
        push_number(line, number / 10);
    }
    line.push(digit(number));
}

/// RFC 3339 in UTC with milliseconds.
pub(super) fn push_timestamp(line: &mut String, timestamp: Timestamp) {
    let millis = timestamp.as_millisecond();
    if !(0..MILLIS_MAX).contains(&millis) {
        // Before 1970; no clock goes there, so its spelling need not be fast.
        // Writing to a string cannot fail.
        let _ = write!(line, "{timestamp:.3}");
        return;
    }
    let (year, month, day) = civil(millis / MILLIS_PER_DAY);
    let millis = (millis % MILLIS_PER_DAY).unsigned_abs();
    let seconds = millis / 1000;
    push_padded(line, year, 1000);
    for (separator, number) in [
        ('-', month),
        ('-', day),
        ('T', seconds / 3600),
        (':', seconds / 60 % 60),
        (':', seconds % 60),
    ] {
        line.push(separator);
        push_padded(line, number, 10);
    }
    line.push('.');
    push_padded(line, millis % 1000, 100);
    line.push('Z');
}

/// Year, month and day of a day since 1970, by the calendar that begins its years in March.
fn civil(day: i64) -> (u64, u64, u64) {
    let day = day.unsigned_abs() + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

/// A number with leading zeros; `unit` is the value of its first digit.
fn push_padded(line: &mut String, number: u64, unit: u64) {
    let mut unit = unit;
    while unit > 0 {
        line.push(digit(number / unit));
        unit /= 10;
    }
}

fn digit(number: u64) -> char {
    char::from(b'0' + u8::try_from(number % 10).unwrap_or_default())
}
