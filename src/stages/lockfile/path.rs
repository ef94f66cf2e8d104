//! Which environment a lockfile belongs to.

use crate::model::name::EnvironmentId;

/// The environment whose lockfile has this path from the root of the environment repository: the inverse of
/// [`EnvironmentId::lock_path`]. None for other files under `lock/`.
pub fn environment_of(path: &str) -> Option<EnvironmentId> {
    let (tenant, name) = path.strip_prefix("lock/")?.strip_suffix(".yaml")?.split_once('/')?;
    Some(EnvironmentId::new(tenant.parse().ok()?, name.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::environment_of;

    #[test]
    fn a_path_names_an_environment_or_nothing() {
        for id in ["research/geo", "default/a.b", "Ünïcode/1.10"] {
            let id = id.parse().unwrap();
            assert_eq!(environment_of(&crate::model::name::EnvironmentId::lock_path(&id)), Some(id));
        }
        for path in ["lock/geo.yaml", "lock/a/b/c.yaml", "lock/a/b.yml", "lock/a/.yaml", "lock/../b.yaml", "a/b.yaml"] {
            assert_eq!(environment_of(path), None, "{path}");
        }
    }
}
