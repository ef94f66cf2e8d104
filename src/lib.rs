//! larder keeps every Kubernetes node stocked with the container images that its environments need.

pub mod model;
