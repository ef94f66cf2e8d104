//! Integration tests: larder's parts against real peers on this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, missing_docs)]

mod git;
