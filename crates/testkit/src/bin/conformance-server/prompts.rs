//! The prompts.

use rmcp::ErrorData;
use rmcp::model::{
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt,
    PromptArgument, PromptMessage, ResourceContents, Role,
};
use serde_json::Value;

use crate::changes::{Change, Changes};
use crate::content::PNG;
use crate::input;

pub(crate) fn list(changes: &Changes) -> Vec<Prompt> {
    let argument = |name: &str| PromptArgument::new(name).with_required(true);
    let with = |names: &[&str]| Some(names.iter().map(|name| argument(name)).collect());
    let mut prompts = vec![
        Prompt::new("test_simple_prompt", Some("Has no arguments."), None),
        Prompt::new(
            "test_prompt_with_arguments",
            Some("Repeats its arguments."),
            with(&["arg1", "arg2"]),
        ),
        Prompt::new(
            "test_prompt_with_embedded_resource",
            Some("Embeds a resource."),
            with(&["resourceUri"]),
        ),
        Prompt::new("test_prompt_with_image", Some("Shows an image."), None),
        Prompt::new("test_input_required_result_prompt", Some("Asks for its context."), None),
    ];
    if changes.has_more(Change::Prompts) {
        prompts.push(Prompt::new(
            "test_prompt_that_comes_and_goes",
            Some("Is there or not."),
            None,
        ));
    }
    prompts
}

pub(crate) fn get(request: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let [one, two] = ["arg1", "arg2"].map(argument);
            vec![text(&format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = argument("resourceUri");
            let resource = ResourceContents::text("Embedded resource content for testing.", uri);
            let embedded = PromptMessage::new(Role::User, ContentBlock::resource(resource));
            vec![embedded, text("Please process the embedded resource above.")]
        }
        "test_prompt_with_image" => {
            let image = ContentBlock::image(PNG, "image/png");
            vec![PromptMessage::new(Role::User, image), text("Please analyze the image above.")]
        }
        "test_prompt_that_comes_and_goes" => vec![text("I am here.")],
        "test_input_required_result_prompt" => {
            match input::prompt_context(request.input_responses.as_ref())? {
                Ok(context) => vec![text(&format!("The context is: {context}"))],
                Err(missing) => return Ok(missing.into()),
            }
        }
        name => return Err(ErrorData::invalid_params(format!("no prompt {name}"), None)),
    };
    Ok(GetPromptResult::new(messages).into())
}

fn text(text: &str) -> PromptMessage {
    PromptMessage::new_text(Role::User, text)
}
