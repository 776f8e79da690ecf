//! Compares values with their JSON schemas.

use serde_json::{Value, json};

use super::Bench;

/// Checks a value. Supports only the keywords of JSON Schema that our schemas use, and fails at all others.
pub fn check(schema: &Value, root: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Some(rules) = schema.as_object() else { return Ok(()) };
    for (rule, wanted) in rules {
        let holds = match rule.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" => true,
            // Checked with the properties.
            "additionalProperties" | "propertyNames" => true,
            "$ref" => {
                let target = root.pointer(wanted.as_str().unwrap().trim_start_matches('#'));
                check(target.unwrap(), root, value, at)?;
                true
            }
            "type" => match wanted {
                Value::Array(kinds) => kinds.iter().any(|kind| is_a(kind, value)),
                kind => is_a(kind, value),
            },
            "const" => wanted == value,
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= wanted.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= wanted.as_u64().unwrap()),
            "anyOf" | "oneOf" => wanted.as_array().unwrap().iter().any(|one| check(one, root, value, at).is_ok()),
            "required" => wanted.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(wanted, root, item, &format!("{at}[{index}]"))?;
                }
                true
            }
            "prefixItems" => {
                for (kind, item) in wanted.as_array().unwrap().iter().zip(value.as_array().into_iter().flatten()) {
                    check(kind, root, item, at)?;
                }
                true
            }
            "properties" => true,
            unknown => return Err(format!("{at}: the check does not know `{unknown}`")),
        };
        if !holds {
            return Err(format!("{at}: {value} is not `{rule}`: {wanted}"));
        }
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        match (schema["properties"].get(name), rules.get("additionalProperties")) {
            (Some(kind), _) => check(kind, root, field, &at)?,
            (None, Some(kind)) if *kind != json!(false) => check(kind, root, field, &at)?,
            // An object without `properties` is described elsewhere.
            (None, _) if schema.get("properties").is_none() => {}
            (None, _) => return Err(format!("{at}: the schema does not have it")),
        }
    }
    Ok(())
}

fn is_a(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        unknown => panic!("{unknown}"),
    }
}

/// The schema of an output.
pub fn schema(bench: &Bench, output: &str) -> Value {
    serde_json::from_str(&bench.succeed(&["schema", output]).stdout).unwrap()
}

/// Checks that a value is as the schema of this output says.
pub fn holds(bench: &Bench, output: &str, value: &Value) {
    let schema = schema(bench, output);
    check(&schema, &schema, value, output).unwrap_or_else(|wrong| panic!("{wrong}"));
}
