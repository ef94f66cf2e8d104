//! Which shard of a puller an image belongs to.

use sha2::{Digest as _, Sha256};

/// Images that one puller holds before it is split.
pub const IMAGES_PER_SHARD: usize = 20;

/// How many shards that many images get; at least one.
pub fn count(images: usize) -> usize {
    images.div_ceil(IMAGES_PER_SHARD).max(1)
}

/// The shard of the image with that name. One shard more moves only the images that go to the new one.
///
/// Source: Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", <https://arxiv.org/abs/1406.2294>.
pub fn shard_of(name: &str, shards: usize) -> usize {
    let mut key = Sha256::digest(name).iter().take(8).fold(0_u64, |key, &byte| key << 8 | u64::from(byte));
    let (mut shard, mut next) = (0, 0_u64);
    while next < shards as u64 {
        shard = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        // Both factors are exact in an f64, so every machine computes the same.
        next = ((shard + 1) as f64 * ((1_u64 << 31) as f64 / ((key >> 33) + 1) as f64)) as u64;
    }
    usize::try_from(shard).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_as_many_as_needed() {
        for (images, shards) in [(0, 1), (1, 1), (20, 1), (21, 2), (40, 2), (41, 3)] {
            assert_eq!(count(images), shards);
        }
    }

    #[test]
    fn one_more_shard_moves_images_only_to_the_new_one() {
        let names: Vec<String> = (0..400).map(|n| format!("image-{n}")).collect();
        for shards in 1..20 {
            for name in &names {
                let (before, after) = (shard_of(name, shards), shard_of(name, shards + 1));
                assert!(before < shards && (after == before || after == shards), "{name}: {before} → {after}");
            }
            let in_first = names.iter().filter(|name| shard_of(name, shards) == 0).count();
            assert!(in_first <= 2 * 400 / shards + 20, "{in_first} of 400 in one of {shards}");
        }
    }
}
