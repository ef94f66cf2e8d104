//! Results of many environments side by side, so that one failure never hides or stops another.

use std::collections::BTreeMap;

use super::{failure::Failure, name::EnvironmentId};

/// What became of each environment: its value, or why there is none.
pub type Batch<T> = BTreeMap<EnvironmentId, Result<T, Failure>>;

/// The values of those environments that have one, in order of their identities.
pub fn succeeded<T>(batch: &Batch<T>) -> impl Iterator<Item = (&EnvironmentId, &T)> {
    batch.iter().filter_map(|(id, result)| result.as_ref().ok().map(|value| (id, value)))
}

/// The failures of those environments that have one, in order of their identities.
pub fn failed<T>(batch: &Batch<T>) -> impl Iterator<Item = (&EnvironmentId, &Failure)> {
    batch.iter().filter_map(|(id, result)| result.as_ref().err().map(|failure| (id, failure)))
}
