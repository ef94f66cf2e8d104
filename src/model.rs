//! Plain data that the stages pass on: names, references, environments, locks, objects, plans, failures.
//!
//! Nothing here performs I/O, reads a clock or knows a client. Types appear in the order of the flow:
//! [`snapshot`] → [`settings`] and [`environment`] → [`resolution`] → [`lock`] → [`manifest`] → [`plan`] → [`status`].

pub mod batch;
pub mod digest;
pub mod environment;
pub mod failure;
pub mod fields;
pub mod forge;
pub mod history;
pub mod lint;
pub mod lock;
pub mod manifest;
pub mod name;
pub mod news;
pub mod observation;
pub mod pattern;
pub mod plan;
pub mod platform;
pub mod redact;
pub mod reference;
pub mod registries;
pub mod requests;
pub mod resolution;
pub mod settings;
pub mod snapshot;
pub mod status;
pub mod text;
pub mod verification;
pub mod yaml;
