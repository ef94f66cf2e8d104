//! The B cases of registries, against fake registries that answer as they were told.

mod auth;
mod digests;
mod keyring;
mod limits;
mod mirrors;
mod support;
