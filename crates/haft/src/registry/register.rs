//! The rules: local tools are always strict; a strict server's tools all need an entry; a dynamic
//! server's tools use its default where they have none.

use std::cell::OnceCell;
use std::sync::Arc;

use super::collide::Names;
use super::effective::{Fallback, SettingsOrigin, details, effective, server_default};
use super::{
    ArgumentOverrides, Discovered, KnownTools, Level, LocalDiscovery, LocalRegistrations, Record,
    RegisteredTool, Registration, ToolSource, texts,
};
use crate::config::Dialect;
use crate::config::choices::{Mode, NameCollision, ToolPrefix};
use crate::config::model::{CompiledSchemas, Defaults};
use crate::config::model::{Config, Origin, ServerConfig, ToolEntry};
use crate::config::tool_overrides::ToolOverrides;
use crate::tool::ToolDefinition;
use haft_config::redact::Redactor;
use haft_config::schema::Schema;
use haft_config::schema::SchemaBudget;
use haft_text::lookalike::is_blank;
use haft_text::name::{offered, prefixed};
use haft_text::printable;

/// Registers the discovered tools. `known` is the memory of the last run, if there was one.
pub fn register(config: &Config, found: &Discovered, known: Option<&KnownTools>) -> Registration {
    register_again(config, found, known, &LocalRegistrations::default())
}

/// The same, with the registrations of the last time. The result does not depend on them.
pub(crate) fn register_again(
    config: &Config,
    found: &Discovered,
    known: Option<&KnownTools>,
    before: &LocalRegistrations,
) -> Registration {
    let mut run = Run {
        config,
        known,
        names: Names::default(),
        log: Vec::new(),
        used: Vec::new(),
        before,
        locals: LocalRegistrations::of(&config.defaults),
        schemas: SchemaBudget::of_operator(),
        redactor: OnceCell::new(),
    };
    for tool in &found.local {
        run.local(tool);
    }
    for (name, tools) in &found.servers {
        if let Some(server) = config.servers.iter().find(|server| server.name == *name) {
            run.server(server, tools);
        }
    }
    run.names.flag_misleading(&mut run.log);
    run.report_gone(found);
    let mut next = known.cloned().unwrap_or_default();
    next.retain(|name| config.servers.iter().any(|server| server.name == name));
    for (server, tools) in &found.servers {
        next.remember(server, tools.iter().map(|tool| tool.name.clone()));
    }
    let Run { names, log, locals, .. } = run;
    let Names { tools, violations, .. } = names;
    Registration { tools, records: log, violations, known: next, locals }
}

/// Registers a tool that comes with its call, as a local tool without an entry. Returns `None` if
/// its schema is not usable.
pub(crate) fn inline_tool(
    definition: ToolDefinition,
    defaults: &Defaults,
) -> Option<RegisteredTool> {
    let fallback = Fallback::parallel(defaults);
    Some(RegisteredTool {
        name: offered(&definition.name),
        input: Schema::shared(&definition.input_schema).ok()?,
        output: None,
        definition: Arc::new(definition),
        source: ToolSource::Local,
        effective: effective(None, None, fallback, SettingsOrigin::Default),
        arguments: ArgumentOverrides::default(),
        overrides: None,
        name_warning: None,
        blocked: None,
    })
}

struct Run<'a> {
    config: &'a Config,
    known: Option<&'a KnownTools>,
    names: Names,
    log: Vec<Record>,
    /// Entries of `tools` that matched a tool.
    used: Vec<&'a ToolEntry>,
    /// Local tools as they were registered the last time.
    before: &'a LocalRegistrations,
    /// Those of this time.
    locals: LocalRegistrations,
    /// The budget for the schemas of the source that is being registered.
    schemas: SchemaBudget,
    /// Masks known secrets in declared metadata. Built on first use.
    redactor: OnceCell<Redactor>,
}

