//! Macros that declare the configuration: one declaration yields the type, its reader and its JSON
//! Schema, so that an editor and Haft always agree.

/// Declares a record: struct, reader, schema and overlay in one place.
macro_rules! record {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident($what:literal, $unknown:ident) {
            $( $(#[doc = $doc:literal])+ $field:ident ($key:literal $(| $alias:literal)*): $type:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        $vis struct $name {
            /// The place of the record. Not every record has a problem to report about itself.
            #[allow(dead_code)]
            pub place: $crate::config::place::Place,
            /// Keys whose values could not be read and were reported.
            #[allow(dead_code)]
            pub broken: Vec<&'static str>,
            $( $(#[doc = $doc])+ pub $field: Option<$crate::config::place::At<$type>>, )*
        }

        impl $name {
            /// A record in which nothing is set.
            pub fn empty(place: $crate::config::place::Place) -> Self {
                Self { place, broken: Vec::new(), $($field: None,)* }
            }
        }

        impl $crate::config::read::FromNode for $name {
            fn read(
                node: &$crate::config::node::Node,
                reader: &mut $crate::config::read::Reader<'_>,
            ) -> Option<Self> {
                if !node.is_map() {
                    reader.expected(node, $what, "`key: value` lines");
                    return None;
                }
                let mut record = Self::empty(reader.place(node));
                for entry in node.entries() {
                    match entry.key.as_str() {
                        $( $key $(| $alias)* => {
                            let read = reader.field(entry, &mut record.$field);
                            if read == $crate::config::read::Read::Broken {
                                record.broken.push($key);
                            }
                        } )*
                        _ => reader.unknown(
                            entry, $what, &[$($key),*], $crate::config::read::Unknown::$unknown,
                        ),
                    }
                }
                Some(record)
            }

            fn schema() -> serde_json::Value {
                #[allow(unused_mut)]
                let mut properties = serde_json::Map::new();
                $( {
                    let mut schema = <$type as $crate::config::read::FromNode>::schema();
                    let text = concat!($($doc, "\n"),+).trim().replace("\n ", "\n");
                    schema["description"] = serde_json::Value::String(text);
                    $( properties.insert($alias.to_owned(), schema.clone()); )*
                    properties.insert($key.to_owned(), schema);
                } )*
                serde_json::json!({
                    "type": "object", "properties": properties, "additionalProperties": false
                })
            }

            fn overlay(&mut self, over: Self) {
                $( match (&mut self.$field, over.$field) {
                    (Some(known), Some(over)) => known.overlay(over),
                    (slot, Some(over)) => *slot = Some(over),
                    (_, None) => {}
                } )*
            }
        }
    };
}

/// Declares an enum whose variants are words of the configuration.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident($what:literal) {
            $( $(#[doc = $doc:literal])+ $variant:ident = $word:literal $(| $alias:literal)*, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        $vis enum $name {
            $( $(#[doc = $doc])+ #[serde(rename = $word)] $variant, )+
        }

        impl $name {
            /// The word in a file.
            pub fn word(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }

        impl $crate::config::read::FromNode for $name {
            fn read(
                node: &$crate::config::node::Node,
                reader: &mut $crate::config::read::Reader<'_>,
            ) -> Option<Self> {
                let words = [$($word $(, $alias)*),+];
                match node.as_text() {
                    $( Some($word $(| $alias)*) => Some(Self::$variant), )+
                    Some(_) => {
                        let allowed = haft_text::list(&words);
                        reader.error(
                            node,
                            format!(concat!("`{}` is not ", $what), node.shown_text()),
                            format!("use one of {allowed}"),
                        );
                        None
                    }
                    None => {
                        let allowed = haft_text::list(&words);
                        reader.expected(node, $what, &format!("one of {allowed}"));
                        None
                    }
                }
            }
            fn schema() -> serde_json::Value {
                serde_json::json!({ "enum": [$($word $(, $alias)*),+] })
            }
        }
    };
}

pub(crate) use {choice, record};
