//! Metadata of tools: what clients must refuse is refused here, and sizes are bounded.

use super::explicit;
use crate::config::metadata::ToolMetadata;
use crate::config::model::Setting;
use crate::config::place::{At, Problems};
use crate::config::raw_metadata::{RawAnnotations, RawIcon, RawIconTheme};
use crate::tool_metadata::{
    ICONS_MAX, Icon, IconError, IconTheme, TITLE_CHARS_MAX, ToolAnnotations,
};

pub(super) fn compile(
    title: Option<At<String>>,
    annotations: Option<At<RawAnnotations>>,
    icons: Option<At<Vec<RawIcon>>>,
    problems: &mut Problems,
) -> ToolMetadata {
    ToolMetadata {
        title: title.map(|at| checked_title(at, problems)),
        annotations: annotations.map(|at| hints(at, problems)),
        icons: icons.map(|at| icon_list(at, problems)),
    }
}

fn checked_title(at: At<String>, problems: &mut Problems) -> Setting<String> {
    let title = &at.value;
    let problem = if title.trim().is_empty() {
        Some("the title is empty".to_owned())
    } else if title.chars().any(char::is_control) {
        Some("the title has a line break or control character".to_owned())
    } else if title.chars().count() > TITLE_CHARS_MAX {
        Some(format!("the title is longer than {TITLE_CHARS_MAX} characters"))
    } else {
        None
    };
    if let Some(problem) = problem {
        problems.error(&at.place, problem, "write a short name for people, on one line");
    }
    explicit(at, |title| title)
}

fn hints(
    At { value: raw, place }: At<RawAnnotations>,
    problems: &mut Problems,
) -> Setting<ToolAnnotations> {
    let RawAnnotations {
        place: _,
        broken: _,
        title,
        read_only,
        destructive,
        idempotent,
        open_world,
    } = raw;
    let mut hints = ToolAnnotations::new();
    if let Some(title) = title {
        hints = hints.title(checked_title(title, problems).value);
    }
    if let Some(hint) = read_only {
        hints = hints.read_only(hint.value);
    }
    if let Some(hint) = destructive {
        hints = hints.destructive(hint.value);
    }
    if let Some(hint) = idempotent {
        hints = hints.idempotent(hint.value);
    }
    if let Some(hint) = open_world {
        hints = hints.open_world(hint.value);
    }
    explicit(At { value: hints, place }, |hints| hints)
}

fn icon_list(
    At { value: raw, place }: At<Vec<RawIcon>>,
    problems: &mut Problems,
) -> Setting<Vec<Icon>> {
    if raw.len() > ICONS_MAX {
        problems.error(
            &place,
            format!("a tool has more than {ICONS_MAX} icons"),
            "keep one for each size and theme that matters",
        );
    }
    let icons = raw.into_iter().take(ICONS_MAX).filter_map(|raw| icon(raw, problems)).collect();
    explicit(At { value: icons, place }, |icons| icons)
}

fn icon(raw: RawIcon, problems: &mut Problems) -> Option<Icon> {
    let RawIcon { place, broken, src, mime_type, sizes, theme } = raw;
    let Some(src) = src else {
        if !broken.contains(&"src") {
            problems.error(&place, "an icon has no `src`", "add `src: https://...`");
        }
        return None;
    };
    let mut noted = |result: Result<Icon, IconError>, place: &_| match result {
        Ok(icon) => Some(icon),
        Err(IconError { problem, remedy }) => {
            problems.error(place, problem, remedy);
            None
        }
    };
    let mut icon = noted(Icon::new(&src.value), &src.place)?;
    if let Some(mime_type) = mime_type {
        icon = noted(icon.with_mime_type(&mime_type.value), &mime_type.place)?;
    }
    if let Some(sizes) = sizes {
        icon = noted(icon.with_sizes(&sizes.value), &sizes.place)?;
    }
    Some(match theme.map(|theme| theme.value) {
        Some(RawIconTheme::Light) => icon.with_theme(IconTheme::Light),
        Some(RawIconTheme::Dark) => icon.with_theme(IconTheme::Dark),
        None => icon,
    })
}
