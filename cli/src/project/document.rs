//! The schemas of a document: a schema, a list of tools in the shapes that providers have, or OpenAPI.

use serde_json::{Value, json};

/// A document with schemas.
#[derive(Clone, Debug)]
pub struct Document {
    value: Value,
}

/// A schema of a document.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name of its tool or operation; `schema` for a document that is one.
    pub name: String,
    /// The JSON pointer of its place in the document.
    pub pointer: String,
    /// The schema, with everything that it refers to.
    pub schema: Value,
}

/// The members of a tool that hold its schema, by provider: MCP, Anthropic, OpenAI and others.
const OF_TOOLS: [&str; 5] = [
    "inputSchema",
    "input_schema",
    "parameters",
    "parametersJsonSchema",
    "function",
];

impl Document {
    /// Creates a document of a value.
    pub fn new(value: Value) -> Document {
        Document { value }
    }

    /// Returns the document.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns its schemas, in order.
    pub fn schemas(&self) -> Vec<Named> {
        if self.value.get("openapi").is_some() || self.value.get("paths").is_some_and(Value::is_object) {
            return self.of_openapi();
        }
        let lists = [
            "",
            "/tools",
            "/result/tools",
            "/functions",
            "/functionDeclarations",
        ];
        let list = lists
            .iter()
            .find_map(|at| Some((*at, self.value.pointer(at)?.as_array()?)));
        match list {
            Some((at, list)) => {
                let tools = list.iter().enumerate();
                tools
                    .flat_map(|(index, tool)| of_tool(tool, &format!("{at}/{index}")))
                    .collect()
            }
            None => match self.value.get("name").is_some_and(Value::is_string)
                && !of_tool(&self.value, "").is_empty()
            {
                true => of_tool(&self.value, ""),
                false => vec![self.whole()],
            },
        }
    }

    /// Returns the whole document as a schema.
    pub fn whole(&self) -> Named {
        Named {
            name: "schema".to_owned(),
            pointer: String::new(),
            schema: self.value.clone(),
        }
    }

    /// Puts a schema into the place of one of its schemas.
    pub fn replace(&mut self, named: &Named, schema: Value) {
        if let Some(place) = self.value.pointer_mut(&named.pointer) {
            *place = schema;
        }
    }

    /// Returns the schemas of the bodies that operations take.
    fn of_openapi(&self) -> Vec<Named> {
        let mut found = Vec::new();
        let paths = self.value.get("paths").and_then(Value::as_object);
        for (path, methods) in paths.into_iter().flatten() {
            for (method, operation) in methods.as_object().into_iter().flatten() {
                let bodies = operation
                    .pointer("/requestBody/content")
                    .and_then(Value::as_object);
                for (media, body) in bodies.into_iter().flatten() {
                    let Some(schema) = body.get("schema") else {
                        continue;
                    };
                    let named = operation.get("operationId").and_then(Value::as_str);
                    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
                    let (path_segment, media_segment) = (escape(path), escape(media));
                    found.push(Named {
                        name: named.map_or_else(|| format!("{method} {path}"), str::to_owned),
                        pointer: format!(
                            "/paths/{path_segment}/{method}/requestBody/content/{media_segment}/schema"
                        ),
                        schema: self.with_components(schema),
                    });
                }
            }
        }
        found
    }

    /// Returns a schema of an OpenAPI document with what it refers to.
    fn with_components(&self, schema: &Value) -> Value {
        match self.value.get("components") {
            Some(components) => json!({"allOf": [schema], "components": components}),
            None => schema.clone(),
        }
    }
}

/// Returns the schema of a tool, or those of the functions that Gemini groups in one.
fn of_tool(tool: &Value, pointer: &str) -> Vec<Named> {
    if let Some(Value::Array(functions)) = tool
        .get("functionDeclarations")
        .or_else(|| tool.get("function_declarations"))
    {
        let member = if tool.get("functionDeclarations").is_some() {
            "functionDeclarations"
        } else {
            "function_declarations"
        };
        let functions = functions.iter().enumerate();
        return functions
            .flat_map(|(index, function)| of_tool(function, &format!("{pointer}/{member}/{index}")))
            .collect();
    }
    for member in OF_TOOLS {
        match tool.get(member) {
            Some(function) if member == "function" => {
                return of_tool(function, &format!("{pointer}/function"));
            }
            Some(schema) => {
                let name = tool.get("name").and_then(Value::as_str).unwrap_or("tool");
                return vec![Named {
                    name: name.to_owned(),
                    pointer: format!("{pointer}/{member}"),
                    schema: schema.clone(),
                }];
            }
            None => {}
        }
    }
    Vec::new()
}
