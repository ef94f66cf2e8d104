//! Values that know where they stand in their file.

use std::{borrow::Cow, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_saphyr::{Location, Spanned};

/// A value and its place. For an alias that is where it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub place: Place,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Length in characters.
    pub length: usize,
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        let number = |number: u64| usize::try_from(number).unwrap_or_default();
        let length = location.span().len();
        Self { line: number(location.line()), column: number(location.column()), length: number(length) }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok(Self { value, place: referenced.into() })
    }
}

impl<T: JsonSchema> JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// The entries of a mapping with free keys, in the file's order. Keys that are the same text (`1` and `"1"` too) are
/// still both there: [`super::check::Check::entries`] reports them.
#[derive(Clone, Debug)]
pub struct Entries<T>(pub Vec<(Located<String>, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
            type Value = Entries<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Entries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Entries_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<std::collections::BTreeMap<String, T>>()
    }
}

/// The schema of a text that may be written like a number: what is read is the text as it stands.
pub fn number_or_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "number", "null"]})
}

/// The schema of what is read and not used.
pub fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}
