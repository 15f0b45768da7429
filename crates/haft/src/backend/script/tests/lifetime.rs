//! The lifetime of a worker: nothing outlives it.

use std::collections::HashSet;
use std::time::Duration;

use super::*;
use crate::backend::testing::{alive, line_in, runs, until, until_gone};

const WHO: &str = "import os\ndef run(args):\n    return os.environ['HAFT_TREE']";

/// Ignores SIGTERM, leaves a grandchild in its group, one in its own session and one orphaned
/// there, all with open pipes, and prints its identity before it hangs.
const STUBBORN: &str = r#"
import os, signal, subprocess, time
def run(args):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    subprocess.Popen(["sleep", "1000"])
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    subprocess.run(["sh", "-c", "setsid sleep 1000 & exit"])
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)
    with open(args["file"], "w") as file:
        file.write(os.environ["HAFT_TREE"] + "\n")
    while args["hang"]:
        time.sleep(1000)
"#;

/// Proves S2-EC-01 and S2-Q-06: a cancelled call leaves no process, and the next one works.
#[tokio::test]
async fn a_dropped_call_leaves_no_process() {
    let bench = Bench::new(STUBBORN);
    let file = bench.tools.path().join("who");
    let arguments = |hang| serde_json::json!({ "file": file, "hang": hang }).to_string();
    let mark = {
        let hanging = arguments(true);
        let call = bench.call(&hanging);
        tokio::pin!(call);
        tokio::select! {
            ended = &mut call => panic!("{ended:?}"),
            mark = line_in(&file) => {
                assert!(alive(&mark) >= 5, "{}", alive(&mark));
                mark
            }
        }
    };
    until_gone(&mark).await;
    assert_eq!(bench.data(&arguments(false)).await, "null");
}

#[tokio::test]
async fn a_worker_stays_warm_until_it_is_stopped() {
    let bench = Bench::new(WHO);
    let first = bench.data("{}").await;
    assert_eq!(bench.data("{}").await, first);
    let mark = first.trim_matches('"');
    assert_eq!(alive(mark), 1);
    bench.tool.stop().await;
    assert_eq!(alive(mark), 0);
    assert_ne!(bench.data("{}").await, first);
}

#[tokio::test]
async fn a_stopped_or_dropped_shelf_leaves_no_process() {
    let bench = Bench::new(WHO);
    let stopped = bench.data("{}").await;
    bench.warm.stop().await;
    assert_eq!(alive(stopped.trim_matches('"')), 0);
    let dropped = bench.data("{}").await;
    drop(bench);
    until_gone(dropped.trim_matches('"')).await;
}

#[tokio::test]
async fn a_worker_that_died_while_idle_is_replaced() {
    let bench = Bench::new("import os\ndef run(args):\n    return os.getpid()");
    let pid: i32 = bench.data("{}").await.parse().unwrap();
    let process = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    until("it is dead", || !runs(pid)).await;
    assert_ne!(bench.data("{}").await, pid.to_string());
}

/// Meets the other call in the middle: neither can end unless both run.
const MEETING: &str = r#"
import os, time
def run(args):
    open(os.path.join(args["room"], args["me"]), "w").close()
    while not os.path.exists(os.path.join(args["room"], args["other"])):
        time.sleep(0.002)
    return args["me"]
"#;

/// Proves S2-EC-11: with two instances, two calls overlap and each gets its own answer.
#[tokio::test]
async fn calls_overlap_as_far_as_there_are_instances() {
    let bench = Bench::new(MEETING);
    let room = tempfile::tempdir().unwrap();
    let arguments = |me: &str, other: &str| {
        serde_json::json!({ "room": room.path(), "me": me, "other": other }).to_string()
    };
    let (a, b) = (arguments("a", "b"), arguments("b", "a"));
    let (a, b) = tokio::join!(bench.data(&a), bench.data(&b));
    assert_eq!((a.as_str(), b.as_str()), (r#""a""#, r#""b""#));
}

/// Proves S2-EC-11: with one instance, calls never overlap.
#[tokio::test]
async fn with_one_instance_calls_take_turns() {
    let script = "import os\ndef run(args):\n    os.mkdir(args['room'])\n    os.rmdir(args['room'])\n    return os.getpid()";
    let bench = Bench::with(script, |settings| settings.instances = 1);
    let arguments = serde_json::json!({ "room": bench.tools.path().join("room") }).to_string();
    let (a, b, c) =
        tokio::join!(bench.data(&arguments), bench.data(&arguments), bench.data(&arguments));
    assert_eq!(HashSet::from([a, b, c]).len(), 1, "one worker did it all");
}

#[tokio::test]
async fn the_worker_idle_for_longest_makes_room() {
    let warm = WarmWorkers::with_limits(Duration::from_hours(1), 2);
    let benches = [WHO, WHO, WHO].map(|script| Bench::on(&warm, script, |_| {}));
    let mut marks = Vec::new();
    for bench in &benches {
        marks.push(bench.data("{}").await);
    }
    until_gone(marks[0].trim_matches('"')).await;
    assert_eq!(benches[1].data("{}").await, marks[1]);
    assert_eq!(benches[2].data("{}").await, marks[2]);
}

#[tokio::test]
async fn a_worker_that_is_idle_for_too_long_goes() {
    let warm = WarmWorkers::with_limits(Duration::from_millis(50), 2);
    let bench = Bench::on(&warm, WHO, |_| {});
    for _ in 0..2 {
        let mark = bench.data("{}").await;
        until_gone(mark.trim_matches('"')).await;
    }
}

/// Proves S2-SC-003: the first call finds Python started already.
#[tokio::test]
async fn the_first_call_takes_the_process_that_was_prepared() {
    let bench = Bench::new("import os\ndef run(args):\n    return os.getpid()\n");
    bench.warm.prepare("python3");
    let prepared = bench.warm.spare_id().unwrap();
    assert_eq!(bench.data("{}").await, prepared.to_string());
    assert_eq!(bench.data("{}").await, prepared.to_string());
    assert_eq!(bench.warm.spare_id(), None);
    // A spare that died while it waited is replaced.
    bench.warm.prepare("false");
    let other = Bench::on(&bench.warm, "def run(args):\n    return 1\n", |settings| {
        settings.python = "python3".into();
    });
    assert_eq!(other.data("{}").await, "1");
    bench.warm.stop().await;
    // A spare that starts during the stop is not kept, because it would never end.
    bench.warm.prepare("python3");
    assert_eq!(bench.warm.spare_id(), None);
}
