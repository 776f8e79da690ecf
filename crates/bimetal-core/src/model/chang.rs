//! The analytic model of Chang's hybrid SSD (IEEE TC 2010, sections 4 and 5.3.3), and what its tables cost in RAM and
//! money.

use crate::chip::Chip;

/// What a page write to the circular log of the SLC flash drags along; the paper's table 3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogFactors {
    /// `n1`: valid pages in a block that reaches the tail.
    pub tail_valid_pages: f64,
    /// `n2`: those of them that are copied to the head.
    pub copied_back_pages: f64,
}

/// What a page write to the block-mapped MLC flash drags along; the paper's table 3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChainFactors {
    /// `n3`: pages scanned for each miss of the map cache.
    pub scanned_pages: f64,
    /// `n4`: blocks erased for each folded chain.
    pub erased_blocks: f64,
    /// `p1`: share of page writes that miss the map cache.
    pub miss_ratio: f64,
    /// `p2`: share of page writes that start garbage collection.
    pub fold_ratio: f64,
}

/// Mean response of an SLC page write in microseconds: `S = (n1 t_rs + n2 t_ws + t_es) / (g_s - n2) + t_ws`.
pub fn log_write_us(slc: &Chip, factors: LogFactors) -> f64 {
    let LogFactors { tail_valid_pages, copied_back_pages } = factors;
    let recycling_us = tail_valid_pages * slc.read_us + copied_back_pages * slc.program_us + slc.erase_us;
    recycling_us / (f64::from(slc.pages_per_block) - copied_back_pages) + slc.program_us
}

/// Mean response of an MLC page write in microseconds: `M = p1 t_rm n3 + p2 (g_m (t_rm + t_wm) + n4 t_em) + t_wm`.
pub fn chain_write_us(mlc: &Chip, factors: ChainFactors) -> f64 {
    let scan_us = mlc.read_us * factors.scanned_pages;
    let copies_us = f64::from(mlc.pages_per_block) * (mlc.read_us + mlc.program_us);
    let fold_us = copies_us + factors.erased_blocks * mlc.erase_us;
    factors.miss_ratio * scan_us + factors.fold_ratio * fold_us + mlc.program_us
}

/// Mean response of a hybrid's page write: `λ S + (1 - λ) M`, with `λ` (`slc_share`) the share of the user's data that
/// goes to SLC.
pub fn hybrid_write_us(slc_share: f64, log_write_us: f64, chain_write_us: f64) -> f64 {
    slc_share * log_write_us + (1.0 - slc_share) * chain_write_us
}

/// RAM of the block map and the log-block table in bytes: a physical block's number, in whole bytes (the paper: two), for
/// each logical block and for each physical one.
pub fn block_tables_bytes(logical_blocks: u64, physical_blocks: u64) -> u64 {
    let number_bits = 64 - physical_blocks.saturating_sub(1).leading_zeros();
    u64::from(number_bits.div_ceil(8).max(1)) * (logical_blocks + physical_blocks)
}

/// RAM of the SLC's hash table in bytes, for entries of a sector key and a page number.
pub fn hash_table_bytes(entries: u64, key_bits: u64, page_bits: u64) -> u64 {
    (entries * (key_bits + page_bits)).div_ceil(8)
}

/// `EC`: price of a hybrid's flash by that of MLC alone, for SLC `price_ratio` times as dear per byte (the paper: 3).
pub fn extra_cost(slc_bytes: u64, mlc_bytes: u64, price_ratio: f64) -> f64 {
    1.0 + price_ratio * slc_bytes as f64 / mlc_bytes as f64
}

/// Energy of one operation in microjoules: supply voltage x current x time.
pub fn operation_uj(chip: &Chip, time_us: f64) -> f64 {
    chip.supply_v * chip.current_ma / 1e3 * time_us
}
