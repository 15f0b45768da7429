//! Lists in pages.

use haft::RpcError;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{invalid, read, result};

/// Items per page.
const PAGE: usize = 250;

#[derive(Deserialize)]
struct ListParams {
    #[serde(default)]
    cursor: Option<String>,
}

/// Returns true if this asks for the first page.
pub(super) fn is_first(params: Option<&RawValue>) -> bool {
    read::<ListParams>(params).is_ok_and(|params| params.cursor.is_none())
}

/// The page a request asks for. The cursor is the key of the last item before it: unlike a number it stays
/// right when items come and go.
pub(super) fn page<T: Serialize>(
    params: Option<&RawValue>,
    field: &str,
    items: &[T],
    key: impl Fn(&T) -> &str,
) -> Result<Box<RawValue>, RpcError> {
    let ListParams { cursor } = read(params)?;
    let start = match &cursor {
        None => 0,
        Some(last) => {
            let at = items.iter().position(|item| key(item) == last);
            at.ok_or_else(|| invalid(&"unknown cursor"))? + 1
        }
    };
    let rest = &items[start..];
    let page = &rest[..rest.len().min(PAGE)];
    let mut fields = serde_json::Map::new();
    let items = serde_json::to_value(page).map_err(|error| invalid(&error))?;
    fields.insert(field.to_owned(), items);
    if let Some(last) = page.last().filter(|_| rest.len() > PAGE) {
        fields.insert("nextCursor".to_owned(), key(last).into());
    }
    result(&fields)
}
