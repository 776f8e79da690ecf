//! Waiting times in a queue in front of one server, from queueing theory.

/// Mean wait before service in an M/D/1 queue, in the unit of `service`: Poisson arrivals, one server, constant service
/// time (Pollaczek and Khinchine). `utilisation` is arrival rate x service, below 1; at 1 the queue grows for ever.
pub fn wait_of_equal_services(utilisation: f64, service: f64) -> f64 {
    debug_assert!((0.0..1.0).contains(&utilisation));
    utilisation / (2.0 * (1.0 - utilisation)) * service
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_follow_the_formula() {
        for (utilisation, services) in [(0.0, 0.0), (0.5, 0.5), (0.75, 1.5), (0.9, 4.5)] {
            assert!((wait_of_equal_services(utilisation, 25.0) - services * 25.0).abs() < 1e-9, "{utilisation}");
        }
    }
}
