//! Fields that are missing, by the schema that the types themselves give: serde tells of the first one only.

use serde_json::Value;

use super::super::tree::{Slot, Tree};

/// The fields that each mapping must have and the text does not have, by the mapping's slot.
pub fn missing(schema: &Value, tree: &Tree) -> Vec<(usize, Vec<String>)> {
    let mut schemas: Vec<Option<&Value>> = Vec::with_capacity(tree.slots.len());
    let mut found = Vec::new();
    for (index, slot) in tree.slots.iter().enumerate() {
        let own = match slot.parent {
            None => Some(schema),
            Some(parent) => schemas.get(parent).copied().flatten().and_then(|schema| part(schema, slot)),
        };
        let own = own.and_then(|own| resolve(schema, own, 0));
        schemas.push(own);
        let Some(required) = own.filter(|_| slot.mapping).and_then(|own| own.get("required")) else { continue };
        let keys: Vec<&str> = tree.children(index).filter_map(|child| child.key.as_deref()).collect();
        // What is merged in is not looked through.
        if keys.contains(&"<<") {
            continue;
        }
        let required = required.as_array().into_iter().flatten().filter_map(Value::as_str);
        let fields: Vec<String> = required.filter(|field| !keys.contains(field)).map(str::to_owned).collect();
        if !fields.is_empty() {
            found.push((index, fields));
        }
    }
    found
}

/// Whether a mapping must have that field.
pub fn is_required(schema: &Value, tree: &Tree, mapping: usize, field: &str) -> bool {
    let mut path: Vec<usize> = tree.ancestors(mapping).collect();
    path.pop();
    let mut below = path.iter().rev();
    let start = resolve(schema, schema, 0);
    let own =
        start.and_then(|start| below.try_fold(start, |own, slot| resolve(schema, part(own, &tree.slots[*slot])?, 0)));
    let required = own.and_then(|own| own.get("required")).and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|name| name == field))
}

fn part<'a>(schema: &'a Value, slot: &Slot) -> Option<&'a Value> {
    match &slot.key {
        Some(key) => schema.get("properties").and_then(|all| all.get(key)).or(schema.get("additionalProperties")),
        None => schema.get("items"),
    }
}

/// A schema behind its references; of alternatives the one that has parts.
fn resolve<'a>(root: &'a Value, schema: &'a Value, depth: usize) -> Option<&'a Value> {
    const MOST: usize = 8;
    if depth > MOST {
        return None;
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return resolve(root, root.pointer(reference.strip_prefix('#')?)?, depth + 1);
    }
    if let Some(choices) = schema.get("anyOf").or(schema.get("oneOf")).and_then(Value::as_array) {
        let has_parts =
            |schema: &&Value| ["properties", "items", "additionalProperties"].iter().any(|k| schema.get(*k).is_some());
        return choices.iter().filter_map(|choice| resolve(root, choice, depth + 1)).find(has_parts);
    }
    Some(schema)
}
