//! What no lint of the compiler looks for: modules of a crate that import each other in a circle.
//!
//! A module is a file or folder of `src`. An import is a path from `crate::`, outside of tests.

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::Path;

    /// Modules that are in a circle and should not be; nothing is added here.
    const KNOWN: &[&str] =
        &["bimetal-core: hit_rates", "bimetal-core: media", "bimetal-core: part", "bimetal-core: profile"];

    /// What each module imports.
    type Imports = BTreeMap<String, BTreeSet<String>>;

    /// The modules that a text names after `crate::`, or in braces after it.
    fn imported(text: &str) -> Vec<String> {
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<String>();
        let first_name = |path: &str| -> String {
            path.trim().chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect()
        };
        let mut modules = Vec::new();
        for path in code.split("crate::").skip(1) {
            let Some(list) = path.strip_prefix('{') else {
                modules.push(first_name(path));
                continue;
            };
            let list = list.split("};").next().unwrap_or_default();
            let mut depth = 0;
            let parts = list.split(|character| {
                depth += i32::from(character == '{') - i32::from(character == '}');
                character == ',' && depth == 0
            });
            modules.extend(parts.map(first_name).filter(|name| !name.is_empty()));
        }
        modules
    }

    /// Adds what the files of a folder import, under the module that they are in.
    fn collect(folder: &Path, module: Option<&str>, imports: &mut Imports) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let stem = entry.file_stem().unwrap().to_str().unwrap();
            let module = module.unwrap_or(stem);
            if entry.is_dir() {
                collect(&entry, Some(module), imports);
            } else if entry.extension().is_some_and(|extension| extension == "rs") && stem != "tests" {
                let others = imported(&fs::read_to_string(&entry).unwrap()).into_iter().filter(|name| name != module);
                imports.entry(module.to_owned()).or_default().extend(others);
            }
        }
    }

    /// The modules that can be reached from themselves.
    fn in_circles(mut imports: Imports) -> Vec<String> {
        for through in imports.keys().cloned().collect::<Vec<_>>() {
            let further = imports[&through].clone();
            imports
                .values_mut()
                .filter(|known| known.contains(&through))
                .for_each(|known| known.extend(further.clone()));
        }
        imports.into_iter().filter(|(module, reached)| reached.contains(module)).map(|(module, _)| module).collect()
    }

    #[test]
    fn no_module_imports_itself_through_others() {
        let mut found = Vec::new();
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")).unwrap() {
            let (path, mut imports) = (entry.unwrap().path(), Imports::new());
            collect(&path.join("src"), None, &mut imports);
            let name = path.file_name().unwrap().to_str().unwrap();
            found.extend(in_circles(imports).into_iter().map(|module| format!("{name}: {module}")));
        }
        found.retain(|module| !KNOWN.contains(&module.as_str()));
        assert!(found.is_empty(), "these import each other: move to a third what two of them need: {found:?}");
    }

    #[test]
    fn paths_in_braces_are_imports_too() {
        assert_eq!(
            imported("use crate::a::{b, c};\n// crate::no\nuse crate::{d, e::{f, g}, h::i};"),
            ["a", "d", "e", "h"]
        );
        assert_eq!(imported("crate::a(1)\n#[cfg(test)]\nmod tests { use crate::b; }"), ["a"]);
    }
}
