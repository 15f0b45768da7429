//! A compiled tool at another position of its file.

use std::sync::Arc;

use super::call_limits::LimitSettings;
use super::metadata::ToolMetadata;
use super::model::{LocalTool, Origin, Setting, ToolSettings};
use super::node::Mark;
use super::place::Place;

/// The move of an entry in a file: its position in the list, and where it begins.
pub(super) struct Shift {
    pub(super) from: (usize, Mark),
    pub(super) to: (usize, Mark),
}

impl Shift {
    /// The tool with the places of its new position.
    pub(super) fn apply(&self, tool: &Arc<LocalTool>) -> Arc<LocalTool> {
        if self.from == self.to {
            return Arc::clone(tool);
        }
        let mut moved = LocalTool::clone(tool);
        let LocalTool {
            definition: _,
            schemas: _,
            metadata: ToolMetadata { title, annotations, icons },
            settings,
            program: _,
            background,
            sandbox,
            schema: _,
            env: _,
            prepared: _,
            tools_dir: _,
            place,
        } = &mut moved;
        self.place(place);
        self.maybe(title);
        self.maybe(annotations);
        self.maybe(icons);
        self.settings(Arc::make_mut(settings));
        self.origin(&mut background.origin);
        self.origin(&mut sandbox.origin);
        Arc::new(moved)
    }

    fn settings(&self, settings: &mut ToolSettings) {
        let ToolSettings {
            max_instances,
            timeout,
            parallel_capable,
            approval,
            on_limit,
            limits: LimitSettings { rate, burst, quota },
            examples,
        } = settings;
        self.maybe(max_instances);
        self.maybe(timeout);
        self.maybe(parallel_capable);
        self.maybe(approval);
        self.maybe(on_limit);
        self.maybe(rate);
        self.maybe(burst);
        self.maybe(quota);
        self.maybe(examples);
    }

    fn maybe<T>(&self, setting: &mut Option<Setting<T>>) {
        if let Some(setting) = setting {
            self.origin(&mut setting.origin);
        }
    }

    fn origin(&self, origin: &mut Origin) {
        match origin {
            Origin::Explicit(place) | Origin::ServerDefault(_, place) => self.place(place),
            Origin::Implied(_) | Origin::Format(_) | Origin::Default => {}
        }
    }

    /// Moves a place inside the entry.
    fn place(&self, place: &mut Place) {
        let ((old, from), (new, to)) = (self.from, self.to);
        if place.line == from.line {
            place.column = to.column + place.column - from.column;
        }
        place.line = to.line + place.line - from.line;
        if let Some(inside) = place.path.strip_prefix(&format!("tools[{old}]")) {
            place.path = format!("tools[{new}]{inside}");
        }
    }
}
