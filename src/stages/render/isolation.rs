//! Where a repository's own templates run: in a process that can be ended, so that no text in a repository can end or
//! stall this one.

use std::sync::OnceLock;

use serde_json::Value;

use super::sandbox::{Refusal, Sources};

/// A process that renders templates.
pub trait Process: Send {
    /// The text that the template renders.
    ///
    /// # Errors
    /// When the template is broken, or the process had to be ended.
    fn render(&mut self, template: &str, context: &Value) -> Result<String, Refusal>;
}

/// Makes a process for these templates.
pub type Start = fn(&Sources) -> Box<dyn Process>;

static START: OnceLock<Start> = OnceLock::new();

/// From now on the templates of repositories run in such processes. Without it they run in this one, as in unit tests.
pub fn isolate(start: Start) {
    let _ = START.set(start);
}

pub(super) fn start(sources: &Sources) -> Option<Box<dyn Process>> {
    START.get().map(|start| start(sources))
}
