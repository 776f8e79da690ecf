//! Write amplification of a page-mapped region under uniform random writes, in closed form.
//!
//! Both forms hold in steady state, for single-page writes that are independent and uniform over all logical pages,
//! without trims, and in the limit of many blocks. `utilisation` (the papers' `u`) is logical pages divided by *usable*
//! physical pages: erased blocks kept in reserve and the empty parts of open blocks are not usable; see
//! [`usable_blocks`]. Whether host writes and relocated pages share blocks makes no difference: under uniform writes
//! every valid page is equally likely to be overwritten next, however old it is.

use crate::part::real::ln;

/// Share of valid pages in the victim when the block written longest ago is collected (FIFO, or LRU cleaning): the
/// papers' `U(u)`, `u' = -u W0(-e^(-1/u) / u)` with Lambert's W, the solution below 1 of `u = (u' - 1) / ln u'`.
///
/// Sources: Menon and Stockmeyer 1998 for log-structured arrays; equation 3 of OP-FCL (FAST 2012) and HySSD (MSST
/// 2013); Desnoyers, SYSTOR 2012. It does not depend on the pages per block.
///
/// `utilisation` is within 0 to 1, both excluded.
pub fn fifo_victim_utilisation(utilisation: f64) -> f64 {
    debug_assert!(utilisation > 0.0 && utilisation < 1.0);
    // (x - 1) / ln x grows from 0 to 1. A victim is never fuller than the region is.
    let of_victim = |x: f64| (x - 1.0) / ln(x);
    bisect(f64::MIN_POSITIVE, utilisation, |x| of_victim(x) < utilisation)
}

/// Write amplification with FIFO cleaning: `1 / (1 - u')`.
pub fn fifo(utilisation: f64) -> f64 {
    1.0 / (1.0 - fifo_victim_utilisation(utilisation))
}

/// Mean number of valid pages in the victim when a block with the fewest of them is collected (greedy), by the number
/// of pages per block.
///
/// With many blocks the number of those with `i` valid pages is in balance. A write hits each valid page with the same
/// probability, so a block leaves state `i` at a rate proportional to `i`; blocks enter full, as often as victims are
/// taken, and no block stays at or below the victims' level. Hence with `Np` pages per block and `v` valid pages in the
/// victim
///
/// ```text
/// 1 / u = Np / (Np - v) * (1/(v+1) + 1/(v+2) + ... + 1/Np)
/// ```
///
/// and between whole `v`, where victims come from two neighbouring states, the sum is linear in `v`. Desnoyers (SYSTOR
/// 2012; ACM TOS 10(2), 2014) balances the same states and takes a logarithm for the sum, which gives
/// [`greedy_closed_form`]; Van Houdt's mean field (SIGMETRICS 2013) tends to it with the number of blocks among which
/// the victim is chosen. For large `Np` greedy tends to FIFO; with few pages per block it is better, at 64 pages and
/// 7 % spare by a tenth.
#[derive(Clone, Debug)]
pub struct GreedyBalance {
    /// By `v`, from 0 to `Np`: 1/(v+1) + ... + 1/Np.
    reciprocals: Vec<f64>,
}

impl GreedyBalance {
    /// For blocks of `pages_per_block` pages, at least one.
    pub fn new(pages_per_block: u32) -> Self {
        debug_assert!(pages_per_block > 0);
        let mut reciprocals = vec![0.0; pages_per_block as usize + 1];
        for state in (0..pages_per_block as usize).rev() {
            reciprocals[state] = reciprocals[state + 1] + 1.0 / (state + 1) as f64;
        }
        Self { reciprocals }
    }

    /// `v`. `utilisation` is within 0 to 1, both excluded. As it tends to 1 the victim tends to `Np - 1` valid pages.
    pub fn victim_pages(&self, utilisation: f64) -> f64 {
        debug_assert!(utilisation > 0.0 && utilisation < 1.0);
        let pages = (self.reciprocals.len() - 1) as f64;
        // The inverse of the utilisation falls as the victims' level rises.
        let inverse = |level: f64| {
            let state = level as usize;
            let share_above = level - state as f64;
            let sum = self.reciprocals[state] - share_above / (state + 1) as f64;
            pages / (pages - level) * sum
        };
        bisect(0.0, pages - 1.0, |level| inverse(level) > 1.0 / utilisation)
    }
}

