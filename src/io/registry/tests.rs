//! The B cases of registries, against fake registries that answer as they were told (FX-1).

mod auth;
mod digests;
mod keyring;
mod limits;
mod mirrors;
mod support;
