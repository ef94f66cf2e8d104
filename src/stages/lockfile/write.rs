//! Lockfiles as bytes. Written by hand, because these bytes must not change with the version of a library: every
//! difference would be a commit in every environment repository.

use std::fmt::{self, Write};

use super::{API_VERSION, HEADER, KIND};
use crate::model::lock::{LockedImage, Lockfile};

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
        writeln!(out, "  {}:", Quoted(name.as_str()))?;
        image(out, entry)?;
    }
    Ok(())
}

fn image(out: &mut String, entry: &LockedImage) -> fmt::Result {
    writeln!(out, "    reference: {}", Quoted(&entry.reference.to_string()))?;
    writeln!(out, "    digest: {}", Quoted(entry.digest.as_str()))?;
    writeln!(out, "    mediaType: {}", Quoted(&entry.media_type))?;
    if !entry.platforms.is_empty() {
        writeln!(out, "    platforms:")?;
    }
    for manifest in &entry.platforms {
        writeln!(out, "      - platform: {}", Quoted(&manifest.platform.to_string()))?;
        writeln!(out, "        digest: {}", Quoted(manifest.digest.as_str()))?;
        writeln!(out, "        size: {}", manifest.size)?;
    }
    if !entry.previous.is_empty() {
        writeln!(out, "    previous:")?;
    }
    for previous in &entry.previous {
        writeln!(out, "      - reference: {}", Quoted(&previous.reference.to_string()))?;
        writeln!(out, "        digest: {}", Quoted(previous.digest.as_str()))?;
    }
    match &entry.hold {
        Some(reason) => writeln!(out, "    hold: {}", Quoted(reason)),
        None => Ok(()),
    }
}

/// A double-quoted scalar on one line, which readers of YAML 1.1, YAML 1.2 and JSON all take for the same string.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                // What YAML does not take as printable, or takes as the end of a line (U+0085, U+2028, U+2029), and
                // what changes the order in which a line is shown.
                '\0'..='\x1f'
                | '\x7f'..='\u{a0}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fffe}'
                | '\u{ffff}' => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}
