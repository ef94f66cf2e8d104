//! Lockfiles from bytes: nothing is guessed, every error has its place.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use jiff::civil::Date;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_saphyr::{MessageFormatter, UserMessageFormatter};

use super::{API_VERSION, KIND, WRITE_ANEW};
use crate::model::{
    digest::Digest,
    failure::{Category, Failure, Problem, Source},
    lock::{Hold, HoldOrigin, LockedImage, Lockfile, Previous},
    name::Name,
    reference::ImageReference,
    resolution::{Platform, PlatformManifest},
};

/// Lines that Git leaves in a file that it could not merge.
/// <https://git-scm.com/docs/git-merge#_how_conflicts_are_presented>
const MERGE_MARKERS: [&str; 4] = ["<<<<<<<", "|||||||", "=======", ">>>>>>>"];

/// What larder has found in the registries: for each image of one environment the digest that the nodes must hold.
/// Written by larder alone.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Lockfile")]
struct FileDto {
    /// `larder.dev/v1alpha1`.
    #[schemars(extend("const" = "larder.dev/v1alpha1"))]
    api_version: String,
    /// `Lockfile`.
    #[schemars(extend("const" = "Lockfile"))]
    kind: String,
    /// The images by name.
    #[schemars(with = "BTreeMap<String, ImageDto>")]
    images: BTreeMap<Name, ImageDto>,
}

/// The part that every version of the format has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadDto {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
}

/// What an image's reference named when it was last resolved.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "LockedImage")]
struct ImageDto {
    /// The reference that was resolved.
    #[schemars(with = "String")]
    reference: ImageReference,
    /// What the nodes must hold: the index, where there is one.
    #[schemars(with = "String")]
    digest: Digest,
    /// The media type of what the digest names.
    media_type: String,
    /// The platforms of the index, or the one platform of a single manifest.
    #[serde(default)]
    platforms: Vec<PlatformDto>,
    /// Previous digests, the newest first, as many as the environment retains.
    #[serde(default)]
    previous: Vec<PreviousDto>,
    /// Why the digest must not move, while it must not.
    #[serde(default)]
    hold: Option<HoldDto>,
}

/// An image's pin at its locked digest. A string alone is the reason of a person's hold.
struct HoldDto(HoldFields);

/// An image's pin at its locked digest.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Hold")]
struct HoldFields {
    /// Why.
    reason: String,
    /// Who decided it: a person by `larder hold`, or larder after a person's revert of the lock.
    origin: OriginDto,
    /// The last day (UTC) on which it holds, such as `2026-12-04`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    until: Option<Date>,
    /// With `origin: revert`, the reference that the environment's file asked for at that time, where that is another
    /// one than what is locked.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    instead_of: Option<ImageReference>,
}

/// Who decided a hold.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HoldOrigin")]
enum OriginDto {
    Person,
    Revert,
}