/// Write amplification with greedy cleaning: `Np / (Np - v)`; see [`GreedyBalance`].
pub fn greedy(utilisation: f64, pages_per_block: u32) -> f64 {
    let pages = f64::from(pages_per_block);
    pages / (pages - GreedyBalance::new(pages_per_block).victim_pages(utilisation))
}

/// Write amplification with greedy cleaning according to Desnoyers (SYSTOR 2012; ACM TOS 10(2), 2014): with `k = 1 + 1
/// / (2 Np)` it is that of FIFO at `k` times the spare factor `1 / u`, divided by `k`. Within 0.4 % of [`greedy`] from
/// 64 pages per block on; below, and if a victim has few invalid pages, the sum is the better one.
pub fn greedy_closed_form(utilisation: f64, pages_per_block: u32) -> f64 {
    let k = 1.0 + 1.0 / (2.0 * f64::from(pages_per_block));
    fifo(utilisation / k) / k
}

/// Number of the `blocks` that can hold data if `erased_blocks` are kept erased and `open_blocks` are being filled: an
/// open block is half empty on average.
///
/// `pagemap` keeps `gc_free_blocks` erased blocks and two open ones on each die: that of the host and that of garbage
/// collection.
pub fn usable_blocks(blocks: u32, erased_blocks: u32, open_blocks: u32) -> f64 {
    f64::from(blocks) - f64::from(erased_blocks) - f64::from(open_blocks) / 2.0
}

/// The point within `low` to `high` up to which `below` is true.
fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..100 {
        let middle = low + (high - low) / 2.0;
        // There is no number between them any more.
        if middle == low || middle == high {
            return middle;
        }
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low + (high - low) / 2.0
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "libm is what the tests compare with")]
mod tests {
    use super::*;

    #[test]
    fn fifo_gives_the_papers_values() {
        // Of the relation that OP-FCL (equation 3) and HySSD share.
        for (utilisation, of_victim) in
            [(0.5, 0.2032), (0.7, 0.4670), (0.8, 0.6286), (0.9, 0.8069), (0.95, 0.9017), (0.97, 0.9406)]
        {
            assert!((fifo_victim_utilisation(utilisation) - of_victim).abs() < 5e-5, "U({utilisation})");
        }
        // Xiang and Kurkoski (arXiv 1110.4245): 2.36 at an over-provisioning of 0.3.
        assert!((fifo(1.0 / 1.3) - 2.36).abs() < 0.005);
    }

    #[test]
    fn fifo_is_lamberts_function() {
        for percent in 5..100 {
            let utilisation = f64::from(percent) / 100.0;
            let w = -fifo_victim_utilisation(utilisation) / utilisation;
            let argument = -(-1.0 / utilisation).exp() / utilisation;
            assert!((w * w.exp() - argument).abs() < 1e-12 && w > -1.0, "W at {utilisation}");
        }
    }

    #[test]
    fn greedy_is_no_worse_than_fifo_and_tends_to_it() {
        for percent in [30, 60, 80, 90, 95] {
            let utilisation = f64::from(percent) / 100.0;
            let worst = fifo(utilisation);
            let mut last = 1.0;
            for pages in [8, 32, 128, 512, 8192] {
                let now = greedy(utilisation, pages);
                assert!(
                    now >= last && now <= worst,
                    "{pages} pages at {utilisation}: {now} above {worst} or below {last}"
                );
                last = now;
            }
            assert!((worst / last - 1.0).abs() < 0.01, "at {utilisation}");
        }
    }

    #[test]
    fn greedy_agrees_with_desnoyers() {
        for percent in 50..97 {
            let utilisation = f64::from(percent) / 100.0;
            for pages in [64, 128, 256, 1536] {
                let (sum, closed) = (greedy(utilisation, pages), greedy_closed_form(utilisation, pages));
                assert!((closed / sum - 1.0).abs() < 4e-3, "{pages} pages at {utilisation}: {closed} and {sum}");
            }
        }
    }

    #[test]
    fn the_smallest_block_is_exact() {
        // Blocks of one page are always empty victims.
        assert_eq!(greedy(0.9, 1), 1.0);
        // Two pages, a victim with one valid page: every other program is a copy. Np/(Np-v) * 1/2 = 1.
        assert!((greedy(1.0 - 1e-12, 2) - 2.0).abs() < 1e-6);
    }
}
