//! The N-chance algorithm (`ComboFTL` 2010 §4.1): the state of each unit in the log, the choice of units that leave the warm partition, and
//! how the number of chances follows the update ratios of the warm sets (§4.2).

use serde::{Deserialize, Serialize};

use super::threshold::Mode;

/// Largest number of chances.
pub const CHANCES_MAX: u32 = 16;

/// With fewer units than this entering a warm set in a period, its update ratio is unknown.
const ENTERED_MIN: u32 = 32;

/// Largest number of warm sets: a unit has used none, one, … or all of its chances.
const SETS: usize = CHANCES_MAX as usize + 1;

/// State of a unit in the log, in a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State(u8);

crate::save::words!(State { 0: u8 });

impl State {
    const USED: u8 = 0x1f;
    const IN_WARM: u8 = 0x20;
    const WARM: u8 = 0x40;
    const UPDATED: u8 = 0x80;

    /// Just written to the hot partition. `warm`: the unit was updated in the warm partition; `updated`: it was updated
    /// in the hot one.
    #[inline]
    pub fn hot(warm: bool, updated: bool) -> Self {
        Self(if warm { Self::WARM } else { 0 } | if updated { Self::UPDATED } else { 0 })
    }

    /// In the warm partition after another lap: with no chance used if it comes from the hot one, otherwise with one
    /// more.
    #[inline]
    pub fn after_lap(self) -> Self {
        if self.is_in_warm() { Self(self.0 + 1) } else { Self(self.0 & Self::WARM | Self::IN_WARM) }
    }

    /// Chances used: the number of its warm set.
    #[inline]
    pub fn used(self) -> u32 {
        u32::from(self.0 & Self::USED)
    }

    /// Whether it is in the warm partition.
    #[inline]
    pub fn is_in_warm(self) -> bool {
        self.0 & Self::IN_WARM != 0
    }

    /// The warm bit: whether it has ever been updated in the warm partition.
    #[inline]
    pub fn is_warm(self) -> bool {
        self.0 & Self::WARM != 0
    }

    /// Whether it has been updated in the hot partition.
    #[inline]
    pub fn is_updated(self) -> bool {
        self.0 & Self::UPDATED != 0
    }
}

/// Control of the number of chances.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ChanceSettings {
    /// Whether it follows the workload.
    pub mode: Mode,
    /// Initial number (N).
    pub start: u32,
    /// Number of warm sets that are compared with the lower bound (M).
    pub window: u32,
    /// Update ratio that one of these must reach (LB).
    pub low: f64,
    /// Update ratio that the last set must not exceed (UB).
    pub high: f64,
    /// Whether data that were never updated in the warm partition leave half-way (§4.3).
    pub early_migration: bool,
}

/// The number of chances, and the update ratios of the warm sets.
#[derive(Debug, Serialize, Deserialize)]
pub struct Chances {
    #[serde(with = "crate::save::fixed")]
    settings: ChanceSettings,
    chances: u32,
    /// Units that entered each warm set in this period, and units that were updated in it.
    entered: [u32; SETS],
    updated: [u32; SETS],
    /// Update ratios of the last period's warm sets; `None` if too few units entered the set.
    ratios: [Option<f64>; SETS],
    /// The number of chances in that period.
    last: u32,
    entered_before: u64,
    updated_before: u64,
}

impl Chances {
    /// Sets without units.
    pub fn new(settings: ChanceSettings) -> Self {
        Self {
            settings,
            chances: settings.start,
            entered: [0; SETS],
            updated: [0; SETS],
            ratios: [None; SETS],
            last: settings.start,
            entered_before: 0,
            updated_before: 0,
        }
    }

    /// The number of chances (N).
    #[inline]
    pub fn chances(&self) -> u32 {
        self.chances
    }

    /// Whether a unit at the tail of the warm partition leaves for the slow region.
    #[inline]
    pub fn exhausted(&self, state: State) -> bool {
        let (used, chances) = (state.used(), self.chances);
        // From W_(N/2) on, which is W_0 with one chance: data beyond it would be there if N has just become smaller.
        used >= chances || self.settings.early_migration && used >= chances / 2 && !state.is_warm()
    }

    /// Counts a unit that entered the warm set of its state.
    #[inline]
    pub fn note_entered(&mut self, state: State) {
        self.entered[state.used() as usize] += 1;
    }

    /// Counts an update of a unit in the warm set of its state.
    #[inline]
    pub fn note_updated(&mut self, state: State) {
        self.updated[state.used() as usize] += 1;
    }

    /// Ends a period.
    pub fn adapt(&mut self) {
        self.entered_before += sum(&self.entered);
        self.updated_before += sum(&self.updated);
        for (ratio, (entered, updated)) in self.ratios.iter_mut().zip(self.entered.iter().zip(&self.updated)) {
            *ratio = (*entered >= ENTERED_MIN).then(|| f64::from(*updated) / f64::from(*entered));
        }
        self.last = self.chances;
        (self.entered, self.updated) = ([0; SETS], [0; SETS]);
        if self.settings.mode == Mode::Dynamic {
            self.chances = next_chances(self.chances, &self.ratios, &self.settings);
        }
    }

