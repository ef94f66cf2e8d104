//! Plain data that the stages pass on: names, references, environments, locks, objects, plans, failures.
//!
//! Nothing here performs I/O, reads a clock or knows a client. Types appear in the order of the flow:
//! [`snapshot`] → [`settings`] and [`environment`] → [`resolution`] → [`lock`] → [`manifest`] → [`plan`] → [`report`].

pub mod batch;
pub mod digest;
pub mod failure;
pub mod name;
pub mod snapshot;