impl<'de> Deserialize<'de> for HoldDto {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = HoldDto;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a reason, or a mapping with `reason` and `origin`")
            }

            fn visit_str<E>(self, reason: &str) -> Result<HoldDto, E> {
                let (reason, origin) = (reason.to_owned(), OriginDto::Person);
                Ok(HoldDto(HoldFields { reason, origin, until: None, instead_of: None }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HoldDto, A::Error> {
                HoldFields::deserialize(MapAccessDeserializer::new(map)).map(HoldDto)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for HoldDto {
    fn schema_name() -> Cow<'static, str> {
        "HoldOrReason".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fields = generator.subschema_for::<HoldFields>();
        json_schema!({ "anyOf": [fields, { "description": "The reason of a person's hold.", "type": "string" }] })
    }
}

/// One platform's part of an image.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LockedPlatform")]
struct PlatformDto {
    /// Such as `linux/amd64`.
    #[schemars(with = "String")]
    platform: Platform,
    /// The digest of its manifest.
    #[schemars(with = "String")]
    digest: Digest,
    /// Compressed bytes that a node pulls. Absent while no registry had the platform's manifest.
    #[serde(default)]
    size: Option<u64>,
}

/// A digest that the image had before.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Previous")]
struct PreviousDto {
    /// The reference that was resolved then.
    #[schemars(with = "String")]
    reference: ImageReference,
    /// What it named.
    #[schemars(with = "String")]
    digest: Digest,
}

/// The JSON Schema of lockfiles.
pub fn schema() -> Schema {
    schema_for!(FileDto)
}

/// Reads a lockfile; `path` is from the root of the environment repository, for problems.
///
/// # Errors
/// When it is not a lockfile of this version, with file, line and column; conflict markers of a merge and versions to come
/// have messages of their own.
pub fn parse(path: &str, bytes: &[u8]) -> Result<Lockfile, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
        let source = Source { path: path.to_owned(), text: String::from_utf8_lossy(bytes).into() };
        problem("the lockfile is no UTF-8").at(&source, line, 0, 0)
    })?;
    let source = || Source { path: path.to_owned(), text: Arc::from(text) };
    if let Some(line) = text.lines().position(is_merge_marker) {
        let problem = problem("the lockfile holds the conflict markers of a merge")
            .hint("take either side or delete the file: larder writes it again");
        return Err(problem.at(&source(), line + 1, 0, 0).into());
    }
    match serde_saphyr::from_str::<FileDto>(text) {
        Ok(file) if file.api_version == API_VERSION && file.kind == KIND => Ok(file.into()),
        Ok(file) => Err(wrong_version(&file.api_version, &file.kind, &source()).into()),
        Err(error) => match serde_saphyr::from_str::<HeadDto>(text) {
            Ok(HeadDto { api_version: Some(version), kind: Some(kind) }) if version != API_VERSION || kind != KIND => {
                Err(wrong_version(&version, &kind, &source()).into())
            }
            _ => Err(malformed(&error, &source()).into()),
        },
    }
}

fn is_merge_marker(line: &str) -> bool {
    MERGE_MARKERS
        .iter()
        .any(|marker| line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}

fn problem(message: &str) -> Problem {
    Problem::new(Category::Lock, message).hint(WRITE_ANEW)
}

fn wrong_version(version: &str, kind: &str, source: &Source) -> Problem {
    let line = |key: &str| source.text.lines().position(|line| line.starts_with(key)).map_or(0, |index| index + 1);
    if kind != KIND {
        return problem(&format!("a lockfile has the kind `{KIND}`, not {kind:?}")).at(source, line("kind"), 0, 0);
    }
    let problem = Problem::new(
        Category::Lock,
        format!("the lockfile has the apiVersion {version:?}; this larder reads {API_VERSION}"),
    );
    problem.hint("a newer larder wrote it: use that version here as well, or delete the file to have it rewritten").at(
        source,
        line("apiVersion"),
        0,
        0,
    )
}

fn malformed(error: &serde_saphyr::Error, source: &Source) -> Problem {
    let error = error.without_snippet();
    let message = UserMessageFormatter.format_message(error).into_owned();
    let (line, column) = error.location().map_or((0, 0), |place| (place.line(), place.column()));
    let place = |number: u64| usize::try_from(number).unwrap_or(0);
    problem(&format!("the lockfile cannot be read: {message}")).at(source, place(line), place(column), 0)
}

impl From<FileDto> for Lockfile {
    fn from(file: FileDto) -> Self {
        Self { images: file.images.into_iter().map(|(name, image)| (name, image.into())).collect() }
    }
}

impl From<ImageDto> for LockedImage {
    fn from(image: ImageDto) -> Self {
        let platforms = image.platforms.into_iter();
        let previous = image.previous.into_iter();
        let hold = image.hold.map(|HoldDto(hold)| Hold {
            origin: match hold.origin {
                OriginDto::Person => HoldOrigin::Person,
                OriginDto::Revert => {
                    HoldOrigin::Revert { instead_of: hold.instead_of.unwrap_or_else(|| image.reference.clone()) }
                }
            },
            reason: hold.reason,
            until: hold.until,
        });
        Self {
            reference: image.reference,
            digest: image.digest,
            media_type: image.media_type,
            platforms: platforms
                .map(|PlatformDto { platform, digest, size }| PlatformManifest { platform, digest, size })
                .collect(),
            previous: previous.map(|PreviousDto { reference, digest }| Previous { reference, digest }).collect(),
            hold,
        }
    }
}
