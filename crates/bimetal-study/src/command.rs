//! Command lines as a user types them into a shell.

/// Joins words into a line, quoted for a shell.
pub fn line(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    words.into_iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// A word, quoted for a shell if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "-_./:=,%+@".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_break_them() {
        for (word, typed) in [
            ("--set", "--set"),
            ("fast.capacity=32MiB,slow.spare=7%", "fast.capacity=32MiB,slow.spare=7%"),
            ("my trace.csv", "'my trace.csv'"),
            ("it's", "'it'\\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), typed);
        }
        assert_eq!(line(["bimetal", "a b"]), "bimetal 'a b'");
    }
}