impl<'a> Run<'a> {
    fn local(&mut self, tool: &LocalDiscovery) {
        let definition = &tool.definition;
        let entry = self.entry(None, &definition.name, &offered(&definition.name));
        if entry.is_none()
            && let Some(known) = self.before.get(tool, &self.locals)
        {
            let rule = self.config.defaults.on_name_collision.value;
            self.log.push(known.record.clone());
            self.names.add(Arc::clone(&known.tool), rule, &mut self.log);
            self.locals.keep_again(known.clone());
            return;
        }
        let own = tool.settings.as_deref();
        if entry.is_none() && own.is_none() {
            self.violation(texts::unconfigured_local(&definition.name, &self.configured()));
            return;
        }
        let explicit = entry.map(|entry| &entry.settings);
        let settings = effective(
            explicit,
            own,
            Fallback::local(&self.config.defaults),
            if entry.is_some() && own.is_some() {
                SettingsOrigin::Merged
            } else {
                SettingsOrigin::Explicit
            },
        );
        let text = texts::explicit(&definition.name, &settings.details());
        let added = self.add(
            offered(&definition.name),
            self.declared(definition, entry),
            &tool.schemas,
            entry,
            ToolSource::Local,
            settings,
            vec![(Level::Debug, text.clone())],
            self.config.defaults.on_name_collision.value,
        );
        if let (None, Some(added)) = (entry, added) {
            self.locals.keep(tool, added, Record { level: Level::Debug, text });
        }
    }

    fn server(&mut self, server: &'a ServerConfig, tools: &[ToolDefinition]) {
        if tools.is_empty() {
            self.say(Level::Warning, texts::no_tools(&server.name, &server.endpoint));
        }
        let passing =
            tools.iter().filter(|tool| server.filter.value.passes(&server.name, &tool.name));
        self.schemas = SchemaBudget::of_server(
            passing
                .flat_map(|tool| [Some(&tool.input_schema), tool.output_schema.as_ref()])
                .flatten(),
        );
        for tool in tools {
            let name = match server.tool_prefix.value {
                ToolPrefix::None => offered(&tool.name),
                ToolPrefix::Server => prefixed(&server.name, &tool.name),
            };
            let entry = self.entry(Some(&server.name), &tool.name, &name);
            if server.filter.value.passes(&server.name, &tool.name) {
                self.mcp(server, tool, name, entry);
            } else {
                self.say(
                    Level::Debug,
                    format!(
                        "Tool '{}' from MCP server '{}' is left out by its allow or deny list",
                        printable(&tool.name),
                        server.name
                    ),
                );
            }
        }
    }

    fn mcp(
        &mut self,
        server: &'a ServerConfig,
        tool: &ToolDefinition,
        name: String,
        entry: Option<&ToolEntry>,
    ) {
        let own_mode = entry.and_then(|entry| entry.mode.as_ref()).map(|mode| mode.value);
        let default = &server_default(server);
        let fallback = Fallback::mcp(server, &self.config.defaults);
        let (settings, lines) = match (server.mode.value, entry) {
            (Mode::Strict, None) => {
                self.violation(texts::unconfigured(&tool.name, &server.name, &self.configured()));
                return;
            }
            (Mode::Dynamic, Some(entry))
                if own_mode == Some(Mode::Strict) && !is_complete(entry) =>
            {
                self.refuse_incomplete(server, tool);
                return;
            }
            (Mode::Dynamic, Some(entry)) if own_mode != Some(Mode::Strict) => {
                let settings = effective(
                    Some(&entry.settings),
                    Some(default),
                    fallback,
                    SettingsOrigin::Merged,
                );
                let (explicit, default) = (details(&entry.settings), details(default));
                let text = texts::merged(&tool.name, &explicit, &default, &settings.details());
                (settings, vec![(Level::Debug, text)])
            }
            (_, Some(entry)) => {
                let settings =
                    effective(Some(&entry.settings), None, fallback, SettingsOrigin::Explicit);
                let text = texts::explicit(&tool.name, &settings.details());
                (settings, vec![(Level::Debug, text)])
            }
            (Mode::Dynamic, None) => {
                let is_new = self.is_new(server, tool);
                let new = is_new.then(|| texts::discovered(&tool.name, &server.name));
                let default_used = texts::using_default(&tool.name, &server.name);
                // Required by the toolbox format; elsewhere the default is the rule.
                let level =
                    if server.dialect == Dialect::Toolbox { Level::Info } else { Level::Debug };
                let new = new.map(|text| (Level::Info, text));
                let lines = new.into_iter().chain([(level, default_used)]);
                let settings = effective(None, Some(default), fallback, SettingsOrigin::Default);
                (settings, lines.collect())
            }
        };
        let source = ToolSource::Mcp { mcp_name: server.name.clone(), mcp_mode: server.mode.value };
        let rule = self.collision_rule(server);
        let definition = self.declared(&Arc::new(tool.clone()), entry);
        let schemas = CompiledSchemas::default();
        self.add(name, definition, &schemas, entry, source, settings, lines, rule);
    }

