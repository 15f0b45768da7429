//! `limits`: what the whole process may take.

use haft::Config;

fn bytes(yaml: &str) -> Result<u32, String> {
    let config = Config::from_yaml(yaml).map_err(|error| error.to_string())?;
    Ok(config.limits.in_flight_bytes_max.value)
}

#[test]
fn the_memory_in_flight_has_a_limit_by_default_and_by_setting() {
    assert_eq!(bytes(""), Ok(268_435_456));
    assert_eq!(bytes("limits: {in_flight_bytes_max: 16777216}"), Ok(16_777_216));
    for (value, problem) in [
        ("16777215", "below 16777216"),
        ("0", "not a whole number above zero"),
        ("lots", "not a whole number above zero"),
    ] {
        let error = bytes(&format!("limits: {{in_flight_bytes_max: {value}}}")).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
    assert!(bytes("limits: {in_flight: 1}").unwrap_err().contains("in_flight_bytes_max"));
}
