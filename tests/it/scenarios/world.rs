//! A scenario's world: a bare repository with a work tree beside it, image names and namespaces of its own on the real
//! cluster of `tests/cluster/`, and the real binary.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use larder::model::status::EnvironmentStatus;
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take before a scenario fails. Conditions are met far sooner.
const PATIENCE: Duration = Duration::from_secs(120);

/// A scenario's world. What it made in the cluster is removed when it is dropped.
pub struct World {
    /// A word that no other scenario uses: in namespaces, image names and the instance.
    pub id: String,
    folder: TempDir,
    /// Hosts that the local registry serves images of.
    hosts: Vec<String>,
    /// The bare repository.
    bare: PathBuf,
}

impl World {
    /// A bare repository with a `larder.yaml` for these tenants, each with a namespace of its own.
    pub fn new(name: &str, tenants: &[&str]) -> Self {
        let id = format!("{name}-{:05}", fastrand::u32(..100_000));
        let folder = TempDir::new().unwrap();
        let hosts = ["quay.io", "ghcr.io", "docker.io", "registry.k8s.io"].map(str::to_owned).to_vec();
        let bare = folder.path().join("environments.git");
        let world = Self { id, folder, hosts, bare };
        world.git_at(&world.path(""), &["init", "-q", "--bare", "-b", "main", "environments.git"]);
        world.git_at(&world.path(""), &["clone", "-q", "environments.git", "clone"]);
        world.commit(&[("larder.yaml", &world.settings(tenants, ""))], "Begin");
        world
    }

    /// A `larder.yaml` for these tenants, with more lines under `spec:`.
    pub fn settings(&self, tenants: &[&str], more: &str) -> String {
        let mut text = "apiVersion: larder.dev/v1alpha1\nkind: Settings\nspec:\n  tenants:\n".to_owned();
        for tenant in tenants {
            text += &format!("    {tenant}: {{namespace: {}, createNamespace: true}}\n", self.namespace(tenant));
        }
        text += "  registries:\n";
        for host in &self.hosts {
            text += &format!("    {host}: {{mirrors: [\"http://127.0.0.1:5000/{host}\"]}}\n");
        }
        text + more
    }

