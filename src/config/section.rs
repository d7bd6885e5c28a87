//! Sections whose settings are a table: a key, its type, and the method of the reader with its range.

/// A value as TOML, by the method that reads it.
macro_rules! toml {
    (duration $value:expr) => {
        format!("{:?}", crate::config::duration::show($value))
    };
    (handles $value:expr) => {
        format!("{:?}", $value.iter().map(Handle::as_str).collect::<Vec<_>>())
    };
    ($number:ident $value:expr) => {
        $value.to_string()
    };
}

/// Declares the settings and reads each from the key of its name. `$check` compares the read ones.
macro_rules! section {
    ($section:literal $Settings:ident, $reader:ident$(: $check:expr)?; $(
        $(#[$doc:meta])* $name:ident: $type:ty = $read:ident$(($range:expr))?;
    )+) => {
        #[doc = concat!("`[", $section, "]`")]
        #[derive(Clone, Debug)]
        pub struct $Settings {
            $($(#[$doc])* pub $name: $type,)+
        }

        /// Reads and checks the section.
        pub(super) fn settings($reader: &mut Reader) -> Option<$Settings> {
            $(let $name = $reader.$read(concat!($section, ".", stringify!($name)) $(, $range)?);)+
            $($check;)?
            Some($Settings { $($name: $name?,)+ })
        }

        /// The keys and their values as TOML.
        pub(super) fn shown(settings: &$Settings) -> [(&str, String); [$(stringify!($name)),+].len()] {
            [$((stringify!($name), toml!($read settings.$name)),)+]
        }
    };
}
