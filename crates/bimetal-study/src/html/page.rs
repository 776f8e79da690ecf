//! A page: head, contents, sections, and the script that draws the diagrams.

use super::chart;
use super::markup::{escape, prose};
use super::table::{self, Table};
use crate::figure::Plot;

/// Pages with at least this number of sections begin with a table of contents.
const CONTENTS_MIN: usize = 4;

/// Content security policy: the page may run and show its own content, and load nothing.
const LOADS_NOTHING: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

/// A page under construction.
pub struct Page {
    title: String,
    /// HTML above the contents.
    head: String,
    /// Title of each section; its anchor is `section-N`.
    sections: Vec<String>,
    body: String,
    /// Whether the current section is folded.
    is_folded: bool,
    plots: usize,
    /// Whether the page has a table that can be sorted and filtered.
    sifts: bool,
    /// Names of series that look the same in all diagrams.
    names: Vec<String>,
}

impl Page {
    /// An empty page. Series with these names look the same in all of its diagrams.
    pub fn new(title: &str, names: Vec<String>) -> Self {
        Self {
            title: title.into(),
            head: String::new(),
            sections: Vec::new(),
            body: String::new(),
            is_folded: false,
            plots: 0,
            sifts: false,
            names,
        }
    }

    /// Begins a section.
    pub fn section(&mut self, title: &str) {
        self.unfold();
        self.sections.push(title.into());
        self.push(&format!("<h2 id=\"{}\">{}</h2>\n", section_id(self.sections.len()), escape(title)));
    }

    /// Begins a folded section of details, which a click on its title opens.
    pub fn folded_section(&mut self, title: &str) {
        self.unfold();
        self.sections.push(title.into());
        let (id, title) = (section_id(self.sections.len()), escape(title));
        self.push(&format!("<details class=\"section\">\n<summary><h2 id=\"{id}\">{title}</h2></summary>\n"));
        self.is_folded = true;
    }

    /// Ends the folded section, if there is one.
    fn unfold(&mut self) {
        if std::mem::take(&mut self.is_folded) {
            self.push("</details>\n");
        }
    }

    /// The main result of the page, in large letters.
    pub fn verdict(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(&format!("<p class=\"answer\">{}</p>\n", prose(text)));
        }
    }

    /// The contents that `left` adds, next to a diagram, or above it on a narrow screen.
    pub fn beside(&mut self, plot: &Plot, left: impl FnOnce(&mut Self)) {
        self.push("<div class=\"beside\">\n<div>\n");
        left(self);
        self.push("</div>\n");
        if !plot.is_empty() {
            self.plots += 1;
            let html = figure(plot, self.plots, &self.names);
            self.push(&html);
        }
        self.push("</div>\n");
    }

    /// The anchor of a later section: 0 is the next one.
    pub fn section_ahead(&self, ahead: usize) -> String {
        section_id(self.sections.len() + 1 + ahead)
    }

    /// Appends raw HTML, above the contents as long as no section has begun.
    pub fn push(&mut self, html: &str) {
        if self.sections.is_empty() { self.head.push_str(html) } else { self.body.push_str(html) }
    }

    /// A paragraph. Text between backticks becomes code.
    pub fn paragraph(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(&format!("<p>{}</p>\n", prose(text)));
        }
    }

    /// A list of sentences.
    pub fn list(&mut self, class: &str, items: &[String]) {
        if !items.is_empty() {
            let items: String = items.iter().map(|item| format!("<li>{}</li>\n", prose(item))).collect();
            self.push(&format!("<ul class=\"{class}\">\n{items}</ul>\n"));
        }
    }

    /// Preformatted text, as on a terminal or in a file.
    pub fn code(&mut self, text: &str) {
        self.push(&format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", escape(text.trim_end())));
    }

    /// A table.
    pub fn table(&mut self, table: &Table) {
        let html = table.html();
        self.push(&html);
    }

    /// A table that a click on a head sorts and that can be filtered by words.
    pub fn sifted_table(&mut self, table: &Table) {
        self.sifts = true;
        let rows = table.rows.len();
        self.push(&format!(
            "<div class=\"sift\"><p><label>Show rows with <input type=\"search\" placeholder=\"chang 9%\"></label> \
             <output>{rows} of {rows}</output></p>\n{}</div>\n",
            table.html()
        ));
    }

    /// Diagrams beside or below each other, each with its table. Empty diagrams are left out. Diagrams with one bar for
    /// each series become rows of a table.
    pub fn plots(&mut self, plots: &[Plot]) {
        let mut figures = String::new();
        let (single, drawn): (Vec<&Plot>, Vec<&Plot>) =
            plots.iter().filter(|plot| !plot.is_empty()).partition(|plot| plot.has_single_bars());
        if !single.is_empty() {
            self.table(&table::of_single(&single, self.names.len() == 1));
        }
        for plot in drawn {
            self.plots += 1;
            figures.push_str(&figure(plot, self.plots, &self.names));
        }
        if !figures.is_empty() {
            self.push(&format!("<div class=\"plots\">\n{figures}</div>\n"));
        }
    }

    /// The complete file.
    pub fn finish(mut self) -> String {
        self.unfold();
        let contents = if self.sections.len() < CONTENTS_MIN { String::new() } else { contents(&self.sections) };
        let title = escape(&self.title);
        let script = if self.plots > 0 { script_of_plots() } else { String::new() };
        let sift = if self.sifts { format!("<script>\n{}</script>\n", include_str!("sift.js")) } else { String::new() };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{LOADS_NOTHING}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"generator\" content=\"bimetal {}\">\n<title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n\
             <style>\n{}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{}{contents}{}</main>\n{script}{sift}</body>\n</html>\n",
            env!("CARGO_PKG_VERSION"),
            include_str!("page.css"),
            self.head,
            self.body,
        )
    }
}

