//! Files as people write them: from bytes to text, to YAML, to values that know their place, with all that is wrong.

pub(super) mod check;
mod documents;
pub(super) mod header;
pub(super) mod located;
pub(super) mod problem;
pub mod suggest;
pub(super) mod text;
pub(super) mod tree;
pub mod values;
pub(super) mod yaml;
