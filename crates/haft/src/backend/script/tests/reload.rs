//! A changed file takes effect at the next call.

use super::*;

/// Proves S2-Q-10 for the script itself: even an edit of the same size within the same clock tick.
#[tokio::test]
async fn an_edit_of_the_script_counts_from_the_next_call() {
    let bench = Bench::new("def run(args): return 0");
    for version in 0..5 {
        bench.write("tool.py", &format!("def run(args): return {version}"));
        assert_eq!(bench.data("{}").await, version.to_string());
        assert_eq!(bench.data("{}").await, version.to_string());
    }
}

/// Proves S2-Q-10 for modules the script imports, at its top or later, from a package or beside it.
#[tokio::test]
async fn an_edit_of_a_helper_counts_from_the_next_call() {
    let bench = Bench::new(
        "import helper\ndef run(args):\n    import package.late\n    return [helper.value, package.late.value]",
    );
    fs::create_dir(bench.tools.path().join("package")).unwrap();
    for version in 0..3 {
        bench.write("helper.py", &format!("value = {version}"));
        bench.write("package/late.py", "value = 10");
        assert_eq!(bench.data("{}").await, format!("[{version},10]"));
        bench.write("package/late.py", "value = 11");
        assert_eq!(bench.data("{}").await, format!("[{version},11]"));
    }
    fs::remove_file(bench.tools.path().join("helper.py")).unwrap();
    assert!(bench.failure("{}").await.0.contains("No module named 'helper'"));
}

/// A replaced file (as editors and deployments write them) has another inode.
#[tokio::test]
async fn a_file_moved_over_the_script_counts() {
    let bench = Bench::new("def run(args): return 1");
    assert_eq!(bench.data("{}").await, "1");
    bench.write("next.py", "def run(args): return 2");
    fs::rename(bench.tools.path().join("next.py"), bench.tools.path().join("tool.py")).unwrap();
    assert_eq!(bench.data("{}").await, "2");
}
