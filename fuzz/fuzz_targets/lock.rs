//! Any bytes as a lockfile: what parses is written in one way, which parses to the same.

#![no_main]

use larder::stages::lockfile::{parse, write};
use libfuzzer_sys::fuzz_target;

const PATH: &str = "lock/t/a.yaml";

fuzz_target!(|data: &[u8]| {
    match parse(PATH, data) {
        Ok(lockfile) => {
            let written = write(&lockfile);
            let again = parse(PATH, &written).unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(again, lockfile);
            assert_eq!(write(&again), written);
        }
        Err(failure) => {
            for problem in failure.problems() {
                assert!(problem.hint.is_some() && problem.location.is_some(), "{problem}");
            }
        }
    }
});
