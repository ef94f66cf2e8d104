//! Rendering as a whole: values, templates, bounds and shapes.

pub(in crate::stages) mod fixture;
mod injection;
mod memo;
mod overrides;
mod shapes;
mod tenancy;
