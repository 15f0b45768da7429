//! The seeds of the fuzz targets, through the functions the targets call: whole, and cut in two at
//! every place.

use std::path::Path;

use haft_mcp::fuzz;

/// Seeds are small; a longer one is cut near its beginning only.
const CUTS_MAX: usize = 1500;

/// The seeds of one target, by name.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut seeds: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect();
    seeds.sort();
    assert!(seeds.len() >= 30, "{target} has {} seeds", seeds.len());
    seeds
}

fn assert_cuts_change_nothing(target: &str, read: fn(&[&[u8]]) -> String) {
    for (name, bytes) in seeds(target) {
        let whole = read(&[&bytes]);
        for cut in 0..=bytes.len().min(CUTS_MAX) {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(read(&[first, second]), whole, "{target}/{name} cut at {cut}");
        }
        let singles: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&singles), whole, "{target}/{name} byte by byte");
    }
}

/// Requests of the server are answered by tasks, hence the runtime.
#[tokio::test]
async fn lines_are_the_same_however_they_arrive() {
    assert_cuts_change_nothing("framing", fuzz::framing);
}

#[test]
fn events_are_the_same_however_they_arrive() {
    assert_cuts_change_nothing("event_stream", fuzz::event_stream);
}

/// Whole and cut off at every place, nothing makes the reader panic or hand out a stranger.
#[test]
fn messages_cut_anywhere_do_no_harm() {
    let mut messages = Vec::new();
    for (name, bytes) in seeds("envelope") {
        for cut in 0..bytes.len().min(CUTS_MAX) {
            fuzz::envelope(&bytes[..cut]);
        }
        if fuzz::envelope(&bytes).starts_with("Ok") {
            messages.push(name);
        }
    }
    // Every other seed is refused.
    let expected = "deep_at_limit deep_in_string error error_code_text error_no_id error_null_id \
                    error_text log_line_error notification notification_escaped \
                    notification_params_list request request_null_id request_ping result \
                    result_exponent result_id_escaped result_id_exponent result_id_float \
                    result_id_huge result_id_last result_id_negative result_id_object \
                    result_id_string result_id_zero result_key_order result_number \
                    surrogate_lone unknown_fields";
    assert_eq!(messages.join(" "), expected);
}
