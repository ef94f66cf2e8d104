//! `cargo bench --bench history`: auditors' questions to 10,000 lock commits, beside `git log -S` in the same run.
//!
//! The repository is made twice: as a server keeps it (packed, with a commit-graph), and as `git fast-import` leaves it.
//! Each program is started anew for each answer; the fastest and the median of several runs count. `HISTORY_COMMITS`
//! and `HISTORY_RUNS` change the size.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]
#![allow(clippy::disallowed_methods, reason = "a bench reads its size from the environment")]

#[path = "../it/audit/generate.rs"]
mod generate;

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use generate::{START, Size, command, generate, git};

struct Timing {
    fastest: Duration,
    median: Duration,
    /// The most memory that was resident at once, in KiB, mapped files included.
    memory: u64,
    lines: usize,
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The larder that is measured: `LARDER=target/release/larder` measures the one that people use.
fn program() -> std::ffi::OsString {
    std::env::var_os("LARDER").unwrap_or_else(|| env!("CARGO_BIN_EXE_larder").into())
}

/// Runs a program to its end, again and again.
fn time(runs: usize, mut program: impl FnMut() -> Command) -> Timing {
    let mut times = Vec::new();
    let (mut memory, mut lines) = (0, 0);
    for run in 0..=runs {
        let out = tempfile::NamedTempFile::new().unwrap();
        let mut command = program();
        command.stdin(Stdio::null()).stdout(out.reopen().unwrap());
        let start = Instant::now();
        let mut child = command.spawn().unwrap();
        // Measured apart, so that looking does not cost time.
        while run == 0 && child.try_wait().unwrap().is_none() {
            memory = memory.max(resident(child.id()));
            std::thread::sleep(Duration::from_millis(1));
        }
        let status = child.wait().unwrap();
        if run > 0 {
            times.push(start.elapsed());
        }
        assert!(status.success(), "{command:?}");
        lines = fs::read_to_string(out.path()).unwrap().lines().count();
    }
    times.sort_unstable();
    Timing { fastest: times[0], median: times[times.len() / 2], memory, lines }
}

fn resident(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn show(name: &str, timing: &Timing, git: Option<&Timing>) {
    let ratio = git.map_or_else(String::new, |git| {
        let ratio = timing.fastest.as_secs_f64() / git.fastest.as_secs_f64();
        let missed = timing.fastest >= Duration::from_secs(1) || ratio >= 1.0;
        format!("{ratio:5.2} × git log -S{}", if missed { "   MISSED" } else { "" })
    });
    println!(
        "{name:34} {:7.0} ms  median {:7.0} ms  {:5} MiB  {:6} lines  {ratio}",
        timing.fastest.as_secs_f64() * 1000.0,
        timing.median.as_secs_f64() * 1000.0,
        timing.memory / 1024,
        timing.lines,
    );
}

fn main() {
    let size = Size { commits: number("HISTORY_COMMITS", 10_000), environments: 200, images: 3 };
    let runs = number("HISTORY_RUNS", 5);
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("environments.git");
    let lock = generate(&repository, size);
    let (environment, lockfile) = lock.iter().nth(7).unwrap();
    let digest = lockfile.images.values().next().unwrap().digest.to_string();

    println!("{} commits, {} environments, as `git fast-import` leaves them", size.commits, size.environments);
    answers(&repository, runs, &environment.to_string(), &digest, size);
    git(&repository, &["repack", "-adfq"]);
    git(&repository, &["commit-graph", "write", "--reachable"]);
    println!("\nthe same, packed by `git repack`, with a commit-graph");
    answers(&repository, runs, &environment.to_string(), &digest, size);
}

fn answers(repository: &Path, runs: usize, environment: &str, digest: &str, size: Size) {
    let search = format!("-S{digest}");
    let baseline = time(runs, || {
        let mut git = command(repository);
        git.args(["log", "--format=%H", &search, "--", "lock/"]);
        git
    });
    show("git log -S<digest> -- lock/", &baseline, None);
    let middle = START + 3600 * i64::try_from(size.commits / 2).unwrap();
    let time_of_middle = jiff::Timestamp::from_second(middle).unwrap().to_string();
    let short = digest[..25].to_owned();
    let verbs: [(&str, Vec<&str>); 9] = [
        ("who-ran <digest>", vec!["who-ran", &short]),
        ("history", vec!["history"]),
        ("history --limit 0 --output csv", vec!["history", "--limit", "0", "--output", "csv"]),
        ("history <environment>", vec!["history", environment]),
        ("history --author", vec!["history", "--author", "ada@", "--limit", "0"]),
        ("history --until <middle>", vec!["history", "--until", &time_of_middle, "--limit", "0"]),
        ("at <middle>", vec!["at", &time_of_middle]),
        ("blame <environment>", vec!["blame", environment]),
        ("diff HEAD~9000 HEAD", vec!["diff", "HEAD~9000", "HEAD"]),
    ];
    for (name, arguments) in verbs {
        if name.contains("9000") && size.commits <= 9000 {
            continue;
        }
        let timing = time(runs, || {
            let mut larder = Command::new(program());
            larder.args(&arguments).arg("--repo").arg(repository).stderr(Stdio::null());
            larder
        });
        show(&format!("larder {name}"), &timing, Some(&baseline));
    }
}
