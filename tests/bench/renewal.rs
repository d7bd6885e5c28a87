//! Renewals.
fn main() {}
