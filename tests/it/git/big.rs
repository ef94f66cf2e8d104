//! A repository with a gigabyte of history: memory stays small, the disk does not fill, and one commit is all that comes.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

use larder::io::git::Repository;

use super::{
    controller::{Controller, ENVIRONMENT, SETTINGS, larder},
    server::Server,
    world::{World, tip},
};
use crate::scenarios::world::wait_for;

/// The most memory that larder may ever have, in KiB, and how much of it the program itself may take, all of it being
/// resident: that is the bound of the released binary. Debug builds are larger, and are forgiven that much.
const MEMORY: u64 = 64 * 1024;
const PROGRAM: u64 = 25 * 1024;

/// The history: commits, and bytes of the file that each brings.
const COMMITS: usize = 2050;
const SIZE: usize = 512 * 1024;

/// The last commits bring smaller files, of this many bytes, so that many of them can be fetched in a moment.
const LATE: usize = 100;
const SMALL: usize = 16 * 1024;

/// Where the history is kept from run to run: it takes some ten seconds to make.
fn kept() -> PathBuf {
    let home = std::env::var("CLUSTER_HOME")
        .unwrap_or_else(|_| format!("{}/.cache/local-cluster", std::env::var("HOME").unwrap_or_default()));
    Path::new(&home).join(format!("history-{COMMITS}-{SIZE}.git"))
}

/// A stream for `git fast-import`: commits on top of `from` (or of nothing), each with new bytes in a large file, and every
/// tenth with a new lockfile.
fn stream(out: &mut impl std::io::Write, from: Option<&str>, commits: usize) {
    let mut random = fs::File::open("/dev/urandom").unwrap();
    let mut noise = vec![0; SIZE];
    let late = if from.is_none() { commits - LATE } else { commits };
    let file = |out: &mut dyn std::io::Write, path: &str, bytes: &[u8]| {
        write!(out, "M 100644 inline {path}\ndata {}\n", bytes.len()).unwrap();
        out.write_all(bytes).unwrap();
        writeln!(out).unwrap();
    };
    for number in 0..commits {
        let seconds = 1_700_000_000 + number * 60;
        write!(out, "commit refs/heads/main\ncommitter Ada <ada@example.com> {seconds} +0000\ndata 2\nc\n").unwrap();
        match from {
            Some(from) if number == 0 => writeln!(out, "from {from}").unwrap(),
            _ => {}
        }
        if from.is_none() && number == 0 {
            file(out, "larder.yaml", SETTINGS.as_bytes());
            file(out, "environments/a/x.yaml", ENVIRONMENT.as_bytes());
        }
        let noise = &mut noise[..if number < late { SIZE } else { SMALL }];
        random.read_exact(noise).unwrap();
        file(out, &format!("data/{}.bin", number % 4), noise);
        // On top of larder's own commits there is no lockfile without an environment, which it would take away at once.
        if from.is_none() && number % 10 == 0 {
            file(out, "lock/a/gone.yaml", format!("# {number}\n").as_bytes());
        }
    }
}

