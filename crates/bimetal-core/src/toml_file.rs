//! Files that people write in TOML: devices, studies, prices, defaults of the command line.

use serde::de::DeserializeOwned;

/// Error in such a file. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TomlFileError {
    /// Line in the file, from 1.
    pub line: usize,
    /// The error and the remedy.
    pub what: String,
}

/// Parses a file.
///
/// # Errors
/// Text that is not TOML, and unknown, missing or wrong fields.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, TomlFileError> {
    toml::from_str(text).map_err(|error| {
        let message = error.message().trim().replace('\n', "; ");
        // In a file of another kind, such as a trace, the parser only misses a `=`.
        let is_toml = toml::from_str::<toml::Table>(text).is_ok();
        let what = if is_toml { message } else { format!("this is not TOML: {message}") };
        TomlFileError { line: line_of(text, error.span().map_or(0, |span| span.start)), what }
    })
}

/// Line of a byte, from 1.
pub fn line_of(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        size: u32,
    }

    #[test]
    fn errors_have_a_line_and_tell_a_wrong_file_from_a_wrong_field() {
        assert_eq!(parse("size = 3"), Ok(File { size: 3 }));
        let error = |text| parse::<File>(text).unwrap_err().to_string();
        assert_eq!(error("# sizes\nsize = 3\nwidth = 4"), "line 3: unknown field `width`, expected `size`");
        assert!(error("size = 'x'").starts_with("line 1: invalid type"));
        let other = error("# a trace\n0,R,0,4096\n");
        assert!(other.starts_with("line 2: this is not TOML: "), "{other}");
    }
}
