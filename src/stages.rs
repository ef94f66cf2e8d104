//! The decisions of a pass: pure functions over the model, in the order in which a pass takes them.
//!
//! [`load`] (with [`lint`]) → [`resolve`] → [`lock`] (with [`budget`]) → [`render`] (with [`bounds`]) → [`plan`] →
//! [`status`] (with [`coverage`]); [`lockfile`] is the format of what is locked; [`history`] and [`audit`] answer questions
//! between passes, [`changed`] and [`review`] those of a pull request; [`import`] brings over what people have. No client,
//! clock, file or environment variable is used here.

pub mod audit;
pub mod bounds;
pub mod budget;
pub mod changed;
pub mod coverage;
pub mod history;
pub mod import;
pub mod lint;
pub mod load;
pub mod lock;
pub mod lockfile;
mod memo;
pub mod plan;
pub mod render;
pub mod resolve;
pub mod review;
pub mod status;
