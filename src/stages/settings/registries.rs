//! The registries of `larder.yaml`.

use std::collections::BTreeMap;

use crate::model::{
    failure::{Category, Problem},
    registries::{CertificateAuthority, Mirror, Registries, RegistryOptions, registry_host},
};

use super::{
    super::source::{
        check::Check,
        located::{Entries, Located, Place},
        problem::{credentials, duplicate},
    },
    file::Registry,
};

/// Checks the registries.
pub fn registries(check: &mut Check<'_>, entries: Option<Entries<Registry>>) -> Registries {
    let mut registries = BTreeMap::new();
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (key, file) in check.entries(entries) {
        let host = address(check, &key, |text| registry_host(text).map_err(Problem::from));
        let options = options(check, file);
        let Some(host) = host else { continue };
        // `docker.io` and `index.docker.io` are one registry.
        if let Some(line) = lines.insert(host.clone(), key.place.line) {
            check.report(key.place, duplicate(&host, Some(line)));
        }
        registries.insert(host, options);
    }
    Registries(registries)
}

fn options(check: &mut Check<'_>, file: Registry) -> RegistryOptions {
    let mirrors = file.mirrors.unwrap_or_default();
    let mirrors = mirrors
        .iter()
        .filter_map(|mirror| address(check, mirror, |text| text.parse::<Mirror>().map_err(Problem::from)));
    let mirrors = mirrors.collect();
    RegistryOptions {
        mirrors,
        plain_http: file.plain_http.unwrap_or_default(),
        ca: authority(check, file.ca_file, file.ca),
    }
}

/// Reads an address. One with a user is refused without repeating it.
fn address<T>(
    check: &mut Check<'_>,
    text: &Located<String>,
    read: impl FnOnce(&str) -> Result<T, Problem>,
) -> Option<T> {
    if text.value.contains('@') {
        check.report_secret(text.place, credentials("do not put credentials in Git (in this address)"));
        return None;
    }
    check.read(Some(text), read)
}

fn authority(
    check: &mut Check<'_>,
    file: Option<Located<String>>,
    pem: Option<Located<String>>,
) -> Option<CertificateAuthority> {
    let schema = |message: &str, hint: &str| Problem::new(Category::Schema, message).hint(hint);
    match (file, pem) {
        (None, None) => None,
        (Some(file), Some(_)) => {
            check.report(file.place, schema("there are both caFile and ca", "keep one of them"));
            None
        }
        (Some(file), None) if file.value.trim().is_empty() => {
            check.report(file.place, schema("caFile names no file", "write the path of a PEM file, or remove it"));
            None
        }
        (Some(file), None) => Some(CertificateAuthority::File(file.value)),
        (None, Some(pem)) => certificates(check, pem),
    }
}

fn certificates(check: &mut Check<'_>, Located { value, place }: Located<String>) -> Option<CertificateAuthority> {
    // The text of a block scalar begins below its key; its first line says what it is.
    let place = Place { length: 0, ..place };
    if value.contains("PRIVATE KEY") {
        check.report_secret(
            place,
            secret(
                "there is a private key in `ca`",
                "remove it, and make a new one, since the history keeps it; `ca` holds certificates only",
            ),
        );
        return None;
    }
    if !value.contains("-----BEGIN CERTIFICATE-----") || !value.contains("-----END CERTIFICATE-----") {
        check.report(
            place,
            Problem::new(Category::Schema, "`ca` holds no certificate")
                .hint("paste the PEM text, with its BEGIN and END lines, into a block scalar (`ca: |`)"),
        );
        return None;
    }
    Some(CertificateAuthority::Pem(value))
}

fn secret(message: &str, hint: &str) -> Problem {
    Problem::new(Category::Credentials, message).hint(hint)
}
