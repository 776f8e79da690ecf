//! Managed regions: passive structures that hold maps and block states and answer verbs. Loops and decisions live in
//! the schemes.

pub mod chains;
pub mod page_map;
pub mod page_table;
pub mod ring;
pub mod slot_index;
pub mod slot_table;
pub mod unit_map;
pub mod valid_counts;