/// The scripts that draw the plots.
fn script_of_plots() -> String {
    match chart::library() {
        Ok(plotly) => format!(
            "<noscript><p>The plots need JavaScript; the tables have the same figures.</p></noscript>\n{plotly}\n<script>\n{}</script>\n",
            include_str!("page.js"),
        ),
        Err(error) => format!(
            "<p>There are no plots, because the program file is damaged ({}); the tables have the same figures.</p>\n",
            escape(&error.to_string()),
        ),
    }
}

fn section_id(number: usize) -> String {
    format!("section-{number}")
}

fn contents(sections: &[String]) -> String {
    let item = |(index, title): (usize, &String)| {
        format!("<li><a href=\"#{}\">{}</a></li>\n", section_id(index + 1), escape(title))
    };
    let items: String = sections.iter().enumerate().map(item).collect();
    format!("<nav aria-label=\"Contents\"><ol>\n{items}</ol></nav>\n")
}

/// A diagram above its folded table.
fn figure(plot: &Plot, number: usize, names: &[String]) -> String {
    let table = table::of_plot(plot);
    let (drawn, height) = chart::of_plot(plot, names);
    let upright = chart::upright_label(plot);
    let upright = if upright == plot.title || upright.is_empty() {
        String::new()
    } else {
        format!("<p class=\"vertical\">{}</p>\n", escape(&upright))
    };
    format!(
        "<figure>\n<h3>{}</h3>\n{upright}\
         <div class=\"plot\" id=\"plot-{number}\" role=\"img\" aria-label=\"{}\" style=\"height:{height}px\"></div>\
         <script type=\"application/json\">{}</script>\n\
         <details><summary>Table</summary>\n{}</details>\n</figure>\n",
        escape(&plot.title),
        escape(&plot.title),
        // Escaped, so that no text can end the script element.
        drawn.to_string().replace('<', "\\u003c"),
        table.html(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_page_has_contents_that_lead_to_its_sections() {
        let mut page = Page::new("A & B", Vec::new());
        page.paragraph("above");
        for title in ["one", "two", "three", "four"] {
            page.section(title);
            page.paragraph(title);
        }
        let html = page.finish();
        let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text} in {html}"));
        assert!(place("<h1>A &amp; B</h1>") < place("<p>above</p>"));
        assert!(place("<p>above</p>") < place("<a href=\"#section-3\">three</a>"));
        assert!(place("<a href=\"#section-3\">three</a>") < place("<h2 id=\"section-3\">three</h2>"));
        assert!(!html.contains("<script"), "a page without plots needs none");
    }

    #[test]
    fn a_folded_section_ends_before_the_next_one() {
        let mut page = Page::new("A", Vec::new());
        page.folded_section("one");
        page.paragraph("first");
        page.folded_section("two");
        page.section("three");
        let html = page.finish();
        assert_eq!((html.matches("<details").count(), html.matches("</details>").count()), (2, 2));
        let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text} in {html}"));
        assert!(place("first") < place("</details>") && place("</details>") < place(">two<"));
        assert!(html.rfind("</details>") < Some(place(">three<")));
    }
}
