//! `bimetal check`: verifies or rescues a store.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use bimetal_live::store::{CheckReport, Directory, Parts, Rescued, check, image, rescue};
use bimetal_study::number::{counted, thousands};

use super::create;
use crate::args::CheckArgs;
use crate::checked::{Checked, Rescue, SectorRun};
use crate::failure::Failure;
use crate::output;

/// Permissions of a store's image: for its owner only.
const IMAGE_MODE: u32 = 0o600;

/// Maximum number of lost runs of sectors that are printed.
const LOST_SHOWN: usize = 100;

fn runs(runs: &[(u64, u64)]) -> Vec<SectorRun> {
    runs.iter().map(|&(sector, sectors)| SectorRun { sector, sectors }).collect()
}

pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    match &args.rescue {
        Some(image) => rescued(args, image),
        None => checked(args),
    }
}

fn checked(args: &CheckArgs) -> Result<(), Failure> {
    let report = check(Arc::new(Directory::new(&args.store))).map_err(|error| Failure::store(&args.store, error))?;
    let json = Checked {
        bimetal: env!("CARGO_PKG_VERSION"),
        sound: report.is_sound(),
        commits_replayed: report.recovery.batches,
        events_replayed: report.recovery.events,
        pages: report.pages,
        pages_damaged: report.pages_damaged,
        disk_sectors: report.disk_sectors,
        disk_sectors_damaged: report.disk_sectors_damaged,
        sectors: report.sectors,
        lost: runs(&report.lost),
        findings: &report.findings,
        findings_left_out: report.findings_left_out,
    };
    output::emit(&args.json, &json, || text(&args.store, &report))?;
    if report.is_sound() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{}: the store is damaged; sectors that are not lost can still be read",
        args.store.display()
    )))
}

fn text(store: &Path, report: &CheckReport) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&format!("  {finding}\n"));
    }
    if report.findings_left_out > 0 {
        text.push_str(&format!("  and {} more, which are counted\n", thousands(report.findings_left_out)));
    }
    text.push_str(&lost_runs(&report.lost));
    if report.recovery.batches > 0 {
        text.push_str(&format!(
            "  it was not closed: the next start replays {}\n",
            counted(report.recovery.batches, "commit")
        ));
    }
    let damaged = report.pages_damaged + report.disk_sectors_damaged;
    let verdict = if report.is_sound() { "sound".to_owned() } else { format!("{} damaged", thousands(damaged)) };
    let disk = if report.disk_sectors > 0 {
        format!(", {} of the home disk", counted(report.disk_sectors, "sector"))
    } else {
        String::new()
    };
    let (pages, sectors) = (counted(report.pages, "page"), counted(report.sectors, "sector"));
    text + &format!("{}: {verdict}; read {pages}{disk} and {sectors} of the host\n", store.display())
}

fn rescued(args: &CheckArgs, path: &Path) -> Result<(), Failure> {
    // An existing file is not overwritten, and other users may not read the host's data, with any umask.
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(IMAGE_MODE).open(path);
    let file = file.and_then(|file| file.set_permissions(Permissions::from_mode(IMAGE_MODE)).map(|()| file));
    let file =
        file.map_err(|error| Failure::failed(format!("{}: the image cannot be made: {error}", path.display())))?;
    let image = image(file).map_err(Failure::failed)?;
    let parts = Parts {
        regions: args.region.iter().map(|path| create::absolute(path)).collect::<Result<_, Failure>>()?,
        disk: args.disk.as_deref().map(create::absolute).transpose()?,
    };
    let rescued = rescue(Arc::new(Directory::new(&args.store)), &parts, image.as_ref()).map_err(|error| {
        // An image with nothing in it only stands in the way of the next attempt. Rescued sectors are kept.
        if fs::metadata(path).is_ok_and(|image| image.len() == 0) {
            let _ = fs::remove_file(path);
        }
        Failure::store(&args.store, error)
    })?;
    let Rescued { is_state, refusal, sectors, lost, pages, unsearched } = &rescued;
    let json = Rescue {
        bimetal: env!("CARGO_PKG_VERSION"),
        state_of_the_store: *is_state,
        refusal: refusal.as_deref(),
        sectors: *sectors,
        pages_read: pages.0,
        pages_sound: pages.1,
        lost: runs(lost),
        unsearched,
    };
    output::emit(&args.json, &json, || {
        let what = match refusal {
            None => "the state of the store".to_owned(),
            Some(refusal) if *is_state => format!("the state of the store by its map, because {refusal}"),
            Some(refusal) => format!("the newest data found in {} sound pages, because {refusal}", thousands(pages.1)),
        };
        let unsearched = unsearched.iter().map(|reason| format!("  {reason}\n")).collect::<String>();
        lost_runs(lost) + &unsearched + &format!("{}: {}: {what}\n", path.display(), counted(*sectors, "sector"))
    })?;
    let failed = |what: &str| Err(Failure::failed(format!("{}: {what}", args.store.display())));
    if !lost.is_empty() {
        let lost = lost.iter().map(|(_, sectors)| sectors).sum();
        return failed(&format!("{} lost; the image has zeros there", are(lost, "sector")));
    }
    if !unsearched.is_empty() {
        return failed("not all of its files could be searched, so data may be missing from the image");
    }
    Ok(())
}

/// A number of things with the verb.
fn are(number: u64, thing: &str) -> String {
    format!("{} {}", counted(number, thing), if number == 1 { "is" } else { "are" })
}

/// A line for each run of lost sectors.
fn lost_runs(lost: &[(u64, u64)]) -> String {
    let run = |&(sector, sectors): &(u64, u64)| format!("  sectors {sector} to {} are lost\n", sector + sectors - 1);
    let mut text: String = lost.iter().take(LOST_SHOWN).map(run).collect();
    if lost.len() > LOST_SHOWN {
        let more = thousands((lost.len() - LOST_SHOWN) as u64);
        text.push_str(&format!("  and {more} more runs of sectors: `--json` lists all\n"));
    }
    text
}
