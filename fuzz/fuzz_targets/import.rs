//! Any text as a file of another tool: what an importer makes of it is valid, and the same each time.

#![no_main]

use larder::{
    model::snapshot::{Entry, Snapshot},
    stages::{
        import::{Format, Input, import},
        load::load,
    },
};
use libfuzzer_sys::fuzz_target;

const SETTINGS: &[u8] = b"apiVersion: larder.dev/v1alpha1
kind: Settings
spec:
  tenants: {t: {namespace: t}}
";

fuzz_target!(|text: &str| {
    let tenant = "t".parse().expect("a name");
    let inputs = [Input { name: "input".to_owned(), text: text.to_owned() }];
    for format in Format::ALL {
        let imported = import(format, &inputs, &tenant, None);
        assert!(imported == import(format, &inputs, &tenant, None), "{format}: the same text gives another result");
        let files = imported.files.into_iter().map(|(path, text)| (path, Entry::File(text.as_bytes().into())));
        let mut snapshot = Snapshot { files: files.collect(), ..Snapshot::default() };
        snapshot.files.insert("larder.yaml".to_owned(), Entry::File(SETTINGS.into()));
        let found = load(&snapshot).expect("the settings are good");
        assert!(found.strays.is_empty(), "{format}: {:?}", found.strays);
        for (id, result) in &found.environments {
            if let Err(failure) = result {
                panic!("{format}: {id}: {failure}");
            }
        }
    }
});
