//! How long a worker lives, and that nothing outlives it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::*;
use crate::backend::script::IDLE_WORKERS_MAX;
use crate::backend::testing::{alive, line_in, until_gone};

const WHO: &str = "import os\ndef run(args):\n    return os.environ['HAFT_TREE']";

/// Ignores SIGTERM, leaves a grandchild in its group, one in a session of its own and one orphaned
/// there, all with its pipes open, and says who it is before it hangs.
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

/// Proves S2-EC-01 and S2-Q-06: a call that is given up leaves no process, and the next one works.
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
    let dropped = Instant::now();
    until_gone(&mark).await;
    assert!(
        dropped.elapsed() < Duration::from_secs(1),
        "{:?}",
        dropped.elapsed()
    );
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
    let state = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    crate::backend::testing::until("it is dead", || {
        state().is_empty() || state().contains(") Z ")
    })
    .await;
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
    let (a, b, c) = tokio::join!(
        bench.data(&arguments),
        bench.data(&arguments),
        bench.data(&arguments)
    );
    assert_eq!(HashSet::from([a, b, c]).len(), 1, "one worker did it all");
}

#[tokio::test]
async fn idle_workers_are_limited_over_all_tools() {
    let first = Bench::with(WHO, |settings| settings.instances = IDLE_WORKERS_MAX + 8);
    let mark = first.data("{}").await;
    let other = Bench::with(MEETING, |_| {});
    let tool = PythonTool::new(
        PythonSettings {
            instances: IDLE_WORKERS_MAX,
            name: "crowd".into(),
            tools_dir: other.tools.path().into(),
            script_path: "tool.py".into(),
            entrypoint: "run".into(),
            python: "python3".into(),
            args: Vec::new(),
        },
        Arc::clone(&first.warm),
    );
    // In a ring each call waits for the next one, so all of them need a worker of their own.
    let calls: Vec<_> = (0..IDLE_WORKERS_MAX)
        .map(|me| {
            let arguments = serde_json::json!({
                "room": other.tools.path(),
                "me": me.to_string(),
                "other": ((me + 1) % IDLE_WORKERS_MAX).to_string(),
            });
            RawValue::from_string(arguments.to_string()).unwrap()
        })
        .collect();
    let context = CallContext::default();
    let crowd = async {
        let mut running: Vec<_> = calls
            .iter()
            .map(|arguments| Box::pin(tool.run(arguments, &context)))
            .collect();
        std::future::poll_fn(|cx| {
            running.retain_mut(|call| call.as_mut().poll(cx).is_pending());
            if running.is_empty() {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    };
    timeout(crate::backend::testing::PATIENCE, crowd)
        .await
        .unwrap();
    until_gone(mark.trim_matches('"')).await;
}
