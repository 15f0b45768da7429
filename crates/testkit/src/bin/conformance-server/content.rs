//! Tools that answer with each kind of content, and nothing else.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// One red pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";

/// Four samples of silence.
const WAV: &str = "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA";

/// The answer of such a tool, if there is one of that name.
pub(crate) fn answer(tool: &str) -> Option<CallToolResult> {
    let blocks = match tool {
        "test_simple_text" => {
            vec![ContentBlock::text("This is a simple text response for testing.")]
        }
        "test_image_content" => vec![image()],
        "test_audio_content" => vec![ContentBlock::audio(WAV, "audio/wav")],
        "test_embedded_resource" => vec![ContentBlock::resource(ResourceContents::text(
            "This is an embedded resource content.",
            "test://embedded-resource",
        ))],
        "test_multiple_content_types" => vec![
            ContentBlock::text("Multiple content types test:"),
            image(),
            ContentBlock::resource(
                ResourceContents::text(
                    r#"{"test":"data","value":123}"#,
                    "test://mixed-content-resource",
                )
                .with_mime_type("application/json"),
            ),
        ],
        "test_error_handling" => {
            let why = ContentBlock::text("This tool intentionally returns an error for testing");
            return Some(CallToolResult::error(vec![why]));
        }
        _ => return None,
    };
    Some(CallToolResult::success(blocks))
}

fn image() -> ContentBlock {
    ContentBlock::image(PNG, "image/png")
}
