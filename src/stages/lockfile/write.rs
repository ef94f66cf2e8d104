//! Lockfiles as bytes. Written by hand, because these bytes must not change with the version of a library: every
//! difference would be a commit in every environment repository.

use std::fmt::{self, Write};

use super::{API_VERSION, HEADER, KIND};
use crate::model::{
    lock::{Hold, HoldOrigin, LockedImage, Lockfile},
    text::quoted,
};

/// The bytes of a lockfile: sorted, with LF, without a clock; equal for equal lockfiles.
pub fn write(lockfile: &Lockfile) -> Vec<u8> {
    let mut out = format!("{HEADER}\napiVersion: {API_VERSION}\nkind: {KIND}\n");
    // Writing to a String cannot fail.
    let _ = images(&mut out, lockfile);
    out.into_bytes()
}

fn images(out: &mut String, lockfile: &Lockfile) -> fmt::Result {
    if lockfile.images.is_empty() {
        return writeln!(out, "images: {{}}");
    }
    writeln!(out, "images:")?;
    for (name, entry) in &lockfile.images {
        writeln!(out, "  {}:", quoted(name.as_str()))?;
        image(out, entry)?;
    }
    Ok(())
}

fn image(out: &mut String, entry: &LockedImage) -> fmt::Result {
    writeln!(out, "    reference: {}", quoted(&entry.reference.to_string()))?;
    writeln!(out, "    digest: {}", quoted(entry.digest.as_str()))?;
    writeln!(out, "    mediaType: {}", quoted(&entry.media_type))?;
    if !entry.platforms.is_empty() {
        writeln!(out, "    platforms:")?;
    }
    for manifest in &entry.platforms {
        writeln!(out, "      - platform: {}", quoted(&manifest.platform.to_string()))?;
        writeln!(out, "        digest: {}", quoted(manifest.digest.as_str()))?;
        if let Some(size) = manifest.size {
            writeln!(out, "        size: {size}")?;
        }
    }
    if !entry.previous.is_empty() {
        writeln!(out, "    previous:")?;
    }
    for previous in &entry.previous {
        writeln!(out, "      - reference: {}", quoted(&previous.reference.to_string()))?;
        writeln!(out, "        digest: {}", quoted(previous.digest.as_str()))?;
    }
    entry.hold.as_ref().map_or(Ok(()), |held| hold(out, held, entry))
}

fn hold(out: &mut String, hold: &Hold, entry: &LockedImage) -> fmt::Result {
    writeln!(out, "    hold:\n      reason: {}", quoted(&hold.reason))?;
    match &hold.origin {
        HoldOrigin::Person => writeln!(out, "      origin: \"person\"")?,
        HoldOrigin::Revert { instead_of } => {
            writeln!(out, "      origin: \"revert\"")?;
            if *instead_of != entry.reference {
                writeln!(out, "      insteadOf: {}", quoted(&instead_of.to_string()))?;
            }
        }
    }
    match hold.until {
        Some(until) => writeln!(out, "      until: \"{until}\""),
        None => Ok(()),
    }
}
