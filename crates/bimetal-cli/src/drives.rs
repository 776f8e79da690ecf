//! `bimetal drives`: real drives predicted from their construction, compared with reviewers' measurements.

use bimetal_study::drives::{Compared, Drive, Predictions, Review, Role, choose, predict};
use bimetal_study::html;
use bimetal_study::number::{NOTHING, plain};

use crate::args::DrivesArgs;
use crate::failure::Failure;
use crate::files::Files;
use crate::progress::StepBar;
use crate::table::{Align, bold, indented, plain as table};
use crate::{output, setup};

/// Text below the last block.
const LEGEND: &str = "M: measured by a reviewer; C: claimed by the maker; inputs do not count\n";

/// Runs the command.
pub fn run(args: &DrivesArgs) -> Result<(), Failure> {
    let own = args.device.iter().map(|name| unreviewed(name)).collect::<Result<Vec<Review>, Failure>>()?;
    let named = !args.names.is_empty() || own.is_empty();
    let reviewed = if named { choose(&args.names).map_err(Failure::usage)? } else { Vec::new() };
    let drives: Vec<&Review> = reviewed.into_iter().chain(&own).collect();
    let devices = args.device.iter().filter_map(|name| setup::device_file(name));
    Files::default().reads(devices).results(&args.json, &args.html).check()?;
    let bar = StepBar::new(drives.len() as u64);
    let predictions = predict(&drives, usize::from(args.jobs.unwrap_or(0)), &bar)?;
    drop(bar);
    output::write_html(&args.html, || html::drives(&predictions, &output::command_line()))?;
    output::emit(&args.json, &predictions, || text(&predictions))
}

/// A device without a review.
fn unreviewed(name: &str) -> Result<Review, Failure> {
    let device = setup::device(name)?;
    if device.scheme.is_empty() {
        let what = format!(
            "device `{name}` names no scheme, and a drive needs one; hint: add `scheme = \"...\"` to a device file"
        );
        return Err(Failure::usage(what));
    }
    Ok(Review::of_device(device)?)
}

/// A block for each drive, and a summary.
fn text(predictions: &Predictions) -> String {
    let mut text: String = predictions.drives.iter().map(|drive| block(drive) + "\n").collect();
    let mut is_reviewed = false;
    for (role, assessment) in [(Role::Fitted, &predictions.fitted), (Role::Predicted, &predictions.predicted)] {
        if let Some(sentence) = assessment.sentence() {
            text += &format!("{}: {sentence}\n", bold(role.name()));
            is_reviewed = true;
        }
    }
    if is_reviewed {
        text += LEGEND;
    }
    text
}

fn block(drive: &Drive) -> String {
    let mut text = format!("{}  {}\n", bold(&drive.title), drive.role.name());
    text += &indented(&drive.device, 2);
    if !drive.note.is_empty() {
        text += &indented(&drive.note, 2);
    }
    let rows = drive.figures.iter();
    if drive.role == Role::Unreviewed {
        let rows = rows.map(|figure| vec![figure.figure.title().into(), shown(figure.predicted)]);
        return text + &table(&[("figure", Align::Left), ("predicted", Align::Right)], rows.collect());
    }
    let heads = [
        ("figure", Align::Left),
        ("predicted", Align::Right),
        ("measured", Align::Right),
        ("error", Align::Right),
        ("verdict", Align::Left),
    ];
    text + &table(&heads, rows.map(row).collect())
}

fn row(figure: &Compared) -> Vec<String> {
    let mark = figure.mark.map_or_else(String::new, |mark| format!(" {}", mark.letter()));
    vec![
        figure.figure.title().into(),
        shown(figure.predicted),
        shown(figure.measured) + &mark,
        figure.shown_error(),
        figure.verdict.map_or(NOTHING, |verdict| verdict.name()).into(),
    ]
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.into(), plain)
}
