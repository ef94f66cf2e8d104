//! The decisions of a pass: pure functions over the model, in the order in which a pass takes them.
//!
//! [`load`] → [`resolve`] → [`lock`] (with [`budget`]) → [`render`] → [`plan`] → [`report`]; [`standing`] and
//! [`history`] answer questions between passes; [`import`] brings over what people have. No client, clock, file or environment variable is used here.

pub mod budget;
pub mod coverage;
pub mod history;
pub mod import;
pub mod load;
pub mod lock;
pub mod plan;
pub mod render;
pub mod report;
pub mod resolve;
pub mod standing;
