//! Write amplification of a page-mapped region in closed form.
