//! What larder must reach, measured on the real cluster beside a floor in the same run. `make bench` prints it; nothing
//! here is asserted, because machines are noisy. `TENANTS=1000` makes the last part as large as DESIGN's.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]
#![allow(
    clippy::disallowed_methods,
    dead_code,
    reason = "it shares the scenarios' world and reads where the cluster is"
)]

#[path = "../it/scenarios/world.rs"]
mod world;

use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use world::{World, kubeconfig, kubectl};

fn main() {
    // `cargo bench` hands a flag over; a name chooses one part.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let parts: [(&str, fn()); 4] = [("size", size), ("start", start), ("resolve", resolve), ("apply", apply)];
    for (name, part) in parts {
        if chosen.is_empty() || chosen.iter().any(|chosen| name.contains(chosen.as_str())) {
            part();
        }
    }
}

fn report(what: &str, value: impl std::fmt::Display) {
    println!("{what:<58} {value}");
}

fn size() {
    // What benches link quickly is larger than what is released: `LARDER=FILE` measures that.
    let binary = std::env::var_os("LARDER").unwrap_or_else(|| env!("CARGO_BIN_EXE_larder").into());
    let bytes = fs::metadata(binary).unwrap().len();
    report("binary, stripped (released: at most 25 MB)", format!("{:.1} MB", bytes as f64 / 1e6));
}

/// From the start of the process to its first question to the Git server.
fn start() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x.git", listener.local_addr().unwrap());
    let mut times: Vec<Duration> = (0..11)
        .map(|_| {
            let folder = tempfile::tempdir().unwrap();
            let started = Instant::now();
            let mut child = Command::new(env!("CARGO_BIN_EXE_larder"))
                .args(["run", "--once", "--repo", &url, "--target", "dir:manifests"])
                .current_dir(folder.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let (connection, _) = listener.accept().unwrap();
            let took = started.elapsed();
            drop(connection);
            child.kill().unwrap();
            child.wait().unwrap();
            took
        })
        .collect();
    times.sort_unstable();
    report("start to first ls-refs, median of 11 (at most 50 ms)", format!("{:.1?}", times[5]));
}

/// 1,000 images of 200 distinct references, locked already: one HEAD for each reference.
fn resolve() {
    let world = World::new("bench-resolve", &[]);
    let references: Vec<String> = (0..200).map(|number| world.image(&format!("image-{number}:1"))).collect();
    world.push_images(&[], &references.iter().map(String::as_str).collect::<Vec<_>>());
    let tenants: Vec<String> = (0..50).map(|number| format!("t{number}")).collect();
    let names: Vec<&str> = tenants.iter().map(String::as_str).collect();
    let mut files = vec![("larder.yaml".to_owned(), world.settings(&names, ""))];
    for (number, tenant) in tenants.iter().enumerate() {
        let images: String = (0..20)
            .map(|image| {
                format!("    - name: image-{image}\n      image: {}\n", references[(number * 20 + image) % 200])
            })
            .collect();
        let text = format!("apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n  images:\n{images}");
        files.push((format!("environments/{tenant}/all.yaml"), text));
    }
    world.commit(&files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>(), "1,000 images");
    let once = |_| {
        let started = Instant::now();
        let pass = world.pass(&["--target", "dir:manifests"]);
        (started.elapsed(), pass.report["requests"]["registry"].as_u64().unwrap())
    };
    once(0);
    let (pass, requests) = (0..5).map(once).min().unwrap();

    let urls = world.path("urls");
    let entry = |reference: &String| {
        let (name, tag) = reference.rsplit_once(':').unwrap();
        format!(
            "url = \"http://127.0.0.1:5000/v2/{name}/manifests/{tag}\"\nhead\noutput = /dev/null\n\
                 header = \"Accept: application/vnd.oci.image.manifest.v1+json\"\n"
        )
    };
    fs::write(&urls, references.iter().map(entry).collect::<Vec<_>>().join("next\n")).unwrap();
    let floor = (0..5)
        .map(|_| {
            let started = Instant::now();
            let mut curl = Command::new("curl");
            curl.args(["-s", "-Z", "--parallel-max", "16", "-K"]).arg(&urls);
            world::run(&mut curl);
            started.elapsed()
        })
        .min()
        .unwrap();
    report("200 bare HEADs, 16 at once (curl)", format!("{floor:.2?}"));
    report("a whole pass over 1,000 images, 200 references", format!("{pass:.2?}, {requests} registry requests"));
}

