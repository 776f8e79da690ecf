//! Tables as Python prints them.

use bimetal_study::listing::Listing;

/// Heads and rows of a table.
pub type Table = (Vec<String>, Vec<Vec<String>>);

/// The table of a listing.
pub fn table(listing: Listing) -> Table {
    (listing.heads, listing.rows)
}
