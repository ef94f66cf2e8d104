//! temporary
use super::*;
use crate::io::registry::Keyring;
use crate::model::failure::Failure;
use crate::model::report::PassReport;
impl KubeCluster {
    pub async fn pull_secret(&self, _n: &str, _s: &str) -> Result<Keyring, Failure> {
        Ok(Keyring::default())
    }
    pub async fn observe(&self) -> Result<(), Problem> {
        Ok(())
    }
    pub async fn last_report(&self, _n: Option<&str>) -> Result<Option<PassReport>, Problem> {
        Ok(None)
    }
}