/// First apply of many tenants, a pass with nothing changed, and one with one environment changed.
fn apply() {
    let count: usize = std::env::var("TENANTS").map_or(200, |count| count.parse().unwrap());
    let world = World::new("bench-apply", &[]);
    let tenants: Vec<String> = (0..count).map(|number| format!("t{number}")).collect();
    let image = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&image]);
    let names: Vec<&str> = tenants.iter().map(String::as_str).collect();
    let namespaces: String = names
        .iter()
        .map(|tenant| {
            format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {}}}\n", world.namespace(tenant))
        })
        .collect();
    kubectl_apply(&namespaces);
    let settings = world.settings(&names, "").replace(", createNamespace: true", "");
    let text = |refresh: &str| {
        format!(
            "apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n  images:\n    - name: notebook\n      image: {image}\n  \
             nodeSelector: {{no: such-node}}\n  puller: {{retain: {refresh}}}\n"
        )
    };
    let mut files = vec![("larder.yaml".to_owned(), settings)];
    files.extend(names.iter().map(|tenant| (format!("environments/{tenant}/one.yaml"), text("0"))));
    world.commit(&files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>(), "Many tenants");

    let objects = floor(&world, &names);
    let (first, memory, requests) = measured(&world);
    report(
        &format!("first apply of {count} tenants, {} objects", count * 3),
        format!("{first:.2?}, {requests} API requests, {memory:.0} MiB"),
    );
    report(
        &format!("{} bare PATCHes, 16 at once (curl)", count * 3),
        format!("{objects:.2?}, ratio {:.2}", first.as_secs_f64() / objects.as_secs_f64()),
    );
    let (second, memory, requests) = measured(&world);
    report("a second pass with nothing changed", format!("{second:.2?}, {requests} API requests, {memory:.0} MiB"));
    world.commit(&[("environments/t0/one.yaml", &text("1").replace("no: such-node", "no: other-node"))], "One changes");
    let (third, memory, requests) = measured(&world);
    report("a pass with one environment changed", format!("{third:.2?}, {requests} API requests, {memory:.0} MiB"));
}

/// One pass: how long, how much memory at most, how many API requests.
fn measured(world: &World) -> (Duration, f64, u64) {
    let repository = world.repository();
    let started = Instant::now();
    let output = world.path("report");
    let mut child = world
        .larder(&["run", "--once", "--output", "json", "--repo", &repository])
        .stdout(fs::File::create(&output).unwrap())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut peak = 0.0_f64;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).unwrap_or(0.0);
        peak = peak.max(kib / 1024.0);
        std::thread::sleep(Duration::from_millis(5));
    }
    let took = started.elapsed();
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&output).unwrap()).unwrap();
    (took, peak, report["requests"]["target"].as_u64().unwrap())
}

/// As many server-side-apply PATCHes of objects of about the same size, with nothing around them.
fn floor(world: &World, tenants: &[&str]) -> Duration {
    let entries = world.path("patches");
    let mut file = fs::File::create(&entries).unwrap();
    let mut first = true;
    for tenant in tenants {
        for number in 0..3 {
            if !std::mem::take(&mut first) {
                writeln!(file, "next").unwrap();
            }
            let body = serde_json::json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": format!("floor-{number}"), "namespace": world.namespace(tenant)},
                "data": {"text": "x".repeat(1500)},
            });
            writeln!(
                file,
                "url = \"https://127.0.0.1:6443/api/v1/namespaces/{}/configmaps/floor-{number}?fieldManager=floor\"\n\
                 request = PATCH\ninsecure\noutput = /dev/null\nheader = \"Content-Type: application/apply-patch+yaml\"\n\
                 header = \"Authorization: Bearer admin-token\"\ndata = {}",
                world.namespace(tenant),
                serde_json::Value::String(body.to_string()),
            )
            .unwrap();
        }
    }
    let started = Instant::now();
    let mut curl = Command::new("curl");
    curl.args(["-s", "-Z", "--parallel-max", "16", "-K"]).arg(&entries);
    world::run(&mut curl);
    started.elapsed()
}

fn kubectl_apply(manifests: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), manifests).unwrap();
    kubectl(&["create", "-f", &file.path().display().to_string()]);
    assert!(!kubeconfig().is_empty());
}
