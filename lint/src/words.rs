//! Phrases in comments, messages and docs that readers have to guess at, each with plain alternatives.
//!
//! The list has phrases that were common here, and grows when another one is found. It is not a style guide.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Phrases in lower case, and advice.
    const RIDDLES: &[(&str, &str)] = &[
        ("so many", "name the number: \"`blocks` blocks\", \"a number of blocks\""),
        ("that which", "name the thing"),
        ("whereto", "\"to which\", or name the place"),
        ("wherewith", "\"with which\""),
        ("whereof", "\"of which\""),
        ("whoever", "name the caller, client, server or reader"),
        ("come upon", "\"find\""),
        ("came upon", "\"found\""),
        ("comes upon", "\"finds\""),
        ("into question", "\"candidates\""),
        ("by and by", "\"step by step\""),
        ("anew", "\"again\", or \"rewrites\", \"reproduces\""),
        ("and the like", "\"and others\", or name them"),
        ("the like backing", "\"equivalent storage\""),
        ("is of no", "say what it has or lacks"),
        ("nine tenths", "\"90 %\""),
        ("all that was", "name the things: \"all written data\""),
        ("moved together", "\"compacted\""),
    ];

    /// Folders and files of the repository that are checked.
    const READ: &[&str] = &[
        ".github",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "Dockerfile",
        "Makefile",
        "README.md",
        "SECURITY.md",
        "contrib",
        "crates",
        "docs",
        "examples",
        "fuzz",
        "lint",
        "mkdocs.yml",
        "pyproject.toml",
        "python",
    ];

    /// Extensions of files that are read.
    const EXTENSIONS: &[&str] = &["cff", "ipynb", "md", "py", "pyi", "rs", "service", "sh", "socket", "toml", "yml"];

    /// Names without an extension of files that are read. Other such files are read if they are scripts.
    const NAMES: &[&str] = &["Dockerfile", "Makefile"];

    /// The listed phrases in a text, each with its line number. Code is checked too, because messages are literals in
    /// it.
    fn riddles(text: &str) -> Vec<(usize, &'static str, &'static str)> {
        let mut found = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.to_lowercase();
            for &(phrase, better) in RIDDLES {
                let is_word = |at: usize| {
                    // Names such as `so_many` are one word.
                    let in_word = |character: char| character.is_alphanumeric() || character == '_';
                    let neighbour = |character: Option<char>| character.is_some_and(in_word);
                    !neighbour(line[..at].chars().next_back()) && !neighbour(line[at + phrase.len()..].chars().next())
                };
                if line.match_indices(phrase).any(|(at, _)| is_word(at)) {
                    found.push((number, phrase, better));
                }
            }
        }
        found
    }

    /// Whether a file is read. Files without an extension may be binary.
    fn is_read(path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match path.extension() {
            Some(extension) => extension.to_str().is_some_and(|extension| EXTENSIONS.contains(&extension)),
            None => NAMES.contains(&name) || fs::read(path).unwrap().starts_with(b"#!"),
        }
    }

    fn read(path: &Path, found: &mut Vec<String>) {
        if path.is_dir() {
            let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
            // Build outputs are not checked.
            let is_source =
                |path: &Path| !path.ends_with("target") && !path.ends_with("corpus") && !path.ends_with("fixtures");
            return entries.filter(|path| is_source(path)).for_each(|path| read(&path, found));
        }
        if path.ends_with("words.rs") || !is_read(path) {
            return;
        }
        let text = fs::read_to_string(path).unwrap();
        let lines = riddles(&text).into_iter();
        found.extend(
            lines.map(|(number, phrase, better)| format!("{}:{number}: \"{phrase}\": {better}", path.display())),
        );
    }

    #[test]
    fn nothing_is_a_riddle() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = Vec::new();
        READ.iter().for_each(|name| read(&root.join(name), &mut found));
        assert!(found.is_empty(), "plain words, please:\n{}", found.join("\n"));
    }

    #[test]
    fn scripts_and_settings_are_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for name in READ {
            assert!(root.join(name).exists(), "{name}");
        }
        for name in ["Makefile", "CITATION.cff", "contrib/cluster/Dockerfile", "contrib/bimetal@.service", "fuzz/run"] {
            assert!(is_read(&root.join(name)), "{name}");
        }
        assert!(!is_read(&root.join("LICENSE-MIT")));
    }

    #[test]
    fn riddles_are_whole_words() {
        let found = |text| riddles(text).into_iter().map(|(line, ..)| line).collect::<Vec<_>>();
        assert_eq!(found("let so_many = 1;\n// So many blocks.\n/// blocks"), [2]);
        assert_eq!(found("fn whoever_waits() {\nprint(\"so many\")"), [2]);
        assert_eq!(found("A manewver.\nIt is made anew."), [2]);
        assert_eq!(found("#: Whoever calls."), [1]);
    }
}