fn import(world: &World, folder: &Path, from: Option<&str>, commits: usize) {
    let mut command = world.git_command(folder);
    command.args(["-c", "core.compression=0", "fast-import", "--quiet", "--force"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut out = std::io::BufWriter::with_capacity(1 << 20, child.stdin.take().unwrap());
    stream(&mut out, from, commits);
    out.into_inner().unwrap();
    assert!(child.wait().unwrap().success());
}

/// Held while the history is made.
static MAKING: Mutex<()> = Mutex::new(());

/// A world whose bare repository has that history.
fn world() -> World {
    let world = World::empty();
    let kept = kept();
    let _making = MAKING.lock().unwrap();
    if !kept.exists() {
        let new = kept.with_extension(format!("{:08x}", fastrand::u32(..)));
        fs::create_dir_all(&new).unwrap();
        world.git(&new, &["init", "-q", "--bare", "-b", "main"]);
        import(&world, &new, None, COMMITS);
        // Another run may have been quicker.
        if fs::rename(&new, &kept).is_err() {
            fs::remove_dir_all(&new).unwrap();
        }
    }
    fs::remove_dir_all(world.up()).unwrap();
    world.git(&world.root(), &["clone", "-q", "--bare", "--shared", kept.to_str().unwrap(), "up.git"]);
    world
}

/// The most memory that a process ever had, in KiB, as far as it is still there: all, and without the program itself.
fn peak(id: u32) -> Option<(u64, u64)> {
    let kib = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    let program = fs::read_link(format!("/proc/{id}/exe")).ok()?;
    let (mut ours, mut resident) = (false, 0);
    for line in fs::read_to_string(format!("/proc/{id}/smaps")).ok()?.lines() {
        match line.split_once(':') {
            Some(("Rss", _)) if ours => resident += kib(line)?,
            // The first line of a mapping ends with the file's name.
            _ if line.contains(" r") || line.contains(" -") => ours = line.ends_with(program.to_str()?),
            _ => {}
        }
    }
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let most = kib(status.lines().find(|line| line.starts_with("VmHWM:"))?)?;
    Some((most, most.saturating_sub(resident)))
}

fn check(what: &str, (all, rest): (u64, u64)) {
    eprintln!("{what}: {all} KiB at most, {rest} KiB without the program");
    assert!(all > 0 && rest < MEMORY - PROGRAM, "{what}: {all} KiB, {rest} KiB without the program");
}

/// Runs larder to its end; the most memory that it had.
fn measured(mut command: Command) -> (u64, u64) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut most = (0, 0);
    let status = loop {
        most = peak(child.id()).filter(|now| now.0 > 0).unwrap_or(most);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert!(status.success(), "{words}");
    most
}

/// The bytes in a directory.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { size(&entry.path()) } else { entry.metadata().unwrap().len() }).sum()
}

#[test]
fn a_gigabyte_of_history_costs_neither_memory_nor_disk() {
    let world = world();
    world.git(&world.up(), &["config", "uploadpack.allowFilter", "true"]);
    assert!(size(&kept()) > 1_000_000_000);
    let server = Server::start(&world, None);
    let mut command = larder(&world, &["run", "--interval", "100ms", "--repo", &server.url(), "--target", "dir:out"]);
    let log = world.root().join("log");
    let child = Controller(command.stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap()).spawn().unwrap());
    let said = || fs::read_to_string(&log).unwrap();
    let count = || world.count();
    let passed = |commit: &str| {
        wait_for(&format!("a pass of {commit}:\n{}", said()), || {
            said().lines().any(|line| line.contains(" pass ") && line.contains(commit)).then_some(())
        });
    };

    // The first fetch and the first lock push.
    wait_for("the lock", || (count() > COMMITS).then_some(()));
    let locked = world.rev("refs/heads/main").to_string();
    passed(&locked);
    let shallow = |commit: &str| {
        let cache = world.root().join("cache/trees");
        world.git(&cache, &["rev-list", "--count", commit])
    };
    assert_eq!(shallow(&locked), "1");
    // New tips, each with a large file.
    for _ in 0..3 {
        import(&world, &world.up(), Some("refs/heads/main^0"), 1);
        let new = world.rev("refs/heads/main").to_string();
        passed(&new);
        assert_eq!(shallow(&new), "1");
    }
    // Rewritten: half of the history is gone, and so is the lock, which is made again.
    world.git(&world.up(), &["update-ref", "refs/heads/main", &format!("main~{}", COMMITS / 2)]);
    let rewritten = count();
    wait_for("the lock on the rewritten branch", || (count() == rewritten + 1).then_some(()));
    let relocked = world.rev("refs/heads/main").to_string();
    passed(&relocked);
    check("a controller on a gigabyte of history", peak(child.0.id()).unwrap_or_else(|| panic!("{}", said())));
    drop(child);

    // The whole history, of which only larder's own directories come.
    for time in ["first", "second"] {
        check(&format!("history, the {time} time"), measured(larder(&world, &["history", "--repo", &server.url()])));
    }
    let kept = size(&world.root().join("cache"));
    eprintln!("the cache: {} KiB", kept / 1024);
    assert!(kept < 32 << 20, "{kept}");
}

#[test]
fn fifty_new_tips_do_not_fill_the_disk() {
    let world = world();
    let server = Server::start(&world, None);
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    let tree = tip(&mut repository);
    repository.fetch(&tree).unwrap();
    let one = size(&world.root().join("cache"));
    let mut most = one;
    for number in 0..50 {
        let back = world.git(&world.up(), &["rev-parse", &format!("{tree}~{}", 50 - number)]);
        world.git(&world.up(), &["update-ref", "refs/heads/main", &back]);
        let new = tip(&mut repository);
        repository.fetch(&new).unwrap();
        most = most.max(size(&world.root().join("cache")));
    }
    eprintln!("{} KiB for one commit, {} KiB at most after fifty more", one / 1024, most / 1024);
    assert!(most < one + (34 * (SMALL as u64 + 4096)), "{most}");
}