    /// Update ratio of a warm set in the last period; `None` if too few units entered it.
    pub fn ratio(&self, set: u32) -> Option<f64> {
        self.ratios.get(set as usize).copied().flatten()
    }

    /// Update ratio of the last warm set in the last period.
    pub fn last_ratio(&self) -> Option<f64> {
        self.ratio(self.last)
    }

    /// Checks that the number of chances is possible.
    ///
    /// # Errors
    /// It is not possible.
    pub fn check(&self) -> Result<(), String> {
        let most = CHANCES_MAX.max(self.settings.start);
        if self.chances > most { Err(format!("{} chances of at most {most}", self.chances)) } else { Ok(()) }
    }

    /// Units that entered warm sets so far, and units that were updated in one.
    pub fn totals(&self) -> (u64, u64) {
        (self.entered_before + sum(&self.entered), self.updated_before + sum(&self.updated))
    }
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().copied().map(u64::from).sum()
}

/// The number of chances after a period with these update ratios (§4.2, conditions 1 and 2).
fn next_chances(chances: u32, ratios: &[Option<f64>], settings: &ChanceSettings) -> u32 {
    let last = chances as usize;
    if ratios[last].is_some_and(|ratio| ratio > settings.high) {
        return (chances + 1).min(CHANCES_MAX);
    }
    let window = (last + 1).saturating_sub(settings.window as usize)..=last;
    let mut judged = ratios[window].iter().flatten().peekable();
    if judged.peek().is_some() && judged.all(|&ratio| ratio < settings.low) {
        return chances.saturating_sub(1);
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: ChanceSettings =
        ChanceSettings { mode: Mode::Dynamic, start: 2, window: 2, low: 0.3, high: 0.7, early_migration: true };

    fn next(ratios: &[f64]) -> u32 {
        let ratios: Vec<_> = ratios.iter().copied().map(Some).collect();
        next_chances(ratios.len() as u32 - 1, &ratios, &SETTINGS)
    }

    /// Table 5, and the cases of Fig. 7.
    #[test]
    fn the_papers_update_ratios_move_it_as_they_did() {
        assert_eq!(next(&[0.72, 0.21, 0.28]), 1);
        assert_eq!(next(&[0.38, 0.24, 0.32, 0.98]), 4);
        assert_eq!(next(&[0.5, 0.5, 0.5, 0.5, 0.1, 0.1]), 4, "Fig. 7a: both sets of the window are below");
        assert_eq!(next(&[0.5, 0.5, 0.5, 0.1, 0.8]), 5, "Fig. 7b");
        assert_eq!(next(&[0.9, 0.3, 0.1]), 2, "one set of the window reaches the lower bound");
        assert_eq!(next(&[0.9, 0.1, 0.7]), 2, "the upper bound itself is within");
    }

    #[test]
    fn it_stays_within_its_limits_and_ignores_small_sets() {
        assert_eq!((next(&[0.1, 0.1]), next(&[0.1]), next(&[0.5]), next(&[0.8])), (0, 0, 0, 1));
        assert_eq!(next(&[0.9; SETS]), CHANCES_MAX);
        assert_eq!(next_chances(2, &[Some(0.0), None, None], &SETTINGS), 2, "nothing is known of the window");
        assert_eq!(next_chances(2, &[Some(0.9), Some(0.1), None], &SETTINGS), 1);
    }

    #[test]
    fn ratios_are_those_of_a_period() {
        let mut chances = Chances::new(SETTINGS);
        let w0 = State::hot(false, false).after_lap();
        let w2 = w0.after_lap().after_lap();
        assert_eq!((w0.used(), w2.used(), w2.is_in_warm()), (0, 2, true));
        (0..100).for_each(|_| chances.note_entered(w0));
        (0..40).for_each(|_| chances.note_entered(w2));
        (0..30).for_each(|_| chances.note_updated(w2));
        (0..31).for_each(|_| chances.note_entered(w0.after_lap()));
        chances.adapt();
        assert_eq!([0, 1, 2].map(|set| chances.ratio(set)), [Some(0.0), None, Some(0.75)]);
        assert_eq!((chances.chances(), chances.last_ratio()), (3, Some(0.75)));
        chances.adapt();
        assert_eq!((chances.chances(), chances.ratio(0), chances.totals()), (3, None, (171, 30)));
    }

    #[test]
    fn cold_units_leave_half_way_and_all_others_with_their_last_chance() {
        let fixed = |start, early_migration| {
            Chances::new(ChanceSettings { mode: Mode::Fixed, start, early_migration, ..SETTINGS })
        };
        let laps = |chances: &Chances, warm| {
            let mut state = State::hot(warm, true).after_lap();
            let mut laps = 0;
            while !chances.exhausted(state) {
                (state, laps) = (state.after_lap(), laps + 1);
            }
            assert_eq!((state.is_warm(), state.is_updated()), (warm, false));
            laps
        };
        for (start, early, cold, warm) in
            [(4, true, 2, 4), (5, true, 2, 5), (5, false, 5, 5), (1, true, 0, 1), (0, true, 0, 0)]
        {
            let chances = fixed(start, early);
            assert_eq!((laps(&chances, false), laps(&chances, true)), (cold, warm), "{start} chances");
        }
    }
}
