//! Subscribers of the status that tell others about it: [`forge`] sets commit statuses, [`target`] writes the status down
//! where `larder status` finds it.

pub mod forge;
pub mod target;
