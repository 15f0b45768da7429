//! The attribute `#[haft::tool]`. Use it from the crate `haft`.

mod expand;

use proc_macro::TokenStream;

/// Turns an async function into a tool. Calling the function without arguments returns the tool, a
/// [`FunctionTool`](https://docs.rs/haft/latest/haft/struct.FunctionTool.html).
///
/// The doc comment is the description. The parameters are the arguments: their names, types and doc comments become the
/// input schema, and their types implement `serde::Deserialize` and `schemars::JsonSchema`. Attributes of serde and
/// schemars on a parameter apply to it, such as `#[serde(default)]`. The function returns
/// `Result<T, haft::ToolFailure>`, where `T` implements `serde::Serialize` and `schemars::JsonSchema`.
///
/// `#[haft::tool(name = "...")]` sets another name than that of the function.
///
/// A tool that reports progress or reads its session uses `haft::FunctionTool::new` instead.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    match expand::tool(options.into(), function.into()) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.to_compile_error().into(),
    }
}
