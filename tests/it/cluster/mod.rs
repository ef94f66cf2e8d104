//! The cluster adapter against a real API server, the one of `tests/cluster/`.

mod changes;
mod coverage;
mod refusals;
mod rights;
mod watches;
mod world;
