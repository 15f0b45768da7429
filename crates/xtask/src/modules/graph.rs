//! Which top-level modules need which, and the cycles among them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use super::tree::Tree;
use crate::run::shown_path;

/// The graph among the top-level modules, with the first line behind each edge.
pub(super) struct Graph {
    edges: BTreeMap<(String, String), String>,
}

impl Graph {
    pub(super) fn of(tree: &Tree) -> Self {
        let mut edges: BTreeMap<(String, String), String> = BTreeMap::new();
        for (path, module) in &tree.modules {
            for reference in &module.references {
                let target = tree.resolve(&reference.path);
                let (Some(from), Some(to)) = (path.first(), target.first()) else { continue };
                if from == to {
                    continue;
                }
                let place = format!("{}:{}", shown_path(&module.file), reference.line);
                let known =
                    edges.entry((from.clone(), to.clone())).or_insert_with(|| place.clone());
                // The same edge is always explained by the same line.
                if place < *known {
                    *known = place;
                }
            }
        }
        Self { edges }
    }

    /// Each cycle as text: its modules, and the lines that make its edges.
    pub(super) fn cycles(&self, crate_name: &str) -> Vec<String> {
        let mut graph = DiGraphMap::<&str, ()>::new();
        for (from, to) in self.edges.keys() {
            graph.add_edge(from, to, ());
        }
        let groups = tarjan_scc(&graph).into_iter().filter(|members| members.len() > 1);
        groups.map(|members| self.describe(crate_name, members)).collect()
    }

    fn describe(&self, crate_name: &str, mut members: Vec<&str>) -> String {
        members.sort_unstable();
        let mut text = format!("{crate_name}: {}\n", members.join(", "));
        for ((from, to), place) in &self.edges {
            if members.contains(&from.as_str()) && members.contains(&to.as_str()) {
                let _ = writeln!(text, "    {from} -> {to}  {place}");
            }
        }
        text
    }
}
