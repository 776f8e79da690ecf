//! Lints that the compiler does not have: riddles in comments and docs ([`words`]), and modules of a crate that import each
//! other in a circle.
//!
//! A module is a file or folder of `src`, at any depth; siblings are the modules of one folder, and modules below a
//! sibling are part of it. An import is a path from `crate::`, `super::` or `self::` outside of tests and comments;
//! re-exports of the modules on the path are followed. A folder's own `mod.rs` is not a sibling of the modules in the
//! folder.

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod words;

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::Path;

    /// Names from the root of a crate, or as written: `["store", "map"]`.
    type Names = Vec<String>;

    /// Imports of each module from modules of the same folder.
    type Imports = BTreeMap<String, BTreeSet<String>>;

    /// The modules of a crate, from its files.
    #[derive(Default)]
    struct Modules {
        all: BTreeSet<Names>,
        /// Each path that a module names.
        named: Vec<(Names, Names)>,
        /// The path of a name in a module, if a `use` introduced it.
        brought: BTreeMap<Names, Names>,
    }

    /// A text without comments and modules of tests. A statement may still have several lines.
    fn code(text: &str) -> String {
        let mut code = String::new();
        let mut parts = text.split("#[cfg(test)]\nmod ");
        code.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let head = part.lines().next().unwrap_or_default();
            let end = if head.ends_with('{') { "\n}\n" } else { ";" };
            code.push_str(part.split_once(end).map_or("", |(_, rest)| rest));
        }
        code.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
    }

    /// The name at the start of a text.
    fn first_name(text: &str) -> &str {
        let end = text.find(|character: char| !character.is_alphanumeric() && character != '_');
        &text[..end.unwrap_or(text.len())]
    }

    /// The paths of a tree such as `a::{b, c::d as e}`, each with its local name.
    fn paths(tree: &str, before: &[String], found: &mut Vec<(Names, String)>) {
        let tree = tree.trim_start();
        let Some(list) = tree.strip_prefix('{') else {
            let name = first_name(tree);
            let rest = tree[name.len()..].trim_start();
            let mut path = before.to_vec();
            if !name.is_empty() && (name != "self" || before.is_empty()) {
                path.push(name.to_owned());
            }
            match rest.strip_prefix("::") {
                Some(rest) if !name.is_empty() => paths(rest, &path, found),
                _ => {
                    let other = rest.strip_prefix("as ").map(|rest| first_name(rest.trim_start()));
                    let last = path.last().cloned().unwrap_or_default();
                    found.push((path, other.map_or(last, str::to_owned)));
                }
            }
            return;
        };
        let (mut depth, mut start) = (0, 0);
        for (at, character) in list.char_indices() {
            if depth == 0 && (character == ',' || character == '}') {
                if !list[start..at].trim().is_empty() {
                    paths(&list[start..at], before, found);
                }
                start = at + 1;
            }
            depth += i32::from(character == '{') - i32::from(character == '}');
            if depth < 0 {
                break;
            }
        }
    }

    /// The paths from `crate`, `super` or `self` in a text.
    fn imported(code: &str) -> Vec<Names> {
        let mut found = Vec::new();
        for (at, _) in code.match_indices("::") {
            let before = &code[..at];
            let start = before.rfind(|character: char| !character.is_alphanumeric() && character != '_');
            let start = start.map_or(0, |start| start + 1);
            let is_first = !code[..start].ends_with("::");
            if is_first && ["crate", "super", "self"].contains(&&code[start..at]) {
                paths(&code[start..], &[], &mut found);
            }
        }
        found.into_iter().map(|(path, _)| path).collect()
    }

    /// The paths that the `use`s of a text introduce into its module, and their local names.
    fn brought(code: &str) -> Vec<(Names, String)> {
        let mut found = Vec::new();
        for (at, _) in code.match_indices("use ") {
            let line = code[..at].rsplit('\n').next().unwrap_or_default();
            if line.is_empty() || line.starts_with("pub") && line.ends_with(' ') {
                paths(&code[at + 4..], &[], &mut found);
            }
        }
        found
    }

    impl Modules {
        /// Adds the files of a folder, which is the module `module`.
        fn read(&mut self, folder: &Path, module: &[String]) {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let stem = entry.file_stem().unwrap().to_str().unwrap();
                let mut name = module.to_vec();
                if !["mod", "lib", "main"].contains(&stem) {
                    name.push(stem.to_owned());
                }
                if stem == "tests" {
                    continue;
                } else if entry.is_dir() {
                    self.read(&entry, &name);
                } else if entry.extension().is_some_and(|extension| extension == "rs") {
                    self.add(&name, &code(&fs::read_to_string(&entry).unwrap()));
                }
            }
        }

        /// Adds the code of a module. An inline module in it is recognised by its indentation.
        fn add(&mut self, module: &[String], code: &str) {
            let mut own = String::new();
            let mut lines = code.lines();
            while let Some(line) = lines.next() {
                let inner =
                    line.split_once("mod ").filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
                match inner.and_then(|(_, rest)| rest.strip_suffix(" {")) {
                    Some(name) => {
                        let unindented = |line: &str| line.strip_prefix("    ").unwrap_or(line).to_owned() + "\n";
                        let inner: String = lines.by_ref().take_while(|line| *line != "}").map(unindented).collect();
                        self.add(&[module, &[name.to_owned()]].concat(), &inner);
                    }
                    None => own.extend([line, "\n"]),
                }
            }
            self.all.insert(module.to_vec());
            self.named.extend(imported(&own).into_iter().map(|path| (module.to_vec(), path)));
            self.brought.extend(brought(&own).into_iter().map(|(path, name)| {
                let from_here = !["crate", "super", "self"].contains(&path[0].as_str());
                let path = if from_here { [&["self".to_owned()], path.as_slice()].concat() } else { path };
                ([module, &[name]].concat(), absolute(&path, module))
            }));
        }

        /// The path after all re-exports.
        fn followed(&self, mut path: Names) -> Names {
            for _ in 0..9 {
                let name = (1..=path.len()).find(|&end| !self.all.contains(&path[..end]));
                let Some((end, place)) = name.and_then(|end| Some((end, self.brought.get(&path[..end])?))) else {
                    break;
                };
                path = [place.as_slice(), &path[end..]].concat();
            }
            path
        }

        /// The imports between the modules of each folder.
        fn siblings(&self) -> BTreeMap<Names, Imports> {
            let mut folders = BTreeMap::<Names, Imports>::new();
            for (module, path) in &self.named {
                let path = self.followed(absolute(path, module));
                let common = module.iter().zip(&path).take_while(|(own, other)| own == other).count();
                if common < module.len() && common < path.len() && self.all.contains(&path[..=common]) {
                    let imports = folders.entry(module[..common].to_vec()).or_default();
                    imports.entry(module[common].clone()).or_default().insert(path[common].clone());
                }
            }
            folders
        }
    }

    /// A path in `module`, from the root of the crate.
    fn absolute(path: &[String], module: &[String]) -> Names {
        let mut place = module.to_vec();
        for name in path {
            match name.as_str() {
                "crate" => place.clear(),
                "super" => drop(place.pop()),
                "self" => {}
                _ => place.push(name.clone()),
            }
        }
        place
    }

    /// The modules that import themselves through others.
    fn in_circles(imports: &Imports) -> Vec<String> {
        let mut reached = imports.clone();
        for through in imports.keys() {
            let further = reached[through].clone();
            reached
                .values_mut()
                .filter(|known| known.contains(through))
                .for_each(|known| known.extend(further.clone()));
        }
        reached.into_iter().filter(|(module, reached)| reached.contains(module)).map(|(module, _)| module).collect()
    }

    #[test]
    fn no_module_imports_itself_through_others() {
        let mut found = Vec::new();
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")).unwrap() {
            let (path, mut modules) = (entry.unwrap().path(), Modules::default());
            modules.read(&path.join("src"), &[]);
            for (folder, imports) in modules.siblings() {
                let name = [&[path.file_name().unwrap().to_str().unwrap().to_owned()], folder.as_slice()].concat();
                let circle = in_circles(&imports);
                for module in &circle {
                    eprintln!(
                        "{}: {module} -> {:?}",
                        name.join("/"),
                        imports[module].iter().filter(|m| circle.contains(m)).collect::<Vec<_>>()
                    );
                }
                found.extend(circle.into_iter().map(|module| format!("{}: {module}", name.join("/"))));
            }
        }
        assert!(found.is_empty(), "these import each other: move to a third what two of them need: {found:?}");
    }

    /// The modules of one folder that are in circles, if these are the files of a crate.
    fn circles(files: &[(&str, &str)], folder: &str) -> Vec<String> {
        let names = |path: &str| path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Names>();
        let mut modules = Modules::default();
        files.iter().for_each(|(module, text)| modules.add(&names(module), &code(text)));
        modules.siblings().get(&names(folder)).map_or(Vec::new(), in_circles)
    }

    #[test]
    fn paths_are_found_in_code_alone() {
        let joined = |text: &str| -> Vec<String> { imported(&code(text)).iter().map(|path| path.join("::")).collect() };
        assert_eq!(
            joined(
                "use crate::a::{b, c};\n// crate::no\nuse super::{\n    d as e, f::{self, g},\n};\nsuper::super::h(1)"
            ),
            ["crate::a::b", "crate::a::c", "super::d", "super::f", "super::f::g", "super::super::h"]
        );
        assert_eq!(
            joined("crate::a(1)\n#[cfg(test)]\nmod tests {\n    use crate::b;\n}\nuse self::c;"),
            ["crate::a", "self::c"]
        );
        assert_eq!(joined("use std::a; bigcrate::b; std::super_::c"), [""; 0]);
    }

    #[test]
    fn siblings_of_a_folder_are_held_against_each_other() {
        let store = ("store", "mod a;\nmod b;\npub const SHARED: u32 = 1;");
        assert_eq!(
            circles(&[store, ("store/a", "use super::b::B;"), ("store/b", "use super::SHARED;")], "store"),
            [""; 0]
        );
        let both = ["a", "b"];
        assert_eq!(
            circles(&[store, ("store/a", "use super::b::B;"), ("store/b", "use crate::store::a;")], "store"),
            both
        );
        let below = ("store/b/c", "use super::super::{a::A, b};");
        assert_eq!(circles(&[store, ("store/a", "super::b::B::new()"), ("store/b", "mod c;"), below], "store"), both);
        assert_eq!(
            circles(&[("", ""), ("a", "use crate::b::B;"), ("b", "mod c;"), ("b/c", "use crate::a::A;")], ""),
            both
        );
    }

    #[test]
    fn what_is_re_exported_is_of_the_module_that_has_it() {
        let store = ("store", "mod a;\nmod b;\npub use a::{A, a};\npub(crate) use b::B as C;");
        assert_eq!(
            circles(&[store, ("store/a", "use super::C;"), ("store/b", "use crate::store::A;")], "store"),
            ["a", "b"]
        );
        let other = ("other", "use crate::store::C;");
        assert_eq!(
            circles(&[store, ("store/a", "use crate::other::O;"), ("store/b", ""), other], ""),
            ["other", "store"]
        );
    }
}
