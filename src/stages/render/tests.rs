//! Rendering as a whole: values, templates, bounds and shapes.

mod fixture;
mod injection;
mod overrides;
mod shapes;
mod tenancy;