    /// Lets `settings` send these hosts to the local registry as well.
    pub fn mirror<'a>(&mut self, hosts: impl Iterator<Item = &'a str>) {
        self.hosts.extend(hosts.map(str::to_owned));
        self.hosts.sort_unstable();
        self.hosts.dedup();
    }

    /// Moves the bare repository to where the Git server of that directory serves it, under the name of this world.
    pub fn serve_from(&mut self, folder: &str) {
        let served = Path::new(folder).join(format!("repositories/{}.git", self.id));
        fs::create_dir_all(served.parent().unwrap()).unwrap();
        run(Command::new("cp").args(["-r"]).arg(&self.bare).arg(&served));
        self.git_at(&self.path("clone"), &["remote", "set-url", "origin", &served.display().to_string()]);
        self.bare = served;
    }

    /// The namespace of a tenant.
    pub fn namespace(&self, tenant: &str) -> String {
        format!("{}-{tenant}", self.id)
    }

    /// The name of an image of this scenario.
    pub fn image(&self, name: &str) -> String {
        format!("quay.io/{}/{name}", self.id)
    }

    /// A path in this world's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The bare repository's path, as `--repo` takes it.
    pub fn repository(&self) -> String {
        self.bare.display().to_string()
    }

    /// Pushes tiny images to the local registry with the options of `tests/cluster/image`; name → digest.
    pub fn push_images(&self, options: &[&str], names: &[&str]) -> BTreeMap<String, String> {
        let output = run(Command::new(script("image")).args(options).args(names));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, digest)| (name.into(), digest.into()))
            .collect()
    }

    /// A person commits these files and pushes them.
    pub fn commit(&self, files: &[(&str, &str)], message: &str) -> String {
        self.pull();
        for (path, text) in files {
            let path = self.path("clone").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        self.push(message)
    }

    /// A person removes these files and pushes.
    pub fn remove(&self, files: &[&str], message: &str) -> String {
        self.pull();
        for path in files {
            fs::remove_file(self.path("clone").join(path)).unwrap();
        }
        self.push(message)
    }

    /// A person reverts a commit of the branch and pushes.
    pub fn revert(&self, commit: &str) -> String {
        self.pull();
        let clone = self.path("clone");
        self.git_at(&clone, &["revert", "--no-edit", commit]);
        self.git_at(&clone, &["push", "-q", "origin", "HEAD:main"]);
        self.tip()
    }

    /// A person drops all that came after a commit, to push something else.
    pub fn reset(&self, commit: &str) {
        self.git_at(&self.path("clone"), &["reset", "-q", "--hard", commit]);
    }

    /// Takes up what larder has pushed since this person last looked.
    fn pull(&self) {
        let clone = self.path("clone");
        if !self.git_at(&clone, &["ls-remote", "origin", "main"]).is_empty() {
            self.git_at(&clone, &["pull", "-q", "--ff-only", "origin", "main"]);
        }
    }

    fn push(&self, message: &str) -> String {
        let clone = self.path("clone");
        self.git_at(&clone, &["add", "-A"]);
        self.git_at(&clone, &["commit", "-q", "-m", message]);
        self.git_at(&clone, &["push", "-q", "origin", "HEAD:main"]);
        self.tip()
    }

    /// The branch's tip.
    pub fn tip(&self) -> String {
        self.git(&["rev-parse", "refs/heads/main"])
    }

    /// A Git command in the bare repository; its output without the last newline.
    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_at(&self.bare, arguments)
    }

    fn git_at(&self, folder: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder).args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]).args(arguments);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        String::from_utf8(run(&mut command).stdout).unwrap().trim_end().to_owned()
    }

    /// The binary with a verb and arguments, on this world's cluster and instance where the verb takes them.
    pub fn larder(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let takes_target = matches!(arguments.first(), Some(&("run" | "plan" | "apply" | "status")));
        if takes_target && !arguments.contains(&"--target") {
            command.arg("--kubeconfig").arg(kubeconfig()).args([
                "--instance",
                &self.id,
                "--status-namespace",
                "default",
            ]);
        }
        command.current_dir(self.path(""));
        command
    }

    /// One pass; its report as JSON and whether everything was well.
    pub fn pass(&self, more: &[&str]) -> Pass {
        let repository = self.repository();
        let mut arguments = vec!["run", "--once", "--output", "json", "--repo", &repository];
        arguments.extend(more);
        let output = self.larder(&arguments).output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("no report ({error}): {}\n{log}", String::from_utf8_lossy(&output.stdout)));
        Pass { well: output.status.success(), report, log }
    }

    /// A controller in the background, killed when it is dropped.
    pub fn controller(&self, more: &[&str]) -> Controller {
        self.controller_with(&[], more)
    }

    /// The same with environment variables.
    pub fn controller_with(&self, variables: &[(&str, &str)], more: &[&str]) -> Controller {
        let repository = self.repository();
        let mut arguments = vec!["run", "--interval", "1s", "--repo", &repository];
        arguments.extend(more);
        let mut command = self.larder(&arguments);
        command.envs(variables.iter().copied());
        Controller::start(command, self)
    }

    /// The binary in the background, killed when it is dropped.
    pub fn start(&self, arguments: &[&str]) -> Controller {
        Controller::start(self.larder(arguments), self)
    }

    /// `larder status` with these arguments: exit code 0 or not, and its output as JSON.
    pub fn status(&self, more: &[&str]) -> (bool, Value) {
        let repository = self.repository();
        let mut arguments = vec!["status", "--output", "json", "--repo", &repository];
        arguments.extend(more);
        let output = self.larder(&arguments).output().unwrap();
        let value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("no status ({error}): {}", String::from_utf8_lossy(&output.stderr)));
        (output.status.success(), value)
    }

    /// Waits until every eligible node holds every image.
    pub fn wait_until_warm(&self) -> Value {
        self.wait_until_warm_within("2m")
    }

    /// The same, for as long as that.
    pub fn wait_until_warm_within(&self, timeout: &str) -> Value {
        let (warm, status) = self.status(&["--wait", "--timeout", timeout]);
        assert!(warm, "not warm: {status:#}");
        status
    }

    /// `kubectl`; its output.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        kubectl(arguments)
    }

    /// The puller of an environment, if it is there.
    pub fn puller(&self, environment: &str) -> Option<Value> {
        self.owned("daemonsets", environment)
    }

    /// The ServiceAccount of an environment, if it is there.
    pub fn service_account(&self, environment: &str) -> Option<Value> {
        self.owned("serviceaccounts", environment)
    }

    fn owned(&self, kind: &str, environment: &str) -> Option<Value> {
        let selector = format!("larder.dev/instance={}", self.id);
        let list: Value = serde_json::from_str(&kubectl(&["get", kind, "-A", "-l", &selector, "-o", "json"])).unwrap();
        let owner = |item: &&Value| item["metadata"]["annotations"]["larder.dev/owner"] == environment;
        list["items"].as_array()?.iter().find(owner).cloned()
    }

    /// An object as JSON.
    pub fn object(&self, kind: &str, namespace: &str, name: &str) -> Value {
        serde_json::from_str(&kubectl(&["get", kind, "-n", namespace, name, "-o", "json"])).unwrap()
    }

    /// Our objects with their resource versions: equal before and after when nothing was written. DaemonSets count by
    /// their generation, since their status has versions of its own.
    pub fn versions(&self) -> String {
        let selector = format!("larder.dev/instance={}", self.id);
        let versions = |kinds: &str, field: &str| {
            let columns =
                format!("-o=custom-columns=K:.kind,N:.metadata.namespace,M:.metadata.name,V:.metadata.{field}");
            kubectl(&["get", kinds, "-A", "-l", &selector, "--no-headers", &columns])
        };
        versions("serviceaccounts,configmaps", "resourceVersion") + &versions("daemonsets", "generation")
    }

    /// All digests of a node's own image store.
    pub fn all_digests_on(&self, node: &str) -> String {
        let socket = format!("/run/local-cluster/{node}.sock");
        let output = run(Command::new("ctr").args(["-a", &socket, "-n", "k8s.io", "images", "ls"]));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Whether a node's own image store holds that digest of a repository.
    pub fn holds(&self, node: &str, repository: &str, digest: &str) -> bool {
        self.all_digests_on(node).lines().any(|line| line.starts_with(&repository.to_string()) && line.contains(digest))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !self.bare.starts_with(self.folder.path()) {
            let _ = fs::remove_dir_all(&self.bare);
        }
        let Ok(names) = Command::new(kubectl_path()).args(["get", "namespaces", "-o", "name"]).arg(config()).output()
        else {
            return;
        };
        let names = String::from_utf8_lossy(&names.stdout).into_owned();
        let ours =
            names.lines().filter_map(|name| name.strip_prefix("namespace/")).filter(|name| name.starts_with(&self.id));
        let ours: Vec<_> = ours.collect();
        if !ours.is_empty() {
            let _ = Command::new(kubectl_path())
                .arg(config())
                .args(["delete", "namespace", "--wait=false"])
                .args(ours)
                .output();
        }
    }
}

