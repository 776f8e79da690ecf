//! Pages of the papers' tables and figures: measured beside printed values, and the claims that hold.

use bimetal_study::html::markup::escape;
use bimetal_study::html::page::Page;
use bimetal_study::html::table::Table;

use crate::claim::{Claim, Figure, Kind, StandIn, Verdict, primary};

const VERDICTS: [Verdict; 3] = [Verdict::Held, Verdict::NotHeld, Verdict::NotJudged];

/// Kinds of claims for which only the number that holds is shown.
const OTHERS: [Kind; 3] = [Kind::Arithmetic, Kind::Generator, Kind::Ours];

fn head(text: &str) -> String {
    format!("<th scope=\"col\">{text}</th>")
}

/// A page of figures with their claims. `command` reproduces it.
pub fn figures(title: &str, command: &str, figures: &[Figure]) -> String {
    let mut page = Page::new(title, Vec::new());
    page.paragraph(
        "Full marks and solid lines were measured here; hollow marks, dotted lines and empty bars are the paper's.",
    );
    page.code(command);
    scoreboard(&mut page, figures);
    for figure in figures {
        section(&mut page, figure);
    }
    page.finish()
}

/// Number of claims that hold, by figure and by paper: results by verdict, and the total of the other kinds. The sum of
/// a paper uses calibrated stand-ins if there are any, with the sum over the first ones beside it.
fn scoreboard(page: &mut Page, figures: &[Figure]) {
    if figures.iter().all(|figure| figure.claims.is_empty()) {
        return;
    }
    let mut papers: Vec<&str> = figures.iter().map(|figure| figure.paper).collect();
    papers.dedup();
    let mut rows = String::new();
    for paper in &papers {
        let of_paper = || figures.iter().enumerate().filter(move |(_, figure)| figure.paper == *paper);
        for (index, figure) in of_paper() {
            let (place, name) = (page.section_ahead(index), escape(figure.figure));
            let name = format!("<a href=\"#{place}\">{} {name}</a>{}", escape(paper), escape(&on(figure)));
            rows.push_str(&score(&name, &figure.claims.iter().collect::<Vec<_>>()));
        }
        if of_paper().nth(1).is_some() {
            let claims: Vec<&Claim> = of_paper().flat_map(|(_, figure)| &figure.claims).collect();
            rows.push_str(&score(&format!("<strong>{}</strong>", escape(paper)), &primary(&claims)));
            let first: Vec<&Claim> = claims.iter().copied().filter(|claim| claim.stand_in == StandIn::First).collect();
            if first.len() < claims.len() {
                rows.push_str(&score(&format!("<strong>{}</strong>, first stand-ins", escape(paper)), &first));
            }
        }
    }
    if papers.len() > 1 {
        let claims: Vec<&Claim> = figures.iter().flat_map(|figure| &figure.claims).collect();
        rows.push_str(&score("<strong>all</strong>", &primary(&claims)));
    }
    let verdicts = VERDICTS.iter().map(|verdict| verdict.name());
    let heads: String = verdicts.chain(OTHERS.iter().map(|kind| kind.name())).map(head).collect();
    page.push(&format!(
        "<div class=\"scroll\" tabindex=\"0\"><table>\n\
         <thead><tr><th scope=\"col\" class=\"text\">results of</th>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n"
    ));
}

/// Marks a figure with calibrated stand-ins, or about a trace of the user.
fn on(figure: &Figure) -> String {
    match (&figure.trace, figure.stand_in) {
        (Some(trace), _) => format!(", {trace}"),
        (None, StandIn::First) => String::new(),
        (None, StandIn::Calibrated) => ", calibrated".into(),
    }
}

/// A row of the scoreboard.
fn score(label: &str, claims: &[&Claim]) -> String {
    let of_kind = |kind| claims.iter().filter(move |claim| claim.kind == kind);
    let count = |kind, verdict| of_kind(kind).filter(|claim| claim.verdict == verdict).count();
    let results = VERDICTS.map(|verdict| count(Kind::Result, verdict).to_string());
    let others = OTHERS.map(|kind| match of_kind(kind).count() {
        0 => String::new(),
        all => format!("{} of {all}", count(kind, Verdict::Held)),
    });
    let cells: String = results.into_iter().chain(others).map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<tr><th scope=\"row\" class=\"text\">{label}</th>{cells}</tr>\n")
}

