//! Memory and CPUs for the spawn menu.

use std::collections::BTreeMap;

use crate::{
    model::environment::{Range, Resources},
    stages::source::values,
};

use super::super::{cursor::Cursor, draft::Collected};

/// Which of the four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Memory that is promised.
    MemoryGuarantee,
    /// The most memory.
    MemoryLimit,
    /// CPUs that are promised.
    CpuGuarantee,
    /// The most CPUs.
    CpuLimit,
}

/// Quantities as they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    fields: [Option<String>; 4],
    /// Extended resources by name.
    pub extra: BTreeMap<String, String>,
}

impl Found {
    /// Sets one; null or nothing takes it away.
    pub fn set(&mut self, field: Field, value: Option<&Cursor<'_>>) {
        let text = value.and_then(Cursor::text).map(|text| text.trim().to_owned());
        self.fields[field as usize] = text.filter(|text| !text.is_empty());
    }

    /// Merges a mapping of extended resources; null takes one, or all, away.
    pub fn set_extra(&mut self, value: &Cursor<'_>) {
        if !value.is_map() {
            self.extra.clear();
        }
        for (name, count) in value.entries() {
            match count.text() {
                Some(count) => self.extra.insert(name.to_owned(), count),
                None => self.extra.remove(name),
            };
        }
    }

    /// As an environment has them. What is not a quantity, or contradicts, is left out.
    pub fn resources(&self, place: &Cursor<'_>, collected: &mut Collected) -> Resources {
        let [memory_guarantee, memory_limit, cpu_guarantee, cpu_limit] = &self.fields;
        let mut range = |what: &str, guarantee: &Option<String>, limit: &Option<String>| {
            let mut known = |text: &Option<String>| {
                let text = text.clone()?;
                // By the rules for the file that is written: else it would be refused.
                match values::quantity(&text) {
                    Ok(value) => Some((text, value)),
                    Err(_) => {
                        let why = format!("the {what} `{text}` is not a quantity above 0, so it is left out");
                        collected.leave_out(place, why);
                        None
                    }
                }
            };
            let (mut guarantee, limit) = (known(guarantee), known(limit));
            if let (Some((_, low)), Some((_, high))) = (&guarantee, &limit)
                && low > high
            {
                collected
                    .leave_out(place, format!("the {what} that is promised is above its limit, so it is left out"));
                guarantee = None;
            }
            let text = |pair: Option<(String, f64)>| pair.map(|(text, _)| text);
            (guarantee.is_some() || limit.is_some()).then(|| Range { guarantee: text(guarantee), limit: text(limit) })
        };
        let memory = range("memory", memory_guarantee, memory_limit);
        let cpu = range("cpu", cpu_guarantee, cpu_limit);
        let mut extra = self.extra.clone();
        extra.retain(|name, count| {
            let is_valid = values::label_key(name).is_ok() && values::quantity(count).is_ok();
            if !is_valid {
                let why = format!("`{name}: {count}` is not a resource with a quantity above 0, so it is left out");
                collected.leave_out(place, why);
            }
            is_valid
        });
        Resources { memory, cpu, extra }
    }
}