/// What one pass came to.
pub struct Pass {
    /// Whether the exit code was 0.
    pub well: bool,
    /// The report.
    pub report: Value,
    /// Standard error.
    pub log: String,
}

impl Pass {
    /// The state of an environment.
    pub fn state(&self, environment: &str) -> &str {
        state(&self.report, environment)
    }

    /// All problems of an environment as one text.
    pub fn problems(&self, environment: &str) -> String {
        self.report["environments"][environment]["problems"].to_string()
    }
}

/// The state of an environment, as tables show it.
pub fn state(status: &Value, environment: &str) -> &'static str {
    let environment = &status["environments"][environment];
    serde_json::from_value::<EnvironmentStatus>(environment.clone()).map_or("absent", |status| status.state().as_str())
}

/// The problems of the whole that have this reason, as one text; empty when there are none.
pub fn problems_of(status: &Value, reason: &str) -> String {
    let problems = status["problems"].as_array().into_iter().flatten();
    problems.filter(|problem| problem["reason"] == reason).map(ToString::to_string).collect()
}

/// A controller in the background.
pub struct Controller {
    child: Child,
    log: PathBuf,
}

impl Controller {
    /// Starts the command, with a log in the world's directory.
    pub fn start(mut command: Command, world: &World) -> Self {
        let log = world.path(&format!("log-{}", fastrand::u32(..)));
        let stderr = fs::File::create(&log).unwrap();
        let child = command.stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        Self { child, log }
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it has logged this.
    pub fn wait_for_log(&self, text: &str) {
        wait_for(&format!("{text:?} in the log:\n{}", self.log()), || self.log().contains(text).then_some(()));
    }

    /// What it answers, when it was started with `--listen 127.0.0.1:0`.
    pub fn get(&self, path: &str) -> String {
        let address = wait_for("the port", || {
            let log = self.log();
            let line = log.lines().find(|line| line.contains("listening"))?;
            Some(line.split_once("address=")?.1.split_whitespace().next()?.to_owned())
        });
        let output = run(Command::new("curl").args(["-s", &format!("http://{address}{path}")]));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A number of its metrics.
    pub fn metric(&self, name: &str) -> f64 {
        let metrics = self.get("/metrics");
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} in {metrics}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Waits until polls continue and passes do not.
    pub fn wait_until_idle(&self) {
        wait_for("the first pass", || self.get("/metrics").contains("larder_passes_total{").then_some(()));
        let passes = || self.metric("larder_passes_total{result=\"carried-out\"}");
        let polls = || self.metric("larder_polls_total");
        wait_for("the passes to settle", || {
            let (before, polled) = (passes(), polls());
            wait_for("three more polls", || (polls() >= polled + 3.0).then_some(()));
            (passes() <= before).then_some(())
        });
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; whether it ended well.
    pub fn terminate(mut self) -> bool {
        run(Command::new("kill").args(["-TERM", &self.child.id().to_string()]));
        self.child.wait().unwrap().success()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks until there is an answer. Fails when there is none for too long.
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A script of `tests/cluster/`.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster").join(name)
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error} (`make cluster-up` installs what tests need)"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// `kubectl`; its output.
pub fn kubectl(arguments: &[&str]) -> String {
    String::from_utf8(run(Command::new(kubectl_path()).arg(config()).args(arguments)).stdout).unwrap()
}

/// The flag that names the cluster.
pub fn config() -> String {
    format!("--kubeconfig={}", kubeconfig())
}

/// The kubeconfig of `tests/cluster/up`.
pub fn kubeconfig() -> String {
    let path = std::env::var("KUBECONFIG").unwrap_or_else(|_| "/var/tmp/local-cluster/kubeconfig".to_owned());
    assert!(Path::new(&path).exists(), "there is no cluster: `make cluster-up` starts one");
    path
}

/// Where `kubectl` is.
pub fn kubectl_path() -> PathBuf {
    let home = std::env::var("CLUSTER_HOME")
        .unwrap_or_else(|_| format!("{}/.cache/local-cluster", std::env::var("HOME").unwrap_or_default()));
    let built = Path::new(&home).join("bin/kubectl");
    if built.exists() { built } else { "kubectl".into() }
}