fn section(page: &mut Page, figure: &Figure) {
    page.section(&format!("{} {}{}: {}", figure.paper, figure.figure, on(figure), figure.title));
    page.paragraph(&figure.caption);
    if !figure.claims.is_empty() {
        let heads = ["claim", "kind", "verdict", "paper", "here", "why"].map(str::to_owned).to_vec();
        let row = |claim: &Claim| {
            let verdict = match claim.verdict {
                Verdict::Held => "✓ held",
                Verdict::NotHeld => "✗ not held",
                Verdict::NotJudged => "– not judged",
            };
            let texts = [claim.claim, claim.kind.name(), verdict, &claim.expected, &claim.measured, &claim.reason];
            texts.map(str::to_owned).to_vec()
        };
        let rows = figure.claims.iter().map(row).collect();
        page.table(&Table { text_columns: 6, is_prose: true, ..Table::new(heads, rows) });
    }
    page.plots(&figure.plots);
    if !figure.commands.is_empty() {
        page.paragraph("To repeat it:");
        page.code(&figure.commands.join("\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bimetal_study::figure::{Axis, Plot, PlotKind, Series};

    fn figure() -> Figure {
        let plot = |kind, series| Plot {
            title: "Speed-up <b>".into(),
            kind,
            x: Axis::logarithmic("SLC (MiB)"),
            y: Axis::linear("speed-up"),
            series,
        };
        let claim = |kind, verdict| Claim {
            kind,
            stand_in: StandIn::First,
            trace: None,
            target: None,
            paper: "chang",
            figure: "fig8a",
            claim: "85 % faster",
            expected: "1.85 & more".into(),
            measured: "1.71".into(),
            verdict,
            reason: "</script><script>alert(1)</script>".into(),
        };
        let numbers = vec![
            Series::measured("chang", vec![(32.0, 1.2), (256.0, 1.75)]),
            Series::of_paper("chang", vec![(256.0, 1.84)]),
            Series::measured("</script>", vec![(64.0, 1_234_567.0)]),
        ];
        let names = vec![
            Series::measured_by_name("ours", vec![("NTFS".into(), 12.5)]),
            Series::of_paper_by_name("theirs", vec![("NTFS".into(), 13.5), ("ext3".into(), 14.5)]),
        ];
        Figure {
            paper: "chang",
            figure: "fig8a",
            title: "Response speed-up",
            stand_in: StandIn::First,
            trace: None,
            caption: "See `chang` & others.".into(),
            plots: vec![plot(PlotKind::Lines, numbers), plot(PlotKind::Bars, names)],
            claims: vec![
                claim(Kind::Result, Verdict::Held),
                claim(Kind::Result, Verdict::NotHeld),
                claim(Kind::Generator, Verdict::Held),
            ],
            commands: vec!["bimetal compare --set a='b c'".into()],
        }
    }

    /// Cells of all rows of all tables.
    fn rows(page: &str) -> Vec<Vec<String>> {
        let text = |cell: &str| cell.rsplit('>').next().unwrap_or_default().to_owned();
        let cells = |row: &str| row.replace("</td>", "</th>").split("</th>").map(text).collect::<Vec<_>>();
        let row = |row: &str| cells(row.strip_suffix("</th>").or(row.strip_suffix("</td>")).unwrap_or(row));
        page.split("<tr>").skip(1).map(|rest| row(rest.split("</tr>").next().unwrap_or_default())).collect()
    }

    #[test]
    fn tables_have_every_point_and_every_verdict() {
        let mut calibrated = Figure { figure: "fig8b", stand_in: StandIn::Calibrated, ..figure() };
        calibrated.claims.iter_mut().for_each(|claim| claim.stand_in = StandIn::Calibrated);
        let page = figures("Papers", "bimetal paper", &[figure(), calibrated]);
        let rows = rows(&page);
        let has = |cells: &[&str]| rows.iter().any(|row| row[..] == *cells);
        assert!(has(&["SLC (MiB)", "chang", "chang (paper)", "&lt;/script&gt;"]), "{rows:?}");
        assert!(has(&["32", "1.20", "–", "–"]), "{rows:?}");
        assert!(has(&["64", "–", "–", "1,234,567"]), "{rows:?}");
        assert!(has(&["256", "1.75", "1.84", "–"]), "{rows:?}");
        assert!(has(&["NTFS", "12.5", "13.5"]) && has(&["ext3", "–", "14.5"]), "{rows:?}");
        let reason = "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;";
        assert!(has(&["85 % faster", "result", "✗ not held", "1.85 &amp; more", "1.71", reason]), "{rows:?}");
        assert!(has(&["", "1", "1", "0", "", "1 of 1", ""]), "the same claims on calibrated stand-ins count: {rows:?}");
        assert!(has(&[", first stand-ins", "1", "1", "0", "", "1 of 1", ""]), "the first ones stand beside: {rows:?}");
        assert!(page.contains("bimetal compare --set a=&#39;b c&#39;"));
    }

    #[test]
    fn nothing_is_loaded_and_nothing_breaks_out() {
        let page = figures("a </title><script>", "bimetal paper </pre>", &[figure()]);
        // The drawing script and its library follow the main element.
        let own = page.split("</main>").next().unwrap();
        assert_eq!(own.matches("<script").count(), own.matches("</script>").count());
        assert_eq!(own.matches("<script").count(), 2, "one for each diagram");
        for loading in ["src=", "href=\"http", "@import", "url("] {
            assert!(!own.contains(loading), "{loading}");
        }
        assert_eq!(page, figures("a </title><script>", "bimetal paper </pre>", &[figure()]));
    }
}
