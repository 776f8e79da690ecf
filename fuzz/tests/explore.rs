//! temporary
use bimetal_core::part::random::{below, split_mix};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
static LAST: Mutex<String> = Mutex::new(String::new());
#[test]
fn explore() {
    let runs: u64 = std::env::var("RUNS").ok().and_then(|r| r.parse().ok()).unwrap_or(2000);
    let seed0: u64 = std::env::var("SEED").ok().and_then(|r| r.parse().ok()).unwrap_or(0);
    let mode: Option<u8> = std::env::var("MODE").ok().and_then(|r| r.parse().ok());
    std::panic::set_hook(Box::new(|info| {
        let bt = std::backtrace::Backtrace::force_capture().to_string();
        let frames: Vec<&str> = bt
            .lines()
            .filter(|l| l.contains("/crates/") || l.contains("./src") || l.contains("fuzz/src"))
            .map(|l| l.trim())
            .collect();
        *LAST.lock().unwrap() =
            format!("{info}\n     {}", frames.iter().take(4).copied().collect::<Vec<_>>().join("\n     "));
    }));
    let mut found: BTreeMap<String, (u64, String, Vec<u8>)> = BTreeMap::new();
    let start = std::time::Instant::now();
    let mut slow = (0u128, vec![]);
    for seed in seed0..seed0 + runs {
        let mut r = seed;
        split_mix(&mut r);
        let mut data = vec![below(&mut r, 57) as u8, below(&mut r, 256) as u8];
        if let Some(m) = mode {
            data[1] = data[1] & !1 | m;
        }
        let n = below(&mut r, 3);
        for _ in 0..n * 12 / 2 {
            data.push(below(&mut r, 256) as u8)
        }
        let t = std::time::Instant::now();
        if catch_unwind(AssertUnwindSafe(|| bimetal_fuzz::store(&data))).is_err() {
            let what = LAST.lock().unwrap().clone();
            let key: String = what.lines().next().unwrap_or("").to_string() + what.lines().nth(3).unwrap_or("");
            let e = found.entry(key).or_insert((0, what, data.clone()));
            e.0 += 1;
            if data.len() < e.2.len() {
                e.2 = data.clone();
            }
        }
        let t = t.elapsed().as_micros();
        if t > slow.0 {
            slow = (t, data.clone());
        }
    }
    println!("{} runs in {:?}, slowest {} us {:?}", runs, start.elapsed(), slow.0, slow.1);
    let mut all: Vec<_> = found.into_values().collect();
    all.sort_by_key(|e| std::cmp::Reverse(e.0));
    for (n, what, data) in all {
        println!("== {n} {what}\n   {data:?}");
    }
}
