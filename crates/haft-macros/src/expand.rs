//! The code that replaces an annotated function.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser as _;
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Expr, ExprLit, FnArg, ItemFn, Lit, LitStr, Meta, Pat, Result};

/// Replaces a function with one of the same name that returns the tool.
pub(crate) fn tool(options: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let mut function: ItemFn = syn::parse2(function)?;
    check(&function)?;
    let ident = function.sig.ident.clone();
    let name = name(options)?.unwrap_or_else(|| LitStr::new(&ident.to_string(), ident.span()));
    let description = description(&function)?;
    let (mut names, mut fields) = (Vec::new(), Vec::new());
    for input in &mut function.sig.inputs {
        let FnArg::Typed(input) = input else {
            return Err(Error::new(input.span(), "a tool is a free function, without `self`"));
        };
        let Pat::Ident(parameter) = &*input.pat else {
            return Err(Error::new(input.pat.span(), "a parameter of a tool is a plain name"));
        };
        let (parameter, r#type) = (&parameter.ident, &input.ty);
        // Documentation and serde's attributes belong to the field; parameters cannot have them.
        let attributes = std::mem::take(&mut input.attrs);
        fields.push(quote!(#(#attributes)* #parameter: #r#type));
        names.push(parameter.clone());
    }
    let visibility = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let attributes = std::mem::take(&mut function.attrs);
    Ok(quote! {
        #(#attributes)*
        #visibility fn #ident() -> ::haft::FunctionTool<::haft::TypedFunction> {
            #[derive(::haft::__private::serde::Deserialize, ::haft::__private::schemars::JsonSchema)]
            #[serde(crate = "::haft::__private::serde")]
            #[schemars(crate = "::haft::__private::schemars", rename = #name)]
            struct Arguments { #(#fields),* }
            // A tool may have nothing to wait for.
            #[allow(clippy::unused_async)]
            #function
            ::haft::FunctionTool::typed(#name, #description, |arguments: Arguments| {
                let Arguments { #(#names),* } = arguments;
                #ident(#(#names),*)
            })
        }
    })
}

fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(Error::new(signature.fn_token.span(), "a tool is an `async fn`"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new(signature.generics.span(), "a tool has no generic parameters"));
    }
    Ok(())
}

/// The value of `name = "..."`, the only option.
fn name(options: TokenStream) -> Result<Option<LitStr>> {
    let mut name = None;
    let parser = syn::meta::parser(|option| {
        if !option.path.is_ident("name") {
            return Err(option.error("the only option is `name = \"...\"`"));
        }
        name = Some(option.value()?.parse()?);
        Ok(())
    });
    parser.parse2(options)?;
    Ok(name)
}

/// The lines of the doc comment. A model chooses tools by their descriptions, so there must be one.
fn description(function: &ItemFn) -> Result<String> {
    let lines: Vec<String> = function.attrs.iter().filter_map(doc_line).collect();
    let text = lines.join("\n").trim().to_owned();
    if text.is_empty() {
        let problem = "a tool needs a doc comment: it is the description that models read";
        return Err(Error::new(function.sig.ident.span(), problem));
    }
    Ok(text)
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(doc) = &attribute.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &doc.value else { return None };
    let line = line.value();
    doc.path.is_ident("doc").then(|| line.strip_prefix(' ').unwrap_or(&line).to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]
mod tests {
    use super::*;

    fn problem(options: &str, function: &str) -> String {
        let parse = |text: &str| text.parse::<TokenStream>().unwrap();
        tool(parse(options), parse(function)).unwrap_err().to_string()
    }

    #[test]
    fn functions_that_cannot_be_tools_are_refused() {
        let cases = [
            ("", "/// Adds.\nfn add(a: i64) {}", "a tool is an `async fn`"),
            ("", "/// Adds.\nasync fn add<T>(a: T) {}", "a tool has no generic parameters"),
            ("", "/// Adds.\nasync fn add(&self) {}", "a tool is a free function, without `self`"),
            (
                "",
                "/// Adds.\nasync fn add((a, b): (i64, i64)) {}",
                "a parameter of a tool is a plain name",
            ),
            (
                "",
                "async fn add(a: i64) {}",
                "a tool needs a doc comment: it is the description that models read",
            ),
            (
                "timeout = 5",
                "/// Adds.\nasync fn add(a: i64) {}",
                "the only option is `name = \"...\"`",
            ),
        ];
        for (options, function, expected) in cases {
            assert_eq!(problem(options, function), expected, "{function}");
        }
    }
}
