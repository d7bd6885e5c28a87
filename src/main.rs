//! The `galley` command.

fn main() {}
