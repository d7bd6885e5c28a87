//! Facts for administrators: the sessions and locks of the cluster, and why a seat is held. The
//! JSON bodies of `/api/admin` are built from them.

pub mod explain;
pub mod locks;
pub mod series;
pub mod sessions;