    /// Returns a tool's definition with the metadata that its entry declares. A file may contain a
    /// known secret there, so it is redacted like a description.
    fn declared(
        &self,
        definition: &Arc<ToolDefinition>,
        entry: Option<&ToolEntry>,
    ) -> Arc<ToolDefinition> {
        let is_changed =
            |entry: &&ToolEntry| !(entry.metadata.is_empty() && entry.overrides.is_empty());
        let Some(entry) = entry.filter(is_changed) else {
            return Arc::clone(definition);
        };
        let mut declared = ToolDefinition::clone(definition);
        entry.metadata.apply(&mut declared);
        if let Some(description) = &entry.overrides.description {
            declared.description.clone_from(&description.value);
        }
        let redactor = || Redactor::of_known(self.config.described_secrets());
        Arc::new(declared.masked(self.redactor.get_or_init(redactor)))
    }

    /// The default of a format applies to the servers of that format only: the toolbox format lets
    /// a later server replace tools, other formats do not.
    fn collision_rule(&self, server: &ServerConfig) -> NameCollision {
        let rule = &self.config.defaults.on_name_collision;
        match rule.origin {
            Origin::Format(dialect) if dialect != server.dialect => NameCollision::Prefix,
            _ => rule.value,
        }
    }

    /// Adds a tool whose schemas compile, and returns it as it was before collisions. Its registration records are
    /// emitted only then.
    #[expect(clippy::too_many_arguments, reason = "the parts of one registration")]
    fn add(
        &mut self,
        name: String,
        definition: Arc<ToolDefinition>,
        compiled: &CompiledSchemas,
        entry: Option<&ToolEntry>,
        source: ToolSource,
        effective: super::Effective,
        lines: Vec<(Level, String)>,
        rule: NameCollision,
    ) -> Option<Arc<RegisteredTool>> {
        if is_blank(&definition.name) {
            let text = format!("A tool{} has no name and is not registered", source.phrase());
            self.say(Level::Warning, text);
            return None;
        }
        let mut compile = |known: &Option<Arc<Schema>>, schema| match known {
            Some(known) => Ok(Arc::clone(known)),
            None => self.schemas.compile(schema),
        };
        let input = compile(&compiled.input, &definition.input_schema);
        let output =
            definition.output_schema.as_ref().map(|schema| compile(&compiled.output, schema));
        let schemas = match (input, output.transpose()) {
            (Ok(input), Ok(output)) => Ok((input, output)),
            (Err(problem), _) => Err(format!("its input schema is not usable: {problem}")),
            (_, Err(problem)) => Err(format!("its output schema is not usable: {problem}")),
        };
        let (input, output) = match schemas {
            Ok((input, output)) => (input, output),
            Err(problem) => {
                let text = format!(
                    "Tool '{}'{} is not registered: {}",
                    printable(&definition.name),
                    source.phrase(),
                    printable(&problem)
                );
                self.say(Level::Warning, text);
                return None;
            }
        };
        let mut tool = RegisteredTool {
            name,
            definition,
            source,
            effective,
            arguments: ArgumentOverrides::default(),
            overrides: None,
            input,
            output,
            name_warning: None,
            blocked: None,
        };
        if let Some(entry) = entry.filter(|entry| !entry.overrides.is_empty())
            && let Err(problem) = self.override_tool(&mut tool, &entry.overrides)
        {
            let text = format!(
                "Tool '{}'{} is not registered: {}",
                printable(&tool.definition.name),
                tool.source.phrase(),
                printable(&problem)
            );
            self.say(Level::Error, text);
            return None;
        }
        for (level, text) in lines {
            self.say(level, text);
        }
        let tool = Arc::new(tool);
        self.names.add(Arc::clone(&tool), rule, &mut self.log);
        Some(tool)
    }

    /// Applies the overrides of an entry. The tool's own schema still validates what it receives; the shown
    /// one lacks the hidden arguments.
    fn override_tool(
        &mut self,
        tool: &mut RegisteredTool,
        overrides: &ToolOverrides,
    ) -> Result<(), String> {
        let arguments = ArgumentOverrides::new(overrides);
        let own = &tool.definition.input_schema;
        if let Some(conflict) = arguments.conflict(own) {
            return Err(conflict);
        }
        for name in arguments.unknown(own) {
            let text = format!(
                "Tool '{}'{} has no argument `{name}`, which its entry hides or fixes",
                printable(&tool.definition.name),
                tool.source.phrase()
            );
            self.say(Level::Warning, text);
        }
        if !arguments.is_empty() {
            let input_schema = arguments.hide(own);
            let definition = ToolDefinition::clone(&tool.definition);
            tool.definition = Arc::new(ToolDefinition { input_schema, ..definition });
        }
        if let Some(rename) = &overrides.rename {
            tool.name.clone_from(&rename.value);
        }
        tool.arguments = arguments;
        tool.overrides = Some(Arc::new(overrides.clone()));
        Ok(())
    }

