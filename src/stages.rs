//! The decisions of a pass: pure functions over the model, in the order in which a pass takes them.
//!
//! [`load`] (of `settings`, `environment` and [`lockfile`], which are made of [`source`]) → [`resolve`] → [`lock`] (with
//! [`budget`]) → [`render`] (with `locked_limits`) → [`plan`] → [`status`] (with [`coverage`]). [`lint`] is for commands
//! that show warnings; [`history`] and [`audit`] answer questions between passes, [`changed`] and [`review`] those of a
//! pull request; [`import`] brings over what people have. No client, clock, file or environment variable is used here.

pub mod audit;
pub mod budget;
pub mod changed;
pub mod coverage;
mod environment;
pub mod history;
pub mod import;
pub mod lint;
pub mod load;
pub mod lock;
mod locked_limits;
pub mod lockfile;
mod memo;
pub mod plan;
pub mod render;
pub mod resolve;
pub mod review;
pub mod schema;
mod settings;
pub mod source;
pub mod status;