    /// Returns the entry for a tool. An entry that names the server has precedence.
    fn entry(&mut self, server: Option<&str>, own: &str, offered: &str) -> Option<&'a ToolEntry> {
        let config = self.config;
        let speaks = |entry: &&ToolEntry| speaks_of(entry, server, own, offered);
        let entries: Vec<_> = config.tools.iter().filter(speaks).collect();
        // An overruled entry matches this tool too, so it is not reported as gone.
        self.used.extend(&entries);
        let exact = entries.iter().rev().find(|entry| entry.mcp.is_some());
        exact.or(entries.last()).copied()
    }

    /// Reports entries without a matching tool: the tool is gone from its server.
    fn report_gone(&mut self, found: &Discovered) {
        let unused: Vec<&ToolEntry> = self
            .config
            .tools
            .iter()
            .filter(|entry| !self.used.iter().any(|used| std::ptr::eq(*used, *entry)))
            .collect();
        for entry in unused {
            let servers = self.candidates(entry, found);
            if servers.is_empty() && self.unasked(found).next().is_none() {
                let text = format!(
                    "Tool '{}' is configured but nothing provides it: no server and no local tool \
                     has that name",
                    entry.name
                );
                self.say(Level::Warning, text);
            }
            for server in servers {
                self.say(Level::Warning, texts::gone(&entry.name, server));
            }
        }
    }

    /// Servers that may have tools but did not answer.
    fn unasked(&self, found: &Discovered) -> impl Iterator<Item = &'a str> {
        let has_tools = |server: &&ServerConfig| !server.disabled.value && server.load_tools.value;
        let is_asked = |name: &str| found.servers.iter().any(|(asked, _)| asked == name);
        let servers = self.config.servers.iter().filter(has_tools);
        servers.map(|server| server.name.as_str()).filter(move |name| !is_asked(name))
    }

    /// Returns the servers that a missing tool may have belonged to: the one its entry names,
    /// otherwise those that had it in an earlier run, otherwise the only configured server. Empty
    /// if one of them did not answer, because it may still have the tool.
    fn candidates<'f>(&self, entry: &ToolEntry, found: &'f Discovered) -> Vec<&'f str> {
        let asked = || found.servers.iter().map(|(name, _)| name.as_str());
        if let Some(mcp) = &entry.mcp {
            return asked().filter(|name| name == mcp).collect();
        }
        let had = |name: &str| {
            let tools = self.known.and_then(|known| known.of(name));
            tools.is_some_and(|tools| tools.contains(&entry.name))
        };
        let remembered: Vec<_> = asked().filter(|name| had(name)).collect();
        let servers = asked().count() + self.unasked(found).count();
        if remembered.is_empty() && servers == 1 { asked().collect() } else { remembered }
    }

    /// A tool is new if the server is remembered and the tool is not.
    fn is_new(&self, server: &ServerConfig, tool: &ToolDefinition) -> bool {
        let known = self.known.and_then(|known| known.of(&server.name));
        known.is_some_and(|tools| !tools.contains(&tool.name))
    }

    fn refuse_incomplete(&mut self, server: &ServerConfig, tool: &ToolDefinition) {
        let text = format!(
            "Tool '{}' from MCP server '{}' is refused: its entry says `mode: strict`, so it takes \
             nothing from default_tool_config and must set both `max_instances` and `timeout` itself",
            printable(&tool.name),
            server.name
        );
        self.say(Level::Error, text);
    }

    fn configured(&self) -> Vec<&'a str> {
        self.config.tools.iter().map(|entry| entry.name.as_str()).collect()
    }

    fn violation(&mut self, text: String) {
        self.say(Level::Error, text.clone());
        self.names.violations.push(text);
    }

    fn say(&mut self, level: Level, text: String) {
        self.log.push(Record { level, text });
    }
}

/// Returns true if an entry is about the tool `own` of `server`, which is offered as `offered`.
pub(super) fn speaks_of(entry: &ToolEntry, server: Option<&str>, own: &str, offered: &str) -> bool {
    let mcp = entry.mcp.as_deref();
    (entry.name == own || entry.name == offered) && (mcp.is_none() || mcp == server)
}

pub(super) fn is_complete(entry: &ToolEntry) -> bool {
    entry.settings.max_instances.is_some() && entry.settings.timeout.is_some()
}
